#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The log of the layer, read by call_log.py: what the cases did is in it, and only that.

record.py --cases PROGRAM --layer LIBRARY [--swapmm COMMAND] CHECK...

CHECK is all_kinds, threads, off, killed, every or a case (THEME.NAME), which is recorded with its inputs and replayed natively
and within a budget.
"""

import argparse
import hashlib
import json
import os
import signal
import subprocess
import sys
import tempfile

import call_log
from checks import FAILURES, check, same

BUFFER = 65536


class Runner:
    def __init__(self, options):
        self.options = options
        self.folder = tempfile.TemporaryDirectory()
        self.log = os.path.join(self.folder.name, "calls.log")
        self.base = {k: v for k, v in os.environ.items() if not k.startswith(("SWAPMM_", "OPENCL_LAYERS"))}

    def run(self, case, log=True, **variables):
        if os.path.exists(self.log):
            os.remove(self.log)
        environment = dict(self.base, OPENCL_LAYERS=self.options.layer, SWAPMM_QUIET="1", SWAPMM_BUDGET="64MiB",
                           SWAPMM_CACHE=self.folder.name, **variables)
        if log:
            environment["SWAPMM_LOG"] = self.log
        return subprocess.run([self.options.cases, case], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              timeout=120, check=False)

    def native(self, case):
        return subprocess.run([self.options.cases, case], env=self.base, stdout=subprocess.PIPE, timeout=120, check=False)


def recorded(runner, case, **variables):
    native, logged = runner.native(case), runner.run(case, **variables)
    same(logged.stdout, native.stdout, f"{case}: the output with a log")
    same(logged.returncode, native.returncode, f"{case}: the exit code with a log")
    same(logged.stderr, b"", f"{case}: standard error with a log")
    calls, ended = call_log.read(runner.log)
    check(ended, f"{case}: the log has its end")
    same(sorted(c["sequence"] for c in calls), list(range(len(calls))), f"{case}: each number once")
    same(os.stat(runner.log).st_mode & 0o777, 0o600, "only the user may read the log")
    return calls


def of_kind(calls, kind):
    return [c for c in calls if c["kind"] == kind]


def operands(call):
    return [(o["object"], o["access"], o["offset"], o["bytes"]) for o in call["operands"]]


def all_kinds(runner):
    calls = recorded(runner, "recorded.all_kinds", SWAPMM_LOG_DATA="1")
    made = [c for c in calls if c["kind"] == "create"]
    ids = [c["object"] for c in made]
    same(len(set(ids)), len(ids), "objects have numbers of their own")
    context, queue, program = made[0], made[1], made[2]
    same([c["object_kind"] for c in made[:3]], ["context", "queue", "program"], "what is made first")
    check(context["name"] != "" and context["bytes"] == 1, "the context tells its device")
    same(queue["flags"], 2, "the queue's flags")
    same(queue["parent"], context["object"], "the queue's context")
    check(b"kernel void blend" in program["source"], "the program has its source")
    same(program["source_digest"], hashlib.sha256(program["source"]).digest(), "the digest of the source")
    build = of_kind(calls, "build")[0]
    same((build["object"], build["function"], build["options"]), (program["object"], "clBuildProgram", b""), "the build")
    a, b, constant = [c for c in made if c["object_kind"] == "buffer"]
    same([c["bytes"] for c in (a, b, constant)], [BUFFER] * 3, "sizes of buffers")
    same(constant["flags"] & 4, 4, "the flags of a buffer that is only read")
    check(a["host"]["content"] and hashlib.sha256(a["host"]["content"]).digest() == a["host"]["digest"],
          "the data of a new buffer, and its digest")
    same(b["host"], None, "a buffer without a value")
    part = [c for c in made if c["object_kind"] == "part"][0]
    same((part["parent"], part["offset"], part["bytes"]), (b["object"], 4096, 8192), "the part")
    kernel = [c for c in made if c["object_kind"] == "kernel"][0]
    same((kernel["name"], kernel["parent"]), ("blend", program["object"]), "the kernel")
    same([(c["argument"]["index"], c["argument"]["type"], c["argument"]["object"]) for c in of_kind(calls, "set_argument")],
         [(0, "object", b["object"]), (1, "object", a["object"]), (2, "object", constant["object"])], "arguments")
    launch = of_kind(calls, "launch")[0]
    same((launch["name"], launch["object"], launch["queue"], launch["global"], launch["local"]),
         ("blend", kernel["object"], queue["object"], [16384], []), "the launch")
    same(operands(launch), [(b["object"], "update", 0, BUFFER), (a["object"], "update", 0, BUFFER),
                            (constant["object"], "read", 0, BUFFER)], "what the launch does")
    same([o["argument"] for o in launch["operands"]], [0, 1, 2], "the arguments of the launch")
    fill = of_kind(calls, "fill")[0]
    same(operands(fill), [(part["object"], "write", 1024, 2048)], "the fill")
    same(fill["argument"]["value"], b"\x04\x03\x02\x01", "the pattern")
    copy = of_kind(calls, "copy")[0]
    same(operands(copy), [(a["object"], "read", 16, 128), (b["object"], "write", 64, 128)], "the copy")
    rectangle, write = of_kind(calls, "write")
    same(operands(rectangle), [(a["object"], "write", 4 + 256, 2 * 256 + 8)], "the rectangle's range")
    same(rectangle["operands"][0]["box"], {"origin": [4, 1, 0], "region": [8, 3, 1], "row": 256, "slice": 768}, "the rectangle")
    same(rectangle["host"]["content"], b"aaaaaaaabbbbbbbbcccccccc", "the bytes of a rectangle, row after row")
    same(rectangle["host"]["digest"], hashlib.sha256(b"aaaaaaaabbbbbbbbcccccccc").digest(), "the digest of a rectangle")
    same((rectangle["blocking"], write["blocking"]), (1, 0), "blocking or not")
    same(operands(write), [(b["object"], "write", 512, 256)], "the write")
    gate = [c for c in made if c["object_kind"] == "user_event"][0]
    mark = of_kind(calls, "mark")[0]
    same((mark["waits"], mark["flags"]), ([write["event"], gate["object"]], 0), "the marker waits for both events")
    check(write["event"] != 0 and mark["event"] not in (0, write["event"]), "events have numbers")
    setting = of_kind(calls, "set_event")[0]
    same((setting["object"], setting["value"]), (gate["object"], 0), "the event of the program")
    same(of_kind(calls, "wait")[0]["waits"], [mark["event"]], "the wait")
    mapped, unmapped = of_kind(calls, "map")[0], of_kind(calls, "unmap")[0]
    same((operands(mapped), mapped["flags"], mapped["blocking"]), ([(b["object"], "read", 128, 32)], 3, 1), "the map")
    same((operands(unmapped), unmapped["flags"]), ([(b["object"], "write", 128, 32)], 3), "the unmap")
    before, after = mapped["host"]["digest"], unmapped["host"]["content"]
    words = [int.from_bytes(after[i:i + 4], "little") for i in range(0, 32, 4)]
    old = b"".join(((w - i) & 0xFFFFFFFF).to_bytes(4, "little") for i, w in enumerate(words))
    same(hashlib.sha256(old).digest(), before, "what was mapped, by what was unmapped")
    reads = of_kind(calls, "read")
    same([operands(r) for r in reads], [[(b["object"], "read", 0, BUFFER)], [(a["object"], "read", 0, BUFFER)],
                                        [(b["object"], "read", BUFFER, 4)]], "the reads")
    same([r["blocking"] for r in reads], [0, 1, 1], "reads that block")
    same([r["status"] for r in reads], [0, 0, -30], "the status of a call that fails")
    check(all(len(r["host"]["digest"]) == 32 for r in reads[:2]), "the digests of reads, also of one that did not block")
    same(reads[2]["host"]["digest"], b"", "a read that failed brought nothing")
    same(reads[0]["host"]["content"], b"", "what comes to the host is only told by its digest")
    same(sorted(c["object"] for c in calls if c["kind"] == "release"), sorted(ids + [write["event"], mark["event"]]),
         "all is released")
    timed = [c for c in calls if c["kind"] in ("launch", "fill", "copy", "write", "unmap") or c in reads[:2]]
    check(all(c["duration_ns"] is not None for c in timed), "commands have times")
    same([c["function"] for c in calls if c["kind"] == "foreign"], [], "nothing was passed through")
    check(any(c["function"] == "clGetPlatformIDs" for c in calls), "queries are calls, too")


def threads(runner):
    calls = recorded(runner, "recorded.threads")
    launches = of_kind(calls, "launch")
    same(len(launches), 100, "launches of all threads")
    by_thread = {}
    for call in launches:
        by_thread.setdefault(call["thread"], []).append(call)
    same(sorted(len(each) for each in by_thread.values()), [25] * 4, "launches of each thread")
    for mine in by_thread.values():
        same(len({(c["queue"], c["operands"][0]["object"], c["object"]) for c in mine}), 1, "a thread's own objects")
        starts = [c["begin_ns"] for c in mine]
        same(starts, sorted(starts), "a thread's calls are in order")
    same(len({c["operands"][0]["object"] for c in launches}), 4, "four buffers")
    check(all(c["ended_before"] > c["sequence"] for c in calls), "calls return after they began")
    digests = [c["host"]["digest"] for c in of_kind(calls, "read")]
    same(len(digests), 4, "reads")
    check(all(len(d) == 32 for d in digests), "digests of reads")
    values = sorted(c["argument"]["value"] for c in of_kind(calls, "set_argument") if c["argument"]["type"] == "value")
    same(values, sorted(i.to_bytes(4, "little") for i in range(25) for _ in range(4)), "values of arguments")


def off(runner):
    """Without the variable there is no file, and a file that cannot be written does not stop the program."""
    native = runner.native("recorded.loop")
    plain = runner.run("recorded.loop", log=False)
    same(plain.stdout, native.stdout, "the output without a log")
    check(not os.path.exists(runner.log), "no log was written")
    lost = runner.run("recorded.loop", log=False, SWAPMM_LOG="/no/such/folder/log")
    same((lost.stdout, lost.returncode), (native.stdout, 0), "a log that cannot be written")
    check(lost.stderr.count(b"\n") == 1 and b"/no/such/folder/log cannot be written" in lost.stderr, "it is told, once")
    full = runner.run("recorded.loop", log=False, SWAPMM_LOG="/dev/full")
    same((full.stdout, full.returncode), (native.stdout, 0), "a log on a full disk")
    check(b"cannot be written: No space left" in full.stderr, "it is told")


def killed(runner):
    """A process that is killed in the middle leaves what it did until its last wait."""
    environment = dict(runner.base, OPENCL_LAYERS=runner.options.layer, SWAPMM_QUIET="1", SWAPMM_LOG=runner.log)
    with subprocess.Popen([runner.options.cases, "recorded.loop"], env=environment, stdout=subprocess.PIPE,
                          bufsize=0) as process:
        # The program prints after each step; the pipe's reader is us.
        seen = b""
        while seen.count(b"\n") < 1:
            piece = process.stdout.read(1)
            if not piece:
                break
            seen += piece
        process.send_signal(signal.SIGKILL)
        process.wait()
    calls, ended = call_log.read(runner.log)
    check(of_kind(calls, "read") and of_kind(calls, "launch"), "what was done until then is in the log")
    check(not ended or process.returncode == 0, "the end is missing")


def replayed(runner, case):
    recorded(runner, case, SWAPMM_LOG_DATA="1")
    digests = []
    for extra in ([], ["--budget", "1MiB"], ["--budget", "64MiB", "--evict-always"]):
        done = subprocess.run([runner.options.swapmm, "replay", "--json", runner.log, "-q"] + extra, env=runner.base,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120, check=False)
        told = json.loads(done.stdout) if done.returncode in (0, 1) and done.stdout else {}
        same(done.returncode, 0, f"{case}: exit code of a replay {extra}, {done.stdout} {done.stderr}")
        same(told.get("different"), [], f"{case}: what the host reads in a replay {extra}")
        check(told.get("compared", 0) > 0, f"{case}: something was compared")
        digests.append(told.get("digest"))
    same(len(set(digests)), 1, f"{case}: digests of replays")
    # Other inputs, and the replay says that the host reads other bytes.
    with open(runner.log, "rb") as file:
        text = file.read()
    changed = call_log.with_changed_content(text)
    if changed == text:
        return
    with open(runner.log, "wb") as file:
        file.write(changed)
    done = subprocess.run([runner.options.swapmm, "replay", "--json", runner.log, "-q"], env=runner.base,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120, check=False)
    same(done.returncode, 1, f"{case}: exit code of a replay of other inputs, {done.stderr}")
    check(done.stdout and json.loads(done.stdout)["different"], f"{case}: other inputs give other results")


def every(runner):
    """All cases do the same with a log, and everything else that reads a log can read theirs."""
    listed = subprocess.run([runner.options.cases, "--list"], stdout=subprocess.PIPE, check=True, text=True).stdout.split()
    for case in listed:
        native, logged = runner.native(case), runner.run(case, SWAPMM_LOG_DATA="1", SWAPMM_EVICT="always")
        if logged.stdout != native.stdout:  # the driver alone may count a map that has just ended
            native = runner.native(case)
        same(logged.stdout, native.stdout, f"{case}: the output with a log")
        same(logged.returncode, native.returncode, f"{case}: the exit code with a log")
        calls, ended = call_log.read(runner.log) if os.path.exists(runner.log) else ([], True)
        check(ended, f"{case}: the log has its end")
        same([c["sequence"] for c in calls], list(range(len(calls))), f"{case}: each number once")
        if calls and runner.options.swapmm:
            done = subprocess.run([runner.options.swapmm, "show", runner.log, "--dot", "/dev/null"], stderr=subprocess.PIPE,
                                  check=False)
            same((done.returncode, done.stderr), (0, b""), f"{case}: its graph")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", required=True)
    parser.add_argument("--layer", required=True)
    parser.add_argument("--swapmm")
    parser.add_argument("checks", nargs="+")
    options = parser.parse_args()
    runner = Runner(options)
    known = {"all_kinds": all_kinds, "threads": threads, "off": off, "killed": killed, "every": every}
    for name in options.checks:
        print(name)
        if name in known:
            known[name](runner)
        elif options.swapmm:
            replayed(runner, name)
        else:
            recorded(runner, name, SWAPMM_LOG_DATA="1")
    print(f"{len(FAILURES)} failed")
    return 1 if FAILURES else 0


if __name__ == "__main__":
    sys.exit(main())
