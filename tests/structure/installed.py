#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The headers of an installation are those of the two lists, no more and no fewer. With a compiler: each public one
compiles alone, too.

    installed.py INCLUDE_FOLDER LISTS [COMPILER [OPTION...]]

Prints each finding on a line, and fails if there is one."""

import os
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from alone import compile_alone


def installed_name(path):
    """As programs include it: include/swapmm/x.hpp and backends/opencl/swapmm/opencl/x.hpp are swapmm/..."""
    return path[path.index("/swapmm/") + 1:]


def main():
    folder, lists, *compiler = sys.argv[1:]
    listed = {"public": set(), "template": set()}
    for line in Path(lists).read_text(encoding="utf-8").splitlines():
        kind, path = line.split()
        listed[kind].add(installed_name(path))
    there = {path.relative_to(folder).as_posix() for path in Path(folder).rglob("*") if path.is_file()}
    expected = listed["public"] | listed["template"]
    found = [f"{name} is installed, and in neither list of cmake/SwapmmSources.cmake" for name in sorted(there - expected)]
    found += [f"{name} is listed, and not installed" for name in sorted(expected - there)]

    def check(name):
        wrong = compile_alone(name, compiler[0], ["-I", folder, *compiler[1:]])
        missing = re.search(r"fatal error: '?((?:boost|CL|cuda)[\w./]*)'?:? ", wrong)
        if missing:
            print(f"skipped: {name} needs {missing[1]}")
            return None
        return f"{name} does not compile alone:\n{wrong}" if wrong else None

    compiled = "; that each compiles alone is checked with SWAPMM_LONG_TESTS=ON (./dev test --all)"
    if compiler:
        compiled = f"; {len(listed['public'])} public ones compile"
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            found += filter(None, pool.map(check, sorted(listed["public"] & there)))
    print("\n".join(found) if found else f"{len(there)} headers are installed{compiled}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
