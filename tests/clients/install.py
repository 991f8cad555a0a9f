# SPDX-License-Identifier: Apache-2.0
"""Installs client programs below build/clients. Each function returns why something cannot be had, or an empty text."""
import contextlib
import fcntl
import glob
import os
import shutil
import subprocess
from pathlib import Path

from layered import ROOT, last_line

OUT = ROOT / "build" / "clients"
VENV = OUT / "venv"
PROGRAMS = Path(__file__).resolve().parent / "programs"
VIENNACL = OUT / "viennacl"
HOST_PYTHON = "/usr/bin/python3"
# Without PyPI the answer is to come soon.
PIP = (VENV / "bin" / "python", "-m", "pip", "--quiet", "--disable-pip-version-check", "--retries", "1", "--timeout", "20")


class Broken(Exception):
    """What is there does not work, so that nothing may be skipped."""


def call(command, **more):
    return subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace", check=False, **more)


def have_debian(packages):
    missing = [name for name in packages if "ok installed" not in call(["dpkg-query", "-W", "-f", "${Status}", name]).stdout]
    return f"Debian packages are missing: {' '.join(missing)}" if missing else ""


def have_pypi(requirements):
    """What was installed once is remembered."""
    done = VENV / "installed.txt"
    known = done.read_text(encoding="utf-8").split() if done.exists() else []
    missing = [requirement for requirement in requirements if requirement not in known]
    if not missing:
        return ""
    if not (VENV / "bin" / "python").exists():
        made = call([HOST_PYTHON, "-m", "venv", VENV])
        if made.returncode:
            return f"no virtual environment: {last_line(made.stdout)}"
    got = call([*PIP, "install", "--only-binary", ":all:", *missing])
    if got.returncode:
        return f"PyPI does not give {' '.join(missing)}: {last_line(got.stdout)}"
    done.write_text("\n".join([*known, *missing, ""]), encoding="utf-8")
    return ""


def have_source(requirement):
    """Its source archive from PyPI, unpacked: for the tests that a wheel leaves out."""
    folder = OUT / "sources"
    if (folder / requirement.replace("==", "-")).is_dir():
        return ""
    folder.mkdir(parents=True, exist_ok=True)
    name = requirement.split("==")[0]
    got = call([*PIP, "download", "--no-deps", "--no-binary", name, requirement], cwd=folder)
    archives = glob.glob(str(folder / (requirement.replace("==", "-") + ".tar.*")))
    if got.returncode or not archives:
        return f"PyPI does not give the source of {requirement}: {last_line(got.stdout)}"
    return "" if call(["tar", "-xf", archives[0]], cwd=folder).returncode == 0 else f"{archives[0]} cannot be unpacked"


def have_viennacl():
    """The package cannot be installed beside Boost 1.81, so it is only unpacked."""
    if (VIENNACL / "usr" / "include" / "viennacl").exists():
        return ""
    VIENNACL.mkdir(parents=True, exist_ok=True)
    got = call(["apt-get", "-o", "APT::Sandbox::User=root", "download", "libviennacl-dev"], cwd=VIENNACL)
    files = glob.glob(str(VIENNACL / "*.deb"))
    if got.returncode or not files:
        return f"Debian does not give libviennacl-dev: {last_line(got.stdout)}"
    return "" if call(["dpkg", "-x", files[0], VIENNACL]).returncode == 0 else "libviennacl-dev cannot be unpacked"


def clone_of(client):
    return OUT / "clones" / client.repository[0].rsplit("/", 1)[1]


def have_clone(client):
    """One commit of a repository. A clone that is there already is taken as it is."""
    folder = clone_of(client)
    if folder.is_dir():
        return ""
    address, commit = client.repository
    partial = folder.with_suffix(".partial")
    shutil.rmtree(partial, ignore_errors=True)
    for words in (("init", "--quiet", partial), ("-C", partial, "fetch", "--quiet", "--depth", "1", address, commit),
                  ("-C", partial, "checkout", "--quiet", "FETCH_HEAD")):
        got = call(["timeout", "120", "git", *words], stdin=subprocess.DEVNULL, env={**os.environ, "GIT_TERMINAL_PROMPT": "0"})
        if got.returncode:
            return f"no clone of {address}: {last_line(got.stdout)}"
    partial.rename(folder)
    return ""


def build_test(client, test):
    clone = clone_of(client)
    source, program = clone / f"{test}.cpp", OUT / "built" / client.name / Path(test).name
    if not program.exists():
        compile_program(source, program, [*client.options, "-I", clone], [])


def compile_program(source, program, options, libraries):
    program.parent.mkdir(parents=True, exist_ok=True)
    compiler = ["ccache"] if shutil.which("ccache") else []
    made = call([*compiler, "g++", "-std=c++17", "-O1", "-w", *options, source, "-o", program,
                 *(f"-l{library}" for library in libraries), "-lOpenCL", "-lpthread"])
    if made.returncode:
        raise Broken(f"{source.name} cannot be compiled:\n{made.stdout[:2000]}")


def build(name, libraries):
    source, program = PROGRAMS / f"{name}.cpp", OUT / "built" / name
    if name.startswith("viennacl"):
        why = have_viennacl()
        if why:
            return why
    if program.exists() and program.stat().st_mtime > source.stat().st_mtime:
        return ""
    compile_program(source, program, ["-isystem", VIENNACL / "usr" / "include"], libraries)
    return ""


def caches_in(folder):
    """The environment of a program whose compiler caches lie there."""
    for name in ("pocl", "xdg", "home"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    return {"POCL_CACHE_DIR": str(folder / "pocl"), "XDG_CACHE_HOME": str(folder / "xdg"), "HOME": str(folder / "home")}


@contextlib.contextmanager
def alone():
    """One process at a time installs."""
    OUT.mkdir(parents=True, exist_ok=True)
    with open(OUT / "lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def install(client):
    """Why this client cannot run here, or an empty text."""
    with alone():
        return install_alone(client)


def install_alone(client):
    why = have_debian(client.debian) or (have_pypi(client.pypi) if client.pypi else "")
    for requirement in client.pypi_sources:
        why = why or have_source(requirement)
    if client.repository:
        why = why or have_clone(client)
    for test in client.tests if not why else ():
        build_test(client, test)
    for name, libraries in client.sources:
        why = why or build(name, libraries)
    return why
