#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The runner of the bug zoo, without a compiler: what it reads out of patches and out of the output of tests."""

import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))

from failures import failure_in
from mutants import all_mutants, git_apply, problems, read_mutant

CASE = """===============================================================================
../../tests/a_test.cpp:48:
TEST CASE:  {case}

../../tests/a_test.cpp:54: {error}

===============================================================================
[doctest] test cases: 1 | 0 passed | 1 failed | 5 skipped
"""


def said(error, case="values are right"):
  return failure_in(CASE.format(case=case, error=error), 1)


class Failures(unittest.TestCase):
  def test_a_test_that_passes_is_no_failure(self):
    self.assertIsNone(failure_in("[doctest] Status: SUCCESS!", 0))

  def test_a_failure_has_its_case_its_text_and_how_many_seeds_it_took(self):
    failure = said("FATAL ERROR: seed 17: the host reads tensor t3: stale\nthe same with SWAPMM_TEST_SEED=17; what is left")
    self.assertEqual(failure.case, "values are right")
    self.assertEqual(failure.text, "seed 17: the host reads tensor t3: stale")
    self.assertEqual((failure.promise, failure.run), ("O1", "seed 17"))
    self.assertFalse(failure.hangs)

  def test_each_promise_is_known_by_its_words(self):
    for promise, text in {
        "O1": "seed 2: the operation of action 7 reads tensor t1: torn from byte 0",
        "O2": "seed 2: the device holds more than the budget",
        "O3": "seed 2: the device's checker: unordered: 'copy to host' reads device bytes",
        "O4": "a steady loop, record once 3, seed 1000006: one fault, 2 errors: a | b",
        "O5": "more than memory, copy_to_host once 1, seed 1000004: tensor \"w1\" lost its value without a word",
        "O6": "no progress (O6): program, seed 9, step 12: a call of the library does not come back",
        "O7": "something is left on the device or the host",
        "O8": "seed 50: the same seed gives other steps",
        "O9": "seed 3: with changed plans the host reads other bytes",
        "O10": "profiles, finish device_lost 1, seed 1000004: upload succeeds on a lost device",
        "": "CHECK( 1 == 2 ) is NOT correct!"}.items():
      self.assertEqual(said("ERROR: " + text).promise, promise, text)

  def test_interleavings_and_faults_are_told(self):
    self.assertEqual(said("FATAL ERROR: interleaving 12: the device's checker: x").run, "interleaving 12")
    self.assertEqual(said("ERROR: profiles, copy_to_host late 4, seed 7: tensor").run, "profiles, copy_to_host late 4")
    self.assertEqual(said("ERROR: CHECK( false ) is NOT correct!").run, "")

  def test_a_crash_is_told_by_what_it_says_else_by_its_signal(self):
    self.assertEqual(failure_in("terminate called after throwing an instance of 'X'\n  what():  gone\n", -6).text,
                     "crash: terminate called after throwing an instance of 'X' what(): gone")
    self.assertEqual(failure_in("", -11).text, "crash: SIGSEGV")
    self.assertEqual(failure_in("program: a.cpp:3: int f(): Assertion `a == b' failed.\n", -6).text,
                     "crash: program: a.cpp:3: int f(): Assertion `a == b' failed.")

  def test_a_hang_counts_only_where_the_test_says_so(self):
    self.assertTrue(failure_in("[doctest] doctest version is 2", None).hangs)
    failure = failure_in("\nERROR: no progress (O6): program, seed 9, step 2: a call does not come back\n", 1)
    self.assertEqual((failure.hangs, failure.promise, failure.run), (False, "O6", "seed 9"))


class Mutants(unittest.TestCase):
  def test_the_zoo_as_it_is_has_no_problem(self):
    self.assertEqual(problems(all_mutants()), [])

  def test_a_patch_says_what_it_is(self):
    with tempfile.TemporaryDirectory() as folder:
      path = Path(folder) / "some_bug.patch"
      path.write_text("A wait is\nmissing. In detail\n\nKind of bug: a wait too\nfew; told elsewhere.\nLook first: unit.views\n\n"
                      "diff --git a/tests/x.cpp b/tests/x.cpp\n--- a/tests/x.cpp\n+++ b/tests/x.cpp\n@@ -1 +1 @@\n-a\n+b\n",
                      encoding="utf-8")
      mutant = read_mutant(path)
      self.assertEqual((mutant.name, mutant.title, mutant.first), ("some_bug", "A wait is missing", "unit.views"))
      self.assertEqual(mutant.kind, "a wait too few; told elsewhere")
      text = "\n".join(problems([mutant]))
      self.assertIn("at least 24", text)
      self.assertIn("changes tests/x.cpp, which is no part of the library", text)
      self.assertIn("does not apply", text)

  def test_a_patch_applies_in_any_folder_also_within_a_repository(self):
    with tempfile.TemporaryDirectory() as folder:
      root = Path(folder) / "repository" / "build" / "tree"
      root.mkdir(parents=True)
      (root.parents[1] / ".git").mkdir()
      (root / "a.txt").write_text("one\n", encoding="utf-8")
      patch = Path(folder) / "a.patch"
      patch.write_text("diff --git a/a.txt b/a.txt\n--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-one\n+two\n", encoding="utf-8")
      self.assertEqual(git_apply(root, patch), "")
      self.assertEqual((root / "a.txt").read_text(encoding="utf-8"), "two\n")
      self.assertNotEqual(git_apply(root, patch), "")


if __name__ == "__main__":
  unittest.main()
