# SPDX-License-Identifier: Apache-2.0
"""What the output of a test program says of its first failure."""

import re
import signal
from dataclasses import dataclass


@dataclass
class Failure:
  """A check that did not pass."""
  case: str = ""  # test case
  text: str = ""  # what it says
  promise: str = ""  # O1 to O10, where it is one of the oracle's
  run: str = ""  # which of many: seed, interleaving, fault
  hangs: bool = False  # nothing was said, and it did not end


# Of docs/reliability.md, by the words that the oracle and the fault loop use. The first that fits.
_PROMISES = [
  ("O6", r"no progress \(O6\)|a bundle that packs was not placed|is too large and was not refused"),
  ("O10", r"on a lost device|sticky error|which values are lost"),
  ("O3", r"checker: "),
  ("O2", r"budget (is )?exceeded|holds more than|more than the device budget|holds another amount|above the budget"
         r"|another budget than|hold the same device bytes"),
  ("O7", r"left after the teardown|something is left"),
  ("O8", r"the same seed gives other"),
  ("O9", r"(without|with its own|with changed) plans|the plan did not bring|a place of the plan|the plan brings in"),
  ("O5", r"lost its value without a word|a second time|is needed was dropped|throws though it was queued|is short of"
         r"|the probe"),
  ("O4", r"one fault, \d+ errors|nobody was told|names neither|a call that must be refused was accepted|unexpected: "
         r"|of no known kind|declared"),
  ("O1", r"the host reads|the operation of action \d+ reads|has another value|the value is another one|work area of action"
         r"|has a value and should not|other bytes"),
]


def _promise(text):
  return next((name for name, words in _PROMISES if re.search(words, text)), "")


def _message(said):
  """The first message of doctest about a failure, in one line, and the test case it is of."""
  at = re.search(r"^(?:.*?: )?(?:FATAL )?ERROR: ?(.*(?:\n(?!\n|=====).*)*)", said, re.MULTILINE)
  if at is None:
    return "", ""
  cases = re.findall(r"^TEST CASE:\s+(.*)$", said[:at.start()], re.MULTILINE)
  return (cases[-1] if cases else "").strip(), " ".join(at[1].split())


def _run(text):
  """Which of many runs it was: they are numbered from 1 on."""
  if found := re.search(r"\b(interleaving \d+): ", text) or re.search(r"^(seed \d+): ", text):
    return found[1]
  if found := re.search(r"no progress .*?: \w+, (seed \d+)", text) or re.match(r"([^,:]+, [^,:]+ \d+), seed \d+: ", text):
    return found[1]
  found = re.search(r"logged: seed := (\d+)", text)
  return f"seed {found[1]}" if found else ""


def failure_in(said, status):
  """`status` as of a process: negative for a signal, None where it did not end."""
  if status == 0:
    return None
  case, text = _message(said)
  if status is None and not text:
    return Failure(text="it does not end, and no test says so", hangs=True)
  if not text or "test case CRASHED" in text:
    name = signal.Signals(-status).name if status is not None and status < 0 else f"exit code {status}"
    own = re.search(r"(terminate called.*(?:\n\s*what\(\):.*)?|.*Assertion .* failed.*|ERROR: \w+Sanitizer: .*)", said)
    text = "crash: " + (" ".join(own[1].split()) if own else text or name)
  short = text.split(" the same with SWAPMM_TEST_SEED", 1)[0]
  return Failure(case, short, _promise(short), _run(text))
