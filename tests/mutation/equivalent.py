# SPDX-License-Identifier: Apache-2.0
"""Mutants that change nothing that anybody can see, each with the reason; equivalent.txt says how they are written."""


def read(path):
    """{(file, function, operator, source): reason}"""
    listed, entry, at = {}, None, 0
    with open(path, encoding="utf-8") as file:
        for line in file:
            at += 1
            line = line.rstrip("\n")
            if line.startswith("#") or not line.strip():
                continue
            if not line.startswith(" "):
                words = line.split()
                if len(words) != 3:
                    raise ValueError(f"{path}:{at}: FILE FUNCTION OPERATOR expected")
                entry, source = tuple(words), None
            elif entry is None:
                raise ValueError(f"{path}:{at}: this belongs to no mutant")
            elif line.strip().startswith("because: "):
                if source is None:
                    raise ValueError(f"{path}:{at}: the source comes first")
                listed[(*entry, source)] = line.strip()[len("because: "):]
            elif source is not None and (*entry, source) in listed and line.startswith("    "):
                listed[(*entry, source)] += " " + line.strip()
            else:
                source = line.strip()
    return listed
