#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Runs loops below the layer that need few copies, and counts what is copied to the host.

few_moves.py --cases PROGRAM --watch LIBRARY --layer LIBRARY CASE:MEMORY:MOST...

MEMORY is the budget in percent of what the program takes natively, MOST the bytes that may be copied to the host, in percent
of the same. The output must be the same as natively.
"""

import argparse
import sys
import tempfile
import types

import plan_shares
from checks import FAILURES, check


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("cases", "watch", "layer"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("loops", nargs="+", metavar="CASE:MEMORY:MOST")
    options = types.SimpleNamespace(**vars(parser.parse_args()), values=True)  # what kernels do is known from the first launch on
    with tempfile.TemporaryDirectory() as folder:
        for loop in options.loops:
            case, memory, most = loop.split(":")
            native, (watched,) = plan_shares.run(options, case, folder, [options.watch])
            budget, most = (watched["peak"] * int(percent) // 100 for percent in (memory, most))
            layered, (below, report) = plan_shares.run(options, case, folder, [options.watch, options.layer],
                                                       SWAPMM_BUDGET=str(budget), WATCH_CAP=str(budget))
            print(f"{case}: budget {budget} of {watched['peak']} bytes, {report['bytes_to_host']} bytes to the host, "
                  f"{most} at most; {report['values_saved']} values saved")
            check(layered == native, "the output is the native one")
            check(below["peak"] <= budget and not below["refused"],
                  f"{below['peak']} bytes taken of {budget}, {below['refused']} refused")
            check(report["bytes_to_host"] <= most, f"{report['bytes_to_host']} bytes to the host")
    return 1 if FAILURES else 0


if __name__ == "__main__":
    sys.exit(main())
