# SPDX-License-Identifier: Apache-2.0
"""Builds the wheel and the source distribution (PEP 517), with Python's own library alone. CMake and Ninja must be there, or
come from PyPI; so must a C++20 compiler, Boost.JSON and OpenSSL.

`swapmm_build.py FOLDER [wheel|sdist]...` builds both, or one of them, into a folder. Environment:

  SWAPMM_PYTHON_BUILD       folder for CMake's build, which is kept; else a temporary one
  SWAPMM_PYTHON_CMAKE_ARGS  more arguments for CMake
"""

import base64
import gzip
import hashlib
import io
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
# In a source distribution the core lies beside this file; in the repository this file lies in the core.
CORE = HERE / "core" if (HERE / "core" / "CMakeLists.txt").exists() else HERE.parent.parent
TIME = (1980, 1, 1, 0, 0, 0)  # of all files: the same sources give the same bytes

CMAKE = [
    "-DCMAKE_BUILD_TYPE=Release",
    "-DSWAPMM_BUILD_TESTS=OFF",
    "-DSWAPMM_BUILD_EXAMPLES=OFF",
    "-DSWAPMM_BUILD_BENCH=OFF",
    "-DSWAPMM_BUILD_ILP=OFF",
    "-DSWAPMM_BUILD_LAYER=OFF",
    "-DSWAPMM_BUILD_PYTHON=ON",
    "-DSWAPMM_FILE=OFF",
    "-DSWAPMM_MPI=OFF",
    "-DSWAPMM_UNITY_BUILD=ON",
    "-DBUILD_SHARED_LIBS=OFF",
    "-DBoost_USE_STATIC_LIBS=ON",
    "-DOPENSSL_USE_STATIC_LIBS=ON",
    "-DCMAKE_CXX_FLAGS=-ffunction-sections -fdata-sections",
]


def version():
    text = (CORE / "include/swapmm/version.hpp").read_text(encoding="utf-8")
    return ".".join(re.findall(r"^#define SWAPMM_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)$", text, re.M))


def _project():
    """What is needed of [project]. Python 3.9 has no reader for TOML, and this file is ours."""
    text = (HERE / "pyproject.toml").read_text(encoding="utf-8")

    def value(name):
        return re.search(rf'^{name} = "(.*)"$', text, re.M)[1]

    def values(name):
        return re.findall(r'"([^"]*)"', re.search(rf"^{name} = \[(.*?)\]", text, re.M | re.S)[1])

    return value, values


def metadata():
    """METADATA of the wheel, PKG-INFO of the source distribution."""
    value, values = _project()
    lines = ["Metadata-Version: 2.1", f"Name: {value('name')}", f"Version: {version()}", f"Summary: {value('description')}"]
    lines += [f"License: {re.search(r'license = .text = .([^}]*?).}', (HERE / 'pyproject.toml').read_text())[1]}"]
    lines += [f"Keywords: {','.join(values('keywords'))}"]
    lines += [f"Classifier: {name}" for name in values("classifiers")]
    lines += [f"Requires-Python: {value('requires-python')}", "Provides-Extra: numpy", 'Requires-Dist: numpy; extra == "numpy"']
    lines += ["License-File: LICENSE", "License-File: NOTICE", "Description-Content-Type: text/markdown"]
    return "\n".join(lines) + "\n\n" + (HERE / "README.md").read_text(encoding="utf-8")


# ---- the libraries


def build_libraries(folder):
    """Builds them and puts them into folder/swapmm."""
    kept = os.environ.get("SWAPMM_PYTHON_BUILD")
    build = Path(kept) if kept else Path(tempfile.mkdtemp(prefix="swapmm-build-"))
    try:
        extra = shlex.split(os.environ.get("SWAPMM_PYTHON_CMAKE_ARGS", ""))
        _run("cmake", "-S", CORE, "-B", build, "-G", "Ninja", "--log-level=NOTICE", *CMAKE, *extra)
        _run("cmake", "--build", build, "--target", "swapmm_python")
        _run("cmake", "--install", build, "--component", "python", "--strip", "--prefix", folder)
    finally:
        if not kept:
            shutil.rmtree(build, ignore_errors=True)


def _run(*command):
    print("+", *command, flush=True)
    subprocess.run([str(part) for part in command], check=True, stdout=sys.stderr)


def platform_tag(libraries):
    """The oldest system that has what the libraries need of glibc."""
    machine = platform.machine()
    needed = {(2, 17)}
    for library in libraries:
        needed |= {(int(a), int(b)) for a, b in re.findall(rb"\0GLIBC_(\d+)\.(\d+)", library.read_bytes())}
    if platform.libc_ver()[0] != "glibc":
        return f"linux_{machine}"
    return "manylinux_{}_{}_{}".format(*max(needed), machine)


# ---- the wheel


def python_files():
    """Of the package, with those of subpackages."""
    package = HERE / "src"
    return [(p, p.relative_to(package).as_posix()) for p in sorted(package.rglob("*")) if p.suffix in (".py", ".pyi", ".typed") or p.name == "py.typed"]


def write_wheel(folder):
    with tempfile.TemporaryDirectory(prefix="swapmm-wheel-") as stage:
        build_libraries(stage)
        libraries = sorted(Path(stage, "swapmm").glob("*.so"))
        tag = f"py3-none-{platform_tag(libraries)}"
        info = f"swapmm-{version()}.dist-info"
        files = [(name, path.read_bytes(), 0o644) for path, name in python_files()]
        files += [(f"swapmm/{path.name}", path.read_bytes(), 0o755) for path in libraries]
    files.append((f"{info}/METADATA", metadata().encode(), 0o644))
    wheel = f"Wheel-Version: 1.0\nGenerator: swapmm_build\nRoot-Is-Purelib: false\nTag: {tag}\n"
    files.append((f"{info}/WHEEL", wheel.encode(), 0o644))
    files += [(f"{info}/{name}", (CORE / name).read_bytes(), 0o644) for name in ("LICENSE", "NOTICE")]
    record = "".join(f"{name},sha256={_digest(content)},{len(content)}\n" for name, content, _ in files)
    files.append((f"{info}/RECORD", (record + f"{info}/RECORD,,\n").encode(), 0o644))
    name = f"swapmm-{version()}-{tag}.whl"
    with zipfile.ZipFile(Path(folder, name), "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for path, content, mode in files:
            entry = zipfile.ZipInfo(path, TIME)
            entry.external_attr = (0o100000 | mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, content)
    return name


def _digest(content):
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


# ---- the source distribution

# Of the core: what the libraries are built from. The repository has more.
PARTS = [
    "CMakeLists.txt", "LICENSE", "NOTICE", "cmake", "include", "backends/CMakeLists.txt", "backends/opencl/CMakeLists.txt",
    "backends/opencl/kernel_header.cpp.in", "backends/opencl/zero_kernels.cpp.in", "backends/opencl/swapmm", "backends/codec", "backends/cuda/CMakeLists.txt", "backends/cuda/swapmm",
    "backends/file/CMakeLists.txt", "backends/file/swapmm", "backends/python/CMakeLists.txt", "backends/python/native",
]  # fmt: skip
OWN = ["pyproject.toml", "README.md", "swapmm_build.py", "src", "tests"]


def _files_below(root, parts):
    for part in parts:
        path = root / part
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if file.is_file() and "__pycache__" not in file.parts and file.suffix != ".so":
                yield file, file.relative_to(root).as_posix()


def write_sdist(folder):
    base = f"swapmm-{version()}"
    files = [(f"{base}/{name}", path.read_bytes()) for path, name in _files_below(HERE, OWN)]
    files += [(f"{base}/core/{name}", path.read_bytes()) for path, name in _files_below(CORE, PARTS)]
    files.append((f"{base}/PKG-INFO", metadata().encode()))
    with Path(folder, f"{base}.tar.gz").open("wb") as raw, gzip.GzipFile("", "wb", 9, raw, mtime=0) as packed:
        with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive:
            for name, content in sorted(files):
                entry = tarfile.TarInfo(name)
                entry.size, entry.mode = len(content), 0o644
                archive.addfile(entry, io.BytesIO(content))
    return f"{base}.tar.gz"


# ---- PEP 517


def get_requires_for_build_wheel(config_settings=None):
    return [name for name, program in (("cmake>=3.25", "cmake"), ("ninja", "ninja")) if shutil.which(program) is None]


def get_requires_for_build_sdist(config_settings=None):
    return []


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    return write_wheel(wheel_directory)


def build_sdist(sdist_directory, config_settings=None):
    return write_sdist(sdist_directory)


def main(arguments):
    folder, kinds = Path(arguments[0]), arguments[1:] or ["wheel", "sdist"]
    folder.mkdir(parents=True, exist_ok=True)
    for kind in kinds:
        for old in folder.glob("swapmm-*.whl" if kind == "wheel" else "swapmm-*.tar.gz"):
            old.unlink()
        name = write_wheel(folder) if kind == "wheel" else write_sdist(folder)
        print(f"{folder / name}: {(folder / name).stat().st_size / 1e6:.2f} MB")


if __name__ == "__main__":
    main(sys.argv[1:])
