# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C at any moment: nothing is lost without a word, and the manager goes on."""

import array
import dis
import signal
import sys
import threading
import time
import unittest
from pathlib import Path

import swapmm

PACKAGE = str(Path(swapmm.__file__).parent)
COUNT = 3


class Moments:
    """Counts the moments at which Python runs handlers of signals in functions of the package: when they begin, and after
    each call that they make. At one of them, an exception is raised."""

    def __init__(self, target):
        self.target, self.count, self.hit = target, 0, None
        self.before = {}  # per frame, by its number: the operation before

    def __call__(self, frame, event, _argument):
        if not frame.f_code.co_filename.startswith(PACKAGE):
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        if event == "call":
            self.before.pop(id(frame), None)
            self.moment(frame, "begin of " + frame.f_code.co_name)
        elif event == "opcode":
            if self.before.get(id(frame), "").startswith("CALL"):
                self.moment(frame, f"line {frame.f_lineno} of {frame.f_code.co_name}")
            self.before[id(frame)] = dis.opname[frame.f_code.co_code[frame.f_lasti]]
        return self

    def moment(self, frame, where):
        self.count += 1
        if self.count == self.target:
            self.hit = where
            raise KeyboardInterrupt


def add_one(values):
    values[0] += 1


class Interrupted(unittest.TestCase):
    def step(self, tensors):
        with self.manager.iteration("step"):
            for tensor in tensors:
                with self.manager.operation("add", updates=tensor) as op:
                    op.launch(add_one, tensor)

    def value(self, tensor):
        found = array.array("i", [0] * 256)
        tensor.download(found)
        return found[0]

    def program(self, steps):
        """Runs a few steps, of which the last one is interrupted at that moment; more tensors than there is room for."""
        self.manager = swapmm.Manager(swapmm.simulated.create(1 << 20), "2KiB")
        tensors = [self.manager.tensor(256, "int32", f"t{i}") for i in range(COUNT)]
        for tensor in tensors:
            tensor.upload(array.array("i", [0] * 256))
        for _ in range(steps - 1):
            self.step(tensors)
        return tensors

    def interrupted(self, steps, target):
        tensors = self.program(steps)
        moments, raised = Moments(target), []
        dropped, sys.unraisablehook = sys.unraisablehook, lambda _: None
        try:
            sys.settrace(moments)
            try:
                self.step(tensors)
                self.manager.synchronize()
            finally:
                sys.settrace(None)
        except (KeyboardInterrupt, swapmm.WorkFailed) as failure:
            raised.append(failure)
        finally:
            sys.unraisablehook = dropped
        return moments, tensors, raised

    @unittest.skipIf(sys.version_info < (3, 11), "older versions of Python run handlers at more moments")
    def test_at_any_moment(self):
        for steps in (1, 4):  # by demand, and when a plan is followed
            target, left = 1, set()
            while True:
                moments, tensors, raised = self.interrupted(steps, target)
                if moments.hit is None:
                    break
                with self.subTest(steps=steps, moment=target, where=moments.hit):
                    if raised and isinstance(raised[0], swapmm.WorkFailed):
                        self.assertIsInstance(raised[0].__cause__, KeyboardInterrupt)
                    try:
                        self.manager.synchronize()
                    except swapmm.WorkFailed as failure:
                        raised.append(failure)
                    except swapmm.UsageError as failure:
                        self.assertIn("begin of __exit__", moments.hit)
                        self.assertIn("recover()", str(failure))
                        left.add(moments.hit)
                        self.manager.recover()
                    # Python drops an exception that a destructor meets; the value is right.
                    is_told = "__del__" not in moments.hit and "destroy" not in moments.hit
                    self.assertEqual(bool(raised), is_told)
                    for tensor in tensors:
                        try:
                            self.assertIn(self.value(tensor), (steps - 1, steps))
                        except (swapmm.WorkFailed, swapmm.UndefinedValue):
                            pass
                        tensor.upload(array.array("i", [5] * 256))
                    try:
                        self.step(tensors)
                    except swapmm.UsageError as failure:  # an iteration is left
                        self.assertIn("begin of __exit__", moments.hit)
                        self.assertIn("recover()", str(failure))
                        self.manager.recover()
                        self.step(tensors)
                    self.assertEqual([self.value(tensor) for tensor in tensors], [6] * COUNT)
                self.manager.close()
                target += 1
            self.assertGreater(target, 100)

    def test_long_questions(self):
        """The handler runs when the library asks whether to go on."""
        trace = swapmm.Trace("many operations")
        tensors = [trace.tensor("weight", 1 << 20, "persistent") for _ in range(60)]
        for i in range(300):
            trace.operation(f"o{i}", 1000 * (1 + i % 7), reads=[tensors[(i * 7 + 1) % 60]], updates=[tensors[i * 7 % 60]])
        for progress in (False, lambda _: None):
            main = threading.main_thread().ident

            def interrupt():
                time.sleep(0.3)
                signal.pthread_kill(main, signal.SIGINT)

            thread = threading.Thread(target=interrupt)
            thread.start()
            try:
                with self.assertRaises(KeyboardInterrupt):
                    for _ in range(1000):
                        swapmm.plan(trace, "30%", bandwidth="1GB/s", progress=progress)
            finally:
                thread.join()


if __name__ == "__main__":
    unittest.main()
