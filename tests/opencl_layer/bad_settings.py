#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Loads the layer by the environment alone, with a budget that cannot be read or had: no run is ever without its limit.

bad_settings.py --cases PROGRAM --watch LIBRARY --layer LIBRARY

The first allocation must fail with the API's error, and one line on stderr must say why.
"""

import argparse
import sys
import types

import run_cases
from checks import FAILURES, check, same

CASE = "buffers.read_write"
BUDGETS = {"a lot": "SWAPMM_BUDGET: ", "-1": "SWAPMM_BUDGET: ", "0": "SWAPMM_BUDGET: ", "101%": "SWAPMM_BUDGET",
           "1000000TB": "SWAPMM_BUDGET is 1000000000000000000 bytes"}
OTHERS = {"SWAPMM_HOST_BUDGET": "much", "SWAPMM_REPORTED_MEMORY": "none", "SWAPMM_EVICT": "sometimes", "SWAPMM_PLAN": "perhaps",
          "SWAPMM_WAIT": "long", "SWAPMM_ANALYSIS": "never", "SWAPMM_PROVE": "1", "SWAPMM_CACHE": "relative/folder",
          "SWAPMM_HELPER_SECONDS": "0", "SWAPMM_FILE": "/missing/folder"}


def refused(runner, layers, name, value, reason):
    found = runner.run(CASE, layers, **{name: value})
    what = f"{name}={value}"
    same(found.code, 1, f"{what}: the exit code")
    check("CL_MEM_OBJECT_ALLOCATION_FAILURE" in found.output + found.errors, f"{what}: the API's error: {found.output}{found.errors}")
    said = [line for line in found.errors.splitlines() if line.startswith("swapmm: ")]
    check(len(said) == 1 and reason in said[0] and said[0].endswith("nothing is allocated"), f"{what}: one line: {said}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("cases", "watch", "layer"):
        parser.add_argument(f"--{name}", required=True)
    options = parser.parse_args()
    runner = run_cases.Runner(types.SimpleNamespace(cases=options.cases, vendors=None, timeout=60))
    layers = [options.watch, options.layer]
    same(runner.run(CASE, layers, SWAPMM_BUDGET="64MiB").code, 0, "exit code with a good budget")
    for value, reason in BUDGETS.items():
        refused(runner, layers, "SWAPMM_BUDGET", value, reason)
    for name, value in OTHERS.items():
        refused(runner, layers, name, value, name)
    return 1 if FAILURES else 0


if __name__ == "__main__":
    sys.exit(main())
