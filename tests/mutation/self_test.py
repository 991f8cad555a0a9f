#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What ./dev mutate says of a small program of which it is known which mutants live."""
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import equivalent
import judge
from find import find
from results import Results, digest_of_code, identities
from schemata import Schemata

HERE = Path(__file__).resolve().parent
NAME = "counter.hpp"
# (function, operator, source): the outcome. Those that are not listed are killed.
EXPECTED = {
    ("Counter::Counter", "min-max", "std::max(most, T{1})"): "killed",
    ("Counter::add", "plus-minus", "total_ += value"): "killed",
    ("Counter::add", "delete", "total_ += value;"): "killed",
    ("Counter::add", "delete", "++calls_;"): "killed",
    ("Counter::full", "boundary", "total_ >= most_"): "killed",
    ("Counter::full", "drop-operand", "total_ >= most_"): "killed",
    # Nothing was counted, but the most is 1 and more.
    ("Counter::full", "drop-operand", "calls_ != 0"): "survived",
    ("Counter::shown", "boundary", "total_ > most_"): "survived",
    ("Counter::shown", "turn", "total_ > most_"): "killed",
    ("Counter::steps", "delete", "--from;"): "out of time",
    ("Counter::steps", "delete", "steps++;"): "killed",
    ("Counter::lengths", "boundary", "*length > 2"): "killed",
    ("Counter::lengths", "and-or", "length && (*length > 2 || *length < 0)"): "killed",
    # No test has a negative length, or one of 0.
    ("Counter::lengths", "boundary", "*length < 0"): "survived",
    ("Counter::lengths", "drop-operand", "*length < 0"): "survived",
    ("Counter::forget", "delete", "total_ = T{};"): "not reached",
    ("both", "plus-minus", "a + b"): "does not compile",
    ("twice", "plus-minus", "value + value"): "killed",
}


def built(folder, mutants):
    originals = {NAME: (HERE / "planted" / NAME).read_bytes()}
    test = folder / "planted_test.cpp"  # beside the header that it includes
    test.write_bytes((HERE / "planted" / test.name).read_bytes())
    schemata = Schemata(originals, mutants)
    program = folder / "planted"
    command = ["g++", "-std=c++20", "-w", "-O0", "-D_GLIBCXX_ASSERTIONS", "-include", str(HERE / "mutation.hpp"), f"-I{folder}",
               f"-I{HERE.parent}", str(test), "-o", str(program)]
    schemata.build(lambda name, text: (folder / name).write_bytes(text), command, lambda path: os.path.basename(path))
    assert schemata.texts[NAME].count(b"\n") == originals[NAME].count(b"\n"), "lines have moved"
    return schemata, program


def outcomes(folder, mutants):
    schemata, program = built(folder, mutants)
    reached = folder / "reached.txt"
    subprocess.run([str(program)], check=True, stdout=subprocess.DEVNULL,
                   env={**os.environ, "SWAPMM_MUTANTS_REACHED": str(reached)})
    step = judge.Step("planted", [str(program)], judge.read_reached(reached), judge.doctest_filter)
    assert len(step.parts) == 2, "one line for each test case"
    found = {mutant.key[1:]: "does not compile" for mutant in schemata.refused.values()}
    for number, mutant in schemata.alive.items():
        outcome = judge.judge(number, [step])
        found[mutant.key[1:]] = "out of time" if outcome.by.endswith("out of time") else outcome.what
    return found


def check_equivalents(folder):
    text = "# a comment\n\na.hpp f delete\n  x = 1;\n    because: nobody reads it\n      any more\n  y = 1;\n    because: no\n"
    (folder / "equivalent.txt").write_text(text)
    assert equivalent.read(folder / "equivalent.txt") == {("a.hpp", "f", "delete", "x = 1;"): "nobody reads it any more",
                                                          ("a.hpp", "f", "delete", "y = 1;"): "no"}
    equivalent.read(HERE / "equivalent.txt")


def check_results(folder, mutants):
    path = folder / "results.jsonl"
    killed, left, listed, new = mutants[:4]
    text = (HERE / "planted" / NAME).read_bytes()
    same = digest_of_code(text + b"// another comment\n\n")
    assert same == digest_of_code(text) != digest_of_code(text + b"int more;")
    names = identities(mutants, {NAME: same})
    assert len(set(names.values())) == len(mutants), "two mutants have one name"
    first = Results(path, names, "these tests", {})
    for mutant, outcome in ((killed, "killed"), (left, "survived"), (listed, "not reached")):
        first.add(mutant, outcome, "a test")
    for tests, done in (("these tests", True), ("other tests", False)):
        again = Results(path, names, tests, {listed.key: "why"})
        assert [again.is_done(mutant) for mutant in (killed, left, listed, new)] == [True, done, True, False]
        assert [again.outcome(mutant) for mutant in (killed, left, listed, new)] == ["killed", "survived", "equivalent", None]
    changed = Results(path, identities(mutants, {NAME: "another digest"}), "these tests", {})
    assert not any(changed.is_done(mutant) for mutant in mutants)


def main():
    judge.LEAST_SECONDS = 1
    mutants = find(HERE / "planted" / NAME, NAME, [])
    with tempfile.TemporaryDirectory() as folder:
        check_equivalents(Path(folder))
        check_results(Path(folder), mutants)
        found = outcomes(Path(folder), mutants)
    wrong = [f"{key}: {found.get(key, 'no such mutant')} instead of {what}" for key, what in EXPECTED.items()
             if found.get(key) != what]
    wrong += [f"{key}: {what}" for key, what in found.items() if key not in EXPECTED and what in ("survived", "not reached")]
    if any("found" in key[2] and key[1] == "negate" for key in found):
        wrong.append("a condition that declares was changed")
    print("\n".join(wrong) or f"{len(found)} mutants, each with the outcome that it must have")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
