#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Behind ./dev gpu: runs what needs a GPU, and says what came of it.

    run.py gather|check|bench|all [--programs DIR] [--results DIR] [--out DIR] [--again] [--only NAME,...]
                                  [--time-limit S] [--jobs J]

Standard library alone.
"""

import argparse
import json
import shutil
import sys
import tarfile
import time
from pathlib import Path

sys.dont_write_bytecode = True  # the tree stays as it is

import checks
import figures
import programs
from runner import FAILED, NOT_REACHED, PASSED, SKIPPED, TIMED_OUT, Runner, table, write_whole

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "gpu"
OPENCL_BUILD = ROOT / "build" / "dev"


def parse(words):
  parser = argparse.ArgumentParser(prog="./dev gpu", description="What needs a GPU.")
  parser.add_argument("what", nargs="?", choices=["gather", "check", "bench", "all"], default="all")
  parser.add_argument("--build", type=Path, default=BUILD, help="where gather finds programs")
  parser.add_argument("--opencl-build", type=Path, default=OPENCL_BUILD, help="where it finds those for OpenCL")
  parser.add_argument("--programs", type=Path, default=BUILD / "programs", help="where they are gathered")
  parser.add_argument("--opencl", type=Path, default=BUILD / "opencl", help="where those for OpenCL are gathered")
  parser.add_argument("--results", type=Path, default=BUILD / "results")
  parser.add_argument("--out", type=Path, help="copy the figures, pictures and logs to that folder at the end")
  parser.add_argument("--again", action="store_true", help="run what has passed, too")
  parser.add_argument("--only", default="", metavar="NAME,...", help="no others")
  parser.add_argument("--time-limit", type=float, default=530, metavar="SECONDS", help="of check, and of bench")
  parser.add_argument("--jobs", type=int, default=4, metavar="J",
                      help="so many checks at a time; benchmarks always run alone; default 4")
  return parser.parse_args(words)


def read_results(folder):
  """The files that the benchmarks wrote."""
  found = {}
  for path in sorted(folder.glob("*.json")):
    if not path.stem.startswith(("links", "codec", "overhead", "networks-", "parts-", "contenders-")) or path.stem.endswith(".result"):
      continue
    try:
      found[path.stem] = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
      pass
  return found


def run_benchmarks(runner, machine, options, wanted):
  torch_python = checks.python_with_torch_on_cuda()
  runner.run([c for c in checks.benchmarks(machine, options.results, torch_python) if wanted(c.name)])
  if wanted("plot"):
    runner.run([checks.plot(options.results)])


def copy_out(results, out):
  """Few files, for machines that give back few: the figures, the pictures, and the rest in one archive."""
  out.mkdir(parents=True, exist_ok=True)
  for path in [results / "gpu.json", *results.glob("*.svg")]:
    if path.is_file():
      shutil.copy2(path, out)
  with tarfile.open(out / "results.tar.gz", "w:gz") as archive:
    archive.add(results, arcname="results")


def run(options, say=print):
  only = set(filter(None, options.only.split(",")))
  wanted = lambda name: not only or name in only
  machine = checks.Machine(options.programs)
  opencl = checks.OpenclMachine(options.opencl, options.results)
  parts = ["check", "bench"] if options.what == "all" else [options.what]
  if not machine.has_device and not opencl.has_device:
    count = 0
    if "check" in parts:
      count += sum(wanted(c.name) for c in checks.checks(machine, options.results))
    if "bench" in parts:
      count += sum(wanted(c.name) for c in checks.benchmarks(machine, options.results, None)) + wanted("plot")
    if "check" in parts:
      say(f"{opencl.why_none}: {sum(wanted(c.name) for c in checks.opencl_checks(opencl))} checks skipped")
    say(machine.devices["why_none"])
    say(f"no CUDA device: {count} checks skipped")
    return 0

  for device in [*machine.devices["devices"], opencl.device or opencl.why_none]:
    say(device)
  done = []
  for part in parts:
    runner = Runner(options.results, options.time_limit, options.again, say)
    say(f"\n== {part}")
    if part == "check":
      chosen = [*checks.checks(machine, options.results), *checks.opencl_checks(opencl)]
      runner.run([c for c in chosen if wanted(c.name)], options.jobs)
    else:
      run_benchmarks(runner, machine, options, wanted)
    done += runner.done
  measured = read_results(options.results)
  found = figures.figures(measured)
  everything = {"machine": machine.devices, "date": time.strftime("%Y-%m-%d %H:%M:%S"), "checks": done,
                "figures": found, "results": measured}
  write_whole(options.results / "gpu.json", json.dumps(everything, indent=1) + "\n")
  say("\n" + table(done))
  if found and "bench" in parts:
    say("\n" + figures.table(found))
  count = lambda *outcomes: sum(r["outcome"] in outcomes for r in done)
  say(f"\n{count(PASSED)} passed, {count(FAILED, TIMED_OUT)} failed, {count(SKIPPED)} skipped, "
      f"{count(NOT_REACHED)} not reached; all figures: {options.results / 'gpu.json'}")
  if options.out:
    copy_out(options.results, options.out)
  return 0 if count(FAILED, TIMED_OUT, NOT_REACHED) == 0 and count(PASSED) > 0 else 1


def main(words=None):
  options = parse(words)
  if options.what == "gather":
    for gather, build, folder in ((programs.gather, options.build, options.programs),
                                  (programs.gather_opencl, options.opencl_build, options.opencl)):
      missing = gather(ROOT, build, folder)
      size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
      print(f"{folder}: {size / 1e6:.1f} MB" + (f"; not built: {', '.join(missing)}" if missing else ""))
      archive = programs.archive_of(folder)
      print(f"{archive}: {archive.stat().st_size / 1e6:.1f} MB, to be carried to a machine with a GPU")
    return 0
  programs.unpack(options.programs)
  programs.unpack(options.opencl)
  sources = programs.built_from(options.programs)
  if sources is None:
    print(f"there are no programs in {options.programs}", file=sys.stderr)
    return 1
  if sources != programs.digest_of_sources(ROOT):
    print("the programs were built from other sources than these")
  return run(options)


if __name__ == "__main__":
  sys.exit(main())
