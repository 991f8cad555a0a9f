#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Behind ./dev zoo: puts each known bug into the library, one at a time, and sees whether the tests notice.

    run.py [NAME...] [--check | --list | --table] [--quick]

Standard library alone.
"""

import argparse
import json
import os
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict

sys.dont_write_bytecode = True  # the tree stays as it is

from judge import Judge
from mutants import ROOT, Tree, all_mutants, copy_sources, problems

BUILD = ROOT / "build" / "zoo"
RESULTS = BUILD / "results.json"  # of mutants
PASSED = BUILD / "passed.json"  # digests of programs without a mutant, by check

one_at_a_time = threading.Lock()  # what is shown and kept


def parse(words):
  parser = argparse.ArgumentParser(prog="./dev zoo", description="Known bugs, put into the library one at a time: do the "
                                   "tests notice?")
  parser.add_argument("names", nargs="*", metavar="NAME", help="these mutants; all without a name")
  parser.add_argument("--list", action="store_true", help="say which there are")
  parser.add_argument("--check", action="store_true", help="only see whether each patch applies")
  parser.add_argument("--table", action="store_true", help="write the last results as a table for docs/reliability.md")
  parser.add_argument("--quick", action="store_true", help="where each says that it shows, then random programs and interleavings alone")
  parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, metavar="N", help="so many at a time")
  return parser.parse_args(words)


def show(name, outcome, failure, check, seconds):
  print(f"{name:<34} {outcome}, {seconds:.0f} s", end="")
  if failure is not None:
    print(f", by {check}" + (f" ({failure.promise})" if failure.promise else ""), end="")
    print(f", {failure.run}" if failure.run else "", end="")
    print(f"\n    {failure.case}" if failure.case else "", end="")
    print(f"\n    {failure.text[:300]}", end="")
  print(flush=True)


def judge_pristine(judge, quick):
  """The library as it is passes everything."""
  start = time.monotonic()
  groups = judge.groups(quick)
  targets = [check.target for group in groups for check in group]
  if not judge.build(targets):
    print(f"no mutant: does not compile; see {judge.log}")
    return False
  judge.pristine = {target: judge.digest(target) for target in targets}
  passed = json.loads(PASSED.read_text(encoding="utf-8")) if PASSED.is_file() else {}
  for check in (check for group in groups for check in group):
    if passed.get(check.name) == judge.pristine[check.target]:
      continue  # this very program, the last time
    failure = judge.run(check)
    if failure is not None:
      show("no mutant", "FAILS", failure, check.name, time.monotonic() - start)
      return False
    passed[check.name] = judge.pristine[check.target]
    PASSED.write_text(json.dumps(passed, indent=2) + "\n", encoding="utf-8")
  print(f"{'no mutant':<34} passes, {time.monotonic() - start:.0f} s", flush=True)
  return True


def judge_mutant(judge, mutant, quick):
  """Outcome, and what noticed it: the first check that fails."""
  seen = set()
  for group in judge.groups(quick, mutant.first):
    if not judge.build(check.target for check in group):
      return "DOES NOT COMPILE", None, ""
    for check in group:
      if check in seen or not judge.is_changed(check.target):
        continue
      seen.add(check)
      failure = judge.run(check)
      if failure is not None:
        return ("HANGS" if failure.hangs else "killed"), failure, check.name
  return "SURVIVED", None, ""


def keep(results):
  """What was found of each mutant, last."""
  known = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.is_file() else {}
  known.update(results)
  RESULTS.write_text(json.dumps(known, indent=2) + "\n", encoding="utf-8")


def table(mutants):
  known = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.is_file() else {}
  judged = [mutant for mutant in mutants if mutant.name in known]
  print("| mutant | kind | outcome | at |\n|---|---|---|---|")
  for mutant in judged:
    result = known[mutant.name]
    by = result["outcome"]
    if by == "killed":
      crash = "crash" if result["text"].startswith("crash: ") else ""
      by += f" by {result['check']}: " + (result["promise"] or crash or "\"" + result["case"] + "\"")
    print(f"| `{mutant.name}` | {mutant.kind.split(';')[0]} | {by} | {result.get('run', '')} |")
  if len(judged) < len(mutants):
    print(f"\n{len(judged)} of {len(mutants)} mutants; the others have not been judged since.")


def main(words):
  args = parse(words)
  mutants = all_mutants()
  unknown = sorted(set(args.names) - {mutant.name for mutant in mutants})
  if unknown:
    print(f"./dev zoo: no mutant '{unknown[0]}'; ./dev zoo --list says which there are", file=sys.stderr)
    return 2
  wrong = problems(mutants)
  for text in wrong:
    print(text)
  if args.check:
    print(f"{len(mutants)} mutants, {len(wrong)} problems")
    return 1 if wrong else 0
  if args.names:
    by_name = {mutant.name: mutant for mutant in mutants}
    mutants = [by_name[name] for name in dict.fromkeys(args.names)]
  if args.list or args.table:
    if args.table:
      table(mutants)
    for mutant in mutants if args.list else []:
      print(f"{mutant.name:<34} {mutant.title}")
    return 0
  if wrong:
    return 1
  return judge_all(mutants, args.quick, args.jobs)


def judge_one(judge, mutant, quick):
  """Puts the mutant in, and shows and keeps what comes of it. True where it was killed."""
  start = time.monotonic()
  judge.tree.reset()
  judge.tree.apply(mutant)
  judge.write_to(BUILD / f"{mutant.name}.log")
  outcome, failure, check = judge_mutant(judge, mutant, quick)
  seconds = time.monotonic() - start
  with one_at_a_time:
    show(mutant.name, outcome, failure, check, seconds)
    if not quick or outcome == "killed":
      found = asdict(failure) if failure is not None else {}
      keep({mutant.name: {**found, "outcome": outcome, "check": check, "seconds": round(seconds)}})
  return outcome == "killed"


def judge_all(mutants, quick, jobs):
  """One tree for each of `jobs`, which take the next mutant when they are done with one."""
  jobs = max(1, min(jobs, len(mutants)))
  sources = BUILD / "sources"  # as they are now, whatever is edited meanwhile
  copy_sources(ROOT, sources)
  judges = [Judge(Tree(BUILD / f"tree{i}", sources), max(1, (os.cpu_count() or 1) // jobs)) for i in range(jobs)]
  for judge in judges:
    judge.tree.reset()
    judge.write_to(BUILD / f"pristine-{judge.tree.root.name}.log")
    if not judge.configure():
      print(f"the copy of the sources cannot be configured; see {judge.log}")
      return 1
  if not judge_pristine(judges[0], quick):
    return 1
  for judge in judges:
    judge.pristine = judges[0].pristine
  left = iter(mutants)
  killed = []

  def work(judge):
    while True:
      with one_at_a_time:
        mutant = next(left, None)
      if mutant is None:
        return
      killed.append(judge_one(judge, mutant, quick))

  with ThreadPoolExecutor(jobs) as workers:
    for done in [workers.submit(work, judge) for judge in judges]:
      done.result()
  alive = killed.count(False)
  print(f"{len(killed)} mutants: {len(killed) - alive} killed, {alive} not")
  return 1 if alive else 0


if __name__ == "__main__":
  sys.exit(main(sys.argv[1:]))
