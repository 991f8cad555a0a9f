# SPDX-License-Identifier: Apache-2.0
"""The runner of the checks that need a GPU, with programs that need none."""

import gzip
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import time
import unittest
import unittest.mock
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))

import checks
import figures
import programs
import run
from runner import Check, Runner, table


class Folder(unittest.TestCase):
  def setUp(self):
    holder = tempfile.TemporaryDirectory()
    self.addCleanup(holder.cleanup)
    self.folder = Path(holder.name)
    self.results = self.folder / "results"
    self.said = []

  def program(self, name, text):
    path = self.folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n" + text + "\n", encoding="utf-8")
    path.chmod(0o755)
    return str(path)

  def run_checks(self, *all_checks, limit=60, again=False, jobs=1):
    runner = Runner(self.results, limit, again, self.said.append)
    runner.run(all_checks, jobs)
    return runner

  def outcomes(self, runner):
    return [(r["name"], r["outcome"], r["reason"]) for r in runner.done]

  def times_run(self, name="count"):
    path = self.folder / name
    return len(path.read_text(encoding="utf-8")) if path.exists() else 0


class Outcomes(Folder):
  def test_each_kind(self):
    good = self.program("good", "echo fine")
    bad = self.program("bad", "echo broken; exit 3")
    hanging = self.program("hanging", "sleep 77 & sleep 78")
    absent = self.program("absent", "echo 'no CUDA device: nothing is plugged in'")
    absent_tests = self.program("absent_tests", "echo 'skipped: no driver'")
    start = time.monotonic()
    runner = self.run_checks(Check("a-good", [[good]], 5), Check("a-bad", [[bad]], 5),
                             Check("a-hanging", [[hanging]], 0.5), Check("an-absent", [[absent]], 5),
                             Check("tests", [[absent_tests]], 5),
                             Check("not-built", [["/nowhere"]], 5, skip="was not built"),
                             Check("gone", [["/nowhere/at/all"]], 5))
    self.assertLess(time.monotonic() - start, 10)
    self.assertEqual(self.outcomes(runner), [
        ("a-good", "passed", ""), ("a-bad", "FAILED", "exit code 3"), ("a-hanging", "TIMED OUT", "after 0.5 s"),
        ("an-absent", "skipped", "nothing is plugged in"), ("tests", "skipped", "no driver"),
        ("not-built", "skipped", "was not built"), ("gone", "FAILED", "exit code 127")])
    self.assertFalse(runner.good)
    self.assertEqual(runner.count("passed", "skipped"), 4)
    self.assertIn("broken", (self.results / "a-bad.log").read_text(encoding="utf-8"))
    self.assertEqual(json.loads((self.results / "a-bad.result.json").read_text(encoding="utf-8"))["outcome"], "FAILED")
    lines = table(runner.done).splitlines()
    self.assertEqual(len(lines), 7)
    self.assertEqual(lines, self.said)
    self.assertRegex(lines[2], r"^a-hanging +TIMED OUT +0\.\d s  after 0\.5 s$")
    self.assertRegex(lines[3], r"^an-absent +skipped +0\.0 s  nothing is plugged in$")

  def test_what_hangs_leaves_no_process(self):
    pid_file = self.folder / "pid"
    hanging = self.program("hanging", f"sleep 79 & echo $! > {pid_file}; wait")
    self.run_checks(Check("a", [[hanging]], 0.5))
    pid = int(pid_file.read_text(encoding="utf-8"))
    time.sleep(0.2)
    state = Path(f"/proc/{pid}/stat")
    self.assertTrue(not state.exists() or state.read_text(encoding="utf-8").split()[2] == "Z")

  def test_several_at_a_time_are_told_of_in_their_order(self):
    # Each waits for what the other one leaves: alone none would end.
    first = self.program("first", f"touch {self.folder}/a; until [ -e {self.folder}/b ]; do sleep 0.05; done; sleep 0.2")
    second = self.program("second", f"until [ -e {self.folder}/a ]; do sleep 0.05; done; touch {self.folder}/b; exit 3")
    runner = self.run_checks(Check("one", [[first]], 10), Check("two", [[second]], 10), jobs=2)
    self.assertEqual(self.outcomes(runner), [("one", "passed", ""), ("two", "FAILED", "exit code 3")])


  def test_what_fails_beside_others_is_run_once_more_alone(self):
    once = self.program("once", 'test -e "$0.ran" || { : > "$0.ran"; exit 2; }')
    bad = self.program("bad", "exit 3")
    good = self.program("good", "echo fine")
    all_checks = [Check("once", [[once]], 10), Check("bad", [[bad]], 10), Check("good", [[good]], 10)]
    runner = self.run_checks(*all_checks, jobs=3)
    self.assertEqual(self.outcomes(runner), [("once", "passed", ""), ("bad", "FAILED", "exit code 3"), ("good", "passed", "")])
    self.assertEqual(sum(line.startswith("alone: ") for line in self.said), 2)
    Path(once + ".ran").unlink()
    self.assertEqual(self.run_checks(*all_checks, again=True).done[0]["outcome"], "FAILED")

  def test_all_commands_of_a_check_share_its_time(self):
    first, second = self.program("first", "sleep 0.4"), self.program("second", "sleep 0.4")
    self.assertEqual(self.outcomes(self.run_checks(Check("a", [[first], [second]], 0.6)))[0][1], "TIMED OUT")
    self.assertEqual(self.outcomes(self.run_checks(Check("b", [[first], [second]], 5)))[0][1], "passed")

  def test_a_command_that_fails_ends_its_check(self):
    bad, counting = self.program("bad", "exit 1"), self.program("counting", f"printf x >> {self.folder}/count")
    runner = self.run_checks(Check("a", [[bad], [counting]], 5))
    self.assertEqual(self.outcomes(runner), [("a", "FAILED", "exit code 1")])
    self.assertEqual(self.times_run(), 0)

  def test_a_tool_that_does_not_work_here_is_no_failure(self):
    tool = self.program("tool", "echo '= Error: Device not supported.'; exit 1")
    self.assertEqual(self.outcomes(self.run_checks(Check("a", [[tool]], 5, skip_when="Device not supported"))),
                     [("a", "skipped", "Device not supported")])

  def test_what_must_be_said_and_written(self):
    talking = self.program("talking", f"echo ERROR SUMMARY: 0 errors; echo {{}} > {self.folder}/out; exit $1")
    said = "does not say 'ERROR SUMMARY: [1-9]'"
    runner = self.run_checks(Check("a", [[talking, "0"]], 5, must_say="SUMMARY: 0"),
                             Check("b", [[talking, "0"]], 5, must_say="ERROR SUMMARY: [1-9]"),
                             Check("c", [[talking, "7"]], 5, must_say="SUMMARY: 0", may_fail=True),
                             Check("d", [[talking, "0"]], 5, outputs=[str(self.folder / "out")]),
                             Check("e", [[talking, "0"]], 5, outputs=[str(self.folder / "other")]))
    self.assertEqual(self.outcomes(runner), [("a", "passed", ""), ("b", "FAILED", said), ("c", "passed", ""),
                                             ("d", "passed", ""), ("e", "FAILED", "does not write other")])


class Resuming(Folder):
  def counting(self, text="exit 0"):
    return self.program("counting", f"printf x >> {self.folder}/count; {text}")

  def test_what_passed_is_not_run_again(self):
    check = Check("a", [[self.counting()]], 5)
    self.run_checks(check)
    runner = self.run_checks(check)
    self.assertEqual(self.times_run(), 1)
    self.assertTrue(runner.done[0]["remembered"])
    self.assertIn("as before: the same programs", self.said[1])
    self.run_checks(check, again=True)
    self.assertEqual(self.times_run(), 2)

  def test_another_program_or_command_is_run(self):
    self.run_checks(Check("a", [[self.counting()]], 5))
    self.run_checks(Check("a", [[self.counting("true")]], 5))
    self.assertEqual(self.times_run(), 2)
    self.run_checks(Check("a", [[self.counting("true"), "word"]], 5))
    self.assertEqual(self.times_run(), 3)

  def test_a_program_under_a_tool_counts(self):
    tool = self.program("tool", '"$@"')
    self.run_checks(Check("a", [[tool, self.counting()]], 5))
    self.run_checks(Check("a", [[tool, self.counting()]], 5))
    self.assertEqual(self.times_run(), 1)
    self.run_checks(Check("a", [[tool, self.counting("true")]], 5))
    self.assertEqual(self.times_run(), 2)

  def test_what_failed_or_was_skipped_is_run_again(self):
    for text in ("exit 1", "echo 'skipped: for now'"):
      before = self.times_run()
      check = Check("a", [[self.counting(text)]], 5)
      self.run_checks(check)
      self.run_checks(check)
      self.assertEqual(self.times_run(), before + 2)

  def test_without_its_output_it_has_not_passed(self):
    out = self.folder / "out.json"
    check = Check("a", [[self.counting(f"echo $$ > {out}"), "--out", str(out)]], 5, outputs=[str(out)])
    self.run_checks(check)
    self.run_checks(check)  # another content of its own output is no other input
    self.assertEqual(self.times_run(), 1)
    out.unlink()
    self.run_checks(check)
    self.assertEqual(self.times_run(), 2)

  def test_what_the_time_does_not_reach_is_said_and_goes_on_the_next_time(self):
    slow = self.program("slow", f"sleep 0.6; printf x >> {self.folder}/count")
    a, b = Check("a", [[slow]], 1.5), Check("b", [[slow]], 1.5)
    runner = self.run_checks(a, b, limit=1.9)
    self.assertEqual([r["outcome"] for r in runner.done], ["passed", "NOT REACHED"])
    self.assertFalse(runner.good)
    runner = self.run_checks(a, b, limit=1.9)
    self.assertEqual([(r["outcome"], r["remembered"]) for r in runner.done], [("passed", True), ("passed", False)])
    self.assertEqual(self.times_run(), 2)


class WholeRun(Folder):
  """run.py, with programs of a few lines in the place of all."""

  def fill(self, devices, failing=()):
    self.program("programs/swapmm_gpu_devices", f"echo '{json.dumps(devices)}'")
    for name in programs.PATHS:
      if name == "swapmm_gpu_devices":
        continue
      text = "echo '[doctest] test cases:  3 | 3 passed'; echo 'equal'\n"
      text += 'while [ $# -gt 0 ]; do case $1 in --out|--report) echo "[]" > "$2";; esac; shift; done\n'
      if name in failing:
        text += "exit 1"
      self.program(f"programs/{name}", text)

  def writes(self, name, content):
    """The benchmark program writes that as its results."""
    self.program(f"programs/swapmm_bench_gpu_{name}", "while [ $1 != --out ]; do shift; done\n"
                 f"cat > $2 <<'END'\n{json.dumps(content)}\nEND")

  def run_main(self, *words):
    options = run.parse([*words, "--programs", str(self.folder / "programs"), "--results", str(self.results),
                         "--opencl", str(self.folder / "opencl")])
    return run.run(options, self.said.append)

  def test_without_a_device_everything_is_skipped_and_said_last(self):
    self.fill({"devices": [], "why_none": "There is no CUDA device: no driver."})
    self.assertEqual(self.run_main("check"), 0)
    count = len(list(checks.checks(checks.Machine(self.folder / "programs"), self.results)))
    self.assertGreater(count, 12)
    self.assertEqual(self.said[-2:], ["There is no CUDA device: no driver.", f"no CUDA device: {count} checks skipped"])
    self.assertEqual(self.run_main("all"), 0)
    self.assertEqual(self.said[-1], f"no CUDA device: {count + 14} checks skipped")
    self.assertFalse(self.results.exists())

  def test_checks_their_table_and_their_file(self):
    self.fill({"devices": ["[0] A device"], "why_none": ""}, failing=["sequence"])
    self.assertEqual(self.run_main("check", "--only", "cuda-tests,sequence,inference,demo"), 1)
    everything = json.loads((self.results / "gpu.json").read_text(encoding="utf-8"))
    self.assertEqual({c["name"]: c["outcome"] for c in everything["checks"]},
                     {"cuda-tests": "passed", "sequence": "FAILED", "inference": "passed", "demo": "passed"})
    self.assertEqual(everything["machine"]["devices"], ["[0] A device"])
    self.assertEqual(self.said[0], "[0] A device")
    self.assertIn("3 passed, 1 failed, 0 skipped, 0 not reached", self.said[-1])
    self.program("programs/sequence", "echo mended")
    out = self.folder / "out"
    self.assertEqual(self.run_main("check", "--only", "cuda-tests,sequence", "--jobs", "2", "--out", str(out)), 0)
    checked = json.loads((out / "gpu.json").read_text(encoding="utf-8"))["checks"]
    self.assertEqual([(c["name"], c["remembered"]) for c in checked],
                     [("cuda-tests", True), ("sequence", False)])
    with tarfile.open(out / "results.tar.gz") as archive:
      self.assertIn("results/sequence.log", archive.getnames())

  def test_tests_that_run_no_case_fail(self):
    self.fill({"devices": ["[0] A device"], "why_none": ""})
    self.program("programs/swapmm_cuda_tests", "echo '[doctest] test cases:  0 | 0 passed'")
    self.assertEqual(self.run_main("check", "--only", "cuda-tests"), 1)

  def test_benchmarks_their_figures_and_pictures(self):
    self.fill({"devices": ["[0] A device"], "why_none": ""})
    chain = {"chain": "products", "pairs": 60, "ratio": 1, "interval_95": [1, 1.001], "identical": True,
             "cpu_us_per_operation": 2, "cpu_us_per_operation_k2": 2, "raw_cpu_us_per_operation": 1}
    self.writes("links", {"copies": [{"direction": "both", "bytes": 64 << 20, "ratio": 0.97}]})
    self.writes("overhead", {"chains": [chain]})
    record = {"network": "cnn", "config": {"batch": 4}, "iteration_ms": 10, "compute_ms": 9, "identical": True}
    self.writes("networks", [{**record, "contender": "all-resident", "k": 1, "memory_bytes": 8e9},
                             {**record, "contender": "swapmm plan", "k": 2, "memory_bytes": 4e9, "iteration_ms": 12,
                              "predicted_ms": 12, "lower_bound_ms": 11.9}])
    with unittest.mock.patch.object(checks, "python_with_torch_on_cuda", lambda: None):
      self.assertEqual(self.run_main("bench", "--only", "links,overhead,networks-cnn-a,contenders-cnn,plot"), 0)
    everything = json.loads((self.results / "gpu.json").read_text(encoding="utf-8"))
    self.assertEqual({c["name"]: c["outcome"] for c in everything["checks"]},
                     {"links": "passed", "overhead": "passed", "networks-cnn-a": "passed", "contenders-cnn": "skipped",
                      "plot": "passed"})
    self.assertEqual(everything["results"]["networks-cnn-a"][1]["iteration_ms"], 12)
    self.assertEqual({f["name"]: f["met"] for f in everything["figures"]},
                     dict.fromkeys(["overhead", "cpu", "copies", "bound", "prediction", "identical"], True))
    self.assertIn("<svg", (self.results / "cnn.svg").read_text(encoding="utf-8"))
    self.assertTrue(any("cnn, swapmm plan, k = 2" in line for line in self.said))


class Sanitizers(Folder):
  """Their checks, with a tool of a few lines."""

  def run_with(self, text, *names):
    for name in ("swapmm_cuda_tests", "swapmm_transformer_cuda_tests"):
      self.program(f"programs/{name}", "exit 0")
    tool = self.program("compute-sanitizer", f'echo "$@" >> {self.folder}/calls; {text}')
    with unittest.mock.patch.object(checks, "compute_sanitizer", lambda: tool):
      machine = checks.Machine(self.folder / "programs")
    return {r["name"]: r["outcome"] for r in
            self.run_checks(*(c for c in checks.sanitizer_checks(machine) if c.name in names), limit=600).done}

  def test_the_planted_error_must_be_seen(self):
    name = "sanitizer-planted-error"
    seen = "echo '= Invalid __global__ write of size 1 bytes'; echo '= ERROR SUMMARY: 1 error'; exit 9"
    self.assertEqual(self.run_with(seen, name), {name: "passed"})
    self.assertIn("--test-case=planted: * --no-skip", (self.folder / "calls").read_text(encoding="utf-8"))
    self.assertEqual(self.run_with("echo '= ERROR SUMMARY: 0 errors'", name), {name: "FAILED"})
    self.assertEqual(self.run_with("true", name), {name: "FAILED"})

  def test_others_must_see_none(self):
    names = ["sanitizer-memcheck", "sanitizer-racecheck"]
    text = "echo '= ERROR SUMMARY: 0 errors'; echo '= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)'"
    self.assertEqual(self.run_with(text, *names), dict.fromkeys(names, "passed"))
    self.assertIn("--leak-check full", (self.folder / "calls").read_text(encoding="utf-8"))
    self.assertEqual(self.run_with(text + "; exit 9", *names), dict.fromkeys(names, "FAILED"))
    self.assertEqual(self.run_with("true", *names), dict.fromkeys(names, "FAILED"))  # says nothing at all

  def test_without_the_tool_they_are_skipped(self):
    with unittest.mock.patch.object(checks, "compute_sanitizer", lambda: None):
      machine = checks.Machine(self.folder)
    self.assertEqual({c.skip for c in checks.sanitizer_checks(machine)}, {"there is no compute-sanitizer"})


class Opencl(Folder):
  """What runs on OpenCL, with a driver that is none."""

  def machine(self, says, driver="/opt/lib/libnvidia-opencl.so.1"):
    self.program("opencl/custom_kernel", f"echo \"$OCL_ICD_VENDORS\" > {self.folder}/seen; echo '{says}' >&2")
    self.program("opencl/swapmm_opencl_cases", "echo maps.one; echo maps.two; echo native_kernels.one; echo queues.one")
    with unittest.mock.patch.object(checks, "opencl_driver", lambda: driver):
      return checks.OpenclMachine(self.folder / "opencl", self.results)

  def test_programs_see_the_driver_of_the_gpu_alone(self):
    machine = self.machine("swapmm: [0] A device (A vendor), GPU, 8 MiB")
    self.assertTrue(machine.has_device)
    self.assertEqual(machine.device, "swapmm: [0] A device (A vendor), GPU, 8 MiB")
    vendors = (self.folder / "seen").read_text(encoding="utf-8").strip()
    self.assertEqual([p.read_text(encoding="utf-8") for p in Path(vendors).iterdir()],
                     ["/opt/lib/libnvidia-opencl.so.1\n"])
    found = list(checks.opencl_checks(machine))
    self.assertEqual({c.skip for c in found}, {""})
    self.assertEqual({c.environment["OCL_ICD_VENDORS"] for c in found}, {vendors})
    themes = [c.name for c in found if c.name.startswith("opencl-layer-")]
    self.assertEqual(themes, ["opencl-layer-maps", "opencl-layer-queues"])
    self.assertEqual(len(found), len({c.name for c in found}))

  def test_another_device_is_none(self):
    machine = self.machine("swapmm: [0] A device (A vendor), CPU, 8 MiB")
    self.assertFalse(machine.has_device)
    skips = {c.skip for c in checks.opencl_checks(machine)}
    self.assertEqual(skips, {"no OpenCL device is a GPU: swapmm: [0] A device (A vendor), CPU, 8 MiB"})
    self.assertEqual(self.machine("", driver=None).why_none, "there is no OpenCL driver of a GPU")

  def test_without_programs_nothing_runs(self):
    with unittest.mock.patch.object(checks, "opencl_driver", lambda: "/opt/lib/libnvidia-opencl.so.1"):
      machine = checks.OpenclMachine(self.folder / "nothing", self.results)
    self.assertEqual(machine.why_none, "the programs for OpenCL were not built")
    self.assertEqual({c.skip for c in checks.opencl_checks(machine)}, {machine.why_none})


class Limits(Folder):
  def test_each_check_has_time_to_end(self):
    machine = checks.Machine(self.folder)
    limits = [c.limit for c in [*checks.checks(machine, self.results), *checks.opencl_checks(self.opencl()),
                                *checks.benchmarks(machine, self.results, sys.executable), checks.plot(self.results)]]
    self.assertLessEqual(max(limits), 150)
    usual = run.parse(["check"]).time_limit
    self.assertLess(max(limits), usual)
    self.assertLess(sum(c.limit for c in checks.checks(machine, self.results)) / run.parse(["check"]).jobs, usual)

  def opencl(self):
    with unittest.mock.patch.object(checks, "opencl_driver", lambda: None):
      return checks.OpenclMachine(self.folder, self.results)

  def test_names_are_unlike(self):
    machine = checks.Machine(self.folder)
    names = [c.name for c in [*checks.checks(machine, self.results), *checks.benchmarks(machine, self.results, None)]]
    self.assertEqual(len(names), len(set(names)))


class Gathering(Folder):
  def test_programs_and_pictures(self):
    source = self.folder / "program.c"
    source.write_text("int main(void) { return 0; }\n", encoding="utf-8")
    build = self.folder / "build"
    path = build / programs.PATHS["sequence"]
    path.parent.mkdir(parents=True)
    subprocess.run(["cc", "-g", "-o", path, source], check=True)
    (self.folder / "tree" / "include").mkdir(parents=True)
    header = self.folder / "tree" / "include" / "a.hpp"
    header.write_text("1", encoding="utf-8")
    pictures = self.folder / "pictures"
    pictures.mkdir()
    for name in programs.CARRIED_PICTURES:
      for kind in ("images-idx3", "labels-idx1"):
        with gzip.open(pictures / f"{name}-{kind}-ubyte.gz", "wb") as out:
          out.write(bytes([0, 0, 8, 1]) + (2).to_bytes(4, "big") + bytes([7, 8]))
    to = self.folder / "programs"
    with unittest.mock.patch.object(programs, "PICTURES", pictures):
      missing = programs.gather(self.folder / "tree", build, to)
    self.assertEqual(len(list((to / "fashion-mnist").iterdir())), 4)
    self.assertEqual(set(missing), set(programs.PATHS) - {"sequence"})
    self.assertLess((to / "sequence").stat().st_size, path.stat().st_size)
    packed = programs.archive_of(to).stat().st_mtime_ns
    self.assertEqual(programs.gather(self.folder / "tree", build, to), missing)  # the same again: nothing to do
    self.assertEqual(programs.archive_of(to).stat().st_mtime_ns, packed)
    self.assertTrue(os.access(to / "sequence", os.X_OK))
    self.assertEqual(programs.built_from(to), programs.digest_of_sources(self.folder / "tree"))
    header.write_text("2", encoding="utf-8")
    self.assertNotEqual(programs.built_from(to), programs.digest_of_sources(self.folder / "tree"))
    with unittest.mock.patch.object(programs, "PICTURES", pictures):
      programs.gather(self.folder / "tree", build, to)
    self.assertGreater(programs.archive_of(to).stat().st_mtime_ns, packed)
    header.write_text("3", encoding="utf-8")
    self.assertNotEqual(programs.built_from(to), programs.digest_of_sources(self.folder / "tree"))
    self.assertIsNone(programs.built_from(self.folder / "nothing"))

  def test_shared_libraries_go_with_the_programs_for_opencl(self):
    source = self.folder / "program.c"
    source.write_text("const char* zlibVersion(void);\nint main(void) { return zlibVersion()[0] == 'x'; }\n",
                      encoding="utf-8")
    path = self.folder / "build" / programs.OPENCL_PATHS["custom_kernel"]
    path.parent.mkdir(parents=True)
    subprocess.run(["cc", "-o", path, source, "-lz"], check=True)
    to = self.folder / "opencl"
    missing = programs.gather_opencl(self.folder / "tree", self.folder / "build", to)
    self.assertEqual(set(missing), set(programs.OPENCL_PATHS) - {"custom_kernel"})
    self.assertEqual([p.name for p in (to / "lib").iterdir()], ["libz.so.1"])
    self.assertFalse((to / "fashion-mnist").exists())
    self.assertTrue(programs.archive_of(to).is_file())

  def test_what_is_packed_can_be_carried(self):
    folder = self.folder / "programs"
    self.program("programs/sequence", "echo one")
    (folder / "built.json").write_text('{"sources": "abc"}', encoding="utf-8")
    programs.pack(folder)
    (self.folder / "elsewhere").mkdir()
    carried = self.folder / "elsewhere" / "programs"
    programs.archive_of(folder).rename(programs.archive_of(carried))
    programs.unpack(carried)
    self.assertEqual(programs.built_from(carried), "abc")
    self.assertEqual(subprocess.run([carried / "sequence"], stdout=subprocess.PIPE, check=True).stdout, b"one\n")
    # Unpacked once; and what was built here is not overwritten.
    (carried / "sequence").write_text("changed", encoding="utf-8")
    programs.unpack(carried)
    self.assertEqual((carried / "sequence").read_text(encoding="utf-8"), "changed")
    # Another archive counts.
    self.program("programs/sequence", "echo two")
    programs.pack(folder)
    programs.archive_of(folder).rename(programs.archive_of(carried))
    programs.unpack(carried)
    self.assertEqual(subprocess.run([carried / "sequence"], stdout=subprocess.PIPE, check=True).stdout, b"two\n")
    programs.unpack(self.folder / "nothing")

  def test_the_first_pictures(self):
    whole, part = self.folder / "whole.gz", self.folder / "part.gz"
    with gzip.open(whole, "wb") as out:
      out.write(bytes([0, 0, 8, 3]) + b"".join(n.to_bytes(4, "big") for n in (5, 2, 3)) + bytes(range(30)))
    programs.first_items(whole, 2, part)
    with gzip.open(part) as read:
      self.assertEqual(read.read(), bytes([0, 0, 8, 3]) + b"".join(n.to_bytes(4, "big") for n in (2, 2, 3)) +
                       bytes(range(12)))
    programs.first_items(whole, 100, part)
    with gzip.open(part) as read:
      self.assertEqual(len(read.read()), 16 + 30)


class Figures(unittest.TestCase):
  def network(self, contender, k, memory, ms, **others):
    return {"network": "cnn", "contender": contender, "k": k, "memory_bytes": memory, "iteration_ms": ms,
            "compute_ms": 90, "identical": True, **others}

  def contender(self, name, memory, ms):
    return {"network": "cnn", "contender": f"PyTorch {name}", "memory_bytes": memory, "iteration_ms": ms}

  def results(self):
    return {
        "overhead": {"chains": [{"chain": "products", "pairs": 60, "ratio": 1.001, "interval_95": [0.999, 1.004],
                                 "identical": True, "cpu_us_per_operation": 2.0, "cpu_us_per_operation_k2": 5.0,
                                 "raw_cpu_us_per_operation": 1.5}]},
        "links": {"copies": [{"direction": "both", "bytes": 64 << 20, "ratio": 0.96},
                             {"direction": "h2d", "bytes": 64 << 20, "ratio": 0.94}]},
        "networks-cnn-a": [self.network("all-resident", 1, 8e9, 100),
                         self.network("swapmm plan", 1, 8e9, 101, predicted_ms=100, lower_bound_ms=100),
                         self.network("swapmm plan", 2, 4e9, 120, predicted_ms=110, lower_bound_ms=105, compute_ms=98),
                         self.network("swapmm plan, recompute", 2, 4e9, 106, predicted_ms=105, lower_bound_ms=100, compute_ms=97,
                                      replay_ms=5, resident_ms=103),
                         self.network("swapmm plan, compress", 2, 4e9, 112, predicted_ms=112, lower_bound_ms=100, compute_ms=90,
                                      encoded=7, resident_ms=101)],
        "contenders-cnn": [self.contender("all-resident", 9e9, 80), self.contender("save_on_cpu", 5e9, 400),
                           self.contender("checkpointing", 3e9, 110)],
    }

  def test_figures(self):
    found = {(f["name"], f["what"]): (round(f["value"], 4), f["met"]) for f in figures.figures(self.results())}
    self.assertEqual(found, {
        ("overhead", "products, 60 pairs, median 1.0010"): (1.004, True),
        ("cpu", "products, k = 1; raw program 1.50 us"): (0.5, True),
        ("cpu", "products, k = 2; raw program 1.50 us"): (3.5, False),
        ("copies", "both, 64 MiB"): (0.96, True),
        ("copies", "h2d, 64 MiB"): (0.94, False),
        ("bound", "cnn, swapmm plan, k = 1"): (1.01, True),
        ("prediction", "cnn, swapmm plan, k = 1"): (-0.0099, True),
        # 120 ms, of the bound's 105 and of 8 by which operations took longer beside copies.
        ("bound", "cnn, swapmm plan, k = 2"): (1.0619, False),
        ("prediction", "cnn, swapmm plan, k = 2"): (-0.0833, False),
        # 5 of the 97 ms are those of operations that run again.
        ("bound", "cnn, swapmm plan, recompute, k = 2"): (1.0392, False),
        ("prediction", "cnn, swapmm plan, recompute, k = 2"): (-0.0094, True),
        ("speed", "cnn, swapmm plan, recompute, k = 2"): (0.9717, True),
        # What is encoded has no bound.
        ("prediction", "cnn, swapmm plan, compress, k = 2"): (0, True),
        ("identical", "all 5 runs of cnn"): (1, True),
        # 5 GB: the fastest of the plans in 4 GB. 3 GB: no plan in so little.
        ("contenders", "cnn, PyTorch save_on_cpu in 5.00 GB; plan, recompute in 4.00 GB"): (0.265, True),
    })
    text = figures.table(figures.figures(self.results()))
    self.assertIn("MISSED  cnn, swapmm plan, k = 2", text)
    self.assertIn("copies: at least 0.95", text)

  def test_a_wrong_bit_is_a_figure(self):
    results = self.results()
    results["networks-cnn-a"][2]["identical"] = False
    wrong = [f for f in figures.figures(results) if f["name"] == "identical"]
    self.assertEqual([(f["met"], f["what"]) for f in wrong], [(False, "cnn, swapmm plan, k = 2")])

  def test_nothing_measured_gives_nothing(self):
    self.assertEqual(figures.figures({}), [])
    self.assertEqual(figures.table([]), "")


if __name__ == "__main__":
  unittest.main()
