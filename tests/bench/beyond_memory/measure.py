#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Programs whose tensors do not fit into the memory that they may use, with a file for the rest: by plan, on demand, and what
the plan's bound says. With --kernel-paging, the same programs without swapmm beside them, in the same memory, paged by the
kernel to the same disk.

measure.py --program FILE [--folder FOLDER] [--rounds N] [--fraction F]... [--host PART] [--kernel-paging] [--json FILE]

With --host, that part of the memory is the host's: values are on the device, in the host or in the file. Then plans that take host
and file as one memory run, too.

All ways run in turn, --rounds times; the median counts, and the table says the range. --kernel-paging needs root: it makes a
cgroup with a limit on memory, and a swap file in the folder. Both are removed at the end, whatever the end is.
"""

import argparse
import contextlib
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile

PROGRAMS = {"wave": "seismic imaging", "network": "training of a CNN"}


class Failed(Exception):
    """A run that gave no figure."""


def run(options, program, way, ram, before=None):
    """One run with so many bytes. `before` is called in the new process."""
    host = int(ram * options.host)
    done = subprocess.run([options.program, program, way, str(ram), options.folder, str(host)], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=options.limit, check=False, preexec_fn=before)
    if done.returncode != 0:
        raise Failed(f"{program} {way} {ram} ended with {done.returncode}: {done.stderr.decode().strip()[-300:]}")
    return json.loads(done.stdout)


def write(path, text):
    with open(path, "w", encoding="ascii") as file:
        file.write(str(text))


class MemoryLimit:
    """A cgroup of our own, of version 1 or 2, whose processes have so much memory; what is more goes to swap."""

    def __init__(self):
        self.folder = None
        name = f"swapmm-bench-{os.getpid()}"
        if os.path.exists("/sys/fs/cgroup/memory/memory.limit_in_bytes"):
            self.folder, self.file = f"/sys/fs/cgroup/memory/{name}", "memory.limit_in_bytes"
            os.mkdir(self.folder)
            write(f"{self.folder}/memory.swappiness", 100)
        elif "memory" in open("/sys/fs/cgroup/cgroup.controllers", encoding="ascii").read().split():
            self.folder, self.file = f"/sys/fs/cgroup/{name}", "memory.max"
            with contextlib.suppress(OSError):
                write("/sys/fs/cgroup/cgroup.subtree_control", "+memory")
            os.mkdir(self.folder)
        else:
            raise Failed("there is no cgroup that limits memory")

    def enter(self, limit):
        write(f"{self.folder}/{self.file}", limit)
        return lambda: write(f"{self.folder}/cgroup.procs", os.getpid())

    def remove(self):
        if self.folder is not None:
            with contextlib.suppress(OSError):
                os.rmdir(self.folder)


class SwapFile:
    """A swap file of our own."""

    def __init__(self, folder, size):
        handle, self.path = tempfile.mkstemp(prefix="swapmm-bench-swap-", dir=folder)
        os.fchmod(handle, 0o600)
        self.on = False
        try:
            os.posix_fallocate(handle, 0, size)
            os.close(handle)
            for command in (["mkswap", self.path], ["swapon", self.path]):
                done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
                if done.returncode != 0:
                    raise Failed(f"{' '.join(command)}: {done.stdout.decode().strip()}")
            self.on = True
        except BaseException:
            self.remove()
            raise

    def remove(self):
        if self.on:
            subprocess.run(["swapoff", self.path], check=False)
        with contextlib.suppress(OSError):
            os.unlink(self.path)


def middle(values):
    return statistics.median(values) if values else None


def measure(options, stack):
    paging = None
    if options.kernel_paging:
        if os.geteuid() != 0:
            raise Failed("--kernel-paging needs root, for a cgroup and a swap file")
        limit = MemoryLimit()
        stack.callback(limit.remove)
        swap = SwapFile(options.folder, options.swap << 20)
        stack.callback(swap.remove)
        paging = limit
    runs = []
    for program in options.programs:
        need = run(options, program, "need", 0)["need"]
        everything = -(-need // 2**20) * 2**20
        # What the process has beside its tensors, the kernel leaves it.
        beside = max(0, run(options, program, "all", everything)["resident"] - everything) if paging else None
        for fraction in options.fraction:
            figures = {"plan": [], "one": [], "on-demand": [], "bound": [], "paging": []}
            facts, ram = {}, int(need * fraction)
            for _ in range(options.rounds):
                facts = run(options, program, "plan", ram)
                figures["plan"].append(facts["ms"])
                figures["bound"].append(facts["bound_ms"])
                if options.host > 0:
                    figures["one"].append(run(options, program, "one", ram)["ms"])
                figures["on-demand"].append(run(options, program, "on-demand", ram)["ms"])
                if paging:
                    figures["paging"].append(run(options, program, "all", everything, paging.enter(beside + ram))["ms"])
            record = {"name": program, "fraction": fraction, "swapmm_ms": middle(figures["plan"]),
                      "on_demand_ms": middle(figures["on-demand"]), "bound_ms": middle(figures["bound"]),
                      "paging_ms": middle(figures["paging"]), "all_rounds": figures, "ram_bytes": ram,
                      "need_bytes": need, "beside_bytes": beside, "in_bytes": facts["in"], "out_bytes": facts["out"],
                      "host_part": options.host, "one_memory_ms": middle(figures["one"]), "file_in_bytes": facts["file_in"]}
            runs.append(record)
            tell(record)
    return runs


def span(values):
    return f"{min(values):.0f} to {max(values):.0f}"


def tell(record):
    rounds = record["all_rounds"]
    bound = record["bound_ms"]
    print(f"{PROGRAMS[record['name']]}, {record['fraction']:g} of {record['need_bytes'] / 2**20:.0f} MiB in memory, the rest in a "
          f"file; {record['in_bytes'] / 2**20:.0f} MiB in and {record['out_bytes'] / 2**20:.0f} MiB out per iteration")
    print(f"  by plan    {record['swapmm_ms']:8.1f} ms ({span(rounds['plan'])}), {record['swapmm_ms'] / bound:.3f} x the bound")
    if rounds["one"]:
        print(f"  as one     {record['one_memory_ms']:8.1f} ms ({span(rounds['one'])}), {record['one_memory_ms'] / record['swapmm_ms']:.2f} x "
              f"by plan, of whose copies in {record['file_in_bytes'] / 2**20:.0f} MiB come from the file")
    print(f"  on demand  {record['on_demand_ms']:8.1f} ms ({span(rounds['on-demand'])}), "
          f"{record['on_demand_ms'] / record['swapmm_ms']:.2f} x by plan")
    print(f"  bound      {bound:8.1f} ms ({span(rounds['bound'])})")
    if rounds["paging"]:
        print(f"  paging     {record['paging_ms']:8.1f} ms ({span(rounds['paging'])}), {record['paging_ms'] / record['swapmm_ms']:.2f} "
              f"x by plan; the most that is possible is {record['paging_ms'] / bound:.2f} x")
    sys.stdout.flush()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True)
    parser.add_argument("--programs", nargs="+", choices=sorted(PROGRAMS), default=sorted(PROGRAMS))
    parser.add_argument("--folder", default=os.environ.get("TMPDIR", "/var/tmp"), help="on the disk to use")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--fraction", type=float, action="append")
    parser.add_argument("--host", type=float, default=0, help="part of the memory that is the host's")
    parser.add_argument("--kernel-paging", action="store_true")
    parser.add_argument("--swap", type=int, default=4096, help="MiB of the swap file")
    parser.add_argument("--limit", type=int, default=900, help="seconds that a run may take")
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    options.fraction = options.fraction or [0.5, 0.25]
    # An end by a signal is an end like any other: what was set up is taken down.
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(1))
    try:
        with contextlib.ExitStack() as stack:
            runs = measure(options, stack)
    except Failed as error:
        print(f"FAILED: {error}", file=sys.stderr)
        return 1
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"runs": runs}, file, indent=1)
            file.write("\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
