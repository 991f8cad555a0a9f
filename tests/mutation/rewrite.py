# SPDX-License-Identifier: Apache-2.0
"""Writes all mutants of a file into its text, each behind a switch (mutant schemata; see mutation.hpp)."""


def rewrite(data, mutants):
    """`data` are the bytes of a file, `mutants` is {id: mutant}. Returns the bytes with all of them, and for each id
    where its change begins and ends there. Lines stay where they are."""
    before, behind, instead = {}, {}, {}
    order = 0
    nested = sorted(mutants.items(), key=lambda item: (item[1].start, -item[1].end, rank(item[1]), item[0]))
    for number, mutant in nested:
        order += 1
        on = f"::swapmm_mutation::on({number})"
        start, end = mutant.start, mutant.end

        def around(first, last, at=(start, end)):
            before.setdefault(at[0], []).append((order, first, number))
            behind.setdefault(at[1], []).append((-order, last, number))

        if mutant.edit == "statement":
            around("{ if (!" + on + ") ", " }")
        elif mutant.edit == "negate":
            around(f"({on} != static_cast<bool>(", "))")
        elif mutant.edit in ("force-true", "true"):
            around(f"({on} || static_cast<bool>(", "))")
        elif mutant.edit in ("force-false", "false"):
            around(f"(!{on} && static_cast<bool>(", "))")
        elif mutant.edit == "step":
            around(f"({on} ? (" + data[mutant.token[0]:mutant.token[1]].decode() + ") : (", "))")
        elif mutant.edit == "call":
            around("", "")
            instead[mutant.token] = (f"::swapmm_mutation::either_{mutant.into}", f"{number}, ", number)
        elif mutant.edit in ("binary", "logic"):
            around("", "")  # written below, for all mutants of the operator at once
    grouped = {}
    for number, mutant in mutants.items():
        if mutant.edit in ("binary", "logic"):
            grouped.setdefault((mutant.start, mutant.end, mutant.token), []).append((number, mutant))
    for (start, end, token), group in grouped.items():
        first, last, middle = operator_text(data[token[0]:token[1]].decode(), sorted(group, key=lambda g: g[0]))
        fill(before, start, group[0][0], [n for n, _ in group], first)
        fill(behind, end, group[0][0], [n for n, _ in group], last)
        instead[token] = (middle, None, group[0][0])
    return compose(data, before, behind, instead, mutants)


def rank(mutant):
    """Of changes of the same stretch: statements are outside, operators innermost."""
    return {"statement": 0, "binary": 2, "logic": 2, "call": 2, "step": 2}.get(mutant.edit, 1)


def fill(marks, at, owner, group, text):
    """The first of the group has the text, the others stay empty."""
    entries = marks[at]
    chosen = False
    for i, (order, _, number) in enumerate(entries):
        if number == owner:
            entries[i] = (order, text, number)
            chosen = True
    assert chosen and owner in group


def operator_text(operator, group):
    """What stands before, behind and instead of the operator."""
    ids = {mutant.operator: number for number, mutant in group}
    if operator in ("&&", "||"):
        on = f"::swapmm_mutation::on({ids['and-or']})"
        return f"(((static_cast<bool>(", f") != {on})) != {on})", f") != {on}) {operator} (static_cast<bool>("
    if operator in ("+", "-", "+=", "-="):
        names = {"+": "plus", "-": "minus", "+=": "add", "-=": "take"}
        return f"::swapmm_mutation::{names[operator]}({ids['plus-minus']}, ", ")", ", "
    names = {"<": "less", "<=": "less_equal", ">": "greater", ">=": "greater_equal", "==": "equal", "!=": "not_equal"}
    numbers = [str(ids[kind]) for kind in ("boundary", "turn") if kind in ids]
    if len(numbers) < 2 and operator not in ("==", "!="):  # one of the two did not compile
        numbers = [str(ids.get(kind, 0)) for kind in ("boundary", "turn")]
    return f"::swapmm_mutation::{names[operator]}({', '.join(numbers)}, ", ")", ", "


def compose(data, before, behind, instead, mutants):
    out = bytearray()
    where = {number: [None, None] for number in mutants}
    tokens = {start: (end, *rest) for (start, end), rest in instead.items()}
    at = 0
    arguments = {}  # of a call: the number goes in front of them
    while at <= len(data):
        for _, text, number in sorted(behind.get(at, [])):
            out += text.encode()
            where[number][1] = len(out)
        for _, text, number in sorted(before.get(at, [])):
            where[number][0] = len(out)
            out += text.encode()
        if at == len(data):
            break
        if at in tokens:
            end, text, argument, _ = tokens[at]
            out += text.encode()
            if argument is not None:
                arguments[data.index(b"(", end)] = argument
            else:  # no new lines, none lost: what stood around the operator stays
                pass
            at = end
            continue
        out += data[at:at + 1]
        if at in arguments:
            out += arguments[at].encode()
        at += 1
    return bytes(out), where
