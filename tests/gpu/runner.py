# SPDX-License-Identifier: Apache-2.0
"""Runs checks one after the other, each within a time of its own, and remembers which have passed.

A check that passed is not run again while its programs and its commands are the same.
"""

import hashlib
import json
import os
import re
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

PASSED, FAILED, TIMED_OUT, SKIPPED, NOT_REACHED = "passed", "FAILED", "TIMED OUT", "skipped", "NOT REACHED"
GOOD = (PASSED, SKIPPED)


@dataclass
class Check:
  """Commands that run in turn, up to the first one that fails; together they take `limit` seconds at most."""
  name: str
  commands: list  # of lists of words
  limit: float
  inputs: list = field(default_factory=list)  # files beside the commands' own on which the outcome depends
  environment: dict = field(default_factory=dict)
  outputs: list = field(default_factory=list)  # files that it writes: without them it has not passed
  must_say: str = ""  # a regular expression that the output matches
  may_fail: bool = False  # exit codes do not matter: what it says does
  skip: str = ""  # why it is not run
  skip_when: str = ""  # a regular expression: where the output matches, it does not run here


# What a program says that does not run here: the whole line is the reason.
SKIP_LINE = re.compile(r"^(?:skipped: |no CUDA device: )(.*)$", re.MULTILINE)


def write_whole(path, text):
  """Replaces the file as a whole: readers never see half of it."""
  part = Path(f"{path}.part")
  part.write_text(text, encoding="utf-8")
  os.replace(part, path)


def key_of(check):
  """Of what a result depends on."""
  digest = hashlib.sha256()
  what = [check.name, check.commands, check.environment, check.must_say, check.may_fail]
  digest.update(json.dumps(what, default=str).encode())
  words = {str(word) for command in check.commands for word in command} | set(map(str, check.inputs))
  for path in sorted(Path(word) for word in words - set(map(str, check.outputs))):
    if path.is_absolute() and path.is_file():  # programs under tools, scripts and what they read
      digest.update(path.name.encode())
      digest.update(path.read_bytes())
  return digest.hexdigest()


def run_command(command, environment, log, limit):
  """Its exit code; None where it was ended because its time was up. It and what it started are gone then."""
  log.write(f"$ {' '.join(map(str, command))}\n")
  log.flush()
  if limit <= 0:
    return None
  try:
    process = subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=log,
                               stderr=subprocess.STDOUT, env={**os.environ, **environment}, start_new_session=True)
  except OSError as error:
    log.write(f"{error}\n")
    return 127
  try:
    return process.wait(timeout=limit)
  except subprocess.TimeoutExpired:
    return None
  finally:
    try:
      os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
      pass
    process.wait()


def outcome_of(check, codes, said):
  """(outcome, reason), from the commands' exit codes and everything they said."""
  if codes and codes[-1] is None:
    return TIMED_OUT, f"after {check.limit:g} s"
  cannot = check.skip_when and re.search(check.skip_when, said)
  if cannot:
    return SKIPPED, cannot.group(0)
  if codes[-1] != 0 and not check.may_fail:
    return FAILED, f"exit code {codes[-1]}"
  skipped = SKIP_LINE.search(said)
  if skipped and not check.may_fail:
    return SKIPPED, skipped.group(1)
  if check.must_say and not re.search(check.must_say, said):
    return FAILED, f"does not say {check.must_say!r}"
  for output in check.outputs:
    if not Path(output).is_file():
      return FAILED, f"does not write {Path(output).name}"
  return PASSED, ""


class Runner:
  """`results`: the folder of logs and results. `again`: what has passed is run again."""

  def __init__(self, results, time_limit, again=False, say=print):
    self.results = Path(results)
    self.results.mkdir(parents=True, exist_ok=True)
    self.end = time.monotonic() + time_limit
    self.again = again
    self.say = say
    self.done = []  # result of each check: a dict

  def run(self, checks, jobs=1):
    """`jobs`: how many run at a time; they are told of in their order. What did not pass beside others, which share the
    device's memory with it, is run once more alone."""
    checks = list(checks)
    with ThreadPoolExecutor(jobs) as pool:
      for result in pool.map(self.one, checks):
        self.done.append(result)
        self.say(line_of(result))
    if jobs < 2:
      return
    first = len(self.done) - len(checks)
    for i, check in enumerate(checks, first):
      if self.done[i]["outcome"] not in (FAILED, TIMED_OUT):
        continue
      again = self.one(check)
      if again["outcome"] != NOT_REACHED:
        self.done[i] = again
        self.say(f"alone: {line_of(again)}")

  def one(self, check):
    result = self.before(check) or self.now(check)
    write_whole(self.results / f"{check.name}.result.json", json.dumps(result, indent=1) + "\n")
    return result

  def before(self, check):
    """The result where nothing has to be run."""
    if check.skip:
      return self.result(check, SKIPPED, check.skip, 0, "")
    key = key_of(check)
    if not self.again:
      try:
        old = json.loads((self.results / f"{check.name}.result.json").read_text(encoding="utf-8"))
      except (OSError, ValueError):
        old = {}
      if old.get("outcome") == PASSED and old.get("key") == key and all(Path(o).is_file() for o in check.outputs):
        return {**old, "remembered": True}
    if time.monotonic() + check.limit > self.end:
      return self.result(check, NOT_REACHED, "the time is up: run it again to go on", 0, key)
    return None

  def now(self, check):
    for output in check.outputs:
      Path(output).unlink(missing_ok=True)
    log_path = self.results / f"{check.name}.log"
    start = time.monotonic()
    codes = []
    with open(log_path, "w", encoding="utf-8") as log:
      for command in check.commands:
        codes.append(run_command(command, check.environment, log, start + check.limit - time.monotonic()))
        if codes[-1] is None or (codes[-1] != 0 and not check.may_fail):
          break
    said = log_path.read_text(encoding="utf-8", errors="replace")
    outcome, reason = outcome_of(check, codes, said)
    return self.result(check, outcome, reason, time.monotonic() - start, key_of(check))

  @staticmethod
  def result(check, outcome, reason, seconds, key):
    return {"name": check.name, "outcome": outcome, "reason": reason, "seconds": round(seconds, 2), "key": key,
            "remembered": False}

  def count(self, *outcomes):
    return sum(result["outcome"] in outcomes for result in self.done)

  @property
  def good(self):
    return all(result["outcome"] in GOOD for result in self.done)


def line_of(result):
  reason = result["reason"] or ("as before: the same programs" if result["remembered"] else "")
  return f"{result['name']:<28} {result['outcome']:<12} {result['seconds']:>7.1f} s  {reason}".rstrip()


def table(results):
  return "\n".join(line_of(result) for result in results)
