#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Plans of unmodified programs survive the process, and nothing in the folder where they are can harm a program.

plans_kept.py --cases PROGRAM --layer LIBRARY [CASE...]

Each case is run with an empty cache, and again. The second run must follow the plan earlier. The output must always be that
of the run without the layer, whatever was done to the cache between the runs."""

import argparse
import hashlib
import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile

CASES = ["iterations.kept_buffers", "iterations.ping_pong", "iterations.made_anew"]
FIRST_LINE = b"swapmm-cache-1 "


class Bench:
    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        self.failed = self.runs = 0
        self.base = {k: v for k, v in os.environ.items() if not k.startswith(("SWAPMM_", "WATCH_", "OPENCL_LAYERS"))}
        self.native = {}
        self.budget = {}
        for case in options.loops:
            self.native[case] = subprocess.run([options.cases, case], env=self.base, check=True, stdout=subprocess.PIPE).stdout
            report = self.start(case, "off", SWAPMM_BUDGET="512MiB")()[2]
            self.budget[case] = str(report["devices"][0]["wanted_peak_bytes"] // 2)

    def start(self, case, cache, **variables):
        """Starts a run; call what this returns for its output, lines on stderr, and report."""
        self.runs += 1
        told = os.path.join(self.folder, f"report-{self.runs}")
        settings = {"OPENCL_LAYERS": self.options.layer, "SWAPMM_CACHE": cache, "SWAPMM_REPORT": told,
                    "SWAPMM_ANALYSIS": "off",  # so that a kernel is known to do the same from its first launch on
                    "SWAPMM_BUDGET": self.budget.get(case, "512MiB"), **variables}
        process = subprocess.Popen([self.options.cases, case], env={**self.base, **settings}, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE)

        def finish():
            out, errors = process.communicate(timeout=120)
            lines = [line for line in errors.decode().splitlines() if "OpenCL layer" not in line]
            self.expect(case, process.returncode == 0, f"exit code {process.returncode}: {lines[-5:]}")
            report = {"iterations_by_plan": -1, "plans_found": -1}
            if os.path.exists(told):
                with open(told, encoding="utf-8") as file:
                    report = json.load(file)
            return out, lines, report
        return finish

    def run(self, name, case, cache, line=None, **variables):
        out, lines, report = self.start(case, cache, **variables)()
        name = f"{case}: {name}"
        self.expect(name, out == self.native[case], "another output than natively")
        self.expect(name, len(lines) == (line is not None), f"lines on stderr: {lines}")
        self.expect(name, line is None or (lines and line in lines[0]), f"no line with {line!r}: {lines}")
        return report["iterations_by_plan"], report["plans_found"]

    def expect(self, name, holds, text):
        if not holds:
            self.failed += 1
            print(f"FAILED: {name}: {text}")

    def new_folder(self):
        return tempfile.mkdtemp(dir=self.folder)


def plans_in(cache):
    folder = os.path.join(cache, "swapmm", "plans")
    return sorted(os.path.join(folder, name) for name in os.listdir(folder)) if os.path.isdir(folder) else []


def read(path):
    with open(path, "rb") as file:
        return file.read()


def write(path, data):
    with open(path, "wb") as file:
        file.write(data)


def sealed(text):
    return FIRST_LINE + hashlib.sha256(text).hexdigest().encode() + b"\n" + text


def body(data):
    return data.split(b"\n", 1)[1]


def survives(bench, case):
    """Returns the cache with the plans of that case."""
    cache = bench.new_folder()
    first = bench.run("an empty cache", case, cache)
    second = bench.run("a plan in the cache", case, cache)
    print(f"{case}: {first[0]} iterations by a plan, {second[0]} in the next run, {second[1]} plans found")
    bench.expect(case, first[1] == 0 and first[0] > 0, f"{first} at first")
    bench.expect(case, second[1] > 0 and second[0] > first[0], f"{first} by a plan and plans found, then {second}")
    for path, mode in ((os.path.join(cache, "swapmm"), 0o700), (os.path.join(cache, "swapmm", "plans"), 0o700),
                       *((plan, 0o600) for plan in plans_in(cache))):
        bench.expect(case, stat.S_IMODE(os.stat(path).st_mode) == mode, f"mode of {path}")
    bench.expect(case, all(os.path.basename(plan).startswith("plan-") for plan in plans_in(cache)), f"{plans_in(cache)}")
    return cache


def not_found(bench, case, cache):
    """With another budget, or without plans or cache, nothing is found."""
    more = bench.run("another budget", case, cache, SWAPMM_BUDGET=str(int(bench.budget[case]) * 5 // 4))
    bench.expect(case, more[1] == 0, f"another budget: {more}")
    off = bench.new_folder()
    none = bench.run("the cache is off", case, "off", XDG_CACHE_HOME=off, HOME=off)
    bench.expect(case, none[1] == 0 and "swapmm" not in os.listdir(off), f"off: {none}, {os.listdir(off)}")
    home = bench.new_folder()
    bench.run("the user's folder", case, "", XDG_CACHE_HOME=home)
    bench.expect(case, plans_in(home), "nothing in $XDG_CACHE_HOME")


def damaged(bench, case, cache, foreign):
    """Files that are damaged, or another program's, are ignored with one line, and replaced."""
    good = {path: read(path) for path in plans_in(cache)}
    first = bench.run("before", case, cache)
    changes = {
        "empty": (lambda data: b"", "is damaged"),
        "cut": (lambda data: data[:-1], "is damaged"),
        "changed": (lambda data: data.replace(b'"tensor": 0', b'"tensor": 1', 1), "is damaged"),
        "binary": (lambda data: bytes(range(256)) * 64, "is damaged"),
        "no plan": (lambda data: sealed(b"nonsense"), "a plan of the cache is ignored"),
        "half a plan": (lambda data: sealed(body(data)[:len(data) // 2]), "a plan of the cache is ignored"),
        "another program's": (lambda data: foreign, "a plan of the cache is ignored"),
        "values that are thrown away": (lambda data: sealed(body(data).replace(b'"swap_out"', b'"release"')),
                                        "a plan of the cache is ignored"),
    }
    for how, (change, line) in changes.items():
        for path, data in good.items():
            write(path, change(data))
        anew = bench.run(f"a file that is damaged ({how})", case, cache, line=line)
        bench.expect(case, anew[1] == 0 and anew[0] > 0, f"{how}: {anew}")
        again = bench.run(f"made anew ({how})", case, cache)
        bench.expect(case, again == first, f"{how}, made anew: {again}, {first} before")
    for path, data in good.items():
        write(path, data)
        os.chmod(path, 0o622)
    bench.run("others can write to the file", case, cache, line="is not the user's")


def foreign_folders(bench, case, cache):
    """A folder that is not the user's alone is not used."""
    folder = os.path.join(cache, "swapmm", "plans")
    os.chmod(folder, 0o777)
    loose = bench.run("others can write to the folder", case, cache, line="other users can write")
    bench.expect(case, loose[1] == 0, f"others can write: {loose}")
    os.chmod(folder, 0o700)
    shutil.move(folder, folder + ".moved")
    os.symlink(folder + ".moved", folder)
    linked = bench.run("a link", case, cache, line="is not used")
    bench.expect(case, linked[1] == 0, f"a link: {linked}")


def at_once(bench, case):
    """Several processes with one cache."""
    cache = bench.new_folder()
    for _ in range(3):
        for finish in [bench.start(case, cache) for _ in range(4)]:
            out, lines, _ = finish()
            bench.expect(case, out == bench.native[case] and not lines, f"several processes: {lines}")
    names = [os.path.basename(path) for path in plans_in(cache)]
    bench.expect(case, names and all(name.startswith("plan-") for name in names), f"several processes: {names}")
    bench.expect(case, bench.run("after several processes", case, cache)[1] > 0, "nothing found after several processes")


def bounded(bench, case):
    """What was unused for longest goes, and what is not a finished file."""
    cache = bench.new_folder()
    bench.run("an empty cache", case, cache)
    kept = plans_in(cache)
    folder = os.path.dirname(kept[0])
    for path in kept:
        os.remove(path)
    for i in range(400):
        path = os.path.join(folder, f"plan-{i:064}")
        write(path, b"old")
        os.utime(path, (1_000_000 + i, 1_000_000 + i))
    write(os.path.join(folder, "partial-1-1"), b"left behind")
    os.utime(os.path.join(folder, "partial-1-1"), (1_000_000, 1_000_000))
    write(os.path.join(folder, "partial-1-2"), b"being written")
    bench.run("a full cache", case, cache)
    names = {os.path.basename(path) for path in plans_in(cache)}
    bench.expect(case, {os.path.basename(path) for path in kept} <= names, "the new plan is not there")
    bench.expect(case, len(names) <= 256, f"{len(names)} files")
    bench.expect(case, f"plan-{399:064}" in names and f"plan-{0:064}" not in names, "not the oldest went")
    bench.expect(case, "partial-1-1" not in names and "partial-1-2" in names, "partial files")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", required=True)
    parser.add_argument("--layer", required=True)
    parser.add_argument("loops", nargs="*", default=CASES, metavar="CASE")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(options, folder)
        caches = [survives(bench, case) for case in options.loops]
        case, cache = options.loops[0], caches[0]
        not_found(bench, case, cache)
        shutil.rmtree(os.path.join(cache, "swapmm"))
        bench.run("an empty cache", case, cache)
        damaged(bench, case, cache, read(plans_in(caches[1])[0]))
        foreign_folders(bench, case, cache)
        at_once(bench, case)
        bounded(bench, case)
        print(f"{bench.runs} runs, {bench.failed} failed")
        return 1 if bench.failed else 0


if __name__ == "__main__":
    sys.exit(main())
