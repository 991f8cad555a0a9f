# SPDX-License-Identifier: Apache-2.0
"""Traces, machines and plans, and the same figures as the command `swapmm`."""

import _thread
import io
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from contextlib import redirect_stderr
from pathlib import Path
from xml.etree import ElementTree

import swapmm

COMMAND = os.environ.get("SWAPMM_CLI")
TRACES = Path(os.environ.get("SWAPMM_TEST_TRACES", Path(__file__).resolve().parents[3] / "tests/data/traces"))
US, MB = 1000, 10**6


def chain(layers=6, size=100 * MB, duration=4000 * US):
    """A network: forward through weights, and back in the other order."""
    trace = swapmm.Trace("chain")
    trace.tensor("images", size // 4, "input")
    for i in range(layers):
        trace.tensor(f"weights {i}", size, "persistent")
    for i in range(layers):
        trace.tensor(f"activations {i}", size)
    for i in range(layers):
        source = f"activations {i - 1}" if i else "images"
        trace.operation(f"forward {i}", duration, reads=[source, f"weights {i}"], writes=[f"activations {i}"])
    for i in reversed(range(layers)):
        trace.operation(f"backward {i}", 2 * duration, reads=[f"activations {i}"], updates=[f"weights {i}"])
    trace.host_read("weights 0", len(trace.operations) - 1)
    return trace


def without_times(answer):
    """Less what a clock measures."""
    if isinstance(answer, dict):
        return {k: without_times(v) for k, v in answer.items() if k not in ("planning_ns", "plan")}
    return [without_times(v) for v in answer] if isinstance(answer, list) else answer


class Objects(unittest.TestCase):
    def test_a_trace_from_python_has_exact_figures(self):
        trace = chain(2)
        self.assertEqual([t.name for t in trace.tensors], ["images", "weights 0", "weights 1", "activations 0", "activations 1"])
        self.assertEqual(trace.operations[1].reads, [3, 2])
        self.assertEqual(trace.operations[3].updates, [1])
        trace.check()
        # forward 1 needs both activations while both weights live on
        self.assertEqual(trace.peak_bytes(1), 4 * 100 * MB)
        self.assertEqual(trace.largest_bundle_bytes(1), 3 * 100 * MB)
        self.assertEqual(trace.peak_bytes("1MiB"), 4 * 96 * 2**20)
        self.assertEqual(len(trace.digest), 64)
        self.assertEqual(str(trace), "trace 'chain': 4 operations, 24.000 ms; 5 tensors, 425.00 MB")

    def test_traces_machines_and_plans_as_text_and_in_files(self):
        trace = chain(3)
        again = swapmm.Trace.from_json(trace.to_json())
        self.assertEqual(again, trace)
        machine = swapmm.Machine(10**9, "small", d2h_latency_ns=7, duplex="half", max_allocation_bytes=5 * 10**8)
        self.assertEqual(swapmm.Machine.from_json(machine.to_json()), machine)
        plan = swapmm.plan(trace, "60%")
        with tempfile.TemporaryDirectory() as folder:
            trace.save(Path(folder, "t"))
            machine.save(Path(folder, "m"))
            plan.save(Path(folder, "p"))
            self.assertEqual(swapmm.Trace.load(Path(folder, "t")), trace)
            self.assertEqual(swapmm.Machine.load(Path(folder, "m")), machine)
            read = swapmm.Plan.load(Path(folder, "p"), trace)
        self.assertEqual(read.to_json(), plan.to_json())
        self.assertEqual(read.predicted, plan.predicted)
        self.assertEqual(read.trace_digest, trace.digest)
        self.assertEqual(swapmm.validate(trace, read), [])
        self.assertEqual(len(read.commands), len(plan.commands))

    def test_lingering_values_are_kept(self):
        text = json.dumps({
            "format": "swapmm-trace", "version": 1, "name": "l",
            "tensors": [{"name": "a", "bytes": 10, "kind": "persistent"}],
            "operations": [{"name": "w", "duration_ns": 1, "writes": [0]}, {"name": "r", "duration_ns": 1, "reads": [0]}],
            "lingering": [{"tensor": 0, "last_use": 1, "until": 2}],
        })  # fmt: skip
        trace = swapmm.Trace.from_json(text)
        trace.check()
        self.assertEqual(trace.lingering, [(0, 1, 2)])
        self.assertEqual(swapmm.Trace.from_json(trace.to_json()), trace)

    def test_bad_texts(self):
        for text in ("", "[]", "{}", '{"format": "swapmm-plan"}', '{"format": "swapmm-trace", "version": 3}',
                     '{"format": "swapmm-trace", "version": 1, "name": "x"}',
                     '{"format": "swapmm-trace", "version": 1, "name": "x", "tensors": 3, "operations": []}'):  # fmt: skip
            with self.assertRaises(swapmm.UsageError):
                swapmm.Trace.from_json(text)
        with self.assertRaises(swapmm.PlanRefused):
            swapmm.Plan("{}")
        with self.assertRaises(swapmm.UsageError):
            swapmm.Machine.from_json('{"format": "swapmm-machine", "version": 1}')
        trace = chain(2)
        trace.operations[0].reads.append(99)
        with self.assertRaisesRegex(swapmm.UsageError, r"trace: operations\[0\]"):
            trace.check()
        with self.assertRaisesRegex(swapmm.UsageError, "no tensors of the trace are called 'nobody'"):
            trace.operation("x", 1, reads=["nobody"])


class Ways(unittest.TestCase):
    """Values that are made again, or leave in fewer bytes."""

    def setUp(self):
        self.trace = chain(duration=40 * US)
        for operation in self.trace.operations[:6]:
            operation.replayable = True

    def test_the_text_has_all_that_version_2_has(self):
        trace = swapmm.Trace("two")
        trace.tensor("a", 4096)
        trace.tensors[0].forms.append(swapmm.Form("zeros", 2000, 1000, 10, 20))
        trace.tensor("b", 4096)
        trace.operation("make", 1, writes=["a"], replayable=True)
        trace.operation("part", 1, reads=[swapmm.Part(0, 1024, 512)], writes=["b"], in_pieces=True)
        self.assertEqual(trace.version, 2)
        again = swapmm.Trace.from_json(trace.to_json())
        self.assertEqual(again, trace)
        again.check()
        self.assertEqual(chain().version, 1)
        self.assertNotEqual(self.trace.digest, chain(duration=40 * US).digest)
        trace.operations[0].engine = "gpu1"
        with self.assertRaisesRegex(swapmm.UsageError, "engines"):
            trace.check()

    def test_operations_run_again(self):
        plain = swapmm.plan(self.trace, "60%", ways="swap")
        self.assertEqual((plain.version, plain.runs_again), (2, 0))
        plan = swapmm.plan(self.trace, "60%")
        self.assertGreater(plan.runs_again, 0)
        self.assertEqual(swapmm.plan(self.trace, "60%").to_json(), plan.to_json())
        self.assertLess(plan.seconds, plain.seconds)
        self.assertEqual(swapmm.validate(self.trace, plan), [])
        self.assertEqual(swapmm.simulate(self.trace, plan).iteration_ns, plan.predicted.iteration_ns)
        self.assertGreater(swapmm.simulate(self.trace, plan, noise=0.2).worst_ns, 0)
        self.assertLessEqual(swapmm.bound(self.trace, "60%"), plan.predicted.iteration_ns)
        # What the plan adds is no computation of the program.
        compute = sum(o.duration_ns for o in self.trace.operations)
        self.assertEqual(plan.predicted.compute_ns, compute)
        self.assertEqual(json.loads(plan.to_json())["predicted"]["compute_ns"], compute)
        self.assertEqual(swapmm.simulate(self.trace, plan).compute_ns, compute)
        self.assertIn("(again)", plan.svg())
        self.assertIn("operations that run again", plan._repr_html_())
        self.assertEqual(swapmm.explain(self.trace, plan).data["ways"]["again"], plan.runs_again)
        self.assertEqual(plan.machine.device_budget_bytes, int(0.6 * self.trace.peak_bytes()))
        fit = swapmm.fit(self.trace, "60%", this_budget_only=True)
        self.assertEqual(fit.predicted, plan.predicted)
        self.assertIn("run again", str(fit))
        rows = swapmm.compare(self.trace, [0.6], planners=["belady", "checkpoint-units", "best"])
        self.assertEqual([row.planner for row in rows], ["belady", "checkpoint-units", "best"])
        self.assertEqual(rows[2].predicted.iteration_ns, plan.predicted.iteration_ns)
        self.assertGreaterEqual(rows[0].predicted.iteration_ns, rows[2].predicted.iteration_ns)
        # The plan is for that trace alone.
        with self.assertRaises(swapmm.PlanRefused):
            swapmm.simulate(chain(duration=40 * US), plan)
        for ways in ("recompute", "swap,teleport", ""):
            with self.assertRaisesRegex(swapmm.UsageError, "ways"):
                swapmm.plan(self.trace, "60%", ways=ways)

    def test_version_1_ignores_what_it_does_not_know(self):
        text = chain().to_json().replace('"reads"', '"replayable": true, "engine": "gpu1", "reads"')
        trace = swapmm.Trace.from_json(text)
        self.assertEqual((trace.version, trace), (1, chain()))

    def test_values_leave_in_fewer_bytes(self):
        trace = chain(duration=400 * US)
        for tensor in trace.tensors:
            if tensor.kind == "transient":
                tensor.forms.append(swapmm.Form("zeros", tensor.bytes, tensor.bytes // 8, 50 * US, 50 * US))
        plan = swapmm.plan(trace, "60%")
        self.assertGreater(plan.decodes, 0)
        self.assertIn("values are decoded", str(plan))
        self.assertEqual(swapmm.validate(trace, plan), [])
        self.assertLess(plan.seconds, swapmm.plan(trace, "60%", ways="swap").seconds)


class Answers(unittest.TestCase):
    def setUp(self):
        self.trace = chain()

    def test_budgets_are_read_as_the_command_reads_them(self):
        peak = self.trace.peak_bytes()
        for budget, expected in (("50%", peak / 2), (0.5, peak / 2), ("600MB", 600 * MB), (600 * MB, 600 * MB), ("0.5GiB", 2**29)):
            plan = swapmm.plan(self.trace, budget, planner="on-demand")
            self.assertAlmostEqual(plan.machine.device_budget_bytes, expected, delta=1, msg=budget)
        for wrong in ("much", "50 %%", "-1GB", None):
            with self.assertRaises(swapmm.UsageError):
                swapmm.plan(self.trace, wrong)
        with self.assertRaisesRegex(swapmm.UsageError, "neither a number nor a text"):
            swapmm.plan(self.trace, [1])
        with self.assertRaisesRegex(swapmm.UsageError, 'no planner is called "magic"; there are per-operation'):
            swapmm.plan(self.trace, "50%", planner="magic")
        with self.assertRaisesRegex(swapmm.UsageError, "bandwidth"):
            swapmm.plan(self.trace, "50%", bandwidth="quick")

    def test_machines(self):
        machine = swapmm.Machine(10**9, alignment_bytes=512, h2d_bytes_per_second=10**9)
        plan = swapmm.plan(self.trace, machine=machine, planner="belady", latency=5000, bandwidth_out="2GB/s")
        self.assertEqual(
            plan.machine,
            swapmm.Machine(10**9, plan.machine.name, 512, None, 10**9, 2 * 10**9, 5000, 5000, "full"),
        )
        half = swapmm.plan(self.trace, "1GB", planner="belady", half_duplex=True, max_allocation="500MB").machine
        self.assertEqual((half.duplex, half.max_allocation_bytes, half.h2d_bytes_per_second), ("half", 500 * MB, 15_754_000_000))

    def test_a_plan_is_between_the_bound_and_the_planner_that_knows_nothing(self):
        best, worst = (swapmm.plan(self.trace, "50%", planner=name) for name in ("best", "per-operation"))
        self.assertEqual(best.predicted.lower_bound_ns, swapmm.bound(self.trace, "50%"))
        self.assertGreaterEqual(best.predicted.iteration_ns, best.predicted.lower_bound_ns)
        self.assertGreater(worst.predicted.iteration_ns, best.predicted.iteration_ns)
        self.assertEqual(best.predicted.compute_ns, 6 * 12000 * US)
        self.assertEqual(best.seconds, best.predicted.iteration_ns / 1e9)
        simulation = swapmm.simulate(self.trace, best)
        self.assertEqual(simulation.iteration_ns, best.predicted.iteration_ns)
        self.assertEqual(simulation.h2d_bytes + simulation.d2h_bytes, best.predicted.bytes_moved)
        self.assertEqual(simulation.draws_ns, [])
        self.assertEqual(len(swapmm.simulate(self.trace, best, noise="10%", draws=5).draws_ns), 5)

    def test_what_does_not_fit(self):
        with self.assertRaisesRegex(swapmm.BundleTooLarge, "no plan: .* needs a bundle of"):
            swapmm.plan(self.trace, "100MB")
        with self.assertRaisesRegex(swapmm.BundleTooLarge, "no bound: "):
            swapmm.bound(self.trace, "100MB")
        fit = swapmm.fit(self.trace, "100MB")
        self.assertFalse(fit)
        self.assertEqual(fit.shortfall_bytes, fit.largest_bundle_bytes - 100 * MB)
        self.assertIn("needs a bundle of", str(fit))
        fit = swapmm.fit(self.trace, "70%")
        self.assertTrue(fit)
        self.assertLessEqual(fit.stalls_end_bytes, fit.peak_bytes * 1.05)

    def test_a_plan_for_another_trace_is_refused(self):
        plan = swapmm.plan(self.trace, "50%", planner="belady")
        with self.assertRaisesRegex(swapmm.PlanRefused, "not valid for this trace"):
            swapmm.simulate(chain(5), plan)
        violations = swapmm.validate(chain(5), plan)
        self.assertEqual(violations[0].rule, 0)
        broken = json.loads(plan.to_json())
        broken["commands"][0]["after"] = []
        self.assertNotEqual(swapmm.validate(self.trace, swapmm.Plan(json.dumps(broken))), [])

    def test_texts_and_html(self):
        plan = swapmm.plan(self.trace, "50%")
        self.trace.tensors[1].name = "<b>weights & co</b>"
        explanation = swapmm.explain(self.trace, plan)
        self.assertIn("times a tensor is on the host alone", str(explanation))
        comparison = swapmm.compare(self.trace, ["50%"], planners=["belady", "best"])
        for shown in (plan, swapmm.fit(self.trace, "50%", this_budget_only=True), explanation, comparison,
                      swapmm.simulate(self.trace, plan)):  # fmt: skip
            self.assertIn("<table>", shown._repr_html_())
            self.assertNotIn("<b>", shown._repr_html_())
            ElementTree.fromstring(f"<div>{shown._repr_html_()}</div>")  # every element ends
            self.assertTrue(str(shown))
            self.assertRegex(repr(shown), "^<swapmm ")
        self.assertIn("<svg", plan._repr_html_())
        self.assertIn("weights &amp; co", plan.svg())
        self.assertEqual(len(str(comparison).splitlines()), 3)
        read = swapmm.Plan(plan.to_json())
        self.assertNotIn("<svg", read._repr_html_())
        with self.assertRaisesRegex(swapmm.UsageError, "needs its trace"):
            read.svg()

    def test_progress(self):
        seen = []
        swapmm.compare(self.trace, ["50%", "60%"], planners=["belady", "best"], progress=seen.append)
        self.assertEqual(len([p for p in seen if p.iteration_ns == 0 and p.what.endswith("belady")]), 2)
        swapmm.plan(self.trace, "50%", seconds=0.3, progress=seen.append)
        self.assertEqual(seen[-1].what, "planning with best")

        def ends(progress):
            raise LookupError("enough")

        with self.assertRaisesRegex(LookupError, "enough"):
            swapmm.plan(self.trace, "50%", progress=ends)
        line = io.StringIO()
        with redirect_stderr(line):
            swapmm.plan(self.trace, "50%", progress=True)
            shown = line.getvalue()
            swapmm.plan(self.trace, "50%", progress=False)
            swapmm.plan(self.trace, "50%")  # this is no terminal
        self.assertEqual(line.getvalue(), shown)
        self.assertTrue(shown.startswith("\rplanning with best"))
        self.assertTrue(shown.endswith(" \r"))

    def test_planners(self):
        names = [planner.name for planner in swapmm.planners()]
        self.assertEqual((names[0], names[-1]), ("per-operation", "best"))
        self.assertEqual(len(names), 9)


@unittest.skipIf(not TRACES.is_dir(), f"no traces in {TRACES}")
class Arguments(unittest.TestCase):
    """What other libraries have for numbers, single values for lists of one, and what is neither."""

    class Whole:
        def __index__(self):
            return 1000

    def test_numbers_of_other_libraries(self):
        from fractions import Fraction

        trace = chain()
        wanted = swapmm.plan(trace, 0.5, latency=1000, bandwidth=1e10).to_json()
        self.assertEqual(swapmm.plan(trace, Fraction(1, 2), latency="1us", bandwidth=10**10).to_json(), wanted)
        self.assertEqual(swapmm.plan(trace, 0.5, latency=1000.0, bandwidth="10GB/s").to_json(), wanted)
        try:
            import numpy
        except ImportError:
            self.skipTest("no NumPy")
        for half in (numpy.float64(0.5), numpy.float32(0.5)):
            found = swapmm.plan(trace, half, latency=numpy.int64(1000), bandwidth=numpy.float64(1e10))
            self.assertEqual(found.to_json(), wanted)
        self.assertEqual(len(swapmm.compare(trace, numpy.linspace(0.5, 0.75, 2), planners=["belady"])), 2)

    def test_whole_numbers_in_traces(self):
        trace, plain = (swapmm.Trace("t", [], []) for _ in range(2))
        for each, size in ((trace, self.Whole()), (plain, 1000)):
            each.tensor("a", size, "persistent")
            each.operation("o", size, reads=["a"])
        self.assertEqual(trace.to_json(), plain.to_json())
        trace.tensor("b", object())
        with self.assertRaisesRegex(swapmm.UsageError, "is of type object: no whole number"):
            trace.to_json()

    def test_values_of_other_types(self):
        trace = chain()
        plan = swapmm.plan(trace, "80%", planner="belady")
        for call, wanted in (
            (lambda: swapmm.plan(trace, machine="a100"), "'a100' is no swapmm.Machine: Machine.load"),
            (lambda: swapmm.simulate(trace, plan.to_json()), "is no swapmm.Plan: Plan.load"),
            (lambda: swapmm.validate(trace, None), "None is no swapmm.Plan"),
            (lambda: swapmm.explain(trace, plan, top=object()), "is of type object: no whole number"),
        ):
            with self.assertRaisesRegex(swapmm.UsageError, wanted):
                call()
        self.assertEqual(swapmm.explain(trace, plan, top=self.Whole()).data, swapmm.explain(trace, plan, top=1000).data)
        self.assertEqual(plan.svg(width=2**32 + 1000), plan.svg(width=10**6))

    def test_single_values(self):
        trace = chain()
        planner = next(each for each in swapmm.planners() if each.name == "belady")
        wanted = swapmm.compare([trace], ["80%"], planners=["belady"])
        for budget, name in (("80%", "belady"), (0.8, planner), (["80%"], [planner])):
            found = swapmm.compare(trace, budget, planners=name)
            self.assertEqual([row.predicted for row in found], [row.predicted for row in wanted])
        self.assertEqual(swapmm.plan(trace, 0.8, planner=planner).planner, "belady")
        wanted = swapmm.compare(trace, "80%", planners="belady", bandwidths=["10GB/s"], compute_scales=[2])
        found = swapmm.compare(trace, "80%", planners="belady", bandwidths="10GB/s", compute_scales=2)
        self.assertEqual([row.predicted for row in found], [row.predicted for row in wanted])

    def test_switches(self):
        for value in (1, "yes", True):
            self.assertEqual(swapmm.plan(chain(), "90%", half_duplex=value).machine.duplex, "half")
        self.assertEqual(swapmm.plan(chain(), "90%", half_duplex=0).machine.duplex, "full")

    def test_alignments(self):
        with self.assertRaisesRegex(swapmm.UsageError, "alignment: it is 2199023255552"):
            chain().peak_bytes(2**41)

    def test_what_is_none(self):
        trace = chain()
        for wrong in (None, "x.json", 3):
            with self.assertRaisesRegex(swapmm.UsageError, "no swapmm.Trace"):
                swapmm.plan(wrong)
        for seconds in (0, -1, float("nan"), float("inf"), "1"):
            with self.assertRaisesRegex(swapmm.UsageError, "seconds"):
                swapmm.plan(trace, 0.5, seconds=seconds)
        for budget in (True, object(), 1j):
            with self.assertRaisesRegex(swapmm.UsageError, "neither a number nor a text"):
                swapmm.plan(trace, budget)


class LongWork(unittest.TestCase):
    def test_ctrl_c_ends_a_search(self):
        trace = swapmm.Trace.load(TRACES / "g10/VIT_b256.json")
        seen, begin = [], time.monotonic()

        def interrupt(progress):
            seen.append(progress)
            if len(seen) == 3:
                _thread.interrupt_main()  # what Ctrl-C does

        with self.assertRaises(KeyboardInterrupt):
            swapmm.plan(trace, "35%", seconds=60, bandwidth="6GB/s", progress=interrupt)
        self.assertLess(time.monotonic() - begin, 30)
        self.assertEqual(len(seen), 3)

    def test_an_exception_of_the_function_ends_a_search(self):
        trace = swapmm.Trace.load(TRACES / "g10/VIT_b256.json")
        for last in (1, 2):
            seen = []

            def ends(progress):
                seen.append(progress)
                if len(seen) == last:
                    raise LookupError("enough")

            with self.assertRaisesRegex(LookupError, "enough"):
                swapmm.plan(trace, "35%", seconds=60, bandwidth="6GB/s", progress=ends)
            self.assertEqual(len(seen), last)

    def test_other_threads_run_meanwhile(self):
        trace = swapmm.Trace.load(TRACES / "g10/VIT_b256.json")
        count, done = [0], threading.Event()

        def counts():
            while not done.is_set():
                count[0] += 1
                time.sleep(0.001)

        thread = threading.Thread(target=counts)
        thread.start()
        swapmm.plan(trace, "50%", seconds=0.3)
        done.set()
        thread.join()
        self.assertGreater(count[0], 20)


@unittest.skipIf(not COMMAND, "SWAPMM_CLI does not name the command swapmm")
class SameAsTheCommand(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.traces = [TRACES / "cli/two_weights.json", TRACES / "pytorch/lstm.json"]
        chain().save(self.folder / "chain.json")
        self.traces.append(self.folder / "chain.json")

    def command(self, *arguments, exit_code=0):
        run = subprocess.run([COMMAND, *map(str, arguments)], capture_output=True, text=True, timeout=300)
        self.assertEqual(run.returncode, exit_code, run.stderr)
        return run.stdout

    def test_plan_simulate_check_explain_and_show(self):
        for path in self.traces:
            trace = swapmm.Trace.load(path)
            for planner in ("best", "excess-overlap", "slack"):
                out = self.folder / "plan.json"
                self.command("plan", path, "--budget", "70%", "--bandwidth", "20GB/s", "--planner", planner, "-o", out)
                plan = swapmm.plan(trace, "70%", bandwidth="20GB/s", planner=planner)
                self.assertEqual(plan.to_json(), out.read_text(), f"{path.name}, {planner}")
            noisy = ("--noise", "25%", "--slow-link", "50%@20%", "--seed", "3", "--draws", "4")
            told = json.loads(self.command("simulate", path, out, *noisy, "--json"))
            simulated = swapmm.simulate(trace, plan, noise="25%", slow_link="50%@20%", seed=3, draws=4)
            self.assertEqual(simulated.data, told)
            self.assertEqual(swapmm.explain(trace, plan, top=7).data, json.loads(self.command("explain", path, out, "--top", "7", "--json")))
            self.command("show", out, "--trace", path, "--svg", self.folder / "plan.svg")
            self.assertEqual(plan.svg(), (self.folder / "plan.svg").read_text())
            self.assertEqual(json.loads(self.command("check", path, out, "--json")), {"valid": True, "violations": []})
            self.assertEqual(swapmm.validate(trace, plan), [])

    def test_fit(self):
        for path in (self.traces[0], self.traces[-1]):
            trace = swapmm.Trace.load(path)
            told = json.loads(self.command("fit", path, "--budget", "70%", "--top", "3", "--json"))
            self.assertEqual(swapmm.fit(trace, "70%", top=3).data, told)
            self.assertIsNotNone(told["stalls_end"])
            told = json.loads(self.command("fit", path, "--budget", "100", "--json", exit_code=1))
            self.assertEqual(swapmm.fit(trace, 100).data, told)

    def test_compare(self):
        compared = [self.traces[0], self.traces[-1]]
        budgets = "0.9,70%,150MB"
        told = json.loads(self.command(
            "compare", *compared, "--budgets", budgets, "--planners", "on-demand,slack,excess-overlap", "--bandwidths",
            "12GB/s,25GB/s", "--compute-scale", "1,1/5", "--latency", "10us", "--json", exit_code=1))  # fmt: skip
        traces = [swapmm.Trace.load(path) for path in compared]
        found = swapmm.compare(
            traces, [0.9, "70%", "150MB"], planners=["on-demand", "slack", "excess-overlap"], bandwidths=["12GB/s", 25 * 10**9],
            compute_scales=[1, "1/5"], latency="10us")  # fmt: skip
        self.assertEqual(len(found), 2 * 3 * 3 * 2 * 2)
        self.assertEqual(without_times(found.data), without_times(told["rows"]))
        self.assertEqual(found[0].planner, "on-demand")
        self.assertEqual([row.problem is None for row in found], [row.predicted is not None for row in found])
        self.assertEqual(len([row for row in found if row.problem]), 2 * 2 * 3)  # the second trace in 150 MB


if __name__ == "__main__":
    if COMMAND is None:
        print("skipped: comparisons with the command; SWAPMM_CLI does not name it", file=sys.stderr)
    unittest.main()
