#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Runs random OpenCL programs natively and with the layer: every program must see the same bytes.

run.py RANDOM --layer LIBRARY [--mode fits|least|always|tight] [--seed S] [--seeds N] [--size small|large]

fits: everything fits. least: the budget is the largest command of the program. always: SWAPMM_EVICT=always. tight: both.
Prints each seed that fails, with a command that repeats it, and ends with 1 if there is one.
"""

import argparse
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


def layered(options, mode, need, started):
    environment = dict(os.environ, OPENCL_LAYERS=options.layer, SWAPMM_QUIET="1", SWAPMM_STARTED=started,
                       SWAPMM_ANALYSIS="wait", SWAPMM_CACHE=os.path.dirname(started))
    if mode in ("least", "tight"):
        environment["SWAPMM_BUDGET"] = str(need)
    if mode in ("always", "tight"):
        environment["SWAPMM_EVICT"] = "always"
    return environment


def needs_of(command, options):
    words = [*command, "--seed", str(options.seed), "--seeds", str(options.seeds), "--need"]
    lines = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()
    return {int(seed): int(need) for seed, need in (line.split() for line in lines)}


def results_of(command, options, mode):
    with tempfile.TemporaryDirectory() as folder:
        started = os.path.join(folder, "started")
        if mode in ("least", "tight"):
            results = {}
            for seed, need in needs_of(command, options).items():
                environment = layered(options, mode, max(need, options.least), started)
                results.update(run_seeds(command, seed, 1, environment, options.limit))
        else:
            environment = layered(options, mode, 0, started)
            results = run_seeds(command, options.seed, options.seeds, environment, options.limit)
        if not os.path.exists(started):
            print("the layer was not loaded:", options.layer)
            sys.exit(1)
    return results


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--layer", required=True)
    parser.add_argument("--mode", choices=("fits", "least", "always", "tight"), action="append")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--size", choices=("small", "large"), default="small")
    parser.add_argument("--least", type=int, default=4096, help="no budget below this many bytes")
    parser.add_argument("--limit", type=int, default=60, help="seconds for one program")
    parser.add_argument("--without", action="append", default=[], help="images, image-maps, image-copies or copy-rects")
    options = parser.parse_args()
    options.layer = os.path.abspath(options.layer)
    command = [options.program, "--size", options.size]
    for what in options.without:
        command += ["--without", what]
    native = run_seeds(command, options.seed, options.seeds, dict(os.environ), options.limit)
    failures = 0
    for seed, result in native.items():
        if not re.fullmatch("[0-9a-f]{16}", result):
            failures += 1
            print(f"seed {seed}, without the layer: {result}")
    for mode in options.mode or ("fits", "least", "always", "tight"):
        results = results_of(command, options, mode)
        wrong = [seed for seed in native if results.get(seed) != native[seed]]
        failures += len(wrong)
        for seed in wrong:
            print(f"seed {seed}, {mode}: {results.get(seed)}, not {native[seed]}")
            print(f"  run.py {options.program} --layer {options.layer} --mode {mode} --seed {seed} --seeds 1"
                  f" {' '.join(command[1:])}")
        print(f"{mode}: {len(native) - len(wrong)} of {len(native)} programs saw the same bytes", flush=True)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
