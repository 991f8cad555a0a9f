#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Runs cases below the layer with little memory on the device and on the host, and a file for the rest.

files.py --cases PROGRAM --watch LIBRARY --layer LIBRARY CASE...

The output must be the same as natively, both budgets must hold, values must have been in the file, and the folder must be empty
in the end.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile

UNUSED = "the file was not used as it should be"
# How many values are on their way at a time, and so in host memory, depends on how fast the device is meanwhile.
TRIES = 20
# For what is on its way to and from the file, and for what commands have on their way.
HOST = (160 << 10) + (512 << 10)


def run(options, case, folder, layers, **variables):
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("SWAPMM_", "WATCH_", "OPENCL_LAYERS"))}
    names = [os.path.join(folder, name) for name in ("watched", "reported")]
    environment.update(SWAPMM_CACHE="off", WATCH_REPORT=names[0], SWAPMM_REPORT=names[1], OPENCL_LAYERS=":".join(layers), **variables)
    done = subprocess.run([options.cases, case], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120,
                          check=False)
    reports = []
    for name in names:
        reports.append(None)
        if os.path.exists(name):
            with open(name, encoding="utf-8") as file:
                reports[-1] = json.load(file)
            os.remove(name)
    return done, reports


def wrong_in(options, case, folder):
    native, (watched, _) = run(options, case, folder, [options.watch])
    if native.returncode != 0:
        return [f"ends with {native.returncode} natively"]
    budget = watched["peak"] // 2
    with tempfile.TemporaryDirectory(dir=options.folder) as disk:
        little = {"SWAPMM_BUDGET": str(budget), "WATCH_CAP": str(budget), "SWAPMM_HOST_BUDGET": str(HOST)}
        layered, (below, report) = run(options, case, folder, [options.watch, options.layer], SWAPMM_FILE=disk,
                                       SWAPMM_FILE_SIZE="64MiB", **little)
        left = os.listdir(disk)
    wrong = []
    if layered.returncode != 0 or layered.stdout != native.stdout:
        wrong.append(f"another output than natively (status {layered.returncode}): {layered.stderr.decode()[-500:]}")
    elif below["peak"] > budget or below["refused"]:
        wrong.append(f"{below['peak']} bytes taken of {budget}, {below['refused']} refused")
    elif report["file_peak_bytes"] == 0 or report["file_bytes_written"] == 0 or report["host_peak_bytes"] > HOST:
        wrong.append(f"{UNUSED}: {report}")
    if left:
        wrong.append(f"files are left: {left}")
    if not wrong:
        print(f"{case}: up to {report['file_peak_bytes']} bytes in the file, {report['file_bytes_read']} read, "
              f"{report['file_bytes_written']} written")
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", required=True)
    parser.add_argument("--watch", required=True)
    parser.add_argument("--layer", required=True)
    parser.add_argument("--folder", default="/var/tmp", help="on a disk")
    parser.add_argument("names", nargs="+", metavar="CASE")
    options = parser.parse_args()
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for case in options.names:
            for _ in range(TRIES):
                wrong = wrong_in(options, case, folder)
                if not wrong or not wrong[0].startswith(UNUSED):
                    break
            for line in wrong:
                failed = 1
                print(f"{case}: FAILED: {line}")
    return failed


if __name__ == "__main__":
    sys.exit(main())
