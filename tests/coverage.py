#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the tests of the core ran of it, from the counts of clang: a table of files, and whether it is enough.

coverage.py --build FOLDER --lines PERCENT --branches PERCENT PROGRAM...
"""

import argparse
import json
import pathlib
import subprocess
import sys

# The core: all of the library but the devices that stand in for real ones, and what needs another package.
CORE = "include/swapmm/"
NOT_CORE = ("include/swapmm/backend/", "include/swapmm/plan/ilp")


def measured(build, programs):
    """What llvm-cov counted in each file of the core: {path: {"lines": {...}, "branches": {...}}}."""
    profiles = sorted(str(path) for path in (build / "profiles").glob("*.profraw"))
    if not profiles:
        sys.exit("coverage.py: no test left a profile in " + str(build / "profiles"))
    merged = str(build / "tests.profdata")
    subprocess.run(["llvm-profdata-14", "merge", "-sparse", "-o", merged, *profiles], check=True)
    objects = [programs[0]]
    for program in programs[1:]:
        objects += ["-object", program]
    export = ["llvm-cov-14", "export", "-summary-only", "-instr-profile", merged, *objects]
    answer = json.loads(subprocess.run(export, check=True, stdout=subprocess.PIPE).stdout)
    root = str(pathlib.Path.cwd()) + "/"
    files = {}
    for file in answer["data"][0]["files"]:
        name = file["filename"].removeprefix(root)
        if name.startswith(CORE) and not name.startswith(NOT_CORE):
            files[name] = file["summary"]
    return files


def percent(covered, count):
    return 100.0 if count == 0 else 100.0 * covered / count


def row(name, summaries):
    """One line of the table: for a file, or for several together."""
    cells = [f"{name:<52}"]
    for kind in ("lines", "branches"):
        count = sum(summary[kind]["count"] for summary in summaries)
        covered = sum(summary[kind]["covered"] for summary in summaries)
        cells.append(f"{covered:6d} of {count:6d} {percent(covered, count):6.1f} %")
    return "  ".join(cells)


def share(summaries, kind):
    return percent(sum(s[kind]["covered"] for s in summaries), sum(s[kind]["count"] for s in summaries))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--lines", type=float, required=True)
    parser.add_argument("--branches", type=float, required=True)
    parser.add_argument("programs", nargs="+")
    options = parser.parse_args()
    files = measured(options.build, options.programs)
    if not files:
        sys.exit("coverage.py: nothing of the core was counted")
    print(f"{'file':<52}  {'lines':>25}  {'branches':>25}")
    for name in sorted(files, key=lambda each: (share([files[each]], "branches"), each)):
        print(row(name.removeprefix(CORE), [files[name]]))
    everything = list(files.values())
    print(row("the core", everything))
    enough = True
    for kind, least in (("lines", options.lines), ("branches", options.branches)):
        if share(everything, kind) < least:
            print(f"below {least:g} % of {kind}")
            enough = False
    sys.exit(0 if enough else 1)


if __name__ == "__main__":
    main()
