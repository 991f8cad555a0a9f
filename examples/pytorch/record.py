#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Records one steady step of a PyTorch model as a trace of swapmm (format `swapmm-trace`, docs/formats.md).

    record.py MODEL [--preset tiny|gpu] [--device cpu|cuda|meta] [--batch N] [--size KEY=VALUE,...] --out FILE
    record.py --all --preset gpu --out-dir DIR

The Python package of swapmm records: swapmm.torch.record() does so for any program.
"""

import argparse
import json
import os
import subprocess
import sys

try:
  import swapmm.torch
except (ImportError, RuntimeError) as error:  # RuntimeError: the package's sources, without its library
  sys.exit(f"""record.py needs PyTorch 1.13 or newer and the Python package of swapmm: {error}
To install the package: ./dev wheel, and pip install build/wheel/*.whl. To use it from its sources:
  cmake --preset dev && cmake --build build/dev --target swapmm_python
  export PYTHONPATH=$PWD/backends/python/src SWAPMM_PYTHON_LIBRARY=$PWD/build/dev/backends/python""")
import torch

import models


def _sizes(text):
  """KEY=VALUE,KEY=VALUE: whole numbers."""
  try:
    return {key: int(value) for key, value in (pair.split("=") for pair in text.split(",") if pair)}
  except ValueError:
    raise argparse.ArgumentTypeError(f"{text!r} is not KEY=NUMBER,...")


def _arguments(arguments):
  parser = argparse.ArgumentParser(description="Records a training step of a PyTorch model as a trace of swapmm.")
  parser.add_argument("model", nargs="?", choices=list(models.PRESETS))
  parser.add_argument("--all", action="store_true", help="all models, each in a process of its own, and a table")
  parser.add_argument("--preset", choices=("tiny", "gpu"), default="tiny")
  parser.add_argument("--device", help="cpu, cuda, or meta: sizes without memory and without times; "
                      "default: cuda with the preset gpu, else cpu")
  parser.add_argument("--batch", type=int)
  parser.add_argument("--size", type=_sizes, default={}, metavar="KEY=NUMBER,...",
                      help="sizes that differ from the preset")
  parser.add_argument("--autocast", action="store_true", help="compute in bfloat16 where autocast does")
  parser.add_argument("--warmup", type=int, default=2)
  parser.add_argument("--repeat", type=int, default=3, help="timed steps")
  parser.add_argument("--out", help="the file; compressed where its name ends with .gz")
  parser.add_argument("--out-dir", help="with --all: the folder")
  parser.add_argument("--json", action="store_true", help="print the row of the table as JSON")
  options = parser.parse_args(arguments)
  if options.all == bool(options.model) or not (options.out_dir if options.all else options.out):
    parser.error("either MODEL and --out FILE, or --all and --out-dir DIR")
  options.device = options.device or ("cuda" if options.preset == "gpu" else "cpu")
  if options.batch is not None:
    options.size["batch"] = options.batch
  return options


def _record_model(options):
  case = models.build(options.model, options.preset, options.device, options.size, options.autocast)
  trace = swapmm.torch.record(case.step, inputs=[case.inputs, case.targets], parameters=[case.network, case.optimizer],
                              name=case.name, warmup=options.warmup, repeat=options.repeat, device=options.device)
  trace.save(options.out)
  row = {"name": trace.name, "operations": len(trace.operations), "tensors": len(trace.tensors),
         "peak_live_bytes": trace.peak_bytes(), "largest_bundle_bytes": trace.largest_bundle_bytes(),
         "duration_ns": sum(operation.duration_ns for operation in trace.operations), "allocated_bytes": None,
         "file": options.out}
  if options.device.startswith("cuda"):
    # Without the watch: what PyTorch itself takes at the most.
    torch.cuda.reset_peak_memory_stats()
    case.step()
    row["allocated_bytes"] = torch.cuda.max_memory_allocated()
  return row


HEADING = ("| trace | operations | tensors | peak live GB | largest bundle GB | allocated by PyTorch GB | ms |\n"
           "|---|---|---|---|---|---|---|")


def _table_row(row):
  def gigabytes(size):
    return "-" if size is None else f"{size / 1e9:.3g}"

  cells = [row["name"], row["operations"], row["tensors"], gigabytes(row["peak_live_bytes"]),
           gigabytes(row["largest_bundle_bytes"]), gigabytes(row["allocated_bytes"]), f"{row['duration_ns'] / 1e6:.1f}"]
  return "| " + " | ".join(map(str, cells)) + " |"


def _record_all(options):
  """An error of one model, out of memory above all, does not end the others. Returns how many failed."""
  os.makedirs(options.out_dir, exist_ok=True)
  rows, failed = [], 0
  for name in models.PRESETS:
    path = os.path.join(options.out_dir, f"{name}.json.gz")
    command = [sys.executable, __file__, name, "--preset", options.preset, "--device", options.device, "--warmup",
               str(options.warmup), "--repeat", str(options.repeat), "--out", path, "--json"]
    command += ["--autocast"] if options.autocast else []
    command += ["--batch", str(options.batch)] if options.batch is not None else []
    print(f"{name} ...", file=sys.stderr, flush=True)
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True)
    if done.returncode == 0:
      rows.append(_table_row(json.loads(done.stdout.splitlines()[-1])))
    else:
      failed += 1
      last = (done.stderr.strip().splitlines() or [f"ended with {done.returncode}"])[-1]
      rows.append(f"| {name} | failed: {last[:200]} |")
  print(HEADING, *rows, sep="\n")
  return failed


def main(arguments=None):
  options = _arguments(arguments)
  if options.all:
    return 1 if _record_all(options) else 0
  try:
    row = _record_model(options)
  except (ValueError, OSError, RuntimeError) as error:
    print(f"record.py: {error}", file=sys.stderr)
    return 1
  print(json.dumps(row) if options.json else HEADING + "\n" + _table_row(row))
  return 0


if __name__ == "__main__":
  sys.exit(main())
