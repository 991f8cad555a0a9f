#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The networks of README.md in PyTorch, as whoever has no swapmm would train them in less memory.

    contenders.py [--networks cnn,transformer] [--cnn batch=512,channels=32,hidden=128]
                  [--transformer layers=2,width=64,heads=4,sequence=32,batch=2] [--device cuda] --out FILE

Writes one JSON file: a list of records, whose fields README.md explains. Needs torch 1.13 or newer and nothing else.
"""

import argparse
import contextlib
import inspect
import json
import os
import statistics
import sys
import time

import torch
from torch.utils.checkpoint import checkpoint

from offload import CountedSaveOnCpu, OverlappedOffload
from torch_networks import NETWORKS, Learner, loss


class Resident:
  """Everything stays on the device. Others say what they do otherwise; step() is one iteration of training."""
  name = "PyTorch all-resident"

  def __init__(self, network, share=1.0):
    self.network, self.share = network, share
    self.device = network.batch_inputs.device
    self.hooks = None

  def run_part(self, part, x):
    return part(x)

  def backward(self):
    """Gradients of the parameters; returns the loss."""
    with self.hooks or contextlib.nullcontext():
      value = loss(self.network, self.run_part)
    value.backward()
    if self.hooks:
      self.hooks.finish()
    return value.detach()

  def step(self, learner):
    value = self.backward()
    learner.finish()
    return value

  def lasting(self):
    return [*self.network.parameters(), *self.network.buffers(), self.network.batch_inputs]


class SaveOnCpu(Resident):
  """torch.autograd.graph.save_on_cpu, page-locked: each copy waits for the one before it and for the computation."""
  name = "PyTorch save_on_cpu"

  def __init__(self, network, share=1.0):
    super().__init__(network, share)
    self.hooks = CountedSaveOnCpu(self.device)


class Offload(Resident):
  """offload.py."""
  name = "PyTorch overlapped offload"

  def __init__(self, network, share=1.0, **options):
    super().__init__(network, share)
    self.hooks = OverlappedOffload(self.device, self.lasting(), share, **options)


class Checkpointing(Resident):
  """The first parts are computed again in the backward pass: a share of them."""
  name = "PyTorch checkpointing"

  def __init__(self, network, share=1.0):
    super().__init__(network, share)
    self.again = set(list(network.parts)[:round(share * len(network.parts))])

  def run_part(self, part, x):
    if part not in self.again:
      return part(x)
    return checkpoint(part, x, use_reentrant=False, preserve_rng_state=False)


CONTENDERS = {"resident": Resident, "save_on_cpu": SaveOnCpu, "offload": Offload, "checkpointing": Checkpointing}
OUT_OF_MEMORY = getattr(torch.cuda, "OutOfMemoryError", RuntimeError)


# ---- Measuring -----------------------------------------------------------------------------------------------------


class Budget:
  """Of seconds; None: any number. What comes next is told with the seconds since the program began, so that the log of a
  run that is ended says where the time went."""

  def __init__(self, seconds=None, start_of_all=None):
    self.start, self.seconds = time.monotonic(), seconds
    self.start_of_all = self.start if start_of_all is None else start_of_all

  def used(self):
    return time.monotonic() - self.start

  def left(self):
    return float("inf") if self.seconds is None else self.seconds - self.used()

  def part(self, others):
    """An equal part of what is left, beside that many others."""
    return Budget(None if self.seconds is None else self.left() / (others + 1), self.start_of_all)

  def say(self, what):
    print(f"  {time.monotonic() - self.start_of_all:.1f} s: {what}", file=sys.stderr, flush=True)

  def affordable(self, wanted, seconds_each):
    """How many of the wanted iterations there is time for; at least one."""
    if self.left() == float("inf") or seconds_each <= 0:
      return wanted
    return max(1, min(wanted, int(self.left() / seconds_each)))


class Meter:
  """Time and memory of one step, by the device where that is a GPU."""

  def __init__(self, device):
    self.on_cuda = device.type == "cuda"

  def empty(self):
    if self.on_cuda:
      torch.cuda.synchronize()
      torch.cuda.empty_cache()
      torch.cuda.reset_peak_memory_stats()

  def peaks(self):
    """(allocated, reserved) since empty(); None where nobody counts."""
    return (torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved()) if self.on_cuda else (None, None)

  def milliseconds(self, step):
    if not self.on_cuda:
      start = time.perf_counter()
      step()
      return (time.perf_counter() - start) * 1e3
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda.synchronize()
    start.record()
    step()
    end.record()
    torch.cuda.synchronize()
    return start.elapsed_time(end)


def measure(contender, learner, meter, warmup, iterations, resident=None, budget=None):
  """Peaks of the contender alone, then times; by turns with the resident one where that is given. Fewer iterations than
  that where the budget has no time for them."""
  budget = budget or Budget()
  hooks = contender.hooks
  step = 0.0
  for i in range(warmup):
    if i > 1 and budget.affordable(iterations, 3 * step) < iterations:
      break
    step = meter.milliseconds(lambda: contender.step(learner)) / 1e3
    if i == 0:
      budget.say(f"{contender.name}: the first step took {step:.1f} s")  # libraries choose their algorithms in it
  meter.empty()
  before = (hooks.bytes_out, hooks.bytes_back) if hooks else (0, 0)
  contender.step(learner)
  contender.step(learner)
  after = (hooks.bytes_out, hooks.bytes_back) if hooks else (0, 0)
  allocated, reserved = meter.peaks()
  # There is one more, which is not counted. The resident one takes no longer than another contender.
  iterations = max(1, budget.affordable(iterations + 1, step * (2 if resident else 1)) - 1)
  own, others = [], []
  for i in range(iterations + 1):
    turn = (own, contender), (others, resident)
    for times, who in turn:
      if who:
        took = meter.milliseconds(lambda: who.step(learner))
        if i > 0:  # the first one takes its memory again
          times.append(took)
  pool = getattr(hooks, "pool", None)
  return {
      "memory_bytes": allocated, "peak_allocated_bytes": allocated, "peak_reserved_bytes": reserved,
      "iteration_ms": statistics.median(own), "iterations_ms": own,
      "resident_ms": statistics.median(others) if others else None,
      "d2h_bytes": (after[0] - before[0]) // 2, "h2d_bytes": (after[1] - before[1]) // 2,
      "pinned_bytes": pool.bytes if pool else None,
  }


def run_network(name, options, device, budget):
  """Yields a record per contender and share."""
  sizes = getattr(options, name)
  budget.say(f"making the network {name}")
  network = NETWORKS[name](device, **sizes)
  learner = Learner(network, options.rate)
  meter = Meter(device)
  resident, base = Resident(network), None
  cases = [("resident", 1.0)]
  for contender in options.contenders:
    if contender != "resident":
      cases += [(contender, share) for share in (options.shares if contender != "save_on_cpu" else [1.0])]
  for number, (contender, share) in enumerate(cases):
    case = CONTENDERS[contender](network, share, **({"in_flight": options.in_flight} if contender == "offload" else {}))
    record = {"network": name, "contender": case.name, "config": {**sizes, "share": share}, "torch": torch.__version__,
              "device": torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu"}
    if options.searched is not None:
      record["algorithms_tried"] = options.searched
    if budget.left() <= 0:
      yield {**record, "note": "no time was left"}
      continue
    try:
      by_turns = resident if base and contender != "resident" else None
      record.update(measure(case, learner, meter, options.warmup, options.iterations, by_turns,
                            budget.part(len(cases) - number - 1)))
      if contender == "resident":
        base = record
      if base and base["memory_bytes"]:
        record["k"] = base["memory_bytes"] / record["memory_bytes"]
    except OUT_OF_MEMORY as error:
      if "out of memory" not in str(error):
        raise
      record["note"] = "out of memory"
    finally:
      case.hooks = None
      for parameter in network.parameters():
        parameter.grad = None
      meter.empty()
    yield record


# ---- The command line ----------------------------------------------------------------------------------------------


def sizes(text):
  try:
    return {key: int(value) for key, value in (pair.split("=") for pair in text.split(",") if pair)}
  except ValueError:
    raise argparse.ArgumentTypeError(f"{text!r} is not KEY=NUMBER,...")


def parse(arguments):
  def names(of):
    def split(text):
      found = text.split(",")
      for name in found:
        if name not in of:
          raise argparse.ArgumentTypeError(f"{name!r} is not one of {', '.join(of)}")
      return found
    return split

  parser = argparse.ArgumentParser(description="Trains the benchmark's networks in PyTorch, in less and less memory.")
  parser.add_argument("--networks", type=names(NETWORKS), default=list(NETWORKS), metavar="NAME,...")
  parser.add_argument("--contenders", type=names(CONTENDERS), default=list(CONTENDERS), metavar="NAME,...")
  parser.add_argument("--cnn", type=sizes, default={}, metavar="KEY=NUMBER,...")
  parser.add_argument("--transformer", type=sizes, default={}, metavar="KEY=NUMBER,...")
  parser.add_argument("--shares", type=lambda text: [float(share) for share in text.split(",")],
                      default=[1.0, 0.75, 0.5, 0.25], metavar="SHARE,...",
                      help="of the saved bytes that are offloaded, and of the parts that are computed again")
  parser.add_argument("--in-flight", type=int, default=1 << 30, metavar="BYTES",
                      help="of the overlapped offload: on their way out, back ahead of use, and never gone")
  parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
  parser.add_argument("--warmup", type=int, default=3)
  parser.add_argument("--iterations", type=int, default=11)
  parser.add_argument("--rate", type=float, default=1e-3)
  parser.add_argument("--time-limit", type=float, metavar="SECONDS",
                      help="each contender gets a part of it, and makes fewer iterations if they take longer")
  parser.add_argument("--searched", type=int, metavar="NUMBER",
                      help="how many algorithms cuDNN tries for each convolution, the most promising first; by default 10")
  parser.add_argument("--out", required=True)
  options = parser.parse_args(arguments)
  for name, network in NETWORKS.items():
    defaults = {key: p.default for key, p in inspect.signature(network).parameters.items() if key != "device"}
    unknown = set(getattr(options, name)) - set(defaults)
    if unknown:
      parser.error(f"--{name}: {', '.join(sorted(unknown))} is not one of {', '.join(defaults)}")
    setattr(options, name, {**defaults, **getattr(options, name)})
  return options


def main(arguments=None):
  options = parse(arguments)
  budget = Budget(options.time_limit)
  device = torch.device(options.device)
  # 32 bits are 32 bits, as on the other side.
  torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
  torch.backends.cudnn.benchmark = True
  if options.searched is not None and hasattr(torch.backends.cudnn, "benchmark_limit"):
    torch.backends.cudnn.benchmark_limit = options.searched
  records = []
  for name in options.networks:
    for record in run_network(name, options, device, budget):
      records.append(record)
      print(line_of(record), file=sys.stderr, flush=True)
      # After each: what is measured is not lost with the next one.
      with open(options.out + ".part", "w", encoding="utf-8") as out:
        json.dump(records, out, indent=1)
      os.replace(options.out + ".part", options.out)
  return 0


def line_of(record):
  what = f"{record['network']}, {record['contender']}, share {record['config']['share']:g}: "
  if "iteration_ms" not in record:
    return what + record["note"]
  size = record["peak_allocated_bytes"]
  return what + f"{record['iteration_ms']:.1f} ms" + (f", {size / 1e9:.2f} GB" if size else "")


if __name__ == "__main__":
  sys.exit(main())
