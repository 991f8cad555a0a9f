#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""./dev clients: runs real programs natively and below the layer, at parts of their need, and compares.

The same lines of result and exit code, no byte above the budget, and no allocation beyond it. What is installed lies in
build/clients. Programs that cannot be had are skipped, and said so.
"""
import argparse
import difflib
import re
import shutil
import sys
from pathlib import Path

import install
import layered
from table import CLIENTS

LOGS = install.OUT / "logs"
# For small sizes compiling takes longest. Natively, kernels get the option that the layer adds, so that PoCL finds in its
# cache what the native run has compiled.
QUICKLY = {"POCL_EXTRA_BUILD_FLAGS": "-cl-opt-disable"}
QUICKLY_NATIVE = {"POCL_EXTRA_BUILD_FLAGS": "-cl-kernel-arg-info -cl-opt-disable"}


def words():
    parser = argparse.ArgumentParser(prog="./dev clients", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="of clients, or how names begin (all)")
    parser.add_argument("--list", action="store_true", help="only say which there are")
    parser.add_argument("--evict", action="store_true", help="also with everything evicted after every command")
    parser.add_argument("--tightest", action="store_true", help="of the budgets only the smallest")
    parser.add_argument("--native", action="store_true", help="natively only")
    parser.add_argument("--watch", type=Path, default=layered.WATCH)
    parser.add_argument("--layer", type=Path, default=layered.LAYER)
    return parser.parse_args()


def chosen(names):
    exact = [client for client in CLIENTS if client.name in names]
    others = [name for name in names if name not in {client.name for client in exact}]
    found = [client for client in CLIENTS
             if client in exact or (not names and not client.quick) or any(client.name.startswith(name) for name in others)]
    return found


class Case:
    """One client with its folders."""

    def __init__(self, client, libraries):
        self.client, self.libraries = client, libraries
        self.work = install.OUT / "work" / client.name
        self.work.mkdir(parents=True, exist_ok=True)
        self.places = {"python": str(install.VENV / "bin" / "python"), "programs": str(install.PROGRAMS),
                       "work": str(self.work), "built": str(install.OUT / "built"),
                       "sources": str(install.OUT / "sources"), "venv": str(install.VENV)}

    def fill(self, text):
        return text.format(**self.places)

    def environment(self):
        caches = install.OUT / "cache"
        if self.client.cold:
            caches = self.work / "cache"
            shutil.rmtree(caches, ignore_errors=True)
        found = {**install.caches_in(caches), "XDG_DATA_HOME": str(caches / "xdg"), "PYTHONDONTWRITEBYTECODE": "1"}
        found.update({key: self.fill(value) for key, value in self.client.environment.items()})
        return found

    def run(self, title, **more):
        outcome = layered.run([self.fill(word) for word in self.client.command], self.libraries, folder=self.work,
                              limit=self.client.limit, environment=self.environment(), standard_input=self.client.input, **more)
        LOGS.mkdir(parents=True, exist_ok=True)
        name = f"{self.client.name}-{title.replace(' %', '').replace(' ', '-').replace('/', '_')}.log"
        (LOGS / name).write_text(f"{outcome.output}\n---- stderr\n{outcome.errors}", encoding="utf-8")
        return outcome

    def result(self, outcome):
        """What counts: of each line that the expression is found in, its groups, or all of it if it has none."""
        found = [(line, re.search(self.client.result, line)) for line in outcome.output.splitlines()]
        return [" ".join(match.groups()) or line for line, match in found if match]


def judge(case, outcome, native, budget):
    expected, got = case.result(native), case.result(outcome)
    wrong = outcome.complaints(native, budget)
    if got != expected:
        wrong += list(difflib.unified_diff(expected, got, "native", "layered", lineterm="", n=0))[:8]
    return wrong


def row(name, title, outcome, budget, judgement, wrong=()):
    print(f"{name:<30} {title:<12} {layered.mebibytes(outcome.figures.peak):>8} "
          f"{layered.mebibytes(budget) if budget else '':>8} {outcome.seconds:>7.1f} s  {judgement}", flush=True)
    for line in wrong:
        print(f"    {line}", flush=True)


def modes_of(client, native, evict, tightest):
    """Title, budget and settings. Each budget is at least the largest launch."""
    for fraction in (min(client.fractions),) if tightest else client.fractions:
        title = f"{fraction:.0%}" if fraction > 0.2 else f"1/{round(1 / fraction)}"
        yield title, native.figures.budget(fraction), QUICKLY if tightest else {}
    if evict:
        yield "evict always", native.figures.need, {"SWAPMM_EVICT": "always"}


def run_client(client, libraries, options):
    """True if nothing differs, None if it is skipped."""
    try:
        why = install.install(client)
    except install.Broken as broken:
        print(f"{client.name:<30} FAILED: {broken}", flush=True)
        return False
    if why:
        print(f"{client.name:<30} skipped: {why}", flush=True)
        return None
    case = Case(client, libraries)
    if client.prepare:
        install.call([install.HOST_PYTHON, *(case.fill(word) for word in client.prepare)])
    native = case.run("native", settings=QUICKLY_NATIVE if options.tightest else {})
    told = case.result(native)
    wrong = [] if native.code == client.code else [f"exit code {native.code}: {layered.last_line(native.errors)}"]
    if not told:
        wrong.append("no line of result")
    if native.figures.processes == 0:
        wrong.append("nobody watched: the loader took no layer")
    row(client.name, "native", native, None,
        f"largest launch {layered.mebibytes(native.figures.largest_launch)} MiB; {told[-1] if told else ''}"[:70], wrong)
    if wrong:
        return False
    if options.native or not libraries.layer.exists():
        return True
    same = True
    for title, budget, settings in modes_of(client, native, options.evict or client.evict, options.tightest):
        outcome = case.run(title, budget=budget, layered=True, settings=settings)
        wrong = judge(case, outcome, native, budget)
        row(client.name, title, outcome, budget, "differs" if wrong else "same", wrong)
        same = same and not wrong
    return same


def main():
    options = words()
    clients = chosen(options.names)
    if not clients:
        print(f"./dev clients: no client {' '.join(options.names)}", file=sys.stderr)
        return 2
    if options.list:
        print("\n".join(client.name for client in clients))
        return 0
    libraries = layered.Libraries(options.watch.resolve(), options.layer.resolve())
    print(f"{'client':<30} {'mode':<12} {'peak MiB':>8} {'budget':>8} {'time':>9}", flush=True)
    results = [run_client(client, libraries, options) for client in clients]
    print(f"\n{results.count(True)} the same, {results.count(False)} differ, {results.count(None)} skipped", flush=True)
    if all(result is None for result in results):
        print("skipped: no client can run here", flush=True)
    return 1 if False in results else 0


if __name__ == "__main__":
    sys.exit(main())
