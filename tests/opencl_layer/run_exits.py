#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Lets an OpenCL program end in each way, natively and below the layer: same output, same status, and in time.

run_exits.py --program PROGRAM --host PROGRAM --plugin LIBRARY --layer LIBRARY [WAY...]
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time

PLUGIN_WAYS = ("plugin_is_unloaded", "plugin_stays")
# Of six buffers of 256 KiB one fits beside what alignment takes; or all do.
BUDGETS = {"least": {"SWAPMM_BUDGET": "300KiB"}, "fits": {"SWAPMM_BUDGET": "64MiB"},
           "evict_always": {"SWAPMM_BUDGET": "64MiB", "SWAPMM_EVICT": "always"},
           "report": {"SWAPMM_BUDGET": "1MiB", "SWAPMM_REPORT": "%s/report"},
           "pictures": {"SWAPMM_BUDGET": "1MiB", "SWAPMM_TRACE_OUT": "%s/trace", "SWAPMM_SVG": "%s/svg",
                        "SWAPMM_TRACE_LENGTH": "100"}}
SECONDS = 60  # a machine may be busy; a program that hangs does so for longer


def run(command, environment):
    begin = time.monotonic()
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               errors="replace", start_new_session=True)
    try:
        output, errors = process.communicate(timeout=SECONDS)
        code = process.returncode
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        output, errors = process.communicate()
        code = f"none after {SECONDS} s"
    return output, code, errors, time.monotonic() - begin


def check(options, way, folder):
    command = [options.host, way, options.plugin] if way in PLUGIN_WAYS else [options.program, way]
    base = {k: v for k, v in os.environ.items() if not k.startswith(("SWAPMM_", "WATCH_", "OPENCL_LAYERS"))}
    native = run(command, base)
    if isinstance(native[1], str):
        return [f"natively: status {native[1]}"], native, 0
    wrong, longest = [], 0
    for name, settings in BUDGETS.items():
        started = f"{folder}/started"
        if os.path.exists(started):
            os.remove(started)
        environment = dict(base, OPENCL_LAYERS=options.layer, SWAPMM_STARTED=started, SWAPMM_CACHE=folder)
        environment.update({key: value.replace("%s", folder) for key, value in settings.items()})
        layered = run(command, environment)
        longest = max(longest, layered[3])
        if layered[:2] != native[:2]:
            wrong += [f"{name}: status {layered[1]}, natively {native[1]}", f"  wrote {layered[0]!r}, natively {native[0]!r}",
                      *("  " + line for line in layered[2].splitlines()[-5:])]
        if not os.path.exists(started):
            wrong.append(f"{name}: the layer did not start")
    return wrong, native, longest


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("program", "host", "plugin", "layer"):
        parser.add_argument(f"--{name}", required=True, type=os.path.abspath)
    parser.add_argument("ways", nargs="*")
    options = parser.parse_args()
    listed = subprocess.run([options.program, "--list"], stdout=subprocess.PIPE, text=True, check=True).stdout.split()
    ways = options.ways or [*listed, *PLUGIN_WAYS]
    failed = 0
    for way in ways:
        if way not in (*listed, *PLUGIN_WAYS):
            print(f"there is no way {way}")
            return 2
        with tempfile.TemporaryDirectory() as folder:
            wrong, native, longest = check(options, way, folder)
        failed += bool(wrong)
        print(f"{'FAILED' if wrong else 'same'}: {way}: status {native[1]}, {native[3]:.1f} s natively, at most {longest:.1f} s",
              flush=True)
        for line in wrong:
            print(f"    {line}", flush=True)
    print(f"{len(ways)} ways, {failed} differ")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
