#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The adapter for PyTorch on a GPU: steps of the transformer of torch_networks.py without a budget and in parts of the memory
that it needs. Each part runs in a process of its own. Weights and loss must be those of the run without a budget, bit for bit.

  adapter.py --wheel build/wheel/swapmm-....whl [--shares 1.5,0.72,0.54] [--copies] [--compiled] [--steps 16] --out FILE

A share is that of the peak of allocated bytes without a budget. The time of a step is the median of the last four. --copies: each
part once more without operators that run again. --compiled: everything with blocks that torch.compile has compiled.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

SIZES = {"layers": 6, "width": 4096, "heads": 32, "sequence": 1024, "batch": 8}


def digest(tensors):
  """Of all bits."""
  import torch

  total = 0
  for tensor in tensors:
    bits = tensor.detach().contiguous().view(torch.int16 if tensor.element_size() == 2 else torch.int32).flatten().long()
    places = torch.arange(bits.numel(), device=bits.device) % 1009
    total = (total * 1000003 + int(bits.sum().item()) + 7 * int((bits * places).sum().item())) % (1 << 61)
    del bits, places
  return total


def run(budget, steps, recompute, compiled):
  """In a process of its own, because a budget comes before the first tensor."""
  import torch

  import torch_networks

  if budget:
    import swapmm.torch

    swapmm.torch.budget(budget, "cuda", recompute=recompute)
  network = torch_networks.NETWORKS["transformer"]("cuda", **SIZES)
  for block in network.parts if compiled else ():
    block.compile()
  learner = torch_networks.Learner(network, 0.1)
  times = []
  for _ in range(steps):
    torch.cuda.synchronize()
    begin = time.perf_counter()
    loss = torch_networks.loss(network)
    loss.backward()
    learner.finish()
    if budget:
      swapmm.torch.step()
    torch.cuda.synchronize()
    times.append((time.perf_counter() - begin) * 1e3)
  row = {"network": "transformer", "config": SIZES, "budget_bytes": budget, "recompute": recompute, "compiled": compiled, "torch": torch.__version__,
         "device": torch.cuda.get_device_name(0), "iterations_ms": times, "iteration_ms": statistics.median(times[-4:]),
         "loss": loss.item(), "digest": digest(list(network.parameters())[:3])}
  if budget:
    report = swapmm.torch.report()
    row.update(manager_peak_bytes=report.peak, memory=report.memory, operators=report.operations, followed=report.iterations_followed,
               copied_bytes=report.copied_in + report.copied_out, run_again=report.run_again, unforeseen=report.unforeseen, plans=report.manager["plans"])
  else:
    row["memory_bytes"] = torch.cuda.max_memory_allocated()
  return row


def main():
  parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
  parser.add_argument("--wheel", help="of swapmm; else it must be installed")
  parser.add_argument("--shares", default="1.5,0.72,0.54")
  parser.add_argument("--copies", action="store_true")
  parser.add_argument("--compiled", action="store_true")
  parser.add_argument("--steps", type=int, default=16)
  parser.add_argument("--out", required=True)
  parser.add_argument("--run", type=int, help=argparse.SUPPRESS)
  parser.add_argument("--alone", action="store_true", help=argparse.SUPPRESS)
  options = parser.parse_args()
  if options.run is not None:
    print(json.dumps(run(options.run, options.steps, not options.alone, options.compiled)))
    return 0
  with tempfile.TemporaryDirectory() as folder:
    if options.wheel:
      zipfile.ZipFile(options.wheel).extractall(folder)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([folder, os.environ.get("PYTHONPATH", "")])}
    rows, failed = [], 0
    parts = [(share, alone) for share in map(float, options.shares.split(",")) for alone in ([False, True] if options.copies else [False])]
    for share, alone in [(0.0, False), *parts]:
      budget = int(rows[0]["memory_bytes"] * share) if share else 0
      done = subprocess.run([sys.executable, __file__, "--out", "-", "--steps", str(options.steps), "--run", str(budget),
                             *(["--alone"] if alone else []), *(["--compiled"] if options.compiled else [])],
                            stdout=subprocess.PIPE, env=environment, universal_newlines=True)
      if done.returncode != 0:
        failed += 1
        if not share:
          break
        continue
      row = json.loads(done.stdout.splitlines()[-1])
      rows.append(row)
      Path(options.out).write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
      same = (row["loss"], row["digest"]) == (rows[0]["loss"], rows[0]["digest"])
      failed += not same
      print(f"{budget / 1e9:.2f} GB{', copies alone' if alone else ''}: {row['iteration_ms']:.1f} ms, {row['iteration_ms'] / rows[0]['iteration_ms']:.2f} x, "
            f"{'the same bits' if same else 'OTHER BITS'}", flush=True)
  return 1 if failed else 0


if __name__ == "__main__":
  sys.exit(main())
