# SPDX-License-Identifier: Apache-2.0
"""The programs of ./dev gpu, gathered in one folder that can be carried to another machine: they need glibc and the
driver, and of CUDA what they load at run time."""

import gzip
import hashlib
import json
import lzma
import shutil
import subprocess
import tarfile
from pathlib import Path

# Where each lies in the build folder.
PATHS = {
    "swapmm_gpu_devices": "tests/bench/gpu/swapmm_gpu_devices",
    "swapmm_cuda_tests": "tests/swapmm_cuda_tests",
    "swapmm_neural_cuda_tests": "tests/swapmm_neural_cuda_tests",
    "swapmm_transformer_cuda_tests": "tests/swapmm_transformer_cuda_tests",
    "fashion_mnist": "examples/fashion_mnist/fashion_mnist",
    "sequence": "examples/sequence/sequence",
    "inference": "examples/inference/inference",
    "transformer": "examples/transformer/transformer",
    "cuda_custom_kernel": "examples/cuda_custom_kernel/cuda_custom_kernel",
    "cuda_graph": "examples/cuda_graph/cuda_graph",
    "swapmm_bench_gpu_codec": "tests/bench/gpu/swapmm_bench_gpu_codec",
    "swapmm_bench_gpu_links": "tests/bench/gpu/swapmm_bench_gpu_links",
    "swapmm_bench_gpu_overhead": "tests/bench/gpu/swapmm_bench_gpu_overhead",
    "swapmm_bench_gpu_networks": "tests/bench/gpu/swapmm_bench_gpu_networks",
    "swapmm_bench_replicas": "tests/bench/replicas/swapmm_bench_replicas",
}
# What runs on OpenCL, and the layer: in the folder of another preset, with assertions.
OPENCL_PATHS = {
    "swapmm_opencl_driver": "tests/swapmm_opencl_driver",
    "swapmm_opencl_tests": "tests/swapmm_opencl_tests",
    "swapmm_neural_tests": "tests/swapmm_neural_tests",
    "custom_kernel": "examples/custom_kernel/custom_kernel",
    "fashion_mnist": "examples/fashion_mnist/fashion_mnist",
    "swapmm": "examples/cli/swapmm",
    "swapmm_opencl_cases": "tests/swapmm_opencl_cases",
    "swapmm_random_opencl": "tests/swapmm_random_opencl",
    "libswapmm_opencl_layer.so": "backends/opencl/layer/libswapmm_opencl_layer.so",
    "libswapmm_opencl_watch.so": "tests/libswapmm_opencl_watch.so",
    "swapmm-kernel-facts": "backends/opencl/layer/swapmm-kernel-facts",
}
# Every system with a compiler has these; the analysis of kernels, which needs LLVM, is left out where that is absent.
LIBRARIES_OF_THE_SYSTEM = ("linux-vdso", "ld-linux", "libc.", "libm.", "libstdc++.", "libgcc_s.", "libpthread.")
SOURCES = ("include", "backends", "examples", "tests", "cmake", "CMakeLists.txt", "CMakePresets.json")
SOURCE_SUFFIXES = (".hpp", ".cpp", ".h", ".cu", ".cmake", ".txt", ".json", ".in")
PICTURES = Path("/usr/share/datasets/fashion-mnist")
CARRIED_PICTURES = {"train": 20000, "t10k": 4000}  # all of them are 30 MB


def digest_of_sources(root):
  """Of everything that programs are built from."""
  digest = hashlib.sha256()
  for part in SOURCES:
    top = Path(root) / part
    files = [top] if top.is_file() else sorted(p for p in top.rglob("*") if p.suffix in SOURCE_SUFFIXES and p.is_file())
    for path in files:
      if "data" in path.relative_to(root).parts:
        continue
      digest.update(str(path.relative_to(root)).encode() + b"\0")
      digest.update(path.read_bytes())
  return digest.hexdigest()


def first_items(path, count, to):
  """The first `count` entries of a file of MNIST's format."""
  with gzip.open(path, "rb") as source:
    magic = source.read(4)
    extents = [int.from_bytes(source.read(4), "big") for _ in range(magic[3])]
    size = 1
    for extent in extents[1:]:
      size *= extent
    count = min(count, extents[0])
    numbers = source.read(count * size)
  with gzip.GzipFile(to, "wb", compresslevel=6, mtime=0) as out:
    out.write(magic + b"".join(e.to_bytes(4, "big") for e in [count, *extents[1:]]) + numbers)


def digest_of_programs(build, paths):
  digest = hashlib.sha256(json.dumps([paths, CARRIED_PICTURES]).encode())
  for path in paths.values():
    file = Path(build) / path
    digest.update(hashlib.sha256(file.read_bytes() if file.is_file() else b"").digest())
  return digest.hexdigest()


def libraries_of(program):
  """The files of the shared libraries that a system may lack, by their names."""
  lines = subprocess.run(["ldd", program], stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()
  words = [line.split() for line in lines if "=>" in line]
  return {w[0]: w[2] for w in words if not w[0].startswith(LIBRARIES_OF_THE_SYSTEM)}


def gather_opencl(root, build, folder):
  """Like gather(), with the shared libraries in the folder lib."""
  return gather(root, build, folder, OPENCL_PATHS, pictures=False, libraries=True)


def gather(root, build, folder, paths=None, pictures=True, libraries=False):
  """Copies the programs, without what debuggers need, and packs them, where they are others than before; returns the
  names of those that were not built."""
  folder = Path(folder)
  paths = PATHS if paths is None else paths
  facts = {"sources": digest_of_sources(root), "programs": digest_of_programs(build, paths)}
  before = facts_of(folder)
  if {key: before.get(key) for key in facts} == facts and archive_of(folder).is_file():
    return before["missing"]
  shutil.rmtree(folder, ignore_errors=True)
  folder.mkdir(parents=True)
  missing = []
  for name, path in paths.items():
    source = Path(build) / path
    if not source.is_file():
      missing.append(name)
      continue
    shutil.copy2(source, folder / name)
    subprocess.run(["strip", folder / name], check=True)
    if libraries and name != "swapmm-kernel-facts":
      (folder / "lib").mkdir(exist_ok=True)
      for library, file in libraries_of(source).items():
        shutil.copy2(file, folder / "lib" / library)
  if pictures and PICTURES.is_dir():
    (folder / "fashion-mnist").mkdir()
    for name, count in CARRIED_PICTURES.items():
      for kind in ("images-idx3", "labels-idx1"):
        file = f"{name}-{kind}-ubyte.gz"
        first_items(PICTURES / file, count, folder / "fashion-mnist" / file)
  (folder / "built.json").write_text(json.dumps({**facts, "missing": missing}, indent=1) + "\n", encoding="utf-8")
  pack(folder)
  return missing


def archive_of(folder):
  return Path(f"{folder}.tar.xz")


def pack(folder):
  """All of it in one small file, to be carried. Programs have most of their libraries' code in common, and the
  dictionary is large enough to find it."""
  filters = [{"id": lzma.FILTER_LZMA2, "preset": 0, "dict_size": 1 << 27}]
  with lzma.open(archive_of(folder), "wb", filters=filters) as out, tarfile.open(fileobj=out, mode="w") as archive:
    archive.add(folder, arcname=".")


def unpack(folder):
  """What was carried, where it is not unpacked yet, or is newer than what is there."""
  archive = archive_of(folder)
  if not archive.is_file():
    return
  digest = hashlib.sha256(archive.read_bytes()).hexdigest()
  mark = Path(folder) / "unpacked"
  if built_from(folder) is not None and (not mark.is_file() or mark.read_text(encoding="utf-8") == digest):
    return
  shutil.rmtree(folder, ignore_errors=True)
  Path(folder).mkdir(parents=True)
  with tarfile.open(archive, "r:xz") as packed:
    packed.extractall(folder)
  mark.write_text(digest, encoding="utf-8")


def facts_of(folder):
  """What gather() noted; nothing where nothing was gathered."""
  try:
    return json.loads((Path(folder) / "built.json").read_text(encoding="utf-8"))
  except (OSError, ValueError):
    return {}


def built_from(folder):
  """The digest of the sources of what was gathered; nothing where nothing was."""
  return facts_of(folder).get("sources")
