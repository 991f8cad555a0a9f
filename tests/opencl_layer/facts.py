#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What the layer knows of kernels: it moves fewer bytes with it, and goes on without it.

facts.py --cases PROGRAM --layer LIBRARY [--helper PROGRAM]

Runs one case whose kernels overwrite whole buffers, with the helper program and the cache in every state. The output must
always be that of the run without the layer; the bytes that are moved say what the layer knew."""

import argparse
import json
import os
import re
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path

CASE = "whole_writes.as_far_as_a_scalar_says"
BINARY_CASE = "whole_writes.from_binary"
VALUES_CASE = "whole_writes.whatever_a_scalar_says"
BUFFER_BYTES = 1 << 16
DRIVER_VERSION = """
import ctypes
cl, platform, device, text = ctypes.CDLL("libOpenCL.so.1"), ctypes.c_void_p(), ctypes.c_void_p(), ctypes.create_string_buffer(256)
cl.clGetPlatformIDs(1, ctypes.byref(platform), None)
cl.clGetDeviceIDs(platform, ctypes.c_uint64(0xFFFFFFFF), 1, ctypes.byref(device), None)
cl.clGetDeviceInfo(device, 0x102D, ctypes.c_size_t(256), text, None)
print(text.value.decode())
"""


class Bench:
    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        self.failed = 0
        driver_cache = os.environ.get("POCL_CACHE_DIR", os.path.expanduser("~/.cache/pocl/kcache"))
        self.base = {k: v for k, v in os.environ.items() if not k.startswith(("SWAPMM_", "WATCH_", "OPENCL_LAYERS"))}
        self.base["POCL_CACHE_DIR"] = driver_cache  # whatever the folder for caches is
        self.native = {case: self.start(case, self.base).stdout for case in (CASE, BINARY_CASE, VALUES_CASE)}

    def start(self, case, environment, before=(), **more):
        command = [*before, self.options.cases, case]
        return subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120,
                              check=False, **more)

    def run(self, name, case=CASE, cache="none", before=(), expect_line=None, **variables):
        """Bytes to the device and to the host."""
        report = os.path.join(self.folder, "report.json")
        if os.path.exists(report):
            os.remove(report)
        settings = {"SWAPMM_EVICT": "always", "SWAPMM_BUDGET": "64MiB", "SWAPMM_ANALYSIS": "wait", "SWAPMM_REPORT": report,
                    "OPENCL_LAYERS": self.options.layer, "XDG_CACHE_HOME": cache}
        if cache == "none":
            settings["SWAPMM_CACHE"] = "off"
        if self.options.helper:
            settings["SWAPMM_HELPER"] = self.options.helper
        done = self.start(case, {**self.base, **settings, **variables}, before)
        self.expect(name, done.returncode == 0, f"exit code {done.returncode}: {done.stderr[-500:]}")
        self.expect(name, done.stdout == self.native[case], "another output than natively")
        lines = [line for line in done.stderr.splitlines() if "OpenCL layer" not in line]
        self.expect(name, len(lines) == (0 if expect_line is None else 1), f"lines on stderr: {lines}")
        self.expect(name, expect_line is None or any(expect_line in line for line in lines), f"no line with {expect_line!r}: {lines}")
        if not os.path.exists(report):
            self.expect(name, False, "no report")
            return 0, 0
        with open(report, encoding="utf-8") as file:
            told = json.load(file)
        return told["bytes_to_device"], told["bytes_to_host"]

    def expect(self, name, holds, text):
        if not holds:
            self.failed += 1
            print(f"FAILED: {name}: {text}")

    def script(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\n" + text + "\n")
        os.chmod(path, 0o755)
        return path

    def new_folder(self, name, mode=0o700):
        path = os.path.join(self.folder, name)
        os.mkdir(path)
        os.chmod(path, mode)
        return path


def without_helper(bench, unknown):
    """Everything that can go wrong with the helper: nothing is known, nothing else happens."""
    broken = {
        "a helper that is not there": os.path.join(bench.folder, "absent"),
        "a helper that cannot be run": bench.new_folder("not_a_program"),
        "a helper that fails": bench.script("fails", "exit 3"),
        "a helper that crashes": bench.script("crashes", "kill -SEGV $$"),
        "a helper that reads nothing and says nothing": bench.script("silent", "exit 0"),
        "a helper that says nonsense": bench.script("nonsense", "echo nonsense"),
        "a helper that is cut off": bench.script("cut", "echo swapmm-kernel-facts 2; echo kernel upto pure Wss"),
        "a helper that knows no such letters": bench.script("letters", "echo swapmm-kernel-facts 2; echo kernel upto pure X?; echo end"),
        "a helper that counts other arguments": bench.script("count", "echo swapmm-kernel-facts 2; echo kernel upto pure W; echo end"),
    }
    for name, path in broken.items():
        moved = bench.run(name, SWAPMM_HELPER=path)
        bench.expect(name, moved == unknown, f"{moved} moved, {unknown} if nothing is known")
    for name, text in {"a helper that hangs": "sleep 1000 & echo $! >> pids; sleep 1000", "a helper that closes its output and hangs": "exec >&-; sleep 1000"}.items():
        pids = os.path.join(bench.folder, "pids")
        begin = time.monotonic()
        moved = bench.run(name, SWAPMM_HELPER=bench.script("hangs", text.replace("pids", pids)), SWAPMM_HELPER_SECONDS="1")
        bench.expect(name, moved == unknown, f"{moved} moved, {unknown} if nothing is known")
        bench.expect(name, time.monotonic() - begin < 40, f"it took {time.monotonic() - begin:.0f} s")
    with open(pids, encoding="utf-8") as file:
        for pid in file.read().split():
            bench.expect("a helper that hangs", not os.path.exists(f"/proc/{pid}"), "what it started goes on")


def strange_processes(bench, known):
    """Programs that have closed their standard streams, ignore or wait for children: the same is known."""
    for name, before in {
        "no standard input": ["sh", "-c", 'exec "$@" <&-', "sh"],
        "no standard input and error": ["sh", "-c", 'exec "$@" <&- 2>&-', "sh"],
        "SIGCHLD is ignored": [sys.executable, "-c", "import os, signal, sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN); os.execv(sys.argv[1], sys.argv[1:])"],
        "all signals are blocked": [sys.executable, "-c", "import os, signal, sys; signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals()); os.execv(sys.argv[1], sys.argv[1:])"],
    }.items():
        moved = bench.run(name, before=before)
        bench.expect(name, moved == known, f"{moved} moved, {known} if all is known")
    marker = os.path.join(bench.folder, "environment")
    spy = bench.script("spy", f"env > {marker}; ls -l /proc/self/fd >> {marker}; exec {bench.options.helper} < /dev/stdin")
    read_end, write_end = os.pipe()
    bench.expect("a helper's surroundings", bench.run("a helper's surroundings", SWAPMM_HELPER=spy, SECRET="secret") == known, "other bytes")
    os.close(read_end)
    os.close(write_end)
    with open(marker, encoding="utf-8") as file:
        text = file.read()
    bench.expect("a helper's surroundings", "OPENCL_LAYERS" not in text and "SECRET" not in text, f"its environment: {text}")


def cache(bench, unknown, known):
    folder = bench.new_folder("cache")
    kept = os.path.join(folder, "swapmm", "kernels")
    absent = os.path.join(bench.folder, "absent")
    first = bench.run("an empty cache", cache=folder)
    bench.expect("an empty cache", first == known, f"{first} moved, {known} without a cache")
    for each, mode in ((os.path.join(folder, "swapmm"), 0o700), (kept, 0o700)):
        bench.expect("an empty cache", stat.S_IMODE(os.stat(each).st_mode) == mode, f"mode of {each}")
    again = bench.run("a cache", cache=folder, SWAPMM_HELPER=absent)
    bench.expect("a cache", again[0] < known[0] and again[1] == known[1], f"{again} moved, {known} before: launches are known at once")
    bench.run("a cache of a binary", case=BINARY_CASE, cache=folder)
    names = sorted(os.listdir(kept))
    bench.expect("a cache", not any(name.startswith("partial") for name in names), f"{names}")
    bench.expect("a cache", {name.split("-")[0] for name in names} == {"binary", "facts", "launches", "program"}, f"{names}")
    for name in names:
        bench.expect("a cache", stat.S_IMODE(os.stat(os.path.join(kept, name)).st_mode) == 0o600, f"mode of {name}")

    damaged = {"cut": lambda text: text[:-1], "changed": lambda text: text.replace(b"kernel", b"Kernel") if b"kernel" in text else b"x" + text,
               "empty": lambda text: b"", "other": lambda text: b"nonsense\n" * 100, "binary": lambda text: bytes(range(256)) * 16}
    for how, damage in damaged.items():
        before = {}
        for name in names:
            path = os.path.join(kept, name)
            with open(path, "rb") as file:
                before[path] = file.read()
            with open(path, "wb") as file:
                file.write(damage(before[path]))
        name = f"a damaged cache ({how})"
        moved = bench.run(name, cache=folder, SWAPMM_HELPER=absent, expect_line="is damaged")
        bench.expect(name, moved == unknown, f"{moved} moved, {unknown} if nothing is known")
        moved = bench.run(name + ", made anew", cache=folder, expect_line="is damaged")
        bench.expect(name, moved == known, f"{moved} moved, {known} if all is known")
        for path, text in before.items():
            with open(path, "wb") as file:
                file.write(text)
    moved = bench.run("a cache that was repaired", cache=folder, SWAPMM_HELPER=absent)
    bench.expect("a cache that was repaired", moved == again, f"{moved} moved, {again} before")

    moved = bench.run("others can write to the cache", cache=loose(folder, bench), expect_line="other users can write")
    bench.expect("others can write to the cache", moved == known, f"{moved} moved, {known} without a cache")
    os.chmod(os.path.join(folder, "swapmm"), 0o700)
    if os.geteuid() == 0:
        os.chown(os.path.join(folder, "swapmm"), 12345, -1)
        moved = bench.run("another user's cache", cache=folder, expect_line="belongs to another user")
        bench.expect("another user's cache", moved == known, f"{moved} moved, {known} without a cache")
        os.chown(os.path.join(folder, "swapmm"), 0, -1)
    link = bench.new_folder("linked")
    os.symlink(os.path.join(folder, "swapmm"), os.path.join(link, "swapmm"))
    bench.run("a cache that is a link", cache=link, expect_line="is not used")
    plain = bench.new_folder("plain")
    with open(os.path.join(plain, "swapmm"), "w", encoding="utf-8"):
        pass
    moved = bench.run("no folder for a cache", cache=plain, expect_line="is not used")
    bench.expect("no folder for a cache", moved == known, f"{moved} moved, {known} without a cache")
    if os.geteuid() != 0:  # whom no mode stops
        moved = bench.run("a cache that cannot be written", cache=bench.new_folder("read_only", 0o500), expect_line="is not used")
        bench.expect("a cache that cannot be written", moved == known, f"{moved} moved, {known} without a cache")
    bench.run("no such folder", cache=os.path.join(bench.folder, "not", "there"), expect_line="is not used")
    bench.run("a folder of its own", cache="none", SWAPMM_CACHE=bench.new_folder("own"))
    bench.expect("a folder of its own", os.listdir(os.path.join(bench.folder, "own", "swapmm")) == ["kernels"], "nothing is there")
    off = bench.new_folder("off")
    bench.run("the cache is off", cache=off, SWAPMM_CACHE="off")
    bench.expect("the cache is off", not os.listdir(off), f"kept: {os.listdir(off)}")


def driver_version(bench):
    """Programs that keep binaries by it compile once more with the layer, and again with another analysis."""
    def told(**variables):
        done = subprocess.run([sys.executable, "-c", DRIVER_VERSION], env={**bench.base, **variables}, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True, timeout=120, check=False)
        return done.stdout.strip()

    native = told()
    header = Path(__file__).resolve().parents[2] / "backends" / "opencl" / "kernel_facts" / "request.hpp"
    analysis = re.search(r"swapmm-kernel-facts (\d+)", header.read_text(encoding="utf-8"))[1]
    layer = {"OPENCL_LAYERS": bench.options.layer}
    layered = told(**layer)
    bench.expect("the driver's version", layered == f"{native} swapmm {analysis}", f"{layered!r} for {native!r}")
    bench.expect("the driver's version", told(**layer, SWAPMM_ANALYSIS="off") == native, "another one without analysis")


def loose(folder, bench):
    os.chmod(os.path.join(folder, "swapmm"), 0o777)
    return folder


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", required=True)
    parser.add_argument("--layer", required=True)
    parser.add_argument("--helper", help="without it, only what happens in its absence is tested")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(options, folder)
        unknown = bench.run("no analysis", SWAPMM_ANALYSIS="off")
        without_helper(bench, unknown)
        driver_version(bench)
        if options.helper:
            attributes = bench.run("nothing is measured", SWAPMM_PROVE="off")
            known = bench.run("all is known")
            print(f"bytes to the device and to the host: {unknown} if nothing is known, {attributes} by what is read and written, "
                  f"{known} with whole writes")
            bench.expect("what is read", attributes[0] == unknown[0] and attributes[1] < unknown[1], "no fewer bytes to the host")
            bench.expect("whole writes", known[0] < attributes[0] and known[1] == attributes[1], "no fewer bytes to the device")
            # Five launches that differ in a value: from the third one on they are known, so their buffer need not come in.
            name = "a value that decides no place"
            saved = bench.run(name, VALUES_CASE, SWAPMM_PROVE="off")[0] - bench.run(name, VALUES_CASE)[0]
            bench.expect(name, saved == 3 * BUFFER_BYTES, f"{saved} bytes fewer to the device, not {3 * BUFFER_BYTES}")
            strange_processes(bench, known)
            cache(bench, unknown, known)
        for name in ("SWAPMM_ANALYSIS", "SWAPMM_PROVE", "SWAPMM_CACHE", "SWAPMM_HELPER_SECONDS"):
            done = bench.start(CASE, dict(bench.base, OPENCL_LAYERS=options.layer, **{name: "nonsense"}))
            bench.expect(name, done.returncode != 0 and f"{name}: \"nonsense\" is not" in done.stderr, done.stderr[-300:])
        print(f"{bench.failed} failed")
        return 1 if bench.failed else 0


if __name__ == "__main__":
    sys.exit(main())
