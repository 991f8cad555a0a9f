# SPDX-License-Identifier: Apache-2.0
"""What ./dev gpu check and ./dev gpu bench run, and how long each may take. Together they may take longer than the time that
they have: what was not reached comes the next time."""

import functools
import glob
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from runner import Check

HERE = Path(__file__).resolve().parent
BENCH = HERE.parent / "bench" / "gpu"

CNN = {"batch": 2048, "channels": 256}
QUIET_PYTHON = {"PYTHONDONTWRITEBYTECODE": "1"}  # the tree stays as it is
# Real programs below the layer for unmodified ones: small sizes of those that ./dev clients has. Those that cannot be installed say so.
CLIENTS = ("tg_cnn_small", "tg_gpt_small_jit", "tg_gpt_small_no_buffer_cache", "pyclesperanto", "clblast", "boost_compute")
TRANSFORMER = {"layers": 6, "width": 4096, "heads": 32, "sequence": 1024, "batch": 8}


def pictures_in(programs):
  """The pictures that are carried with the programs, for a program's environment."""
  pictures = Path(programs) / "fashion-mnist"
  return {"SWAPMM_FASHION_MNIST": str(pictures)} if pictures.is_dir() else {}


# ---- What the machine has --------------------------------------------------------------------------------------------


def pythons():
  """Interpreters to look for PyTorch in, the plain one first."""
  found = [shutil.which("python3"), "/usr/bin/python3", sys.executable]
  return list(dict.fromkeys(p for p in found if p and os.path.exists(p)))


def says(command, environment=None, limit=60):
  """What a command prints, without its errors; nothing where it fails."""
  try:
    done = subprocess.run(command, env={**os.environ, **(environment or {})}, timeout=limit, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True)
    return done.stdout.strip()
  except (OSError, subprocess.SubprocessError):
    return ""


def python_with_torch_on_cuda():
  for python in pythons():
    if says([python, "-c", "import torch; print(torch.cuda.is_available())"], limit=90) == "True":
      return python
  return None


@functools.cache
def library_folders():
  """Where cuBLAS and cuDNN may lie beside the places that the loader knows: the toolkit's folder, and NVIDIA's packages
  of Python."""
  folders = glob.glob("/usr/local/cuda*/lib64") + glob.glob("/usr/local/cuda*/lib")
  for python in pythons():
    for path in says([python, "-c", "import nvidia; print('\\n'.join(nvidia.__path__))"]).splitlines():
      folders += glob.glob(f"{path}/*/lib")
  return [f for f in dict.fromkeys(folders) if glob.glob(f"{f}/libcublas.so*") or glob.glob(f"{f}/libcudnn.so*")]


def compute_sanitizer():
  found = shutil.which("compute-sanitizer")
  for pattern in ("/usr/local/cuda*/bin/compute-sanitizer", "/usr/local/cuda*/compute-sanitizer/compute-sanitizer",
                  "/opt/nvidia/*/compute-sanitizer"):
    found = found or next(iter(sorted(glob.glob(pattern), reverse=True)), None)
  return found


class Machine:
  """`programs`: the folder that programs.gather() filled."""

  def __init__(self, programs):
    self.programs = Path(programs)
    folders = library_folders()
    old = os.environ.get("LD_LIBRARY_PATH", "")
    self.environment = {"LD_LIBRARY_PATH": ":".join([*folders, *([old] if old else [])])} if folders else {}
    try:
      self.devices = json.loads(says([self.programs / "swapmm_gpu_devices"], self.environment))
    except ValueError:
      self.devices = {"devices": [], "why_none": "the program that lists devices does not run"}
    self.sanitizer = compute_sanitizer()

  @property
  def has_device(self):
    return bool(self.devices["devices"])

  def path(self, name):
    return str(self.programs / name)

  def check(self, name, commands, limit, **others):
    """One that needs programs: skipped where one of them was not built."""
    skip = others.pop("skip", "")
    for command in commands:
      for word in map(str, command):
        if not skip and word.startswith(str(self.programs) + "/") and not os.path.exists(word):
          skip = f"{Path(word).name} was not built"
    environment = {**self.environment, **PATIENCE, **others.pop("environment", {})}
    return Check(name, commands, limit, environment=environment, skip=skip, **others)


# ---- Checks ----------------------------------------------------------------------------------------------------------

# Under a tool everything takes a hundred times as long: one that swaps, on demand and by plans, and our own kernels.
# Products are left out: they are the library's.
SHORT_RUNTIME = "a chain is right*,a captured iteration*"
SHORT_KERNELS = "LayerNorm*,softmax*,GELU*,the mean square*"
NO_ERRORS = r"ERROR SUMMARY: 0 errors"
NO_HAZARDS = r"RACECHECK SUMMARY: 0 hazards displayed"


def sanitizer_checks(machine):
  skip = "" if machine.sanitizer else "there is no compute-sanitizer"
  tool = machine.sanitizer or "compute-sanitizer"
  runtime, kernels = machine.path("swapmm_cuda_tests"), machine.path("swapmm_transformer_cuda_tests")

  def check(name, commands, limit, **others):
    # Some runtimes of virtual machines do not let the tool in.
    return machine.check(f"sanitizer-{name}", commands, limit, skip=skip, skip_when="Device not supported", **others)

  def command(name, program, cases, *options):
    return [tool, "--tool", name, "--error-exitcode", "9", *options, program, f"--test-case={cases}"]

  quiet = ("--report-api-errors", "no")  # calls that may fail are looked at by who makes them
  # First: a tool that misses this one sees nothing.
  yield check("planted-error", [command("memcheck", runtime, "planted: *") + ["--no-skip"]], 15, may_fail=True,
              must_say=r"Invalid __global__ write[\s\S]*ERROR SUMMARY: [1-9]")
  # What cuBLAS keeps until the end of the process is no leak of ours: the programs with it are not asked.
  # Nor is a backend of a test's own, that stays for good.
  yield check("memcheck", [command("memcheck", runtime, SHORT_RUNTIME, *quiet, "--leak-check", "full"),
                           command("memcheck", runtime, "random programs*", *quiet),
                           command("memcheck", kernels, SHORT_KERNELS, *quiet)], 45, must_say=NO_ERRORS,
              environment={"SWAPMM_TEST_SEEDS": "10"})
  yield check("initcheck", [command("initcheck", runtime, SHORT_RUNTIME),
                            command("initcheck", kernels, SHORT_KERNELS)], 35, must_say=NO_ERRORS)
  yield check("racecheck", [command("racecheck", kernels, SHORT_KERNELS)], 20, must_say=NO_HAZARDS)
  yield check("synccheck", [command("synccheck", kernels, SHORT_KERNELS)], 15, must_say=NO_ERRORS)


def demos(results, api):
  """(name, options, what it says) of the demo's other ways. Plans for a slow link run operations again wherever they can."""
  again = ["--budget", "50%", "--ways", "swap,recompute", "--link", "1GB/s"]
  for name, words, says in (("recompute", again, "[1-9][0-9]* operations run again"),
                            ("codec", ["--budget", "25%", "--codec", "10%"], "MB were encoded on their way to the host"),
                            ("replicas", ["--budget", "25%", "--replicas", "2"], "adds up in the same order: identical")):
    report = [] if name == "replicas" else ["--report", str(Path(results) / f"{api}demo-{name}.json")]
    yield f"demo-{name}", ["--epochs", "1", *words, *report], says


def checks(machine, results):
  ran = r"test cases: +[1-9]\d* \| +[1-9]"
  path = machine.path
  long = ("*/cuda/faults_test.cpp", "*/cuda/random_programs_test.cpp")
  tests = path("swapmm_cuda_tests")
  yield machine.check("cuda-tests", [[tests, f"--source-file-exclude={','.join(long)}"]], 60, must_say=ran)
  yield machine.check("cuda-faults", [[tests, "-d", f"--source-file={long[0]}"]], 110, must_say=ran)
  yield machine.check("cuda-random-programs", [[tests, "-d", f"--source-file={long[1]}"]], 45, must_say=ran)
  yield machine.check("transformer-tests", [[path("swapmm_transformer_cuda_tests")]], 30, must_say=ran)
  yield machine.check("neural-tests", [[path("swapmm_neural_cuda_tests")]], 110, must_say=ran)
  yield from sanitizer_checks(machine)
  carried = pictures_in(machine.programs)
  # Of the pictures that are carried, as many passes as make the usual number of steps.
  epochs = ["--epochs", "7"] if carried else []
  yield machine.check("demo", [[path("fashion_mnist"), "--device", "cuda", *epochs, "--report",
                                str(Path(results) / "demo-report.json")]], 90, environment=carried,
                      outputs=[str(Path(results) / "demo-report.json")])
  for name, words, says in demos(results, ""):
    yield machine.check(name, [[path("fashion_mnist"), "--device", "cuda", *words]], 60, environment=carried, must_say=says)
  yield machine.check("sequence", [[path("sequence"), "--device", "cuda"]], 15,
                      environment=carried)
  yield machine.check("inference", [[path("inference"), "--device", "cuda"]], 15)
  yield machine.check("transformer", [[path("transformer"), "--layers", "3", "--steps", "5"]], 20)
  yield machine.check("custom-kernel", [[path("cuda_custom_kernel")]], 10)
  yield machine.check("graph", [[path("cuda_graph")]], 10)


# ---- On OpenCL -------------------------------------------------------------------------------------------------------

# What NVIDIA's driver (580.159) lacks, or does unlike the specification: native kernels, shared memory beside buffers, and
# user events that fail.
WITHOUT = [word for what in ("native-kernels", "shared-memory", "failures") for word in ("--without", what)]
# Drivers wait for a device in a loop, and other checks may use it meanwhile.
PATIENCE = {"SWAPMM_TEST_PATIENCE": "30"}
DRIVERS = ("libnvidia-opencl.so.1", "libamdocl64.so")  # of GPUs


def opencl_driver():
  """The OpenCL driver of a GPU; None where none is installed."""
  known = says(["ldconfig", "-p"]).split() + says(["/sbin/ldconfig", "-p"]).split()
  for driver in DRIVERS:
    found = [path for path in known if path.startswith("/") and path.endswith("/" + driver)]
    if found:
      return found[0]
  return None


class OpenclMachine:
  """`programs`: the folder that programs.gather_opencl() filled. Programs see the driver of a GPU alone, whatever else
  is installed."""

  def __init__(self, programs, results):
    self.programs, self.results = Path(programs), results
    self.pictures = pictures_in(self.programs.parent / "programs")  # those that are carried with the programs of CUDA
    self.vendors = Path(results) / "vendors"
    self.driver = opencl_driver()
    old = os.environ.get("LD_LIBRARY_PATH", "")
    self.environment = {"OCL_ICD_VENDORS": str(self.vendors),
                        "LD_LIBRARY_PATH": ":".join([str(self.programs / "lib"), *([old] if old else [])])}
    self.device, self.why_none = "", "there is no OpenCL driver of a GPU"
    if self.driver:
      self.vendors.mkdir(parents=True, exist_ok=True)
      (self.vendors / "gpu.icd").write_text(self.driver + "\n", encoding="utf-8")
      self.ask()

  def ask(self):
    program = self.path("custom_kernel")
    self.why_none = "the programs for OpenCL were not built"
    if os.path.exists(program):
      done = subprocess.run([program], env={**os.environ, **self.environment}, timeout=60, text=True, check=False,
                            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
      first = (done.stderr.splitlines() or ["nothing"])[0]
      self.why_none = f"no OpenCL device is a GPU: {first}"
      if "), GPU," in first:
        self.device, self.why_none = first, ""

  @property
  def has_device(self):
    return bool(self.device)

  def path(self, name):
    return str(self.programs / name)


def opencl_checks(machine):
  """The backend and the layer on a GPU by OpenCL: as many as time is left for."""
  ran = r"test cases: +[1-9]\d* \| +[1-9]"
  layer_tests = HERE.parent / "opencl_layer"
  path = machine.path
  layer = path("libswapmm_opencl_layer.so")

  def check(name, command, limit, more=None, **others):
    return Check(f"opencl-{name}", [command], limit, environment={**machine.environment, **PATIENCE, **(more or {})},
                 skip=machine.why_none, **others)

  tests = path("swapmm_opencl_tests")
  long = [f"*/opencl/{name}_test.cpp" for name in ("faults", "random_programs", "conformance", "api_faults")]
  # It fails at nothing that drivers do: its log says what this one does.
  yield check("driver", [path("swapmm_opencl_driver")], 90, must_say="questions asked")
  yield check("custom-kernel", [path("custom_kernel")], 20)
  yield check("tests", [tests, "-d", f"--source-file-exclude={','.join(long)}"], 150, must_say=ran)
  yield check("conformance", [tests, "-d", f"--source-file={long[2]}"], 90, must_say=ran)
  yield check("faults", [tests, "-d", f"--source-file={long[0]}"], 110, must_say=ran)
  yield check("api-faults", [tests, "-d", f"--source-file={long[3]}"], 60, must_say=ran)
  # As many as there is time for.
  yield check("random-programs", [tests, "-d", f"--source-file={long[1]}"], 60, must_say=ran,
              more={"SWAPMM_TEST_SECONDS": "40"})
  yield check("neural-tests", [path("swapmm_neural_tests")], 90, must_say=ran)
  for name, words, says in demos(machine.results, "opencl-"):
    yield check(name, [path("fashion_mnist"), "--device", "opencl", *words], 60, must_say=says, more=machine.pictures)
  cases = [sys.executable, layer_tests / "run_cases.py", "--cases", path("swapmm_opencl_cases"), "--layer", layer,
           "--watch", path("libswapmm_opencl_watch.so"), "--timeout", "40", "--mode", "half"]
  # NVIDIA's driver crashes at a fill with a null pattern, and lets nothing pass a command on hold.
  native = ("buffers.in_shared_memory", "transfers.errors", "user_events.out_of_order_passes")
  skipped = [word for case in native for word in ("--skip", case)]
  for theme in opencl_themes(machine):
    yield check(f"layer-{theme}", [*cases, *skipped, theme], 150 if theme == "iterations" else 90, must_say=r"[1-9]\d* cases, 0 failed")
  random = [sys.executable, layer_tests / "random" / "run.py", path("swapmm_random_opencl"), "--layer", layer,
            "--seed", "1000", *WITHOUT]
  # NVIDIA's driver crashes in some, and refuses a copy of rectangles that the specification allows.
  random += ["--seeds", "20", "--native-may-fail", "4"]
  same = r"(1[6-9]|20) of \1 programs"
  yield check("random-layered", [*random, "--mode", "least"], 90, must_say=same)
  yield check("loops-layered", [*random, "--loops", "--mode", "part"], 90, must_say=same)
  clients = [sys.executable, HERE.parent / "clients" / "run.py", "--layer", layer, "--watch", path("libswapmm_opencl_watch.so")]
  for name in CLIENTS:
    yield check(f"client-{name}", [*clients, name], 110, must_say=r"\n1 the same|skipped: no client can run here")


def opencl_themes(machine):
  """Of the layer's cases. Their names need no device."""
  listed = says([machine.path("swapmm_opencl_cases"), "--list"], machine.environment)
  themes = {line.split(".")[0] for line in listed.split() if "." in line}
  return sorted(themes - {"native_kernels"})  # no driver of a GPU runs them


# ---- Benchmarks ------------------------------------------------------------------------------------------------------


def pairs(sizes):
  return ",".join(f"{key}={value}" for key, value in sizes.items())


def options(sizes):
  return [word for key, value in sizes.items() for word in (f"--{key}", str(value))]


def benchmarks(machine, results, torch_python):
  def file(name):
    return str(Path(results) / name)

  def program(name, limit, tool, *words):
    out = file(f"{name}.json")
    return machine.check(name, [[machine.path(tool), *words, "--out", out]], limit, outputs=[out])

  yield program("links", 45, "swapmm_bench_gpu_links")
  yield program("codec", 20, "swapmm_bench_gpu_codec")
  yield program("overhead", 40, "swapmm_bench_gpu_overhead")
  # Two replicas share the device.
  yield machine.check("replicas", [[machine.path("swapmm_bench_replicas"), "devices", "2048"]], 20,
                      environment=pictures_in(machine.programs), must_say=r"layers per chunk \| ms per step")
  networks = "swapmm_bench_gpu_networks"
  for name, sizes in (("cnn", CNN), ("transformer", TRANSFORMER)):
    for part, ks in (("b", "2,3,4"), ("a", "1,1.25,1.5")):
      yield program(f"networks-{name}-{part}", 130, networks, "--network", name, *options(sizes), "--k", ks,
                    "--ways", "copies,recompute", "--time-limit", "100")
  # Small enough to be encoded through a tenth of the budget.
  yield program("parts-cnn", 100, networks, "--network", "cnn", *options(CNN), "--parts", "16", "--k", "2", "--ways",
                "copies,recompute,compress")
  no_torch = "" if torch_python else "there is no PyTorch that sees the device"
  # cuDNN tries its algorithms in the first step, and some take seconds for the CNN.
  for name, sizes, limit, searched in (("cnn", CNN, 55, ["--searched", "3"]), ("transformer", TRANSFORMER, 70, [])):
    out = file(f"contenders-{name}.json")
    command = [torch_python or "python3", str(BENCH / "contenders.py"), "--networks", name, f"--{name}", pairs(sizes),
               "--device", "cuda", "--shares", "1,0.5,0.25", "--iterations", "5", "--time-limit",
               str(limit - 10), *searched, "--out", out]
    yield Check(f"contenders-{name}", [command], limit, skip=no_torch, outputs=[out], environment=QUIET_PYTHON,
                inputs=[str(BENCH / f) for f in ("contenders.py", "offload.py", "torch_networks.py")])
  wheels = sorted((HERE.parents[1] / "build" / "wheel").glob("*.whl"))
  no_wheel = "" if wheels else "there is no wheel in build/wheel: ./dev wheel makes one, to be carried"
  for name, extra in (("adapter-transformer", ["--copies"]), ("adapter-compiled", ["--compiled"])):
    out = file(f"{name}.json")
    command = [torch_python or "python3", str(BENCH / "adapter.py"), "--wheel", str(wheels[-1] if wheels else ""), "--shares", "0.54",
               "--steps", "16", "--out", out, *extra]
    yield Check(name, [command], 90 if "compiled" in name else 60, outputs=[out], environment=QUIET_PYTHON, skip=no_torch or no_wheel,
                inputs=[str(BENCH / f) for f in ("adapter.py", "torch_networks.py")] + [str(wheel) for wheel in wheels[-1:]])


def plot(results):
  """Of what was measured."""
  found = [*Path(results).glob("networks-*.json"), *Path(results).glob("contenders-*.json")]
  measured = sorted(str(path) for path in found if not path.name.endswith(".result.json"))
  return Check("plot", [[sys.executable, str(BENCH / "plot.py"), "--out-dir", str(results), *measured]], 10,
               inputs=[str(BENCH / "plot.py"), *measured], environment=QUIET_PYTHON,
               skip="" if measured else "nothing was measured")
