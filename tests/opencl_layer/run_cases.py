#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the cases of a theme natively and below the layer, and compares.

run_cases.py --cases PROGRAM --watch LIBRARY [--layer LIBRARY] [--vendors FOLDER] [--mode MODE]... NAME...

NAME is a theme or one case (THEME.NAME). Standard output and exit code must be the same in every mode, and the layer that
watches from below must see no byte above the budget and refuse nothing. Without --layer only the watching layer is tested.
"""

import argparse
import difflib
import json
import os
import subprocess
import sys
import tempfile

# Pieces of the budget lie at multiples of this; each buffer of a launch may lose that much.
ALIGNMENT = 256
MODES = ("large", "half", "one_launch", "evict_always", "small_allocations", "pictures", "values",
         "no_argument_info", "like_nvidia")
# They ask for it, or have a number of 8 bytes that looks like a buffer: only a kernel's source tells then, if it can be analysed.
NEED_ARGUMENT_INFO = ("programs.argument_information",)
NEED_ARGUMENT_INFO_OR_SOURCE = ("arguments.integer_equal_to_a_handle",)
HELPER = "swapmm-kernel-facts"
# Some drivers make buffers that no device has room for.
LARGEST_BUDGET = 1 << 30
# Programs whose native need is larger than their budget. They are told of it by CASES_BUDGET.
BUDGETS_OF_THEMES = {"budget": 1 << 20}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", required=True)
    parser.add_argument("--watch", required=True)
    parser.add_argument("--layer")
    parser.add_argument("--vendors", help="a folder with the .icd file of another driver")
    parser.add_argument("--skip", action="append", default=[], help="a case that this driver fails natively")
    parser.add_argument("--mode", action="append", choices=MODES)
    parser.add_argument("--unwatched", action="store_true", help="also compare native runs with and without the watching layer")
    parser.add_argument("--timeout", type=float, default=60)
    parser.add_argument("names", nargs="+")
    return parser.parse_args()


class Result:
    def __init__(self, output, errors, code, report):
        self.output, self.errors, self.code, self.report = output, errors, code, report


class Runner:
    def __init__(self, options):
        self.options = options
        self.folder = tempfile.TemporaryDirectory()
        self.base = {k: v for k, v in os.environ.items() if not k.startswith(("SWAPMM_", "WATCH_", "OPENCL_LAYERS"))}
        # Kernels are known from their first launch on. Nothing is found in the user's cache, or left there.
        self.base.update(SWAPMM_CACHE=self.folder.name, SWAPMM_ANALYSIS="wait")
        if options.vendors:
            self.base["OCL_ICD_VENDORS"] = options.vendors

    def run(self, case, layers, **variables):
        report = os.path.join(self.folder.name, "report.json")
        if os.path.exists(report):
            os.remove(report)
        environment = dict(self.base, WATCH_REPORT=report, **variables)
        if layers:
            environment["OPENCL_LAYERS"] = ":".join(layers)
        try:
            done = subprocess.run([self.options.cases, case], env=environment, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, timeout=self.options.timeout, check=False)
            output, errors, code = done.stdout, done.stderr, done.returncode
        except subprocess.TimeoutExpired as late:
            output, errors, code = late.stdout or b"", late.stderr or b"", f"none after {self.options.timeout:g} s"
        told = None
        if os.path.exists(report):
            with open(report, encoding="utf-8") as file:
                text = file.read()
            told = json.loads(text) if text.endswith("}\n") else None  # it may have been killed meanwhile
        return Result(output.decode(errors="replace"), errors.decode(errors="replace"), code, told)


def difference(native, layered):
    lines = difflib.unified_diff(native.output.splitlines(), layered.output.splitlines(), "native", "layered", lineterm="",
                                 n=2)
    return list(lines)[:60]


def compare(native, layered, budget, started):
    """What is wrong, as lines."""
    wrong = []
    if layered.code != native.code:
        wrong.append(f"exit code {layered.code}, natively {native.code}")
    if layered.output != native.output:
        wrong += difference(native, layered)
    if layered.report is None:
        wrong.append("the watching layer wrote no report")
    elif budget is not None:
        if layered.report["peak"] > budget:
            wrong.append(f"{layered.report['peak']} bytes of the device were taken, the budget is {budget}")
        if layered.report["out_of_order"]:
            wrong.append(f"{layered.report['out_of_order']} parts of buffers went before later ones that they overlap")
        if layered.report["refused"]:
            wrong.append(f"{layered.report['refused']} allocations were refused below the layer")
    if started is not None and not started:
        wrong.append("the layer did not start")
    if wrong and layered.errors:
        wrong += ["its standard error:"] + layered.errors.splitlines()[-15:]
    return wrong


def one_launch(report):
    """The least budget: the command that needs most, alone, with what cannot leave."""
    return max(report["largest_need"], report["largest_object"]) + 16 * ALIGNMENT


def largest_allocation(report):
    """What a driver may tell at least: every object of the program must be possible."""
    return -(-max(report["largest_object"], 64 << 10) // ALIGNMENT) * ALIGNMENT


def needs_argument_info(case, layer):
    analysed = os.path.exists(os.path.join(os.path.dirname(layer), HELPER))
    return case in NEED_ARGUMENT_INFO or (case in NEED_ARGUMENT_INFO_OR_SOURCE and not analysed)


def check(runner, case, modes):
    options = runner.options
    failures = []
    watched = runner.run(case, [options.watch])
    if watched.code != 0:
        return [f"natively: exit code {watched.code}"] + watched.output.splitlines() + watched.errors.splitlines()
    plain = runner.run(case, []) if options.unwatched or not options.layer else watched
    failures += [f"watched natively: {line}" for line in compare(plain, watched, None, None)]
    if not options.layer or watched.report is None:
        return failures
    needed = min(one_launch(watched.report), LARGEST_BUDGET)
    ample = min(max(4 * watched.report["peak"], 64 << 20), LARGEST_BUDGET)
    half = min(max(needed, watched.report["peak"] // 2), LARGEST_BUDGET)
    budgets = {"large": ample, "half": half, "one_launch": needed, "evict_always": ample, "small_allocations": ample,
               "pictures": half, "values": half, "no_argument_info": half, "like_nvidia": half}
    fixed = BUDGETS_OF_THEMES.get(case.split(".")[0])
    for mode in modes:
        if mode == "no_argument_info" and needs_argument_info(case, options.layer):
            print(f"skipped in this mode: {case}")
            continue
        budget = fixed or budgets[mode]
        variables = {"SWAPMM_BUDGET": str(budget), "WATCH_CAP": str(budget), "CASES_BUDGET": str(budget), "CASES_LAYERED": "1",
                     "SWAPMM_STARTED": os.path.join(runner.folder.name, "started")}
        if mode == "evict_always":
            variables["SWAPMM_EVICT"] = "always"
        if mode == "values":  # waits end when the host has its values
            variables["SWAPMM_WAIT"] = "values"
        if mode == "no_argument_info":  # some drivers refuse what the layer asks for beside the program's options
            variables["WATCH_NO_ARGUMENT_INFO"] = "1"
        if mode == "like_nvidia":  # what NVIDIA's driver does differently
            variables["WATCH_NVIDIA"] = "1"
        if mode == "pictures":  # what runs is recorded, in short pieces
            variables.update(SWAPMM_TRACE_OUT=os.path.join(runner.folder.name, "trace"), SWAPMM_TRACE_LENGTH="200")
        if mode == "small_allocations":  # the budget consists of several allocations
            variables["WATCH_LARGEST"] = str(largest_allocation(watched.report))
        if os.path.exists(variables["SWAPMM_STARTED"]):
            os.remove(variables["SWAPMM_STARTED"])
        layered = runner.run(case, [options.watch, options.layer], **variables)
        started = os.path.exists(variables["SWAPMM_STARTED"])
        wrong = compare(plain, layered, budget, started)
        if wrong and mode == "like_nvidia":  # natively such a driver may do something else, too
            wrong = compare(runner.run(case, [options.watch], WATCH_NVIDIA="1"), layered, budget, started)
        failures += [f"{mode} ({budget} bytes): {line}" for line in wrong]
    return failures


def main():
    options = arguments()
    listed = subprocess.run([options.cases, "--list"], stdout=subprocess.PIPE, check=True, text=True).stdout.split()
    chosen = [c for c in listed if c in options.names or c.split(".")[0] in options.names or "all" in options.names]
    if not chosen:
        print("no such case")
        return 2
    runner = Runner(options)
    failed = 0
    for case in chosen:
        if case in options.skip:
            print(f"skipped: {case}")
            continue
        failures = check(runner, case, options.mode or MODES)
        failed += bool(failures)
        print(f"{'FAILED' if failures else 'passed'}: {case}")
        for line in failures:
            print(f"    {line}")
        sys.stdout.flush()
    print(f"{len(chosen)} cases, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
