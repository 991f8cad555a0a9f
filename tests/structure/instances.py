#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whether a file that uses a manager compiles parts of the runtime that the backend's library has (runtime/instances.hpp).

    instances.py NM OBJECT...

The objects must not be optimized, which would bring inline copies. Prints each finding on a line, and fails if there is one."""

import re
import subprocess
import sys

#: Each is deep in the runtime: whoever instantiates a member of one has missed the list.
PARTS = re.compile(r"^(?:.* )?swapmm::runtime::(Demand|Failures|HostAccess|HostPool|HostViewState|PlanController|PlanExecutor|Profiler|Store|"
                   r"Timeline)<.*>::[~\w]+\(")


def main(nm, objects):
    found = 0
    for path in objects:
        output = subprocess.run([nm, "--defined-only", "--demangle", path], check=True, capture_output=True, text=True).stdout
        names = [match[1] for match in re.finditer(r"^\S+ [WwTtVv] (.*)$", output, re.M)]
        if not any("swapmm::" in name for name in names):
            print(f"{path}: no names of swapmm")
            found += 1
        for name in names:
            if PARTS.match(name):
                print(f"{path}: {name}")
                found += 1
    return found != 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
