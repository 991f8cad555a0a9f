# SPDX-License-Identifier: Apache-2.0
"""Runs what comes by a mutant with that mutant switched on, the cheapest first, until something fails."""
import os
import re
import resource
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass, field

LEAST_SECONDS = 4  # of the processor, for any process
MOST_KILLERS = 12  # test cases, for each file


@dataclass
class Step:
    """One process: a command with some of its parts (test cases, or seeds), each with its seconds."""
    name: str
    command: list
    parts: list = field(default_factory=list)    # [(seconds, part, frozenset of the mutants it comes by)]
    arguments: object = None                     # function: list of parts -> arguments
    most_seconds: float = 1e9                    # of one part; longer ones are left out
    most_parts: int = 1_000_000
    quick: float = 0.05                          # seconds: parts as quick as that are run first, in a process of their own
    first: bool = False                          # before all other steps, whatever the time


@dataclass
class Outcome:
    what: str            # killed, survived, not reached
    by: str = ""
    seconds: float = 0
    processes: int = 0


def limits(seconds):
    def apply():
        resource.setrlimit(resource.RLIMIT_CPU, (int(seconds) + 1, int(seconds) + 2))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
    return apply


def run(command, number, seconds, environment=None):
    """How a process with that mutant on ends: None where all held, else what it was killed by. `seconds` of the processor
    are what it takes as a rule: several times as many are a hang."""
    most = LEAST_SECONDS + 8 * seconds
    with tempfile.TemporaryFile() as out:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT,
                                   env={**os.environ, **(environment or {}), "SWAPMM_MUTANT": str(number)},
                                   preexec_fn=limits(most), start_new_session=True)
        try:
            status = process.wait(timeout=30 + 5 * most)
        except subprocess.TimeoutExpired:
            status = -signal.SIGXCPU
        finally:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait()
        if status == 0:
            return None
        out.seek(0)
        text = out.read(200_000).decode("utf-8", "replace")
    if status in (-signal.SIGXCPU, -signal.SIGKILL):
        return "out of time"
    case = re.search(r"^TEST CASE:\s+(.+)$", text, re.M)
    program = re.search(r"^random program.*$", text, re.M)
    what = case.group(1) if case else program.group(0) if program else text.strip().split("\n")[0]
    if status < 0:
        what = f"{signal.Signals(-status).name}: {what}"
    return what[:150]


class Killers:
    """The test cases that killed the last mutants of a file. They are likely to kill the next one."""

    def __init__(self):
        self.cases = {}

    def of(self, file, number, steps):
        """A wave for each step with killers that reach the mutant."""
        known = self.cases.get(file, ())
        for step in steps:
            parts = [part for part in step.parts if (step.name, part[1]) in known and number in part[2]]
            if parts:
                yield step, parts

    def add(self, file, by, steps):
        for step in steps:
            for _, part, _ in step.parts:
                if by == f"{step.name}: {part}":
                    recent = [(step.name, part), *(case for case in self.cases.get(file, ()) if case != (step.name, part))]
                    self.cases[file] = recent[:MOST_KILLERS]


def judge(number, steps, first=()):
    """Whether any of the steps notices the mutant. `first` are waves that run before all others."""
    start = time.monotonic()
    processes = 0
    waves = []
    for step in steps:
        parts = [part for part in step.parts if number in part[2] and part[0] <= step.most_seconds][:step.most_parts]
        quick = [part for part in parts if part[0] <= step.quick]
        slow = [part for part in parts if part[0] > step.quick]
        waves += [(step, chosen) for chosen in (quick, slow) if chosen]
    waves.sort(key=lambda wave: (not wave[0].first, sum(part[0] for part in wave[1])))
    if not waves:
        return Outcome("not reached" if not any(number in part[2] for step in steps for part in step.parts) else "survived")
    for step, parts in [*first, *waves]:
        command = step.command + step.arguments([part[1] for part in parts])
        processes += 1
        by = run(command, number, sum(part[0] for part in parts))
        if by is not None:
            return Outcome("killed", f"{step.name}: {by}", time.monotonic() - start, processes)
    return Outcome("survived", "", time.monotonic() - start, processes)


def read_reached(path):
    """[(seconds, part, mutants)] as reached_cases.hpp and programs.cpp write it."""
    parts = []
    with open(path, encoding="utf-8", errors="replace") as file:
        for line in file:
            seconds, part, numbers = line.rstrip("\n").split("\t")
            parts.append((float(seconds), part, frozenset(int(number) for number in numbers.split())))
    return parts


def doctest_filter(cases):
    """Only these. A comma would end a name, and so may a bracket confuse: any character stands there."""
    return ["--no-version", "--abort-after=1",
            "--test-case=" + ",".join(sorted({re.sub(r'[,\\"]', "?", case.split("<")[0]) + ("*" if "<" in case else "")
                                              for case in cases}))]
