#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What the layer shows of a running program: the trace and the picture of what ran on the device, and lines of progress.

pictures.py --cases PROGRAM --exits PROGRAM --layer LIBRARY [CHECK...]

The program must do the same as without them, whatever happens to the files.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree

from checks import FAILURES, check, same

COMPUTE, H2D, D2H = 1, 2, 3
BUFFER = 65536  # bytes of all buffers of these cases


class Run:
    """A program that has ended: its output, its lines on stderr, and what it wrote."""

    def __init__(self, done, folder):
        self.output, self.code, self.errors = done.stdout, done.returncode, done.stderr.decode()
        self.lines = [line for line in self.errors.splitlines() if "OpenCL layer" not in line]
        read = lambda name: open(os.path.join(folder, name), encoding="utf-8").read() if os.path.exists(
            os.path.join(folder, name)) else None
        self.trace, self.svg, self.report = read("trace"), read("svg"), read("report")
        self.report = self.report and json.loads(self.report)
        self.files = sorted(os.listdir(folder))


class Bench:
    def __init__(self, options):
        self.options = options
        self.folder = tempfile.TemporaryDirectory()
        self.base = {k: v for k, v in os.environ.items() if not k.startswith(("SWAPMM_", "WATCH_", "OPENCL_LAYERS"))}
        self.natively = {}

    def native(self, command):
        if tuple(command) not in self.natively:
            self.natively[tuple(command)] = subprocess.run(command, env=self.base, stdout=subprocess.PIPE, timeout=120)
        return self.natively[tuple(command)]

    def run(self, command, budget="1000000", **variables):
        """Runs a program below the layer; %s in a variable is a new folder. Checks that it does what it does natively."""
        with tempfile.TemporaryDirectory(dir=self.folder.name) as folder:
            environment = dict(self.base, OPENCL_LAYERS=self.options.layer, SWAPMM_BUDGET=budget, SWAPMM_ANALYSIS="wait",
                               SWAPMM_CACHE=self.folder.name, SWAPMM_REPORT=f"{folder}/report")
            environment.update({name: value.replace("%s", folder) for name, value in variables.items()})
            done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120,
                                  check=False)
            same(done.stdout, self.native(command).stdout, f"{command[1:]}: its output")
            same(done.returncode, self.native(command).returncode, f"{command[1:]}: its exit code")
            return Run(done, folder)

    def case(self, name, budget="1000000", **variables):
        return self.run([self.options.cases, name], budget, SWAPMM_TRACE_OUT="%s/trace", SWAPMM_SVG="%s/svg", **variables)

    def exit(self, way, **variables):
        return self.run([self.options.exits, way], "1MiB", SWAPMM_TRACE_OUT="%s/trace", SWAPMM_SVG="%s/svg", **variables)


class Trace:
    """What ran, by process and thread of the trace."""

    def __init__(self, text):
        events = json.loads(text)["traceEvents"]
        self.titles = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
        self.threads = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
        self.spans = [e for e in events if e["ph"] == "X"]
        self.counters = [e for e in events if e["ph"] == "C"]
        self.iterations = [e for e in events if e["ph"] == "i"]

    def on(self, thread, process=None):
        return [e for e in self.spans if e["tid"] == thread and process in (None, e["pid"])]

    def bounds(self):
        """When the commands of each process begin and end."""
        spans = [self.on(COMPUTE, process) for process in sorted(self.titles)]
        return [min(e["ts"] for e in each) for each in spans], [max(e["ts"] + e["dur"] for e in each) for each in spans]

    def check_order(self, what):
        """A thread runs one thing at a time. Times have three decimals."""
        for process in self.titles:
            for thread in (COMPUTE, H2D, D2H):
                end = 0
                for span in self.on(thread, process):
                    check(span["ts"] >= end - 0.002, f"{what}: {span} begins before {end}")
                    end = span["ts"] + span["dur"]


def check_svg(text, title, what):
    root = xml.etree.ElementTree.fromstring(text)
    check(root.tag.endswith("}svg"), f"{what}: {root.tag}")
    told = root.find("{http://www.w3.org/2000/svg}title").text
    check(title in told, f"{what}: the title is {told!r}, and should have {title!r}")


def check_whole(run, what, contexts=1):
    """The trace has all that the report counts. With several contexts, it lacks copies to the host that are made when one of
    them gives memory away."""
    trace, report = Trace(run.trace), run.report
    same(len(trace.titles), contexts, f"{what}: contexts")
    same(len(trace.on(COMPUTE)), report["commands"], f"{what}: commands")
    same(len(trace.on(H2D)), report["swap_ins"], f"{what}: copies to the device")
    lacking = report["swap_outs"] - len(trace.on(D2H))
    check(lacking == 0 or contexts > 1 and 0 < lacking <= report["swap_outs"], f"{what}: {lacking} copies to the host lack")
    same(sum(e["args"]["bytes"] for e in trace.on(H2D)), report["bytes_to_device"], f"{what}: bytes to the device")
    same(sum(e["args"]["bytes"] for e in trace.on(D2H)), report["bytes_to_host"] - lacking * BUFFER, f"{what}: bytes to the host")
    same(len(trace.iterations), report["iterations"], f"{what}: iterations")
    trace.check_order(what)
    return trace


def whole(bench):
    """All that ran is in the trace, with names and bytes, also if it was recorded in many segments."""
    for length in ("160000", "2000"):  # the latter is more than the run has
        run = bench.case("iterations.kept_buffers", "360448", SWAPMM_TRACE_LENGTH=length)
        same(run.lines, [], f"length {length}: lines on stderr")
        trace = check_whole(run, f"length {length}")
        same({e["name"] for e in trace.on(COMPUTE)}, {"blend", "affine", "write", "read", "initial bytes"}, "names")
        check(trace.titles[1].startswith("swapmm_opencl_cases (process "), f"the title is {trace.titles[1]}")
        same(trace.threads, {(1, COMPUTE): "compute", (1, H2D): "H2D", (1, D2H): "D2H"}, "threads")
        taken = [e["args"]["bytes"] for e in trace.counters if e["name"] == "bytes taken"]
        check(0 < max(taken) <= 360448, f"{max(taken)} bytes were taken")
        same({e["args"]["bytes"] for e in trace.counters if e["name"] == "budget"}, {360448}, "the budget")
        check_svg(run.svg, "context 1, the last iteration of 16 commands", f"length {length}")
    check("write" in run.svg and "read" in run.svg, "the picture lacks begin or end of the iteration")
    check("initial bytes" not in run.svg, "the picture of an iteration has more than that")
    run = bench.case("iterations.kept_buffers")
    check_whole(run, "everything fits")
    check_svg(run.svg, "context 1", "everything fits")
    check("the last" not in run.svg, "an iteration in the picture of a program that has none")


def let_go(bench):
    """Of a long run, the last segments are kept, and it is said what came before."""
    # An iteration of 16 commands has up to 34 copies, by its plan; a segment has 40 to 80.
    run = bench.case("iterations.kept_buffers", "360448", SWAPMM_TRACE_LENGTH="320")
    trace = Trace(run.trace)
    trace.check_order("let go")
    kept, total = len(trace.on(COMPUTE)), run.report["commands"]
    check(kept < total, f"all of {total} commands are kept")
    check(320 <= len(trace.spans) <= 320 + 85, f"{len(trace.spans)} commands and copies are kept")
    same(run.lines, [f"swapmm: the trace has the last {kept} of {total} commands of context 1"], "lines on stderr")
    check(f", the last {kept} of {total} commands" in trace.titles[1], f"the title is {trace.titles[1]}")
    check_svg(run.svg, "context 1, the last iteration of 16 commands", "let go")
    # No segment is as long as an iteration, so none has a whole one; but the reads at the end.
    run = bench.case("iterations.kept_buffers", "360448", SWAPMM_TRACE_LENGTH="72")
    check("iteration of 16" not in run.svg, "an iteration in two segments is drawn as a whole one")
    quiet = bench.case("iterations.kept_buffers", "360448", SWAPMM_TRACE_LENGTH="160", SWAPMM_QUIET="1")
    same(quiet.errors, "", "stderr if the user wants quiet")


def contexts(bench):
    """Several contexts that take memory from each other, and end before the process does."""
    for length in ("160000", "400"):
        run = bench.case("iterations.two_contexts_in_turn", "600000", SWAPMM_TRACE_LENGTH=length)
        trace = Trace(run.trace)
        # The first one to end may be too much beside the other one.
        lacks = "swapmm: the trace lacks 1 contexts that were released early" in run.lines
        check(not (lacks and length == "160000"), "a context is missing though there is room")
        same(len(trace.titles), 1 if lacks else 2, "contexts")
        trace.check_order(f"two contexts, length {length}")
        for number, title in trace.titles.items():
            check(f"context {number}" in title, f"the title is {title}")
    run = bench.case("iterations.two_contexts_in_turn", "600000")
    trace = check_whole(run, "two contexts", 2)
    # They run in turn, so their times overlap, on one axis.
    begins, ends = trace.bounds()
    check(max(begins) < min(ends), f"from {begins} to {ends}")
    check(min(begins) < 1e6, f"the axis begins long before the first command: {begins}")
    # The second context has more commands.
    check(len(trace.on(COMPUTE, 2)) > len(trace.on(COMPUTE, 1)), "commands of the contexts")
    check_svg(run.svg, "context 2", "the picture of the context with the most commands")
    run = bench.case("threads.contexts_of_their_own", "210000")
    check_whole(run, "three contexts", 3)
    run = bench.case("lifetimes.contexts_one_after_another")
    trace = check_whole(run, "one after another", 3)
    same([len(trace.on(COMPUTE, p)) for p in (1, 2, 3)], [13, 13, 13], "commands of contexts that are gone")
    begins, ends = trace.bounds()
    check(ends[0] <= begins[1] and ends[1] <= begins[2], f"from {begins} to {ends}, one after another")
    run = bench.case("lifetimes.contexts_one_after_another", SWAPMM_TRACE_LENGTH="1")
    same([title.split(" on ")[0].split(", ")[1] for title in Trace(run.trace).titles.values()], ["context 3"], "if little is kept")
    check("swapmm: the trace lacks 2 contexts that were released early" in run.lines, f"{run.lines}")


def ends(bench):
    """The process ends in one of many ways."""
    run = bench.exit("nothing_is_released")
    same(len(Trace(run.trace).on(COMPUTE)), run.report["commands"], "commands of a context that is not released")
    check_svg(run.svg, "context 1", "not released")
    run = bench.exit("static_objects")
    # 6 initial values, 3 times 24 launches less those after exit(), 6 reads.
    check(len(Trace(run.trace).on(COMPUTE)) > 50, "a static object")
    for way in ("ended_by_signal", "exit_without_cleanup", "quick_exit"):
        same([bench.exit(way).trace, bench.exit(way).svg], [None, None], f"{way}: files")
    for way in ("thread_inside", "thread_waits", "exit_in_callback", "driver_goes_first"):
        begin = time.monotonic()
        run = bench.exit(way)
        check(run.trace is None or Trace(run.trace).on(COMPUTE), f"{way}: an empty trace")
        check(run.trace is not None or "there is no picture" in run.errors, f"{way}: no picture, and {run.lines}")
        check(time.monotonic() - begin < 30, f"{way}: {time.monotonic() - begin:.1f} s")


def busy(bench):
    """A device that does not end its work does not keep the process."""
    begin = time.monotonic()
    run = bench.exit("device_is_busy")
    check(time.monotonic() - begin < 15, f"busy: {time.monotonic() - begin:.1f} s")
    same(run.lines, ["swapmm: there is no picture: the device was still busy 2 s after the program's end"], "busy")
    same([run.trace, run.svg], [None, None], "busy: files")
    run = bench.exit("device_is_busy", SWAPMM_TRACE_LENGTH="40")
    same(run.lines[0], "swapmm: the end is missing in the picture: the device was still busy 2 s after the program's end",
         "busy, with whole segments")
    check(len(Trace(run.trace).on(COMPUTE)) > 1, "busy, with whole segments: commands")


def forks(bench):
    """The child of a fork() writes nothing of its parent's."""
    for way in ("fork_and_exit", "fork_and_leave"):
        run = bench.run([bench.options.exits, way], "1MiB", SWAPMM_TRACE_OUT="%s/trace-%p", SWAPMM_SVG="%s/svg-%p")
        same([name.split("-")[0] for name in run.files], ["report", "svg", "trace"], f"{way}: files")
        same(run.files[1].split("-")[1], run.files[2].split("-")[1], f"{way}: process ids")
        same(str(run.report["process"]), run.files[1].split("-")[1], f"{way}: the process id")
        same(run.lines, [], f"{way}: lines on stderr")


def not_written(bench):
    """Files that cannot be written: one line each, and nothing else."""
    command = [bench.options.cases, "recorded.loop"]
    fifo = os.path.join(bench.folder.name, "fifo")
    os.mkfifo(fifo)
    for name, why in (("/no/such/folder/file", "No such file or directory"), (bench.folder.name, "Is a directory"),
                      (fifo, "No such device or address"), ("/dev/null", "it is not an ordinary file")):
        run = bench.run(command, SWAPMM_TRACE_OUT=name, SWAPMM_SVG=name)
        same(run.lines, 2 * [f"swapmm: cannot write {name}: {why}"], "a file that cannot be written")
    run = bench.run(command, SWAPMM_SVG="%s/svg")
    same(run.files, ["report", "svg"], "only the picture is wanted")
    old = os.path.join(bench.folder.name, "old")
    with open(old, "w", encoding="utf-8") as file:
        file.write("x" * 1000000)
    bench.run(command, SWAPMM_SVG=old)
    with open(old, encoding="utf-8") as file:
        check_svg(file.read(), "context 1", "a file that was there")
    run = bench.run([bench.options.cases, "lifetimes.other_references"], SWAPMM_TRACE_OUT="%s/trace")
    check(run.trace is not None or run.lines == ["swapmm: there is no picture: no command used a buffer"], f"{run.lines}")


def progress(bench):
    """A line now and then, with the numbers of the report."""
    shape = re.compile(r"swapmm: (\d+) commands, (\d+) % by a plan; ([\d.]+) MiB to the device, ([\d.]+) MiB to the host; "
                       r"([\d.]+) of ([\d.]+) MiB used")
    command = [bench.options.cases, "iterations.kept_buffers"]
    run = bench.run(command, "360448", SWAPMM_PROGRESS="0.000000001", SWAPMM_QUIET="1")
    lines = [shape.fullmatch(line) for line in run.errors.splitlines()]
    check(all(lines), f"lines: {run.errors[:300]}")
    same([int(line[1]) for line in lines], list(range(1, run.report["commands"] + 1)), "commands so far")
    last, mib = lines[-1], 1 << 20
    same(int(last[2]), 100 * run.report["commands_by_plan"] // run.report["commands"], "the share by a plan")
    same(last[3], f"{run.report['bytes_to_device'] / mib:.1f}", "MiB to the device")
    check(abs(float(last[4]) - run.report["bytes_to_host"] / mib) < 0.2, f"MiB to the host: {last[4]}")
    same(last[6], f"{360448 / mib:.1f}", "MiB of the budget")
    check(0 < max(float(line[5]) for line in lines) <= 0.35, "MiB used")
    run = bench.run(command, "360448", SWAPMM_PROGRESS="3600")
    same(run.lines, [], "a line each hour")
    # Contexts that are gone count.
    run = bench.run([bench.options.cases, "lifetimes.contexts_one_after_another"], SWAPMM_PROGRESS="0.000000001")
    same([int(shape.fullmatch(line)[1]) for line in run.lines], list(range(1, 40)), "commands of three contexts")
    run = bench.run(command, SWAPMM_PROGRESS="0")
    same(run.lines, [], "no lines")


def refused(bench):
    """Settings that cannot be read: nothing is allocated, as with the others."""
    for name, value in (("SWAPMM_TRACE_LENGTH", "many"), ("SWAPMM_TRACE_LENGTH", "0"), ("SWAPMM_PROGRESS", "often"),
                        ("SWAPMM_PROGRESS", "-1"), ("SWAPMM_PROGRESS", "nan")):
        environment = dict(bench.base, OPENCL_LAYERS=bench.options.layer, SWAPMM_CACHE="off", **{name: value})
        done = subprocess.run([bench.options.cases, "recorded.loop"], env=environment, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=120, check=False)
        same(done.returncode, 1, f"{name}={value}: the exit code")
        check(f'{name}: "{value}" is not' in done.stderr.decode(), f"{name}={value}: {done.stderr}")


CHECKS = {each.__name__: each for each in (whole, let_go, contexts, ends, busy, forks, not_written, progress, refused)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("cases", "exits", "layer"):
        parser.add_argument(f"--{name}", required=True, type=os.path.abspath)
    parser.add_argument("checks", nargs="*", metavar="CHECK", help=", ".join(CHECKS))
    options = parser.parse_args()
    bench = Bench(options)
    for name in options.checks or CHECKS:
        print(f"{name}: {CHECKS[name].__doc__}", flush=True)
        CHECKS[name](bench)
    print(f"{len(FAILURES)} failures")
    return 1 if FAILURES else 0


if __name__ == "__main__":
    sys.exit(main())
