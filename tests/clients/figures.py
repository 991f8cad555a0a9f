#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""./dev bench clients: how long real programs take natively and below the layer, by turns.

For each client (--list) and each part of its native peak: with plans, the same with SWAPMM_WAIT=values, and everything on
demand (SWAPMM_PLAN=off). Training
programs (tg_...): seconds of a step, the median of the second half of a run; others: seconds of a whole run with warm
caches. Of that the median over the rounds. "of plan": that time and the time that the plan predicts for a step; "of bound": and the
least time of any plan, by the times that the plan was made from, which are those of the run that made it. "by plan": share of
commands since the first one that followed a plan. Nothing fails because of a time.
"""
import argparse
import json
import re
import shutil
import statistics
import sys
from pathlib import Path

import install
import layered
from run import Case
from table import CLIENTS

WHOLE_RUNS = ("gprmax", "boost_compute", "openmm", "pyclesperanto", "opencv")
PROGRAMS = {client.name: client for client in CLIENTS
            if client.name in WHOLE_RUNS or client.name.startswith("tg_") and "khronos" not in client.name}


def words():
    parser = argparse.ArgumentParser(prog="./dev bench clients", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=["tg_gpt_jit", "tg_cnn_jit"], metavar="CLIENT[:PARTS]")
    parser.add_argument("--steps", type=int, default=24)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--parts", default="1,1/2,1/4", help="of the native peak, of clients without PARTS; 1 is all of it, with room")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--watch", type=Path, default=layered.WATCH)
    parser.add_argument("--layer", type=Path, default=layered.LAYER)
    return parser.parse_args()


def fraction_of(text):
    over, _, under = text.partition("/")
    return float(over) / float(under or 1)


class Program:
    """A client; one that learns does so for a given number of steps."""

    def __init__(self, name, steps, libraries):
        self.case = Case(PROGRAMS[name], libraries)
        command = list(self.case.client.command)
        self.learns = name.startswith("tg_")
        if self.learns:
            command[2] = str(steps)  # python, program, steps
        self.command = [self.case.fill(word) for word in command]
        self.steps, self.libraries = steps if self.learns else 1, libraries
        # Plans that were kept are found again without their bounds, so those of earlier measurements are forgotten.
        self.cache = self.case.work / "figures-cache"
        shutil.rmtree(self.cache, ignore_errors=True)
        self.cache.mkdir()

    def run(self, **more):
        environment = {**self.case.environment(), "SWAPMM_CACHE": str(self.cache)}
        outcome = layered.run(self.command, self.libraries, folder=self.case.work, limit=1800, environment=environment, **more)
        if outcome.code:
            sys.exit(f"{self.case.client.name} ended with {outcome.code}: {layered.last_line(outcome.errors)}")
        return outcome

    def seconds(self, outcome):
        if not self.learns:
            return outcome.seconds
        times = [float(found) for found in re.findall(r"^step \d+ .* ([\d.]+)s$", outcome.errors, re.MULTILINE)]
        steps = [b - a for a, b in zip(times, times[1:])]
        return statistics.median(steps[len(steps) // 2:])


class Mode:
    def __init__(self, title, budget, settings):
        self.title, self.budget, self.settings = title, budget, settings
        self.times, self.reports = [], []
        self.bound = None  # of a step, in nanoseconds

    def note_bound(self):
        """The run that makes a plan alone knows it."""
        plan = last_plan(self.reports[-1])
        if plan.get("bound_ns"):
            self.bound = plan["bound_ns"] / plan["iterations"]


def last_plan(report):
    return (report["devices"] or [{}])[0].get("last_plan") or {}


def modes_of(native, parts):
    yield Mode("native", None, None)
    for text in parts.split(","):
        part = fraction_of(text)
        budget = native.figures.budget(part)
        title = "all fits" if part >= 1 else text
        yield Mode(title, budget, {})
        if part < 1:
            yield Mode(f"{text}, waits for values", budget, {"SWAPMM_WAIT": "values"})
            yield Mode(f"{text}, on demand", budget, {"SWAPMM_PLAN": "off"})


def measure(program, mode):
    if mode.budget is None:
        outcome = program.run()
    else:
        told = program.case.work / "figures-report.json"
        told.unlink(missing_ok=True)
        outcome = program.run(layered=True, budget=mode.budget, settings={**mode.settings, "SWAPMM_REPORT": str(told)})
        mode.reports.append(json.loads(told.read_text(encoding="utf-8")))
        if outcome.figures.peak > mode.budget or outcome.figures.refused:
            sys.exit(f"{mode.title}: {outcome.figures.peak} bytes of a budget of {mode.budget}, {outcome.figures.refused} refused")
    mode.times.append(program.seconds(outcome))
    return outcome


def row(program, mode, native_time, demand_time):
    time = statistics.median(mode.times)
    text = f"| {mode.title} | {layered.mebibytes(mode.budget) if mode.budget else ''} | {time:.3f} | {time / native_time:.3f} |"
    if not mode.reports:
        return text + " | | | | | |"
    report = mode.reports[-1]
    mib = [report[key] / (1 << 20) / program.steps for key in ("bytes_to_device", "bytes_to_host")]
    text += f" {mib[0]:.1f} + {mib[1]:.1f} |"
    plan = last_plan(report)
    if not plan or not report.get("commands_by_plan"):
        return text + " | | | |"
    first = report["first_plan"]
    since_demand = f"{time / demand_time:.3f}" if demand_time else ""
    of_plan = f"{time * 1e9 * plan['iterations'] / plan['predicted_ns']:.2f}" if plan.get("predicted_ns") else ""
    of_bound = f"{time * 1e9 / mode.bound:.2f}" if mode.bound else ""
    return text + (f" {since_demand} | {of_plan} | {of_bound} | {100 * report['share_by_plan_after_warm_up']:.1f} %, from iteration "
                   f"{first['iterations'] + 1}, {first['ns'] / 1e9:.1f} s |")


def tell(name, program, modes):
    native_time = statistics.median(modes[0].times)
    demand = {mode.title.split(",")[0]: statistics.median(mode.times) for mode in modes if "on demand" in mode.title}
    unit = "step" if program.learns else "run"
    print(f"\n{name}{f', {program.steps} steps' if program.learns else ''}\n")
    print(f"| memory | MiB | s per {unit} | of native | MiB in + out per {unit} | of on demand | of plan | of bound | by plan |")
    print("|---|---|---|---|---|---|---|---|---|")
    for mode in modes:
        print(row(program, mode, native_time, demand.get(mode.title.split(",")[0])), flush=True)


def main():
    options = words()
    if options.list:
        print("\n".join(PROGRAMS))
        return 0
    wanted = [(name, parts or options.parts) for name, _, parts in (each.partition(":") for each in options.names)]
    unknown = [name for name, _ in wanted if name not in PROGRAMS]
    if unknown:
        print(f"./dev bench clients: no program {' '.join(unknown)}", file=sys.stderr)
        return 2
    libraries = layered.Libraries(options.watch.resolve(), options.layer.resolve())
    for name, parts in wanted:
        why = install.install(PROGRAMS[name])
        if why:
            print(f"{name}: skipped: {why}")
            continue
        program = Program(name, options.steps, libraries)
        native = program.run()  # and warm caches
        modes = list(modes_of(native, parts))
        expected = program.case.result(native)
        measure(program, modes[-1])  # so that kernels are known before plans are made
        for mode in modes[1:]:  # the layer's caches, too
            if program.case.result(measure(program, mode)) != expected:
                sys.exit(f"{name}, {mode.title}: another result")
            mode.note_bound()
            mode.times.clear()
            mode.reports.clear()
        for number in range(options.rounds):
            for mode in modes if number % 2 == 0 else modes[::-1]:
                measure(program, mode)
        tell(name, program, modes)
    return 0


if __name__ == "__main__":
    sys.exit(main())
