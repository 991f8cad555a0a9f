#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Runs random OpenCL programs natively and with the layer: every program must see the same bytes.

run.py RANDOM --layer LIBRARY [--loops] [--mode fits|least|part|values|always|tight] [--seed S] [--seeds N] [--size small|large]

fits: everything fits. least: the budget is the largest command of the program. part: it is 30 to 70 % of all buffers, or the
largest command if that is more. values: part, and SWAPMM_WAIT=values. always: SWAPMM_EVICT=always. tight: least and always.
Prints each seed that fails, with a command that repeats it, and ends with 1 if there is one.
"""

import argparse
import glob
import json
import os
import re
import subprocess
import sys
import tempfile

DIGEST = re.compile(r"^(\d+) ([0-9a-f]{16})$")


def run_seeds(command, first, count, environment, limit):
    """What the program says of each seed: a digest, or the text of its failure. It goes on after one that fails."""
    results = {}
    seed = first
    while seed < first + count:
        words = [*command, "--seed", str(seed), "--seeds", str(first + count - seed), "--limit", str(limit)]
        done = subprocess.run(words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        others = []
        for line in done.stdout.splitlines():
            digest = DIGEST.match(line)
            if digest:
                results[int(digest[1])] = digest[2]
                seed = int(digest[1]) + 1
            else:
                others.append(line)
        if done.returncode == 0:
            if any(line.startswith("skipped: ") for line in others):
                print(others[-1])
                sys.exit(0)
            break
        results[seed] = f"FAILED with {done.returncode}: " + "\n  ".join(others[-4:])
        seed += 1
    return results


MODES = ("fits", "least", "part", "values", "always", "tight")


def layered(options, mode, budget, folder):
    environment = dict(os.environ, OPENCL_LAYERS=options.layer, SWAPMM_QUIET="1",
                       SWAPMM_STARTED=os.path.join(folder, "started"), SWAPMM_REPORT=os.path.join(folder, "report.%p"),
                       SWAPMM_ANALYSIS="wait", SWAPMM_CACHE=folder)
    if budget:
        environment["SWAPMM_BUDGET"] = str(budget)
    if mode == "values":
        environment["SWAPMM_WAIT"] = "values"
    if mode in ("always", "tight"):
        environment["SWAPMM_EVICT"] = "always"
    return environment


def needs_of(command, options):
    words = [*command, "--seed", str(options.seed), "--seeds", str(options.seeds), "--need"]
    lines = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()
    return {int(seed): (int(need), int(peak)) for seed, need, peak in (line.split() for line in lines)}


def budget_of(mode, seed, need, peak, least):
    """Bytes for the program of that seed."""
    if mode in ("part", "values"):
        need = max(need, peak * (30 + seed * 7 % 41) // 100)
    return max(need, least)


def reported(folder):
    """The sums of all processes' reports. Some end without one: they fail."""
    sums = {"iterations": 0, "iterations_by_plan": 0, "values_saved": 0}
    for name in glob.glob(os.path.join(folder, "report.*")):
        with open(name, encoding="utf-8") as file:
            report = json.load(file)
        for key in sums:
            sums[key] += report[key]
    return sums


def results_of(command, options, mode):
    with tempfile.TemporaryDirectory() as folder:
        if mode in ("fits", "always"):
            environment = layered(options, mode, options.ample, folder)
            results = run_seeds(command, options.seed, options.seeds, environment, options.limit)
        else:
            results = {}
            for seed, (need, peak) in needs_of(command, options).items():
                environment = layered(options, mode, budget_of(mode, seed, need, peak, options.least), folder)
                results.update(run_seeds(command, seed, 1, environment, options.limit))
        if not os.path.exists(os.path.join(folder, "started")):
            print("the layer was not loaded:", options.layer)
            sys.exit(1)
        return results, reported(folder)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--layer", required=True)
    parser.add_argument("--mode", choices=MODES, action="append")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--size", choices=("small", "large"), default="small")
    parser.add_argument("--least", type=int, default=4096, help="no budget below this many bytes")
    parser.add_argument("--ample", default="", help="the budget where everything fits; default: the layer's own")
    parser.add_argument("--limit", type=int, default=60, help="seconds for one program")
    parser.add_argument("--without", action="append", default=[],
                        help="images, image-maps, image-copies, copy-rects, native-kernels, shared-memory or failures")
    parser.add_argument("--loops", action="store_true", help="programs that repeat a body of commands")
    parser.add_argument("--native-may-fail", type=int, default=0, metavar="N",
                        help="so many programs may fail without the layer, whose driver is at fault: they are told, and not compared")
    parser.add_argument("--followed", type=int, default=0, help="fail if fewer iterations than this were run by plans")
    options = parser.parse_args()
    options.layer = os.path.abspath(options.layer)
    command = [options.program, "--size", options.size]
    if options.loops:
        command.append("--loops")
    for what in options.without:
        command += ["--without", what]
    native = run_seeds(command, options.seed, options.seeds, dict(os.environ), options.limit)
    failures = 0
    failed = []
    for seed, result in native.items():
        if not re.fullmatch("[0-9a-f]{16}", result):
            failed.append(seed)
            print(f"seed {seed}, without the layer: {result}")
    if len(failed) > options.native_may_fail:
        failures += len(failed)
    native = {seed: result for seed, result in native.items() if seed not in failed}
    for mode in options.mode or MODES:
        results, sums = results_of(command, options, mode)
        wrong = [seed for seed in native if results.get(seed) != native[seed]]
        failures += len(wrong)
        for seed in wrong:
            print(f"seed {seed}, {mode}: {results.get(seed)}, not {native[seed]}")
            print(f"  run.py {options.program} --layer {options.layer} --mode {mode} --seed {seed} --seeds 1"
                  f" {' '.join(command[1:])}")
        print(f"{mode}: {len(native) - len(wrong)} of {len(native)} programs saw the same bytes; {sums['iterations']} iterations,"
              f" {sums['iterations_by_plan']} by plans, {sums['values_saved']} values saved", flush=True)
        if sums["iterations_by_plan"] < options.followed and mode in ("least", "part", "values"):
            failures += 1
            print(f"{mode}: fewer than {options.followed} iterations were run by plans")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
