#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The headers of an installation are those of the two lists, no more and no fewer, and each public one compiles alone.

    installed.py [--quick] INCLUDE_FOLDER LISTS COMPILER [OPTION...]

--quick: with the standard library's headers precompiled, as alone.py does, so that a missing one of these is not found.
Prints each finding on a line, and fails if there is one."""

import os
import re
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from alone import compile_alone, precompiled_standard_headers


def installed_name(path):
    """As programs include it: include/swapmm/x.hpp and backends/opencl/swapmm/opencl/x.hpp are swapmm/..."""
    return path[path.index("/swapmm/") + 1:]


def main():
    arguments = sys.argv[1:]
    quick = arguments[0] == "--quick"
    folder, lists, compiler, *options = arguments[quick:]
    listed = {"public": set(), "template": set()}
    for line in Path(lists).read_text(encoding="utf-8").splitlines():
        kind, path = line.split()
        listed[kind].add(installed_name(path))
    there = {path.relative_to(folder).as_posix() for path in Path(folder).rglob("*") if path.is_file()}
    expected = listed["public"] | listed["template"]
    found = [f"{name} is installed, and in neither list of cmake/SwapmmSources.cmake" for name in sorted(there - expected)]
    found += [f"{name} is listed, and not installed" for name in sorted(expected - there)]

    scratch = tempfile.TemporaryDirectory()
    if quick:
        sources = [Path(folder) / name for name in there]
        options = [*precompiled_standard_headers(scratch.name, sources, compiler, options), *options]

    def check(name):
        wrong = compile_alone(name, compiler, ["-I", folder, *options])
        missing = re.search(r"fatal error: '?((?:boost|CL|cuda)[\w./]*)'?:? ", wrong)
        if missing:
            print(f"skipped: {name} needs {missing[1]}")
            return None
        return f"{name} does not compile alone:\n{wrong}" if wrong else None

    with scratch, ThreadPoolExecutor(os.cpu_count()) as pool:
        found += filter(None, pool.map(check, sorted(listed["public"] & there)))
    print("\n".join(found) if found else f"{len(there)} headers are installed; {len(listed['public'])} public ones compile")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
