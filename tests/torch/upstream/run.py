# SPDX-License-Identifier: Apache-2.0
"""run.py FOLDER [FILE...]: runs PyTorch's own tests, of a source tree in FOLDER, below a dispatch mode that does nothing and
below the adapter, where everything leaves after each operator. Every test that passes below the one has to pass below
the other. Each test file has SECONDS (--seconds, 1200) for each run; what was not reached then is told."""

import argparse
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
#: Autograd with its hooks and saved tensors, views and in-place operators, and what else touches storages.
FILES = ("test_autograd.py", "test_view_ops.py", "test_indexing.py", "test_nestedtensor.py", "test_optim.py",
         "test_serialization.py", "test_subclass.py", "nn/test_embedding.py", "nn/test_module_hooks.py",
         "nn/test_multihead_attention.py", "nn/test_parametrization.py")
RESULT = re.compile(r"(PASSED|FAILED|SKIPPED|ERROR|XFAIL|XPASS) +(\S+::\S+)")


def outcomes(tests, file, under, seconds, log):
    """What became of each test, by name."""
    environment = dict(os.environ, SWAPMM_UPSTREAM=under, PYTORCH_TESTING_DEVICE_ONLY_FOR="cpu",
                       PYTHONPATH=os.pathsep.join([HERE, os.environ.get("PYTHONPATH", "")]))
    # A process that ends takes one test with it.
    command = [sys.executable, "-m", "pytest", "--noconftest", "-p", "swapmm_upstream", "-p", "no:cacheprovider", "-v",
               "--tb=native", "--timeout", "300", "-n", "1", file]
    with open(log, "w", encoding="utf-8") as out:
        process = subprocess.Popen(command, cwd=tests, env=environment, stdout=out, stderr=subprocess.STDOUT)
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.terminate()
            process.wait()
    found = {}
    with open(log, encoding="utf-8", errors="replace") as lines:
        for line in lines:
            match = RESULT.search(line)
            if match:
                found.setdefault(match[2], match[1])
    return found


def main():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("folder", help="of PyTorch's source")
    arguments.add_argument("files", nargs="*", default=FILES, help="below its folder test")
    arguments.add_argument("--seconds", type=float, default=1200)
    options = arguments.parse_args()
    tests = os.path.join(options.folder, "test")
    if not os.path.exists(os.path.join(tests, "test_autograd.py")):
        print(f"{options.folder} has no test/test_autograd.py: it is no source tree of PyTorch", file=sys.stderr)
        return 2
    worse = 0
    logs = tempfile.mkdtemp(prefix="swapmm-upstream-")
    for file in options.files:
        name = os.path.basename(file)
        plain, ours = (outcomes(tests, file, under, options.seconds, os.path.join(logs, f"{name}.{under}.log"))
                       for under in ("nothing", "adapter"))
        passed = [test for test, outcome in plain.items() if outcome == "PASSED"]
        failed = [test for test in passed if ours.get(test, "PASSED") != "PASSED"]
        unreached = sum(test not in ours for test in passed)
        worse += len(failed) + (not passed)
        print(f"{file}: {len(plain)} tests, {len(passed)} pass below a mode that does nothing; below the adapter "
              f"{len(passed) - len(failed) - unreached} of them, {len(failed)} do not"
              + (f", {unreached} were not reached in time" if unreached else ""), flush=True)
        for test in failed:
            print(f"  {test}: {ours[test]}")
    print(f"logs: {logs}")
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
