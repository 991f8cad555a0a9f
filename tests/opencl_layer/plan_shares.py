#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Runs loops below the layer with a part of the memory that they need: after the first steps, plans run their iterations.

plan_shares.py --cases PROGRAM --watch LIBRARY --layer LIBRARY [--share PERCENT] [--values] CASE:STEPS[:MEMORY]...

MEMORY is the budget in percent of the need (50).

For each case: the output must be the same as natively, and at least --share percent of the iterations behind the warm-up must
be run by a plan. --warm-up says how many steps that may take. On a busy machine a plan may seem slower than none, and is given
up. So a loop may be run several times; the output must be the same each time.
With --values, waits end when the host has its values (SWAPMM_WAIT=values). Plans know what is proven dead in time. So no value
may be saved beside the plan, but for those that a step at the loop's end leaves; and without the option, the same loop must copy more to the host in
each step, with the same plans in each run.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile


def run(options, case, folder, layers, **variables):
    watched, reported = os.path.join(folder, "watched"), os.path.join(folder, "reported")
    for name in (watched, reported):
        if os.path.exists(name):
            os.remove(name)
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("SWAPMM_", "WATCH_", "OPENCL_LAYERS"))}
    environment.update(SWAPMM_CACHE=tempfile.mkdtemp(dir=folder))  # what earlier runs learned is of no help
    environment.update(WATCH_REPORT=watched, OPENCL_LAYERS=":".join(layers), **variables)
    if options.values:
        environment["SWAPMM_ANALYSIS"] = "wait"  # so that plans know what is overwritten
    if options.layer in layers:
        environment["SWAPMM_REPORT"] = reported
    done = subprocess.run([options.cases, case], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=120, check=False)
    if done.returncode != 0:
        sys.exit(f"{case} ended with {done.returncode}:\n{done.stdout.decode()}{done.stderr.decode()}")
    reports = []
    for name in (watched, reported):
        if os.path.exists(name):
            with open(name, encoding="utf-8") as file:
                reports.append(json.load(file))
    return done.stdout, reports


def compare_waits(options, case, folder, budget, steps, values):
    """What is wrong with the usual waits, whose loop has copied the same values or more than `values`, a report."""
    _, (_, usual) = run(options, case, folder, [options.watch, options.layer], SWAPMM_BUDGET=str(budget))
    print(f"    to the host: {values['bytes_to_host']} bytes with --values, {usual['bytes_to_host']} without; "
          f"{usual['values_saved']} values saved without")
    if usual["values_saved"] > steps // 4:
        yield f"{usual['values_saved']} values saved without --values: plans do not know what is dead in time"
    if usual["bytes_to_host"] < values["bytes_to_host"] * 5 // 4:
        yield "the usual waits copy hardly more to the host: the loop shows nothing"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", required=True)
    parser.add_argument("--watch", required=True)
    parser.add_argument("--layer", required=True)
    parser.add_argument("--share", type=int, default=90)
    parser.add_argument("--warm-up", type=int, default=14, help="steps at most")
    parser.add_argument("--values", action="store_true")
    parser.add_argument("--runs", type=int, default=5, help="of a loop that gets no plan")
    parser.add_argument("loops", nargs="+", metavar="CASE:STEPS[:MEMORY]")
    options = parser.parse_args()
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for loop in options.loops:
            case, steps, memory = (loop + ":50").split(":")[:3]
            steps, memory = int(steps), int(memory)
            native, (watched,) = run(options, case, folder, [options.watch])
            budget = watched["peak"] * memory // 100
            for _ in range(options.runs):
                limits = {"SWAPMM_BUDGET": str(budget), "WATCH_CAP": str(budget)}
                if options.values:
                    limits["SWAPMM_WAIT"] = "values"
                layered, (below, report) = run(options, case, folder, [options.watch, options.layer], **limits)
                followed, found = report["iterations_by_plan"], report["iterations"]
                wrong = []
                if layered != native:
                    wrong.append("another output than natively")
                if below["peak"] > budget or below["refused"]:
                    wrong.append(f"{below['peak']} bytes taken of {budget}, {below['refused']} refused")
                if wrong:
                    break
                if followed * 100 >= options.share * (steps - options.warm_up):
                    break
                wrong.append(f"fewer than {options.share} % of the steps behind the first {options.warm_up} were run by a plan")
            print(f"{case}: {steps} steps, {found} iterations found, {followed} by a plan, warm-up of {steps - followed}; "
                  f"{report['commands_by_plan']} of {report['commands']} commands by a plan, "
                  f"{report['values_saved']} values saved, budget {budget} of {watched['peak']} bytes")
            if options.values and not wrong:
                if report["values_saved"] > steps // 2:
                    wrong.append(f"{report['values_saved']} values saved")
                wrong += compare_waits(options, case, folder, budget, steps, report)
            failed += bool(wrong)
            for line in wrong:
                print(f"    FAILED: {line}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
