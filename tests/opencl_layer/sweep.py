#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Lets the driver below the layer refuse one call after the other, and watches what the program sees.

sweep.py --cases PROGRAM --watch LIBRARY --layer LIBRARY [--points N] CASE...

For each case, its n-th call of the driver fails, for N values of n that lie evenly over all calls (all: --points 0). The
program must end by itself: with the output of a run without failures, or with an error that the API has for a lack of
resources. A crash, a hang, another error, or another output is a failure of the layer.
"""

import argparse
import re
import sys

import run_cases

# What the refused call returns, what the layer makes of it, and what waiting for a command says whose wait list failed.
ALLOWED = {"CL_OUT_OF_RESOURCES", "CL_OUT_OF_HOST_MEMORY", "CL_MEM_OBJECT_ALLOCATION_FAILURE",
           "CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST"}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", required=True)
    parser.add_argument("--watch", required=True)
    parser.add_argument("--layer", required=True)
    parser.add_argument("--points", type=int, default=40)
    parser.add_argument("--timeout", type=float, default=60)
    parser.add_argument("names", nargs="+", metavar="CASE")
    options = parser.parse_args()
    options.vendors = None
    return options


class Sweep:
    def __init__(self, options):
        self.options = options
        self.runner = run_cases.Runner(options)

    def run(self, case, budget, **fault):
        layers = [self.options.watch, self.options.layer]
        return self.runner.run(case, layers, SWAPMM_BUDGET=str(budget), CASES_BUDGET=str(budget), **fault)

    def judge(self, native, result):
        if not isinstance(result.code, int) or result.code < 0:
            return f"exit code {result.code}"
        if result.code == 0:
            return None if result.output == native.output else "another output"
        told = set(re.findall(r": (CL_[A-Z0-9_]+)", "\n".join(
            line for line in (result.output + result.errors).splitlines() if line.startswith("FAIL"))))
        strange = told - ALLOWED - set(re.findall(r"CL_[A-Z0-9_]+", native.output))
        return f"errors {' '.join(sorted(strange))}" if strange else None

    def check(self, case):
        native = self.runner.run(case, [self.options.watch])
        if native.code != 0 or native.report is None:
            return [f"natively: exit code {native.code}"], 0
        budget = run_cases.one_launch(native.report)
        whole = self.run(case, budget)
        if whole.code != 0 or whole.report is None:
            return [f"without failures: exit code {whole.code}"], 0
        calls = sum(whole.report["calls"].values())
        points = self.options.points or calls
        chosen = sorted({1 + i * calls // points for i in range(min(points, calls))})
        wrong = []
        for n in chosen:
            result = self.run(case, budget, WATCH_FAIL=f"*:{n}")
            why = self.judge(native, result)
            if why:
                name = result.report["failed_function"] if result.report else "?"
                wrong.append(f"call {n} of {calls}, {name}: {why}")
                wrong += [f"    {line}" for line in (result.output + result.errors).splitlines()[-4:]]
        return wrong, len(chosen)


def main():
    options = arguments()
    sweep = Sweep(options)
    failed = 0
    for case in options.names:
        wrong, runs = sweep.check(case)
        failed += bool(wrong)
        print(f"{'FAILED' if wrong else 'passed'}: {case}, {runs} failures", flush=True)
        for line in wrong:
            print(f"    {line}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
