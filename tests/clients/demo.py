#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The end of ./dev demo: an unmodified program, a GPT that tinygrad trains, in a quarter of the memory that it needs.

Three runs of the same command: on a device that has the memory, on one that has a quarter of it, and there with
`swapmm run`. The device is the same one; a layer below everything refuses what is beyond its size.
"""
import argparse
import sys
from pathlib import Path

import install
import layered
from layered import mebibytes
from table import TINYGRAD

PROGRAM = install.PROGRAMS / "tg_gpt.py"
ARGUMENTS = ("12", "8", "128", "4", "128", "4", "256")  # steps, batch, length, layers, width, heads, vocabulary
LIMIT = 1800
MIB = 1 << 20


def words():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, required=True, help="where swapmm, its layer and the watching layer were built")
    return parser.parse_args()


def get_tinygrad():
    with install.alone():
        return install.have_pypi(TINYGRAD)


def result(outcome):
    return [line for line in outcome.output.splitlines() if line.startswith(("losses ", "weights "))]


def told(title, outcome):
    print(f"{title:<36} {mebibytes(outcome.figures.peak):>8} MiB on the device, {outcome.seconds:6.1f} s", flush=True)


def demo(build):
    libraries = layered.Libraries(build / "tests" / "libswapmm_opencl_watch.so",
                                  build / "backends" / "opencl" / "layer" / "libswapmm_opencl_layer.so")
    command = [install.VENV / "bin" / "python", PROGRAM, *ARGUMENTS]
    run = {"folder": install.OUT, "limit": LIMIT, "environment": {"DEV": "CL", **install.caches_in(install.OUT / "cache")}}
    print("A program that knows nothing of swapmm:\n    python3 tg_gpt.py " + " ".join(ARGUMENTS), flush=True)
    # The first one compiles the kernels, which would count as its time.
    layered.run([*command[:2], "1", *command[3:]], libraries, **run)

    native = layered.run(command, libraries, **run)
    told("all the memory that it wants", native)
    if native.code != 0 or not result(native):
        print(f"    it fails: {layered.last_line(native.errors)}")
        return 1
    budget = max(native.figures.peak // 4, native.figures.floor)
    budget = -(-budget // MIB) * MIB
    short = layered.run(command, libraries, device_memory=budget, **run)
    told(f"a device with {mebibytes(budget)} MiB", short)
    print(f"    exit code {short.code}: {layered.last_line(short.errors)}", flush=True)

    swapped = layered.run([build / "examples" / "cli" / "swapmm", "run", "--budget", f"{budget // MIB}MiB", "--", *command], libraries,
                          device_memory=budget, **run)
    told(f"there, swapmm run --budget {budget // MIB}MiB", swapped)
    for line in swapped.errors.splitlines():
        if line.startswith("swapmm:"):
            print(f"    {line}")
    same = swapped.code == 0 and result(swapped) == result(native)
    if not same:
        print(f"    exit code {swapped.code}: {layered.last_line(swapped.errors)}")
    for line in result(native):
        print(f"    {line}")
    print("losses and weights are the same, bit for bit" if same else "the results are not the same")
    return 0 if same and short.code != 0 and swapped.figures.peak <= budget else 1


def main():
    build = words().build.resolve()
    if why := get_tinygrad():
        print(f"skipped: an unmodified program, a GPT in tinygrad: {why}")
        return 0
    return demo(build)


if __name__ == "__main__":
    sys.exit(main())
