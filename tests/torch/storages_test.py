# SPDX-License-Identifier: Apache-2.0
"""Storages as such: those that programs hand to PyTorch, and those that get another size."""

import contextlib
import ctypes
import tempfile
import types
import unittest
import unittest.mock
import warnings

import torch
from torch import tensor as tensor_by_name
from torch.utils.dlpack import to_dlpack as to_dlpack_by_name

import swapmm.torch
from swapmm.torch import adapter as adapters
from swapmm.torch.cuda import CudaMemory
from swapmm.torch.operators import in_groups, signature_of

KiB = 1 << 10
MiB = 1 << 20


class StoragesTest(unittest.TestCase):
    """Within a budget in which everything leaves after each operator."""

    def setUp(self):
        warnings.simplefilter("ignore")  # PyTorch warns of results that grow

    def begin(self, size="8MiB", **options):
        swapmm.torch.budget(size, "cpu", demand_mode="per_operation", **options)
        self.addCleanup(swapmm.torch.off)
        self.others = [torch.full((1 << 18,), float(i)) for i in range(12)]  # more than the budget

    def move(self):
        for other in self.others:
            other.add_(1)

    def adapter(self):
        return swapmm.torch._adapter()

    def test_a_tensor_of_a_storage(self):
        self.begin()
        values = torch.arange(1 << 16, dtype=torch.float32)
        storage = values.untyped_storage()
        self.move()
        other = torch.empty(0).set_(storage)
        part = torch.empty(0).set_(storage, 100, (50,), (2,))
        self.move()
        self.assertEqual(other.numel(), 1 << 16)
        self.assertEqual(other.sum().item(), float(sum(range(1 << 16))))
        self.assertEqual(part.tolist(), [float(i) for i in range(100, 200, 2)])
        other.mul_(2)  # they share the bytes
        self.move()
        self.assertEqual(values[3].item(), 6.0)

    def test_functions_that_were_imported_before(self):
        """By their names, so that the program has PyTorch's own."""
        self.begin()
        values = torch.arange(1 << 16, dtype=torch.float32)
        self.move()
        self.assertEqual(tensor_by_name([values[3], values[5]]).tolist(), [3.0, 5.0])
        self.move()
        copy = torch.asarray(to_dlpack_by_name(values), copy=True)
        self.move()
        self.assertEqual(copy.sum().item(), float(sum(range(1 << 16))))
        swapmm.torch.off()
        self.assertIs(to_dlpack_by_name, torch.utils.dlpack.to_dlpack)
        self.assertIs(tensor_by_name, torch.tensor)
        self.assertIsInstance(tensor_by_name, types.BuiltinFunctionType)  # PyTorch's, and none of ours

    def test_lists_without_an_end(self):
        self.begin()
        endless = []
        endless.append(endless)
        with self.assertRaises(ValueError):
            torch.tensor(endless)
        with self.assertRaises(ValueError):
            torch.as_tensor(endless)

    def test_storages_copied_from_storages(self):
        self.begin()
        first, second = torch.full((1 << 16,), 3.0), torch.zeros(1 << 16)
        sources = first.untyped_storage(), second.untyped_storage()
        self.move()
        sources[1].copy_(sources[0])
        self.move()
        self.assertEqual(set(second.tolist()), {3.0})
        self.assertEqual(set(first.tolist()), {3.0})

    def test_storages_are_filled_from_files_later(self):
        """As torch.load() does with the older format: tensors are there before the bytes."""
        values = {i: torch.full((1 << 18,), float(i)) for i in range(12)}  # more than the budget
        with tempfile.NamedTemporaryFile() as file:
            torch.save(values, file, _use_new_zipfile_serialization=False)
            file.flush()
            self.begin()
            with open(file.name, "rb") as opened:
                loaded = torch.load(opened)
        self.move()
        for i, value in values.items():
            self.assertTrue(torch.equal(loaded[i], value))

    def test_storages_that_grow_count(self):
        self.begin()
        before = self.adapter().kept.bytes
        small = torch.zeros(4)
        small.add_(1)
        small.resize_(1 << 20)  # 4 MiB, which the manager moves from now on
        small.fill_(5.0)
        self.move()
        self.assertLess(self.adapter().kept.bytes, before + 64 * KiB)
        self.assertEqual(small[-1].item(), 5.0)
        self.assertGreater(swapmm.torch.report().copied_in, 4 * MiB)

    def test_results_that_make_their_tensors_grow(self):
        self.begin()
        one, two = torch.full((1 << 18,), 1.0), torch.full((1 << 18,), 2.0)
        for result in (torch.zeros(2), torch.zeros(2048), torch.empty(0)):
            before = self.adapter().kept.bytes
            result.detach()
            self.move()
            torch.add(one, two, out=result)
            self.move()
            self.assertLess(self.adapter().kept.bytes, before + 64 * KiB)
            self.assertEqual(set(result.tolist()), {3.0})

    def test_storages_that_are_emptied_and_filled(self):
        """As programs do that share weights among devices."""
        self.begin()
        kept = self.adapter().kept
        weight = torch.full((1 << 18,), 2.0)
        weight.mul(2)
        for _ in range(3):
            weight.untyped_storage().resize_(0)
            self.assertLess(kept.bytes, MiB)
            self.move()
            weight.untyped_storage().resize_(MiB)
            self.assertEqual(nbytes(weight), MiB)
            weight.fill_(7.0)
            self.move()
            self.assertEqual(set(weight.tolist()), {7.0})
            swapmm.torch.step()
        self.assertLess(kept.bytes, MiB)

    def test_too_large_for_the_budget_after_all(self):
        self.begin()
        small = torch.zeros(4)
        small.add_(1)
        with self.assertRaises(swapmm.errors.Error):
            small.resize_(4 * MiB)  # 16 MiB
            small.fill_(1.0)
        del small
        self.move()
        self.assertEqual(self.others[2][5].item(), 3.0)

    def test_sizes_are_not_learned_for_each_number(self):
        self.begin()
        known = self.adapter().sizes._known
        value = torch.ones(1 << 12)
        for i in range(5):
            value = value.mul(1.0 + i).clamp(0.0, 1e9 + i).add_(value, alpha=0.5 + i)
        before = len(known)
        for i in range(100):
            value = value.mul(1e-9 * i).clamp(0.0, 1e9 * i).add_(value, alpha=0.25 * i).clamp_max_(9.0 * i)
            torch.full((1 << 12,), 0.5 + i)
        self.assertLessEqual(len(known), before + 2)
        self.assertEqual(torch.arange(0.0, 1024.0 * 8, 0.5).numel(), 16 * KiB)
        self.assertEqual(torch.arange(0.0, 1024.0 * 8, 1.0).numel(), 8 * KiB)

    def test_what_schemas_say_about_sizes(self):
        aten = torch.ops.aten
        self.assertEqual(signature_of(aten.clamp.default).scalars, {0, 1, 2})
        self.assertEqual(signature_of(aten.full.default).scalars, {1})
        self.assertEqual(signature_of(aten.arange.start_step).scalars, frozenset())
        self.assertTrue(signature_of(aten.add_.Tensor).makes_nothing)
        self.assertFalse(signature_of(aten.add.Tensor).makes_nothing)
        self.assertFalse(signature_of(aten.add.out).makes_nothing)
        self.assertTrue(signature_of(aten.add.out).has_out)

    def test_small_tensors_that_come_and_go_in_each_iteration_leave_it_whole(self):
        def program(steps):
            torch.manual_seed(3)
            layers = [torch.nn.Linear(128, 128) for _ in range(8)]
            optimizer = torch.optim.SGD([p for layer in layers for p in layer.parameters()], lr=1e-3)
            for _ in range(steps):
                value = torch.ones(64, 128)
                few = []
                for layer in layers:
                    value = torch.tanh(layer(value))
                    few += [torch.full((700,), float(i)) for i in range(24)]  # of 2,800 bytes
                del few
                optimizer.zero_grad()
                value.sum().backward()
                optimizer.step()
            return [p.detach().clone() for layer in layers for p in layer.parameters()]

        plain = program(12)
        swapmm.torch.off()
        swapmm.torch.budget("1500KiB", "cpu")
        before = swapmm.torch.report().manager["budget_changes"]
        ours = program(12)
        report = swapmm.torch.report()
        self.assertTrue(all(torch.equal(a, b) for a, b in zip(ours, plain)))
        self.assertEqual(report.iterations, 12)
        self.assertGreaterEqual(report.iterations_followed, 6)
        self.assertLess(report.manager["budget_changes"] - before, 24)  # as the first iteration finds them
        # What was set aside for them is not lost to others.
        large = torch.full((350 << 8,), 1.0)  # 350 KiB
        others = [torch.full((350 << 8,), float(i)) for i in range(3)]
        self.assertEqual(torch.stack([large.sum(), *[other.sum() for other in others]]).tolist()[0], 350 << 8)

    def test_operators_on_lists_run_in_groups(self):
        first = [torch.randn(size) for size in (10, 2000, 30, 4000, 5000, 6, 7)]
        second = [torch.randn_like(value) for value in first]
        wanted = torch._foreach_add(first, second, alpha=0.5)
        counts = []

        def add(*args, **kwargs):
            counts.append(len(args[0]))
            return torch._foreach_add(*args, **kwargs)

        for limit, groups in ((1, [1] * 7), (20_000, [3, 1, 1, 2]), (60_000, [4, 3]), (1 << 30, [7])):
            counts.clear()
            found = in_groups(add, limit, (first, second), {"alpha": 0.5})
            self.assertEqual(counts, groups)
            self.assertTrue(all(map(torch.equal, found, wanted)))
        in_groups(torch._foreach_add_, 20_000, (first, second), {"alpha": 0.5})
        self.assertTrue(all(map(torch.equal, first, wanted)))

    def test_elements_of_lists(self):
        self.begin()
        values = torch.arange(1 << 16, dtype=torch.float32)
        self.move()
        made = values.new_tensor([values[5], values[7]])
        self.move()
        sparse = torch.sparse_coo_tensor([[1, 2]], [values[9], values[11]], (4,))
        self.move()
        self.assertEqual(made.tolist(), [5.0, 7.0])
        self.assertEqual(sparse.to_dense().tolist(), [0.0, 9.0, 11.0, 0.0])

    def test_off_loses_nothing_but_what_has_no_room(self):
        """PyTorch's allocator refuses one storage."""
        self.begin()
        resize, refused = adapters.resize_storage, self.others[5].untyped_storage()

        def refusing(storage, size):
            if size and storage._cdata == refused._cdata:
                raise RuntimeError("no room")
            resize(storage, size)

        with unittest.mock.patch.object(adapters, "resize_storage", refusing):
            with self.assertRaisesRegex(RuntimeError, "no room"):
                swapmm.torch.off()
        for i, other in enumerate(self.others):
            self.assertEqual(nbytes(other), 0 if i == 5 else MiB)
            if i != 5:
                self.assertTrue(torch.equal(other, torch.full((1 << 18,), float(i))))


    def test_a_wrong_budget_leaves_the_first_one(self):
        self.begin()
        session = swapmm.torch._session
        for size, device, text in (("abc", "cpu", "abc"), ("50%", "cpu", "shares are for CUDA"), ("1GB", "meta", "no backend")):
            with self.assertRaisesRegex(swapmm.Error, text):
                swapmm.torch.budget(size, device)
        if not torch.cuda.is_available():
            with self.assertRaisesRegex(swapmm.UsageError, "no CUDA device"):
                swapmm.torch.budget("8GB", "cuda")
        self.assertIs(swapmm.torch._session, session)
        self.move()
        self.assertEqual(self.others[3][0].item(), 4.0)


class CudaTest(unittest.TestCase):
    """What needs no GPU of the memory of one."""

    def memory(self, used, reserved, limit, refused):
        class Library:
            def torch_numbers(self, address):
                (ctypes.c_uint64 * 4).from_address(address)[:] = [each * MiB for each in (used, used, reserved, refused)]

        memory = CudaMemory.__new__(CudaMemory)
        memory.library, memory._numbers, memory.pool_limit = Library(), (ctypes.c_uint64 * 4)(), limit * MiB
        return memory

    def test_a_pool_that_refused_grows(self):
        self.assertEqual(self.memory(1229, 1229, 2048, 0).more_pool(), 0)
        self.assertGreaterEqual(self.memory(2000, 2000, 2048, 100).more_pool(), 52 * MiB)
        self.assertGreaterEqual(self.memory(1229, 2048, 2048, 500).more_pool(), 500 * MiB)  # the rest is in pieces
        self.assertGreater(self.memory(1000, 1000, 2048, 30).more_pool(), 0)  # the driver refused

    def test_what_is_queued_on_another_stream_is_in_order_also_after_an_error(self):
        waits = []
        streams = {name: types.SimpleNamespace(wait_stream=lambda other, name=name: waits.append((name, other)))
                   for name in ("manager", "program")}
        memory = CudaMemory.__new__(CudaMemory)
        memory.device = torch.device("cuda:1")
        with contextlib.ExitStack() as patches:
            for owner, name, value in ((torch._C, "_cuda_getCurrentRawStream", lambda index: 7 * index),
                                       (torch.cuda, "current_stream", lambda device: streams["program"]),
                                       (torch.cuda, "default_stream", lambda device: streams["manager"])):
                patches.enter_context(unittest.mock.patch.object(owner, name, value, create=True))
            with self.assertRaises(KeyError), memory.in_order():
                self.assertEqual(waits, [("program", streams["manager"])])
                raise KeyError
            self.assertEqual(waits[1:], [("manager", streams["program"])])
            memory.device = torch.device("cuda:0")  # where the current stream is the manager's
            with memory.in_order():
                pass
            self.assertEqual(len(waits), 2)

    def test_other_devices_are_not_the_one_with_the_budget(self):
        adapter = adapters.Adapter.__new__(adapters.Adapter)
        adapter.type, adapter.index = "cuda", 1
        self.assertEqual([adapter.has(torch.device(name)) for name in ("cuda:0", "cuda:1", "cpu")], [False, True, False])
        adapter.type, adapter.index = "cpu", None
        self.assertEqual([adapter.has(torch.device(name)) for name in ("cuda:0", "cpu", "cpu:0")], [False, True, True])


def nbytes(tensor):
    return tensor.untyped_storage().nbytes()


if __name__ == "__main__":
    unittest.main()
