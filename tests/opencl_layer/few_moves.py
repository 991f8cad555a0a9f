#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Runs loops below the layer that need few copies, and counts what is copied to the host.

few_moves.py --cases PROGRAM --watch LIBRARY --layer LIBRARY CASE:MEMORY:MOST...

MEMORY is the budget in percent of what the program takes natively, MOST the bytes that may be copied to the host, in percent
of the same. The output must be the same as natively.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile


def run(options, case, folder, layers, **variables):
    watched, reported = os.path.join(folder, "watched"), os.path.join(folder, "reported")
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("SWAPMM_", "WATCH_", "OPENCL_LAYERS"))}
    environment.update(SWAPMM_CACHE="off", SWAPMM_ANALYSIS="wait", SWAPMM_REPORT=reported, WATCH_REPORT=watched,
                       OPENCL_LAYERS=":".join(layers), **variables)
    done = subprocess.run([options.cases, case], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=120, check=False)
    if done.returncode != 0:
        sys.exit(f"{case} ended with {done.returncode}:\n{done.stdout.decode()}{done.stderr.decode()}")
    reports = []
    for name in (watched, reported):
        if os.path.exists(name):
            with open(name, encoding="utf-8") as file:
                reports.append(json.load(file))
            os.remove(name)
    return done.stdout, reports


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", required=True)
    parser.add_argument("--watch", required=True)
    parser.add_argument("--layer", required=True)
    parser.add_argument("loops", nargs="+", metavar="CASE:MEMORY:MOST")
    options = parser.parse_args()
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for loop in options.loops:
            case, memory, most = loop.split(":")
            native, (watched,) = run(options, case, folder, [options.watch])
            budget, most = (watched["peak"] * int(percent) // 100 for percent in (memory, most))
            layered, (below, report) = run(options, case, folder, [options.watch, options.layer],
                                           SWAPMM_BUDGET=str(budget), WATCH_CAP=str(budget))
            print(f"{case}: budget {budget} of {watched['peak']} bytes, {report['bytes_to_host']} bytes to the host, "
                  f"{most} at most; {report['values_saved']} values saved")
            wrong = []
            if layered != native:
                wrong.append("another output than natively")
            if below["peak"] > budget or below["refused"]:
                wrong.append(f"{below['peak']} bytes taken of {budget}, {below['refused']} refused")
            if report["bytes_to_host"] > most:
                wrong.append("more bytes to the host")
            failed += bool(wrong)
            for line in wrong:
                print(f"    FAILED: {line}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
