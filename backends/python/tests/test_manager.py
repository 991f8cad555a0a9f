# SPDX-License-Identifier: Apache-2.0
"""Managers, tensors, iterations and operations on the simulated device."""

import array
import gc
import subprocess
import sys
import threading
import traceback
import unittest
from xml.etree import ElementTree

import swapmm

KIB = 1024


def double(to):
    for i in range(len(to)):
        to[i] = 2 * to[i]


class OnSimulatedDevice(unittest.TestCase):
    def setUp(self):
        self.backend = swapmm.simulated.create(1 << 20)

    def tearDown(self):
        self.assertEqual(swapmm.simulated.violations(self.backend), 0)

    def manager(self, budget="16KiB", **options):
        manager = swapmm.Manager(self.backend, budget, **options)
        self.addCleanup(manager.close)
        return manager


class Training(OnSimulatedDevice):
    def train(self, manager, steps):
        """Eight vectors with room for four. Each step makes a temporary tensor, as the example of docs/c.md does."""
        vectors = [manager.tensor(KIB, "int32", f"vector {i}") for i in range(8)]
        for i, vector in enumerate(vectors):
            vector.upload(array.array("i", [i] * KIB))

        def twice(source, to):
            for i in range(4):
                to[i] = 2 * source[i]
            to[KIB - 1] = 7

        def add(source, to):
            for i in range(4):
                to[i] = (to[i] + source[i]) % 10007

        for _ in range(steps):
            with manager.iteration("step"):
                for i in range(8):
                    with manager.operation("twice", reads=vectors[i], outputs=[swapmm.Output(KIB, "int32", "twice")]) as op:
                        (made,) = op.outputs
                        op.launch(twice, vectors[i], made, nanoseconds=5000)
                    with manager.operation("add", reads=made, updates=vectors[(i + 1) % 8]) as op:
                        op.launch(add, made, vectors[(i + 1) % 8], nanoseconds=5000)
                    del made
        return vectors

    def expected(self, steps):
        values = list(range(8))
        for _ in range(steps):
            for i in range(8):
                values[(i + 1) % 8] = (values[(i + 1) % 8] + 2 * values[i]) % 10007
        return values

    def test_values_are_those_of_a_run_without_a_limit_and_a_plan_is_followed(self):
        manager = self.manager()
        vectors = self.train(manager, 3)
        self.assertEqual([vector.download()[0] for vector in vectors], self.expected(3))
        manager.close()
        manager = self.manager()
        vectors = self.train(manager, 10)
        numbers = manager.numbers()
        self.assertEqual(numbers.operations, 160)
        self.assertEqual(numbers.iterations_followed + numbers.iterations_on_demand, 10)
        self.assertGreaterEqual(numbers.iterations_followed, 5)
        self.assertEqual(numbers.device_budget, 16 * KIB)
        self.assertLessEqual(numbers.device_peak, 16 * KIB)
        self.assertEqual(numbers.tensors, 8)
        del vectors
        self.assertEqual(manager.numbers().tensors, 0)

    def test_operations_run_again_instead_of_slow_copies(self):
        def forward(source, to):
            for i in range(KIB):
                to[i] = (source[i] * 3 + 1) % 10007

        def backward(gradient, value, to):
            for i in range(KIB):
                to[i] = (gradient[i] * 5 + value[i]) % 10007

        def program(budget, replayable):
            """The result of each step, and how often operations ran again."""
            backend = swapmm.simulated.create(h2d_bytes_per_second=20_000_000, d2h_bytes_per_second=20_000_000)
            manager = swapmm.Manager(backend, budget)
            source = manager.tensor(KIB, "int32", "input")
            results, again = [], []
            for step in range(8):
                source.upload(array.array("i", [step] * KIB))
                with manager.iteration("train"):
                    values = [source]
                    for i in range(6):
                        def queue(op, i=i, first=[]):
                            again.extend(first)
                            first[:] = [i]
                            at = op.addresses
                            self.assertEqual(op.name, f"forward {i}")
                            op.launch(forward, values[i], values[i + 1], nanoseconds=10_000)
                            self.assertEqual(len(at), 2)
                            self.assertEqual(op[values[i + 1]], at[1])

                        op = manager.operation(
                            f"forward {i}",
                            reads=values[i],
                            outputs=[swapmm.Output(KIB, "int32", "value")],
                            again=queue if replayable else None,
                        )
                        with op:
                            values.extend(op.outputs)
                            queue(op)
                        del queue
                    gradient = values[-1]
                    for value in reversed(values[:-1]):
                        with manager.operation(
                            "backward", reads=[gradient, value], outputs=[swapmm.Output(KIB, "int32", "gradient")]
                        ) as op:
                            (made,) = op.outputs
                            op.launch(backward, gradient, value, made, nanoseconds=10_000)
                        gradient = made
                    results.append(gradient.download().tolist()[:4])
                    values.clear()
                    del gradient, made, value
            peak = manager.numbers().device_peak
            if again:
                self.check_plan_with_replays(manager, len(again))
            manager.close()
            self.assertEqual(swapmm.simulated.violations(backend), 0)
            return results, again, peak

        wanted, nothing, _ = program("1MiB", True)
        self.assertEqual(nothing, [])
        results, again, peak = program("20KiB", True)
        self.assertEqual(results, wanted)
        self.assertGreater(len(again), 0)
        self.assertLessEqual(peak, 20 * KIB)
        self.assertEqual(program("20KiB", False)[0], wanted)

    def check_plan_with_replays(self, manager, runs):
        trace, plan = manager.trace("train"), manager.plan("train")
        self.assertEqual((trace.version, plan.version), (2, 2))
        self.assertEqual([o.replayable for o in trace.operations], 6 * [True] + 6 * [False])
        self.assertEqual(plan.trace_digest, trace.digest)
        self.assertGreater(plan.runs_again, 0)
        self.assertEqual(runs % plan.runs_again, 0)  # in each iteration that followed it
        self.assertIn(f"{plan.runs_again} operations run again", str(plan))
        self.assertEqual(plan.machine.device_budget_bytes, 20 * KIB)
        self.assertEqual(plan.machine.h2d_bytes_per_second, 20_000_000)
        self.assertEqual(swapmm.validate(trace, plan), [])
        self.assertEqual(swapmm.simulate(trace, plan).iteration_ns, plan.predicted.iteration_ns)
        self.assertEqual(plan.svg(trace).count("(again)") > 0, True)
        self.assertEqual(manager.report()._repr_html_().count("<svg"), 1)
        manager.load_plan(plan, "train")  # for the same program

    def test_report_trace_and_plan(self):
        manager = self.manager()
        vectors = self.train(manager, 10)
        report = manager.report()
        self.assertEqual(report.operations, 160)
        self.assertEqual(report.tensors, len(vectors))
        self.assertEqual([plan.iteration for plan in report.plans], ["step"])
        self.assertEqual(report.plans[0].operations, 16)
        self.assertEqual(report.plans[0].planner, "best")
        self.assertIn("160, of these", str(report))
        self.assertIn("h2d", dir(report))
        with self.assertRaises(AttributeError):
            report.nothing_of_the_kind
        html = report._repr_html_()
        self.assertEqual(html.count("<svg"), 1)
        self.assertIn("twice", html)
        self.assertIn("<td>step</td>", html)
        ElementTree.fromstring(f"<div>{html}</div>")  # every element ends

        trace = manager.trace("step")
        self.assertEqual(len(trace.operations), 16)
        self.assertEqual([operation.name for operation in trace.operations[:2]], ["twice", "add"])
        plan = manager.plan("step")
        self.assertEqual(plan.trace_digest, trace.digest)
        self.assertEqual(plan.machine.device_budget_bytes, 16 * KIB)
        self.assertEqual(swapmm.validate(trace, plan), [])
        self.assertIn("<svg", plan.svg(trace))

        other = self.manager()
        other.load_plan(plan, "step")
        self.train(other, 4)
        self.assertGreaterEqual(other.numbers().iterations_followed, 2)
        with self.assertRaisesRegex(swapmm.PlanRefused, "plan refused"):
            other.load_plan("{}", "step")
        manager.close()
        self.assertEqual(report.timelines(), [])
        self.assertNotIn("<svg", report._repr_html_())

    def test_identified_by_producer(self):
        manager = self.manager(identify_by_producer=True)
        self.train(manager, 8)
        self.assertGreater(manager.numbers().iterations_followed, 0)


class Errors(OnSimulatedDevice):
    def test_each_has_the_text_of_the_library(self):
        manager = self.manager("8KiB")
        a, b, c = (manager.tensor("4KiB", name=name) for name in "abc")
        with self.assertRaisesRegex(swapmm.UndefinedValue, 'operation "sum" needs the value of tensor "a", which was never written'):
            with manager.operation("sum", reads=a):
                self.fail("the block does not run")
        for tensor in (a, b, c):
            tensor.upload(bytes(4096))
        with self.assertRaisesRegex(swapmm.BundleTooLarge, 'operation "sum" needs 12288 bytes on the device at once, the budget is 8192'):
            with manager.operation("sum", reads=[a, b, c]):
                pass
        with self.assertRaisesRegex(swapmm.UsageError, '"a" twice in its bundle'):
            with manager.operation("scale", reads=a, writes=a):
                pass
        self.assertTrue(issubclass(swapmm.BundleTooLarge, swapmm.UsageError))
        self.assertTrue(issubclass(swapmm.OutOfMemory, MemoryError))
        self.assertTrue(issubclass(swapmm.OutOfMemory, swapmm.Error))
        with self.assertRaises(swapmm.OutOfMemory):
            swapmm.Manager(self.backend, 1 << 30)

    def test_options(self):
        with self.assertRaisesRegex(swapmm.UsageError, "device_budget"):
            swapmm.Manager(self.backend)
        with self.assertRaisesRegex(swapmm.UsageError, "the device budget is 0"):
            swapmm.Manager(self.backend, 0)
        with self.assertRaisesRegex(TypeError, "no option 'colour'"):
            swapmm.Manager(self.backend, 4096, colour=1)
        with self.assertRaisesRegex(swapmm.UsageError, "demand_mode"):
            swapmm.Manager(self.backend, 4096, demand_mode="lazy")
        with self.assertRaisesRegex(swapmm.UsageError, "drops is 'never': it is one of by_evidence, observed, proven"):
            swapmm.Manager(self.backend, 4096, drops="never")
        with self.assertRaisesRegex(swapmm.UsageError, "from 0 to 2"):
            swapmm.Manager(self.backend, 4096, observe=-1)
        with self.assertRaisesRegex(swapmm.UsageError, "whole number"):
            swapmm.Manager(self.backend, 4096, observe=0.5)
        with self.assertRaisesRegex(swapmm.UsageError, "16 parsecs"):
            swapmm.Manager(self.backend, "16 parsecs")
        with self.assertRaisesRegex(swapmm.UsageError, "lifetime"):
            self.manager().tensor(16, lifetime="eternal")
        with self.assertRaisesRegex(swapmm.UsageError, "null character"):
            self.manager().tensor(16, name="a\0b")
        manager = self.manager(demand_mode="per_operation", check_access=True, replan_above=0.5, host_budget="1MiB")
        manager.tensor(16).upload(bytes(16))
        self.assertEqual(swapmm.bytes_of("1.5KiB"), 1536)
        self.assertEqual(swapmm.bytes_of("8GB"), 8 * 10**9)

    def test_drops(self):
        def read_unexpectedly(rule):
            """Each iteration begins by writing a tensor, and reads it once, until the first that follows a plan."""
            manager = self.manager("8KiB", drops=rule)
            first, *others = [manager.tensor(KIB, "int32", f"vector {i}") for i in range(4)]
            for vector in (first, *others):
                vector.upload(array.array("i", [0] * KIB))
            for step in range(150):  # a plan that may gain nothing waits
                with manager.iteration("step"):
                    with manager.operation("write", writes=first) as op:
                        op.launch(lambda to: to.__setitem__(0, step + 100), first)
                    with manager.operation("read", reads=first, updates=others[0]):
                        pass
                    with manager.operation("fill", updates=[others[1], others[2]]):
                        pass
                    if manager.numbers().operations_followed > 0:
                        with manager.operation("again", reads=first):
                            pass
                        return first.download()[0] - step
            self.fail("no iteration followed a plan")

        self.assertEqual(read_unexpectedly("proven"), 100)
        for rule in ("by_evidence", "observed"):
            with self.assertRaisesRegex(swapmm.DroppedValue, '"vector 0"'):
                read_unexpectedly(rule)

    def test_check_access(self):
        manager = self.manager(check_access=True)
        tensor = manager.tensor(4, "int32", "a")
        tensor.upload(array.array("i", [1, 2, 3, 4]))
        with self.assertRaisesRegex(swapmm.AccessViolation, 'operation "scale" changes tensor "a", which it declares to read'):
            with manager.operation("scale", reads=tensor) as op:
                op.launch(double, tensor)
            manager.synchronize()

    def test_check_access_of_operations_that_run_again(self):
        manager = self.manager(check_access=True)
        tensor = manager.tensor(4, "int32", "a")
        factors = [2, 3]

        def fill(data):
            factor = factors.pop(0)
            for i in range(4):
                data[i] = factor

        with self.assertRaisesRegex(swapmm.AccessViolation, '"fill" is declared replayable, and wrote another value to tensor "a"'):
            with manager.operation("fill", writes=tensor, again=lambda op: op.launch(fill, tensor)) as op:
                op.launch(fill, tensor)

        def refuses(op):
            raise LookupError("no more")

        factors[:] = [4]
        with self.assertRaises(swapmm.WorkFailed) as raised:
            with manager.operation("fill", writes=tensor, again=refuses) as op:
                op.launch(fill, tensor)
        self.assertIsInstance(raised.exception.__cause__, LookupError)
        with self.assertRaisesRegex(swapmm.UsageError, '"waits" may run again, which is not for'):
            manager.operation("waits", writes=tensor, takes_waits=True, again=refuses).begin()
        factors[:] = [5]
        with manager.operation("fill", writes=tensor) as op:  # the manager goes on
            op.launch(fill, tensor)
        self.assertEqual(list(tensor.download()), [5] * 4)

    def test_a_kernel_that_raises(self):
        manager = self.manager()
        tensor = manager.tensor(4, "int32", "a")
        tensor.upload(bytes(16))

        def kernel(data):
            raise ZeroDivisionError("in a kernel")

        with self.assertRaisesRegex(swapmm.WorkFailed, 'undefined from now on: "a"') as caught:
            with manager.operation("fails", updates=tensor) as op:
                op.launch(kernel, tensor)
            manager.synchronize()
        cause = caught.exception.__cause__
        self.assertIsInstance(cause, ZeroDivisionError)
        # Where it was raised is told, and nothing refers to the memory any more.
        frames = [frame for frame, _ in traceback.walk_tb(cause.__traceback__)]
        self.assertEqual(frames[-1].f_code.co_name, "kernel")
        self.assertEqual([dict(frame.f_locals) for frame in frames[1:]], [{}] * (len(frames) - 1))
        tensor.upload(bytes(16))
        self.assertEqual(bytes(tensor.download()), bytes(16))

    def test_a_kernel_that_keeps_memory(self):
        manager = self.manager()
        tensor = manager.tensor(16, name="a")
        tensor.upload(bytes(16))
        kept = []
        with self.assertRaises(swapmm.WorkFailed) as caught:
            with manager.operation("keeps", reads=tensor) as op:
                op.launch(lambda data: kept.append(data[2:]), tensor)
            manager.synchronize()
        self.assertRegex(str(caught.exception.__cause__), "kept memory of a tensor")
        kept.clear()

    def test_a_kernel_that_calls_the_manager(self):
        manager = self.manager()
        tensor = manager.tensor(16, name="a")
        tensor.upload(bytes(16))
        with self.assertRaises(swapmm.WorkFailed) as caught:
            with manager.operation("calls", reads=tensor) as op:
                op.launch(manager.synchronize)
            manager.synchronize()
        self.assertIsInstance(caught.exception.__cause__, swapmm.ConcurrentUse)

    def test_tensors_of_other_managers(self):
        one, other = self.manager(), self.manager()
        tensor = one.tensor(16, name="t")
        with self.assertRaisesRegex(swapmm.UsageError, '"t" belongs to another manager'):
            other.operation("mixes", reads=tensor)
        with other.operation("alone", outputs=[swapmm.Output(16)]) as op:
            with self.assertRaisesRegex(swapmm.UsageError, "belongs to another manager"):
                op[tensor]
            op.cancel()

    def test_a_destroyed_tensor_and_a_closed_manager(self):
        manager = self.manager()
        tensor = manager.tensor(16, name="gone")
        tensor.upload(bytes(16))
        tensor.destroy()
        tensor.destroy()
        with self.assertRaises(swapmm.UsageError):
            tensor.download()
        with self.assertRaises(swapmm.UsageError):
            with manager.operation("uses it", reads=tensor):
                pass
        other = manager.tensor(16)
        manager.close()
        manager.close()
        self.assertTrue(manager.closed)
        other.destroy()
        for call in (manager.synchronize, manager.numbers, manager.report, lambda: manager.tensor(16), other.download):
            with self.assertRaisesRegex(swapmm.UsageError, "the manager is closed"):
                call()


class Operations(OnSimulatedDevice):
    def setUp(self):
        super().setUp()
        self.made = self.manager()
        self.tensor = self.made.tensor(4, "int32", "a")
        self.tensor.upload(array.array("i", [1, 2, 3, 4]))

    def values(self):
        return list(array.array("i", bytes(self.tensor.download(bytearray(16)))))

    def test_an_operation_changes_values_and_has_addresses(self):
        with self.made.operation("double", updates=self.tensor, scratch="4KiB") as op:
            self.assertTrue(op.running)
            self.assertEqual(op[self.tensor], op.addresses[0])
            self.assertEqual(op.address(self.tensor, 0, 4), op[self.tensor])
            self.assertNotEqual(op.scratch, op[self.tensor])
            self.assertIsNone(op.queue)
            op.launch(double, self.tensor, nanoseconds=10)
        self.assertFalse(op.running)
        self.assertEqual(self.values(), [2, 4, 6, 8])
        self.assertEqual(self.made.numbers().operations, 1)

    def test_what_an_operation_that_has_ended_refuses(self):
        with self.made.operation("first", reads=self.tensor, outputs=[swapmm.Output(16, name="made")]) as op:
            (made,) = op.outputs
            op.launch(lambda data: None, made)
        for use in (lambda: op[self.tensor], lambda: op.addresses, lambda: op.outputs, op.end, op.fail, op.cancel,
                    lambda: op.launch(print), lambda: op.address(made), lambda: op.scratch, lambda: op.queue,
                    lambda: op.waits):  # fmt: skip
            with self.assertRaisesRegex(swapmm.UsageError, 'operation "first" is not running'):
                use()
        with self.assertRaisesRegex(swapmm.UsageError, "has begun before"):
            op.begin()
        self.assertEqual(op.wait_count, 0)
        self.assertFalse(hasattr(op, "stream"))

    def test_calls_that_an_operation_does_not_allow(self):
        other = self.made.tensor(16, name="other")
        with self.made.operation("outer", reads=self.tensor) as op:
            with self.assertRaisesRegex(swapmm.NestedOperation, 'operation "outer" has begun and not ended'):
                self.made.synchronize()
            with self.assertRaises(swapmm.NestedOperation):
                self.tensor.upload(bytes(16))
            with self.assertRaises(swapmm.NestedOperation):
                with self.made.operation("inner"):
                    pass
            with self.assertRaisesRegex(swapmm.UsageError, 'does not use tensor "other"'):
                op[other]
            other.destroy()
        self.assertEqual(self.values(), [1, 2, 3, 4])

    def test_an_exception_that_leaves_the_block_fails_the_operation(self):
        with self.assertRaisesRegex(KeyError, "mine"):
            with self.made.operation("fails", updates=self.tensor):
                raise KeyError("mine")
        with self.assertRaises(swapmm.WorkFailed):
            self.values()
        self.tensor.upload(bytes(16))
        self.assertEqual(self.values(), [0, 0, 0, 0])

    def test_cancel_and_fail(self):
        with self.made.operation("cancelled", updates=self.tensor) as op:
            op.cancel()
            self.assertFalse(op.running)
        self.assertEqual(self.values(), [1, 2, 3, 4])
        with self.made.operation("failed", writes=self.tensor) as op:
            op.fail()
        with self.assertRaises(swapmm.WorkFailed):
            self.values()

    def test_takes_waits(self):
        with self.made.operation("double", updates=self.tensor, takes_waits=True) as op:
            op.launch(double, self.tensor)
        self.assertEqual(self.values(), [2, 4, 6, 8])
        with self.assertRaisesRegex(swapmm.UsageError, "no event, and this backend needs"):
            with self.made.operation("nothing", reads=self.tensor, takes_waits=True):
                pass
        # The operation has ended all the same.
        self.made.synchronize()

    def test_iterations(self):
        with self.assertRaisesRegex(swapmm.UsageError, "no iteration has begun"):
            self.made.iteration("never begun").end()
        with self.assertRaises(ArithmeticError):
            with self.made.iteration("ends"):
                raise ArithmeticError
        with self.assertRaisesRegex(swapmm.UsageError, 'no iteration "other" was observed'):
            self.made.trace("other")

    def test_the_budget_can_change(self):
        self.made.set_budget("8KiB")
        self.assertEqual(self.made.numbers().device_budget, 8 * KIB)

    def test_many_tensors_in_one_operation(self):
        manager = self.manager("64KiB")
        tensors = [manager.tensor(256, name=f"t{i}") for i in range(100)]
        for i, tensor in enumerate(tensors):
            tensor.upload(bytes([i]) * 256)
        outputs = [swapmm.Output(256, name=f"o{i}") for i in range(20)]
        sums = []
        with manager.operation("sum", reads=tensors, outputs=outputs) as op:
            made = op.outputs
            self.assertEqual(len(set(op.addresses)), 120)
            op.launch(lambda *data: sums.append(sum(d[0] for d in data[:100])), *tensors, *made)
        self.assertEqual([tensor.name for tensor in made], [f"o{i}" for i in range(20)])
        manager.synchronize()
        self.assertEqual(sums, [sum(range(100))])


class Lives(OnSimulatedDevice):
    def test_tensors_are_destroyed_by_any_thread(self):
        manager = self.manager()
        tensors = [manager.tensor(16) for _ in range(64)]
        threads = [threading.Thread(target=lambda: tensors.pop()) for _ in range(64)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        gc.collect()
        self.assertEqual(manager.numbers().tensors, 0)

    def test_a_manager_lives_as_long_as_its_tensors(self):
        manager = self.manager()
        tensor = manager.tensor(16)
        del manager
        gc.collect()
        tensor.upload(bytes(range(16)))
        self.assertEqual(bytes(tensor.download()), bytes(range(16)))
        self.assertFalse(tensor.manager.closed)

    def test_two_threads_at_once_are_refused(self):
        manager = self.manager()
        tensor = manager.tensor(16)
        tensor.upload(bytes(16))
        inside, leave, seen = threading.Event(), threading.Event(), []

        def kernel():
            inside.set()
            leave.wait(20)

        def other():
            inside.wait(20)
            try:
                manager.synchronize()
            except swapmm.Error as error:
                seen.append(error)
            leave.set()

        thread = threading.Thread(target=other)
        thread.start()
        with manager.operation("long", reads=tensor) as op:
            op.launch(kernel)
        manager.synchronize()
        thread.join()
        self.assertIsInstance(seen[0], swapmm.ConcurrentUse)

    def test_a_child_of_the_process_leaves_the_manager_alone(self):
        program = (
            "import os, swapmm\n"
            "manager = swapmm.Manager(swapmm.simulated.create(1 << 20), 4096)\n"
            "tensor = manager.tensor(16)\n"
            "tensor.upload(bytes(16))\n"
            "op = manager.operation('queued', updates=tensor).begin()\n"
            "op.launch(lambda data: print('ran', flush=True), tensor)\n"
            "op.end()\n"
            "child = os.fork()\n"
            "if child == 0: raise SystemExit(3)\n"
            "assert os.waitpid(child, 0)[1] >> 8 == 3\n"
            "manager.close()\n"
        )
        run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
        self.assertEqual((run.returncode, run.stdout, run.stderr), (0, "ran\n", ""))

    def test_the_end_of_a_process_with_queued_work(self):
        program = (
            "import swapmm\n"
            "manager = swapmm.Manager(swapmm.simulated.create(1 << 20), 4096)\n"
            "tensor = manager.tensor(16)\n"
            "tensor.upload(bytes(16))\n"
            "op = manager.operation('queued', updates=tensor).begin()\n"
            "op.launch(lambda data: print('ran'), tensor)\n"
            "op.end()\n"
        )
        run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
        self.assertEqual((run.returncode, run.stdout, run.stderr), (0, "ran\n", ""))

    def run_alone(self, program):
        program = "import swapmm\nmanager = swapmm.Manager(swapmm.simulated.create(), '512KiB')\n" + program
        return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)

    def test_a_manager_ends_when_nobody_is_inside(self):
        # Closed by a kernel of its own: the call that runs the kernel goes on.
        run = self.run_alone(
            "tensor = manager.tensor(16)\n"
            "tensor.upload(bytes(16))\n"
            "with manager.operation(updates=tensor) as op:\n"
            "    op.launch(lambda data: manager.close(), tensor)\n"
            "print(bytes(tensor.download()) == bytes(16), manager.closed)\n"
        )
        self.assertEqual((run.returncode, run.stdout), (0, "True True\n"), run.stderr)
        # Closed while another thread is inside.
        run = self.run_alone(
            "import threading\n"
            "tensor = manager.tensor(100 * 1024)\n"
            "data = bytes(100 * 1024)\n"
            "ran = threading.Event()\n"
            "def run():\n"
            "    try:\n"
            "        while True:\n"
            "            tensor.upload(data)\n"
            "            tensor.download()\n"
            "            ran.set()\n"
            "    except swapmm.UsageError as failure:\n"
            "        print(failure)\n"
            "thread = threading.Thread(target=run)\n"
            "thread.start()\n"
            "ran.wait()\n"
            "manager.close()\n"
            "thread.join()\n"
        )
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn(run.stdout, ("the manager is closed\n", "the manager was destroyed\n"))

    def test_the_cause_is_that_of_the_failure(self):
        manager = self.manager()
        tensor = manager.tensor(16, "uint8", "a")
        tensor.upload(bytes(16))

        def fail(data):
            raise ValueError("first")

        with manager.operation("k", updates=tensor) as op:
            op.launch(fail, tensor, nanoseconds=5)
        with self.assertRaises(swapmm.WorkFailed) as failed:
            tensor.download()
        self.assertEqual(str(failed.exception.__cause__), "first")
        with self.assertRaisesRegex(swapmm.WorkFailed, "an earlier failure") as failed:
            manager.operation("r", reads=tensor).begin()
        self.assertIsNone(failed.exception.__cause__)

    def test_options_and_arguments_out_of_range(self):
        for options in ({"planning_share": float("nan")}, {"planning_share": 2}, {"planning_share": "x"},
                        {"replan_above": -0.1}, {"replan_above": float("inf")}, {"check_access": "no"}):  # fmt: skip
            with self.assertRaisesRegex(swapmm.UsageError, next(iter(options))):
                self.manager(**options)
        with self.assertRaisesRegex(swapmm.UsageError, "2\\^62"):
            swapmm.simulated.create(2**64 - 1)
        manager = self.manager()
        for scratch in (2**64, 2**64 + 16, -1, 1.5):
            with self.assertRaisesRegex(swapmm.UsageError, "scratch"):
                manager.operation(scratch=scratch)
        with self.assertRaisesRegex(swapmm.UsageError, "cannot be called"):
            manager.operation(again=5)


if __name__ == "__main__":
    unittest.main()
