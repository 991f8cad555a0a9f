#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""./dev cts: builds parts of Khronos' OpenCL-CTS, runs them natively and below the layer, and compares test by test.

FOLDER is a clone of https://github.com/KhronosGroup/OpenCL-CTS; its commit e71a7bce fits Debian 12's headers. What is built,
and the results, lie in build/cts.
"""
import argparse
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import layered

OUT = layered.ROOT / "build" / "cts"
SUITES = {"buffers": "buffers/test_buffers", "mem_host_flags": "mem_host_flags/test_mem_host_flags",
          "events": "events/test_events", "multiple_device_context": "multiple_device_context/test_multiples",
          "api": "api/test_api"}
MODES = ("native", "full", "25 %", "one launch", "evict always")
LIMIT = 1500


def words():
    parser = argparse.ArgumentParser(prog="./dev cts", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    parser.add_argument("suites", nargs="*", metavar="SUITE", help="of " + ", ".join(SUITES))
    parser.add_argument("--mode", action="append", choices=MODES[1:], help="only this one beside native (all)")
    parser.add_argument("--test", action="append", default=[], metavar="NAME", help="only this test of the suites")
    parser.add_argument("--jobs", type=int, default=1, metavar="J", help="suites at a time (1)")
    parser.add_argument("--watch", type=Path, default=layered.WATCH)
    parser.add_argument("--layer", type=Path, default=layered.LAYER)
    options = parser.parse_args()
    if not (options.folder / "test_conformance").is_dir():
        parser.error(f"{options.folder} is no clone of OpenCL-CTS")
    for suite in options.suites:
        if suite not in SUITES:
            parser.error(f"there is no suite '{suite}'")
    return options


def build(folder, suites):
    """Its warnings are errors to itself, and a newer compiler has more of them."""
    configure = ["cmake", "-S", folder, "-B", OUT / "build", "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
                 "-DCL_INCLUDE_DIR=/usr/include", "-DCL_LIB_DIR=/usr/lib", "-DSPIRV_INCLUDE_DIR=/usr/include",
                 "-DOPENCL_LIBRARIES=OpenCL", "-DCMAKE_CXX_COMPILER_LAUNCHER=ccache", "-DCOMPILER_SUPPORTS_Werror=OFF",
                 "-DCMAKE_COMPILE_WARNING_AS_ERROR=OFF", "-Wno-dev"]
    make = ["ninja", "-C", OUT / "build", "--quiet", *(SUITES[suite].split("/")[1] for suite in suites)]
    OUT.mkdir(parents=True, exist_ok=True)
    for command, log in ((configure, OUT / "configure.log"), (make, OUT / "build.log")):
        with open(log, "wb") as file:
            if subprocess.run([str(word) for word in command], stdout=file, stderr=subprocess.STDOUT, check=False).returncode:
                sys.exit(f"./dev cts: {folder} cannot be built, see {log}")


def run(suite, mode, tests, libraries, native, expected):
    """The outcome, the results by the test's name, and the budget. Results are written at the end: what was lost because a
    test crashed is run test by test."""
    outcome, told, budget = run_once(suite, mode, tests, libraries, native)
    if not told and len(expected) > 1:
        for test in expected:
            alone, of_it, _ = run_once(suite, mode, [test], libraries, native)
            told.update(of_it or {test: f"exit code {alone.code}"})
    return outcome, told, budget


def run_once(suite, mode, tests, libraries, native):
    name = "-".join([suite, mode.replace(" %", "").replace(" ", "-"), *tests])
    results = OUT / "results" / f"{name}.json"
    results.unlink(missing_ok=True)
    environment = {"CL_CONFORMANCE_RESULTS_FILENAME": str(results), "POCL_CACHE_DIR": str(OUT / "cache")}
    budget, settings = None, {}
    if mode == "full":
        budget = native.figures.need
    elif mode == "25 %":
        budget = max(native.figures.peak // 4, native.figures.floor)
    elif mode == "one launch":
        budget = native.figures.floor
    elif mode == "evict always":
        budget, settings = native.figures.need, {"SWAPMM_EVICT": "always"}
    outcome = layered.run([OUT / "build" / "test_conformance" / SUITES[suite], *tests], libraries, folder=OUT / "results",
                          limit=LIMIT, environment=environment, budget=budget, layered=mode != "native", settings=settings)
    (OUT / "results" / f"{name}.log").write_text(outcome.output + "\n---- stderr\n" + outcome.errors, encoding="utf-8")
    told = json.loads(results.read_text(encoding="utf-8"))["results"] if results.exists() else {}
    return outcome, told, budget


def judge(outcome, told, budget, native, expected):
    """What differs from the native run, as lines."""
    wrong = [f"{name}: natively {result}, here {told.get(name, 'not run')}" for name, result in expected.items()
             if told.get(name) != result]
    return wrong + outcome.complaints(native, budget)


def row(suite, mode, outcome, told, budget, wrong):
    passed = sum(result == "pass" for result in told.values())
    print(f"{suite:<24} {mode:<13} {passed:>4} of {len(told):<4} {layered.mebibytes(outcome.figures.peak):>9} "
          f"{layered.mebibytes(budget) if budget else '':>9} {outcome.seconds:>7.0f} s  "
          + ("differs" if wrong else "same" if mode != "native" else ""), flush=True)
    for line in wrong:
        print(f"    {line}", flush=True)


def run_suite(suite, modes, tests, libraries):
    native, expected, _ = run(suite, "native", tests, libraries, None, {})
    row(suite, "native", native, expected, None, [])
    if not expected:
        print(f"    no results, exit code {native.code}: {native.errors.strip()[-300:]}", flush=True)
        return False
    same = True
    for mode in modes:
        outcome, told, budget = run(suite, mode, tests, libraries, native, expected)
        wrong = judge(outcome, told, budget, native, expected)
        row(suite, mode, outcome, told, budget, wrong)
        same = same and not wrong
    return same


def main():
    options = words()
    suites = options.suites or list(SUITES)
    build(options.folder.resolve(), suites)
    libraries = layered.Libraries(options.watch.resolve(), options.layer.resolve())
    (OUT / "results").mkdir(exist_ok=True)
    modes = options.mode or MODES[1:]
    if not libraries.layer.exists():
        print("the layer is not built: natively only")
        modes = ()
    print(f"{'suite':<24} {'mode':<13} {'passed':<12} {'peak MiB':>9} {'budget':>9} {'time':>9}", flush=True)
    with ThreadPoolExecutor(options.jobs) as pool:
        same = list(pool.map(lambda suite: run_suite(suite, modes, options.test, libraries), suites))
    print(f"\nlogs: {os.path.relpath(OUT / 'results', layered.ROOT)}")
    return 0 if all(same) else 1


if __name__ == "__main__":
    sys.exit(main())
