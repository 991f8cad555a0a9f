# SPDX-License-Identifier: Apache-2.0
"""Prints what the package costs: the time of its import, and of an operation's begin and end. Each is the least of several
runs. Not a test."""

import subprocess
import sys
import time

import swapmm


def least(measure, runs=7):
    return min(measure() for _ in range(runs))


def import_seconds():
    program = "import time, json, ctypes, dataclasses; t = time.process_time(); import swapmm; print(time.process_time() - t)"
    return float(subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout)


def operation_seconds(uses, rounds=20000):
    """On demand, with all tensors on the device and no work: what is left is the package and the library."""
    manager = swapmm.Manager(swapmm.simulated.create(1 << 20), "64KiB", observe=0)
    tensors = [manager.tensor(64, name=f"t{i}") for i in range(uses)]
    for tensor in tensors:
        tensor.upload(bytes(64))
    reads, updates = tensors[:-1], tensors[-1:]
    begin = time.process_time()  # the process's own, on a machine that does other things as well
    for _ in range(rounds):
        with manager.operation("operation", reads=reads, updates=updates):
            pass
    seconds = (time.process_time() - begin) / rounds
    manager.close()
    return seconds




if __name__ == "__main__":
    print(f"CPython {sys.version.split()[0]}, swapmm {swapmm.__version__}, {swapmm._native.path_of('core')}")
    print(f"import: {least(import_seconds) * 1e3:.1f} ms")
    for uses in (1, 4, 16):
        print(f"an operation's begin and end with {uses} tensors: {least(lambda: operation_seconds(uses)) * 1e6:.2f} us")
