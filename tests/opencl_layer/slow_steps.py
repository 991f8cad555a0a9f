#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Waits for values in steps that take longer than commands are held back at first (SWAPMM_WAIT=values).

slow_steps.py --cases PROGRAM --watch LIBRARY --layer LIBRARY

The first such step may save values beside the plan, for nothing tells that it is slow. The next ones must not: commands are held
back for as long as steps take.
"""

import argparse
import sys
import tempfile
import types

import plan_shares
from checks import FAILURES, check

CASE = "iterations.loss_known_early_slow"
TRIES = 3  # on a busy machine more steps are slow


def saved(options, folder, budget, slow):
    """Values that were saved, and the output."""
    output, (_, report) = plan_shares.run(options, CASE, folder, [options.watch, options.layer], SWAPMM_BUDGET=str(budget),
                                          SWAPMM_WAIT="values", CASES_SLOW_STEPS=str(slow))
    print(f"{slow} slow steps: {report['iterations_by_plan']} iterations by a plan, {report['values_saved']} values saved")
    return report["values_saved"], output


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("cases", "watch", "layer"):
        parser.add_argument(f"--{name}", required=True)
    options = types.SimpleNamespace(**vars(parser.parse_args()), values=True)
    with tempfile.TemporaryDirectory() as folder:
        native, (watched,) = plan_shares.run(options, CASE, folder, [options.watch])
        for _ in range(TRIES):
            runs = [saved(options, folder, watched["peak"] // 2, slow) for slow in (0, 1, 3)]
            none, one, three = (count for count, _ in runs)
            if none < one and three - none < 2 * (one - none):
                break
        check(all(output == native for _, output in runs), "the output is the native one")
        check(one > none, "the first slow step saves nothing, so the loop shows nothing")
        check(three - none < 2 * (one - none), f"three slow steps save {three - none} values, one saves {one - none}")
    return 1 if FAILURES else 0


if __name__ == "__main__":
    sys.exit(main())
