# SPDX-License-Identifier: Apache-2.0
"""Collectives of torch.distributed, in two processes. They write without a word in their schemas, and may go on when
their operator has ended."""

import os
import tempfile
import time
import unittest

import torch
import torch._dynamo  # once, and not in each process: it takes seconds
import torch._inductor.utils
import torch.distributed as dist

import swapmm.torch

BUDGET = "1MiB"  # of 3 MiB
LONGEST = 120  # seconds


def others():
    return [torch.randn(100, 100) * 1.0 for _ in range(64)]


def use(tensors):
    for tensor in tensors:
        tensor + 1


def expect(found, expected):
    if not torch.equal(found, torch.full_like(found, expected)):
        raise AssertionError(f"found {found.mean().item()}, expected {expected}")


def all_reduce_of_what_is_in_host_memory(rank):
    mine, rest = torch.full((100, 100), rank + 1.0), others()
    use(rest)  # it leaves, and comes back unchanged
    expect(mine, rank + 1.0)
    dist.all_reduce(mine)
    use(rest)
    expect(mine, 3.0)


def collectives_that_go_on(rank):
    mine, rest = torch.full((100, 100), rank + 1.0), others()
    use(rest)
    mine.sum()
    works = [dist.all_reduce(mine, async_op=True)]
    use(rest)
    for work in works:
        work.wait()
    expect(mine, 3.0)


def broadcast_and_gather(rank):
    given, rest = torch.full((100, 100), float(rank)), others()
    use(rest)
    dist.broadcast(given, 1)
    parts = [torch.zeros(50, 100) for _ in range(2)]
    use(rest)
    dist.all_gather(parts, torch.full((50, 100), rank + 5.0))
    use(rest)
    expect(given, 1.0)
    expect(parts[0], 5.0)
    expect(parts[1], 6.0)


def replicas(rank):
    """DistributedDataParallel: all have the same weights after each step."""
    torch.manual_seed(rank)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(*[torch.nn.Linear(64, 64) for _ in range(12)]))
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    for _ in range(4):
        optimizer.zero_grad()
        model(torch.randn(32, 64)).pow(2).mean().backward()
        optimizer.step()
    for parameter in model.parameters():
        parts = [torch.zeros_like(parameter) for _ in range(2)]
        dist.all_gather(parts, parameter.detach().clone())
        if not torch.equal(parts[0], parts[1]):
            raise AssertionError("the replicas differ")


def run(rank, program, folder):
    dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=2)
    swapmm.torch.budget(BUDGET, "cpu")
    program(rank)
    swapmm.torch.off()
    dist.barrier()
    dist.destroy_process_group()


class DistributedTest(unittest.TestCase):
    def in_two_processes(self, program):
        with tempfile.TemporaryDirectory() as folder:
            children = []
            for rank in range(2):
                child = os.fork()
                if child == 0:
                    status = 1
                    try:
                        run(rank, program, folder)
                        status = 0
                    except BaseException as error:  # the parent tells
                        os.write(2, f"process {rank}: {type(error).__name__}: {error}\n".encode())
                    finally:
                        os._exit(status)
                children.append(child)
            end, left, failed = time.monotonic() + LONGEST, set(children), []
            while left and not failed and time.monotonic() < end:
                for child in list(left):
                    done, status = os.waitpid(child, os.WNOHANG)
                    if done:
                        left.discard(child)
                        failed += [status] if status else []
                time.sleep(0.01)
            for child in left:
                os.kill(child, 9)
                os.waitpid(child, 0)
            self.assertFalse(failed or left, f"statuses {failed}, {len(left)} did not end")

    def test_a_value_that_is_also_in_host_memory_is_changed(self):
        self.in_two_processes(all_reduce_of_what_is_in_host_memory)

    def test_collectives_that_go_on_keep_their_tensors_in_place(self):
        self.in_two_processes(collectives_that_go_on)

    def test_broadcast_and_gather(self):
        self.in_two_processes(broadcast_and_gather)

    def test_replicas_stay_equal(self):
        self.in_two_processes(replicas)


if __name__ == "__main__":
    unittest.main()
