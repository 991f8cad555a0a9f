#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a case below the layer as a set-gid program, which has more rights than its caller.

more_rights.py --cases PROGRAM --layer LIBRARY

The layer must ignore the environment then: no file is made that it names, no budget and no "off" counts, and nothing is
looked up in the user's folder for caches. Without such rights the same environment has an effect. Skipped where nobody may
make such a program.
"""

import argparse
import os
import pathlib
import shutil
import stat
import subprocess
import sys
import tempfile

from checks import FAILURES, check, same

CASE = "buffers.read_write"
NOBODY, OTHER_GROUP = 65534, 1


class CannotBeMade(Exception):
    pass


def caller_and_group():
    """Who starts the program (None: this user), and a group that this user's processes are not started with."""
    if os.geteuid() == 0:
        return {"user": NOBODY, "group": NOBODY, "extra_groups": []}, OTHER_GROUP
    others = [group for group in os.getgroups() if group != os.getegid()]
    if not others:
        raise CannotBeMade("this user is in one group only")
    return {}, others[0]


def program_of_group(folder, program, group):
    made = folder / "program"
    shutil.copy(program, made)
    os.chown(made, -1, group)
    os.chmod(made, 0o2755)
    if not made.stat().st_mode & stat.S_ISGID or os.statvfs(made).f_flag & os.ST_NOSUID:
        raise CannotBeMade(f"{folder} has no set-gid programs")
    return made


def named_files(folder):
    """A value for each variable that names something to be written. All may write there."""
    folder.mkdir()
    for name in ("cache", "disk", "home"):
        (folder / name).mkdir()
        (folder / name).chmod(0o777)
    folder.chmod(0o777)
    at = {"SWAPMM_REPORT": "report", "SWAPMM_LOG": "log", "SWAPMM_STARTED": "started", "SWAPMM_TRACE_OUT": "trace",
          "SWAPMM_SVG": "svg", "SWAPMM_CACHE": "cache", "SWAPMM_FILE": "disk", "HOME": "home"}
    return {name: str(folder / place) for name, place in at.items()}


def written(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir())


def run(program, layer, caller, folder, **variables):
    environment = {"PATH": os.environ["PATH"], "POCL_CACHE_DIR": str(folder.parent / "compiled"), "OPENCL_LAYERS": str(layer),
                   **named_files(folder), **variables}
    return subprocess.run([program, CASE], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120,
                          check=False, cwd=folder, **caller)


def checks(options, folder):
    caller, group = caller_and_group()
    (folder / "compiled").mkdir()
    (folder / "compiled").chmod(0o777)
    layer = folder / "layer.so"
    shutil.copy(options.layer, layer)
    plain = folder / "plain"
    shutil.copy(options.cases, plain)
    privileged = program_of_group(folder, options.cases, group)

    usual = run(plain, layer, caller, folder / "usual", SWAPMM_BUDGET="64MiB")
    check(usual.returncode == 0 and "budget 64.0 MiB" in usual.stderr, f"the layer runs: {usual.stderr}")
    files = written(folder / "usual")
    for file in ("report", "log", "started", "trace"):
        check(file in files, f"{file} is written without more rights: {files}")

    ignoring = run(privileged, layer, caller, folder / "privileged", SWAPMM_BUDGET="unreadable", SWAPMM_HELPER="/bin/false")
    same(ignoring.returncode, 0, "exit code with more rights")
    same(ignoring.stdout, usual.stdout, "output with more rights")
    same(written(folder / "privileged"), [], "files written with more rights")
    said = [line for line in ignoring.stderr.splitlines() if line.startswith("swapmm: ")]
    check(not said or len(said) == 1 and "budget" in said[0], f"lines with more rights: {said}")
    if not said:
        print("the loader ignores OPENCL_LAYERS in such programs, so the layer was not asked")
    disabled = run(privileged, layer, caller, folder / "disabled", SWAPMM_DISABLE="1", SWAPMM_QUIET="1",
                   SWAPMM_REPORT_FOLDER=str(folder / "disabled"))
    same(written(folder / "disabled"), [], "files written with more rights")
    same(disabled.returncode, 0, "exit code with more rights and SWAPMM_DISABLE")
    same([line for line in disabled.stderr.splitlines() if line.startswith("swapmm: ")], said, "lines with SWAPMM_DISABLE")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", required=True)
    parser.add_argument("--layer", required=True)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        try:
            checks(options, pathlib.Path(folder))
        except CannotBeMade as why:
            print(f"skipped: no set-gid program can be made here: {why}")
            return 0
    return 1 if FAILURES else 0


if __name__ == "__main__":
    sys.exit(main())
