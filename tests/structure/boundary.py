#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The public boundary, from the text of the headers.

    boundary.py ROOT LISTS

LISTS is a file that CMake writes: on each line `public PATH` or `template PATH`. Checked are the includes (what a public
header may include, and whether it needs it), that templates need every header of the second list, the namespaces, and
that <swapmm/fwd.hpp> is tested in full. Prints each finding on a line, and fails if there is one."""

import re
import sys

from sources import includes_of, reachable, sources, text_of, without_comments

PUBLIC_NAMESPACES = {"swapmm", "swapmm::opencl", "swapmm::cuda", "swapmm::simulated", "swapmm::limits",
                     "swapmm::literals", "swapmm::mpi", "swapmm::v2"}
FORWARD_DECLARATION = re.compile(r"(template <[^>]*>\s*)?(class|struct) \w+;")


def declared_names(code):
    """Names that a header declares, by the look of it: more rather than fewer."""
    names = set(re.findall(r"\b(?:class|struct|enum class|enum|concept|using|namespace)\s+(?:SWAPMM_\w+\s+)?(\w+)", code))
    names |= set(re.findall(r"\b(\w+)\s*\(", code))
    names |= set(re.findall(r"#\s*define\s+(\w+)", code))
    names |= set(re.findall(r"\bconstexpr\s+[\w:<>, ]+?\s(\w+)\s*[={]", code))
    return names - {"swapmm", "runtime", "detail", "if", "for", "while", "return", "switch", "sizeof", "requires"}


def namespaces(code):
    """(name, content) of each namespace that opens at the beginning of a line, nested ones by their full name."""
    found, open_names = [], []
    depth, content = 0, []
    for line in code.split("\n"):
        match = re.match(r"namespace ([\w:]*)\s*\{(.*)", line)
        if match:
            if open_names:
                open_names[-1][2].append("")
            open_names.append([match[1], depth, []])
            depth += line.count("{") - line.count("}")
            continue
        for entry in open_names[-1:]:
            entry[2].append(line)
        depth += line.count("{") - line.count("}")
        while open_names and depth <= open_names[-1][1]:
            full = "::".join(entry[0] for entry in open_names if entry[0])
            found.append((full, "\n".join(open_names.pop()[2])))
    return found


def lists_of(path):
    lists = {"public": [], "template": []}
    with open(path, encoding="utf-8") as file:
        for line in file:
            kind, header = line.split()
            lists[kind].append(header)
    return lists["public"], lists["template"]


def include_findings(root, public, template):
    codes = {}

    def code(path):
        if path not in codes:
            codes[path] = without_comments(text_of(root, path))
        return codes[path]

    edges = {path: includes_of(root, path) for path in public + template}
    for path in public:
        for target in edges[path]:
            if target in public:
                continue
            if target not in template:
                yield (f"{path}, a public header, includes {target}, which is neither public nor for templates "
                       "(lists in cmake/SwapmmSources.cmake)")
                continue
            text = re.sub(r"#\s*include[^\n]*", "", code(path))
            if not any(re.search(rf"\b{name}\b", text) for name in declared_names(code(target))):
                yield f"{path}, a public header, includes {target} and uses no name of it"
    for path in template:
        for target in edges[path]:
            if target not in public and target not in template:
                yield f"{path}, which templates need, includes {target}, which is not installed"
    reached = set(public)
    for path in public:
        reached |= reachable(edges, path)
    for path in template:
        if path not in reached:
            yield f"{path} is listed for templates, and no public header leads to it"


def namespace_findings(root, public):
    for path in sources(root, "include", "backends"):
        if not path.endswith(".hpp"):
            continue
        for name, content in namespaces(without_comments(text_of(root, path))):
            rest = FORWARD_DECLARATION.sub("", content).replace("}", "").strip()
            if path in public:
                if not name.startswith("swapmm"):
                    yield f"{path}, a public header, opens the namespace {name}"
            elif name in PUBLIC_NAMESPACES and rest:
                yield f"{path} is not public, and declares something in the namespace {name}: use an inner one"


def fwd_findings(root):
    declared = re.findall(r"^(?:class|struct|enum class) (\w+)(?: : [\w:]+)?;",
                          without_comments(text_of(root, "include/swapmm/fwd.hpp")), re.M)
    tested = text_of(root, "tests/headers/fwd.cpp")
    for name in declared:
        if not re.search(rf"\bswapmm::{name}\b", tested):
            yield f"tests/headers/fwd.cpp does not name swapmm::{name}, which <swapmm/fwd.hpp> declares"


def reference_findings(root, public):
    text = text_of(root, "docs/Doxyfile").replace("\\\n", " ")
    documented = set(re.search(r"^INPUT\s*=(.*)$", text, re.M)[1].split()) - {"docs/reference.md"}
    expected = set(public) - {"include/swapmm/fwd.hpp"}
    for path in sorted(expected - documented):
        yield f"docs/Doxyfile does not list {path}, a public header"
    for path in sorted(documented - expected):
        if not path.startswith("backends/") or any(other.split("/")[1] == path.split("/")[1] for other in expected
                                                   if other.startswith("backends/")):
            yield f"docs/Doxyfile lists {path}, which is not a public header"


def main():
    root, lists = sys.argv[1:]
    public, template = lists_of(lists)
    found = [*include_findings(root, public, template), *namespace_findings(root, public), *fwd_findings(root),
             *reference_findings(root, public)]
    print("\n".join(found) if found else f"{len(public)} public headers, {len(template)} for templates")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
