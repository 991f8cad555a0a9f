# SPDX-License-Identifier: Apache-2.0
"""Whether the source distribution has all that it needs: writes one, unpacks it, and configures it there. `--build`: pip makes
a wheel of it, which takes as long as the core does to compile; the tests in it pass on that wheel."""

import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import swapmm_build  # noqa: E402


def run(*command, **environment):
    subprocess.run([str(part) for part in command], check=True, env={**os.environ, **environment})


def build(folder, archive, unpacked):
    run(sys.executable, "-m", "venv", folder / "venv")
    python = folder / "venv/bin/python"
    run(python, "-m", "pip", "wheel", "-q", "--no-index", "--no-deps", "-w", folder / "wheel", archive)
    (wheel,) = Path(folder, "wheel").glob("*.whl")
    run(python, "-m", "pip", "install", "-q", "--no-index", wheel)
    run(python, "-m", "unittest", "discover", "-s", unpacked / "tests", PYTHONPATH="", SWAPMM_PYTHON_LIBRARY="")
    print(f"a wheel from the source distribution: {wheel.stat().st_size / 1e6:.2f} MB")


def main(arguments):
    with tempfile.TemporaryDirectory(prefix="swapmm-sdist-") as name:
        folder = Path(name)
        archive = folder / swapmm_build.write_sdist(folder)
        with tarfile.open(archive) as content:
            content.extractall(folder)
        (unpacked,) = (path for path in folder.iterdir() if path.is_dir())
        assert (unpacked / "PKG-INFO").read_text() == swapmm_build.metadata()
        if "--build" in arguments:
            build(folder, archive, unpacked)
            return
        # What the libraries are made of is there: CMake looks for each file.
        run("cmake", "-S", unpacked / "core", "-B", folder / "build", "-G", "Ninja", "--log-level=NOTICE", *swapmm_build.CMAKE)
        listed = subprocess.run(["ninja", "-C", folder / "build", "-t", "targets", "all"], capture_output=True, text=True)
        assert "/libswapmm_python.so: CXX_MODULE" in listed.stdout, listed.stdout[-2000:] + listed.stderr
        print("the source distribution can be configured")


if __name__ == "__main__":
    main(sys.argv[1:])
