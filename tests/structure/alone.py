#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each header compiles alone, with all warnings, and may be included twice.

    alone.py LIST COMPILER [OPTION...]

LIST is a file with a header on each line, as programs include it. Prints each finding, and fails if there is one."""

import subprocess
import sys
from pathlib import Path

WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror"]


def compile_alone(header, compiler, options):
    """What the compiler says; empty if it says nothing."""
    result = subprocess.run([compiler, "-std=c++20", "-fsyntax-only", *WARNINGS, *options, "-x", "c++", "-"],
                            input=f"#include <{header}>\n#include <{header}>\n", capture_output=True, text=True)
    return result.stderr or "it does not compile" if result.returncode != 0 else ""


def main():
    listed, compiler, *options = sys.argv[1:]
    headers = Path(listed).read_text(encoding="utf-8").split()
    found = 0
    for header in headers:
        if wrong := compile_alone(header, compiler, options):
            found += 1
            print(f"{header} does not compile alone:\n{wrong}")
    print(f"{len(headers)} headers, {found} do not compile alone")
    return 1 if found or not headers else 0


if __name__ == "__main__":
    sys.exit(main())
