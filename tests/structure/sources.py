# SPDX-License-Identifier: Apache-2.0
"""The project's files and their includes, as text: no compiler, so that a check takes a second."""

import re
from pathlib import Path

# What `#include <swapmm/...>` and `#include "..."` are looked up in.
INCLUDE_ROOTS = ("include", "backends/file", "backends/mpi", "backends/opencl", "backends/cuda", "tests", "examples")
SUFFIXES = {".hpp", ".cpp", ".h", ".cu"}
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', re.M)


def sources(root, *folders):
    """The sources below these folders, as paths relative to the root."""
    found = []
    for folder in folders:
        base = Path(root, folder)
        found += [p.relative_to(root).as_posix() for p in sorted(base.rglob("*")) if p.suffix in SUFFIXES]
    return [p for p in found if "/peers/" not in p and "/data/" not in p]


def text_of(root, path):
    return Path(root, path).read_text(encoding="utf-8")


def without_comments(text):
    """The text without comments and without the contents of string literals, with the same lines."""
    pattern = r'R"(\w*)\((?:.|\n)*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\'|//[^\n]*|/\*(?:.|\n)*?\*/'

    def replace(match):
        if match[0].startswith(("//", "/*")):
            return "\n" * match[0].count("\n")
        return '""' + "\n" * match[0].count("\n") if match[0].startswith(('"', "R")) else "' '"

    # An include's own quotes are no string.
    lines = [l if not re.match(r"\s*#\s*include", l) else l.split("//")[0] for l in text.split("\n")]
    includes = {i: l for i, l in enumerate(lines) if re.match(r"\s*#\s*include", l)}
    kept = re.sub(pattern, replace, "\n".join("" if i in includes else l for i, l in enumerate(lines))).split("\n")
    for i, line in includes.items():
        kept[i] = line
    return "\n".join(kept)


def includes_of(root, path):
    """The project's own files that this one includes directly."""
    found = []
    for name in INCLUDE.findall(text_of(root, path)):
        beside = Path(path).parent / name
        candidates = [beside.as_posix()] + [f"{base}/{name}" for base in INCLUDE_ROOTS]
        found += [c for c in candidates if Path(root, c).is_file()][:1]
    return list(dict.fromkeys(found))


def reachable(edges, start):
    """All that `start` leads to, itself only if it is on a cycle."""
    seen, waiting = set(), list(edges.get(start, ()))
    while waiting:
        node = waiting.pop()
        if node not in seen:
            seen.add(node)
            waiting += edges.get(node, ())
    return seen
