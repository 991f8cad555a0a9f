#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What the layer for unmodified programs costs where everything fits: natively and below it, by turns.

layer_cost.py --calls PROGRAM --layer LIBRARY [--pairs N] [--command WORD...]

Calls: the host's time for each kind of call, mean and 99th percentile behind the warm-up, medians over the pairs. Loop: the
ratio of the times of a loop of launches, with its 95 % bootstrap interval. --command: the same ratio for a program
that prints lines `step N ... SECONDSs` with the time since it began, behind its first half.
"""
import argparse
import os
import random
import re
import statistics
import subprocess
import sys

BUDGET = "90%"


def run(command, layer):
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("SWAPMM_", "OPENCL_LAYERS"))}
    if layer:
        environment.update(OPENCL_LAYERS=layer, SWAPMM_BUDGET=BUDGET, SWAPMM_QUIET="1")
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode:
        sys.exit(f"{command[0]} ended with {done.returncode}: {done.stdout[-500:]}")
    return done.stdout


def read_calls(output):
    calls, loop = {}, None
    for line in output.splitlines():
        words = line.split()
        if words[0] == "call":
            calls[words[1]] = (float(words[2]), float(words[3]))
        if words[0] == "loop":
            loop = float(words[1])
    return calls, loop


def read_steps(output):
    """Median duration of the steps in the second half."""
    times = [float(found[1]) for found in re.finditer(r"^step \d+ .* ([\d.]+)s$", output, re.MULTILINE)]
    steps = [b - a for a, b in zip(times, times[1:])]
    return statistics.median(steps[len(steps) // 2:])


def told_ratio(name, pairs):
    ratios = [layered / native for native, layered in pairs]
    draw = random.Random(1)
    medians = sorted(statistics.median(draw.choices(ratios, k=len(ratios))) for _ in range(2000))
    print(f"{name:<26} {statistics.median(native for native, _ in pairs):10.3f} "
          f"{statistics.median(layered for _, layered in pairs):10.3f}   ratio {statistics.median(ratios):.4f} "
          f"(95 % interval {medians[50]:.4f} to {medians[1949]:.4f}, {len(pairs)} pairs)", flush=True)


def by_turns(count, measure):
    """Pairs (native, layered); who goes first changes."""
    pairs = []
    for pair in range(count):
        order = (False, True) if pair % 2 == 0 else (True, False)
        results = {layered: measure(layered) for layered in order}
        pairs.append((results[False], results[True]))
    return pairs


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", required=True)
    parser.add_argument("--layer", required=True)
    parser.add_argument("--pairs", type=int, default=30)
    parser.add_argument("--command", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    layer = os.path.abspath(options.layer)
    if options.command:
        told_ratio("seconds per step", by_turns(options.pairs, lambda layered: read_steps(
            run(options.command, layer if layered else None))))
        return
    pairs = by_turns(options.pairs, lambda layered: read_calls(run([options.calls], layer if layered else None)))
    print(f"{'call':<26} {'native':>8} {'layer':>8} {'added':>8}  99th percentile: native, layer (ns)")
    for name in pairs[0][0][0]:
        native, layered, native_late, layered_late = (
            statistics.median(pair[side][0][name][which] for pair in pairs) for which in (0, 1) for side in (0, 1))
        print(f"{name:<26} {native:8.0f} {layered:8.0f} {layered - native:8.0f}  {native_late:8.0f} {layered_late:8.0f}")
    told_ratio("loop, ms per step", [(native[1], layered[1]) for native, layered in pairs])


if __name__ == "__main__":
    main()
