#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each header compiles alone, with all warnings, and may be included twice.

    alone.py LIST COMPILER [OPTION...]

LIST is a file with a header on each line, as programs include it. Prints each finding, and fails if there is one.

For speed every one of them finds the standard library's headers included before it: what they declare is the longest part of
each. So a missing one is not found here, but in ./dev test --all with the public headers (installed.py), which bring all of these."""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror"]


def compile_alone(header, compiler, options):
    """What the compiler says; empty if it says nothing."""
    result = subprocess.run([compiler, "-std=c++20", "-fsyntax-only", *WARNINGS, *options, "-x", "c++", "-"],
                            input=f"#include <{header}>\n#include <{header}>\n", capture_output=True, text=True)
    return result.stderr or "it does not compile" if result.returncode != 0 else ""


def precompiled_standard_headers(folder, sources, compiler, options):
    """Options that make all headers of the standard library that `sources` include known."""
    names = {name for source in sources for name in re.findall(r"^#include <([a-z_]+)>", source.read_text(encoding="utf-8"), re.MULTILINE)}
    header = Path(folder) / "standard.hpp"
    header.write_text("".join(f"#include <{name}>\n" for name in sorted(names)), encoding="utf-8")
    subprocess.run([compiler, "-std=c++20", *options, "-x", "c++-header", header, "-o", f"{header}.gch"], check=True)
    return ["-include", str(header)]


def main():
    listed, compiler, *options = sys.argv[1:]
    headers = Path(listed).read_text(encoding="utf-8").split()
    root = Path(__file__).resolve().parents[2] / "include"
    found = 0
    with tempfile.TemporaryDirectory() as folder:
        known = precompiled_standard_headers(folder, root.rglob("*.hpp"), compiler, options)
        for header in headers:
            if wrong := compile_alone(header, compiler, [*known, *options]):
                found += 1
                print(f"{header} does not compile alone:\n{wrong}")
    print(f"{len(headers)} headers, {found} do not compile alone")
    return 1 if found or not headers else 0


if __name__ == "__main__":
    sys.exit(main())
