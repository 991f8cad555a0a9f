#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the adapter for PyTorch costs on a CPU: steps of training with a budget that is large enough, beside the same steps
without it; and the time for one operator.

Pairs of steps are interleaved: both programs run in processes of their own, and take turns. A ratio is that of a pair; printed
are the median of the ratios and the interval that has 95 % of the medians of 2,000 resamples.
"""

import argparse
import json
import multiprocessing
import random
import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "examples" / "pytorch"))

SIZES = {
    "resnet50": dict(batch=8, image=224, width=64, classes=1000, blocks=(3, 4, 6, 3)),
    "gpt": dict(batch=2, layers=12, width=768, heads=12, sequence=256, vocabulary=50257),  # GPT-2 small
    "gpt_small": dict(batch=4, layers=8, width=128, heads=4, sequence=64, vocabulary=1000),  # operators of some 100 us
}


def program(connection, name, budget):
    import torch

    import models

    torch.set_num_threads(1)
    if budget:
        import swapmm.torch

        swapmm.torch.budget(budget, "cpu")
    name, *compiled = name.split(":")
    case = models.build(name.split("_")[0], overrides=SIZES[name])
    for block in case.network.blocks if compiled else ():
        block.compile()
    while connection.recv():
        begin = time.perf_counter()
        loss = case.step()
        took = time.perf_counter() - begin
        followed = peak = copied = 0
        if budget:
            report = swapmm.torch.report()
            followed, peak, copied = report.iterations_followed, report.peak, report.copied_in + report.copied_out
        connection.send((took, loss, followed, peak, copied))


def steps(name, pairs, budget):
    context = multiprocessing.get_context("spawn")
    ends = []
    for limit in (None, budget):
        ours, theirs = context.Pipe()
        process = context.Process(target=program, args=(theirs, name, limit), daemon=True)
        process.start()
        ends.append((ours, process))
    rows = []
    for i in range(pairs + 6):  # the first ones are observed, and planned for
        row = []
        for ours, _ in ends if i % 2 else reversed(ends):
            ours.send(True)
            row.append(ours.recv())
        row = row if i % 2 else row[::-1]
        if row[0][1] != row[1][1]:
            raise SystemExit(f"{name}: the losses differ: {row}")
        if i >= 6:
            rows.append(row)
    for ours, process in ends:
        ours.send(False)
        process.join()
    ratios = [ours[0] / plain[0] for plain, ours in rows]
    random.seed(1)
    medians = sorted(statistics.median(random.choices(ratios, k=len(ratios))) for _ in range(2000))
    return {
        "network": name,
        "plain_s": statistics.median(plain[0] for plain, _ in rows),
        "swapmm_s": statistics.median(ours[0] for _, ours in rows),
        "ratio": statistics.median(ratios),
        "interval": [medians[50], medians[1949]],
        "pairs": len(rows),
        "followed": rows[-1][1][2],
        "peak_mib": rows[-1][1][3] / 2**20,
        "copied_mib": rows[-1][1][4] / 2**20,
    }


def one_operator(calls=20000):
    """Microseconds for an addition to 4 KiB: alone, with a mode that only passes on, observed, and by a plan."""
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    import swapmm.torch

    torch.set_num_threads(1)

    class Pass(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            return function(*args, **(kwargs or {}))

    def loop(tensors, count):
        begin = time.perf_counter()
        for i in range(count):
            tensors[i % 100].add_(1)
        return (time.perf_counter() - begin) * 1e6 / count

    def make():
        return [torch.zeros(1024) for _ in range(100)]

    found = {"plain_us": loop(make(), calls)}
    tensors = make()
    with Pass():
        loop(tensors, 100)  # PyTorch imports its compiler in the first call
        found["dispatch_us"] = loop(tensors, calls)
    swapmm.torch.budget("64MiB", "cpu")
    tensors = make()
    swapmm.torch.step()
    found["observed_us"] = loop(tensors, 1000)
    swapmm.torch.step()
    for _ in range(8):
        loop(tensors, 1000)
        swapmm.torch.step()
    before = swapmm.torch.report().iterations_followed
    times = []
    for _ in range(calls // 1000):
        times.append(loop(tensors, 1000))
        swapmm.torch.step()
    found["followed_us"] = statistics.median(times)
    found["followed"] = swapmm.torch.report().iterations_followed - before
    swapmm.torch.off()
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--networks", default="resnet50,gpt", help=f"of {', '.join(SIZES)}; gpt:compiled with compiled blocks")
    parser.add_argument("--pairs", type=int, default=12)
    parser.add_argument("--budget", default="64GiB", help="large enough by default")
    parser.add_argument("--json", help="the file")
    options = parser.parse_args()
    found = {"operator": one_operator(), "networks": []}
    print(" ".join(f"{name} {value:.2f}" for name, value in found["operator"].items()), flush=True)
    for name in filter(None, options.networks.split(",")):
        row = steps(name, options.pairs, options.budget)
        found["networks"].append(row)
        print(f"{name}: {row['plain_s']:.3f} s plain, {row['swapmm_s']:.3f} s with a budget of {options.budget}, ratio {row['ratio']:.4f} "
              f"({row['interval'][0]:.4f} to {row['interval'][1]:.4f}, {row['pairs']} pairs, {row['followed']} steps by plan, "
              f"peak {row['peak_mib']:.0f} MiB, {row['copied_mib']:.0f} MiB copied)", flush=True)
    if options.json:
        Path(options.json).write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
