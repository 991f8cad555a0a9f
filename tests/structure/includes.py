#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The include structure: no cycle between files; in the library none between folders, no file too long, no folder too full; the core names
no GPU's API. `includes.py ROOT` prints each finding on a line, and fails if there is one."""

import re
import sys
from pathlib import Path

from sources import includes_of, reachable, sources, text_of, without_comments

MOST_LINES = 500
MOST_SOURCES = 20
# Reasons for exceptions stand in docs/decisions/0015-public-boundary.md. There are none.
LONG_FILES = set()
FULL_FOLDERS = set()

LIBRARY = ("include", "backends")
GPU_API = re.compile(r"\b(cl[A-Z_]\w*|CL_\w+|CL/\w+|cuda\w*|CUDA\w*|cu[A-Z]\w*|opencl|OpenCL|hip[A-Z]\w*|nvtx\w*)")


def a_cycle(edges, start):
    """One way from `start` back to it."""
    before, waiting = {start: None}, [start]
    while waiting:
        node = waiting.pop(0)
        for target in edges.get(node, ()):
            if target == start:
                way = [target]
                while node is not None:
                    way.insert(0, node)
                    node = before[node]
                return way
            if target not in before:
                before[target] = node
                waiting.append(target)
    return []


def cycles(edges, what):
    reported = set()
    for node in sorted(edges):
        if node in reported or node not in reachable(edges, node):
            continue
        way = a_cycle(edges, node)
        reported |= set(way)
        yield f"{what} include each other in a cycle: " + " -> ".join(way)


def folder_edges(file_edges):
    edges, example = {}, {}
    for path, targets in file_edges.items():
        folder = str(Path(path).parent)
        for target in targets:
            other = str(Path(target).parent)
            if other != folder:
                edges.setdefault(folder, set()).add(other)
                example.setdefault((folder, other), (path, target))
    return edges, example


def findings(root):
    files = sources(root, *LIBRARY, "tests")
    edges = {path: includes_of(root, path) for path in files}
    yield from cycles(edges, "files")

    folders, example = folder_edges(edges)
    for text in cycles(folders, "folders"):
        way = text.split(": ", 1)[1].split(" -> ")
        pairs = [example[pair] for pair in zip(way, way[1:])]
        yield text + "\n    " + "\n    ".join(f"{path} includes {target}" for path, target in pairs)

    library = [path for path in files if path.startswith(tuple(f"{folder}/" for folder in LIBRARY))]
    count = {}
    for path in library:
        folder = str(Path(path).parent)
        count[folder] = count.get(folder, 0) + 1
        lines = text_of(root, path).count("\n")
        if lines > MOST_LINES and path not in LONG_FILES:
            yield f"{path} has {lines} lines: at most {MOST_LINES}"
    for folder, number in sorted(count.items()):
        if number > MOST_SOURCES and folder not in FULL_FOLDERS:
            yield f"{folder} has {number} sources: at most {MOST_SOURCES}"

    for path in library:
        if not path.startswith("include/") or path == "include/swapmm/kernel.h":
            continue
        for number, line in enumerate(without_comments(text_of(root, path)).split("\n"), 1):
            if match := GPU_API.search(line):
                yield f"{path}:{number} names a GPU's API, {match[0]}: only backends and kernel.h do"


def main():
    found = list(findings(sys.argv[1]))
    print("\n".join(found) if found else "no cycle, no long file, no full folder, no GPU's API in the core")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
