#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the shared libraries export.

    exports.py inner ROOT NM LIBRARY=FILE...     no name of an inner namespace, but for those that templates call
    exports.py compare ROOT NM LIBRARY=FILE...   against the lists of the last release, tests/package/symbols
    exports.py update ROOT NM LIBRARY=FILE...    writes those lists for the version in version.hpp

Prints each finding on a line, and fails if there is one."""

import re
import subprocess
import sys
from pathlib import Path

from sources import sources, text_of, without_comments

PUBLIC = {"opencl", "cuda", "file", "mpi", "simulated", "limits", "literals"}
PREFIXES = re.compile(r"^(?:(?:typeinfo|typeinfo name|vtable|VTT|construction vtable|guard variable|TLS init function|"
                      r"TLS wrapper function) for|non-virtual thunk to|virtual thunk to) ")


def exported(nm, library):
    """(type, demangled name) of each symbol that the library defines and exports."""
    output = subprocess.run([nm, "--dynamic", "--defined-only", "--demangle", library], check=True,
                            capture_output=True, text=True).stdout
    return [(match[1], match[2]) for match in re.finditer(r"^\S+ (\w) (.*)$", output, re.M)]


def qualified_name(symbol):
    """The name itself: without prefix, result type, template arguments and parameters."""
    symbol = PREFIXES.sub("", symbol)
    kept, depth = "", 0
    for character in symbol.replace("operator<<", "operator_shift").replace("operator<=>", "operator_compare"):
        depth += character == "<"
        if depth == 0:
            if character == "(" and not kept.endswith("::"):
                break
            kept += character
        depth -= character == ">"
    return re.sub(r"\[abi:\w+\]", "", kept).strip().split(" ")[-1]


def inner(name):
    parts = name.split("::")
    return parts[0] == "swapmm" and any(re.fullmatch(r"[a-z_]+", part) and part not in PUBLIC for part in parts[1:-1])


def marked_for_templates(root):
    """Names that carry SWAPMM_TEMPLATE_EXPORT in a header: functions, and classes that are instantiated in a library."""
    functions, classes = set(), set()
    for path in sources(root, "include", "backends"):
        if not path.endswith(".hpp") or path.endswith("base/export.hpp"):
            continue
        lines = without_comments(text_of(root, path)).split("\n")
        scopes = []  # of the open braces: the name of a namespace or class, or nothing
        for number, line in enumerate(lines):
            scope = "::".join(filter(None, scopes))
            opens = re.match(r"\s*(?:namespace|class|struct) (?:SWAPMM_\w+ )?([\w:]+)[^;]*\{", line)
            for position, character in enumerate(line):
                if character == "{":
                    scopes.append(opens[1] if opens and position >= opens.end() - 1 else "")
                elif character == "}" and scopes:
                    scopes.pop()
            # The list in runtime/instances.hpp, whose users say that all of it is exported.
            if match := re.search(r"template_ class export_as (\w+)<", line):
                classes.add(f"swapmm::runtime::{match[1]}")
                continue
            if match := re.search(r"template_ export_as .*?(\w+)<B>\(", " ".join(lines[number:number + 2])):
                functions.add(f"swapmm::runtime::{match[1]}")
                continue
            if "SWAPMM_TEMPLATE_EXPORT" not in line:
                continue
            if match := re.search(r"template (?:class|struct) SWAPMM_TEMPLATE_EXPORT ([\w:]+)<", " ".join(lines[number:number + 2])):
                name = match[1]
                classes |= {f"{scope}::{name}", name if name.startswith("swapmm") else f"swapmm::{name}"}
                continue
            if match := re.search(r"SWAPMM_TEMPLATE_EXPORT.*?(~?\w+)\(", " ".join(lines[number:number + 3])):
                functions.add(f"{scope}::{match[1]}")
    return functions, classes


def inner_findings(root, nm, libraries):
    functions, classes = marked_for_templates(root)
    seen = 0
    for library, path in libraries.items():
        names = {qualified_name(symbol) for _, symbol in exported(nm, path)}
        seen += sum(name.startswith("swapmm::") for name in names)
        for name in sorted(filter(inner, names)):
            if name in functions or name in classes or any(name.startswith(f"{prefix}::") for prefix in classes):  # itself: its vtable
                continue
            yield f"{library} exports {name}: an inner name without SWAPMM_TEMPLATE_EXPORT"
    if seen < 20:
        yield f"only {seen} names of swapmm are exported at all: is this a shared library of swapmm?"


def strong_symbols(nm, path):
    """What a compiled program may refer to; inline functions and templates are the program's own as well. Names of the C
    interface begin with swapmm_."""
    return sorted({symbol for kind, symbol in exported(nm, path)
                   if kind in "TDRB" and ("swapmm::" in symbol or symbol.startswith("swapmm_"))})


def version_of(root):
    text = text_of(root, "include/swapmm/version.hpp")
    return tuple(int(re.search(rf"#define SWAPMM_VERSION_{part} (\d+)", text)[1]) for part in ("MAJOR", "MINOR"))


def list_of(root, library, version):
    return Path(root, "tests/package/symbols", f"{library}-{version[0]}.{version[1]}.txt")


def compare(root, nm, libraries):
    version = version_of(root)
    for library, path in libraries.items():
        stored = list_of(root, library, version)
        if not stored.is_file():
            yield (f"{stored} does not exist: the first list of version {version[0]}.{version[1]}. Write it with "
                   "./dev symbols --update, and add it")
            continue
        before = set(stored.read_text(encoding="utf-8").splitlines())
        now = set(strong_symbols(nm, path))
        for symbol in sorted(before - now):
            yield (f"{library} no longer exports\n    {symbol}\n  which {stored.name} promises. Programs compiled against "
                   f"{version[0]}.{version[1]} would not start. Keep it (docs/versions.md tells how to deprecate), or "
                   "raise the minor version in include/swapmm/version.hpp and run ./dev symbols --update")
        for symbol in sorted(now - before):
            print(f"new in {library}: {symbol}")


def main():
    mode, root, nm, *rest = sys.argv[1:]
    libraries = dict(entry.split("=", 1) for entry in rest)
    if mode == "update":
        for library, path in libraries.items():
            symbols = strong_symbols(nm, path)
            target = list_of(root, library, version_of(root))
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text("\n".join(symbols) + "\n", encoding="utf-8")
            print(f"{target}: {len(symbols)} symbols")
        return 0
    found = list({"inner": inner_findings, "compare": compare}[mode](root, nm, libraries))
    print("\n".join(found) if found else f"{', '.join(libraries)}: as they should be")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
