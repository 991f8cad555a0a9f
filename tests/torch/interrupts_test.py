# SPDX-License-Identifier: Apache-2.0
"""Signals whose handlers raise errors come at any moment. The program catches the error, and all values are whole."""

import os
import signal
import sys
import threading
import time
import unittest
from concurrent.futures import ThreadPoolExecutor

import torch

import swapmm
import swapmm.torch


FUNCTIONS = signal.signal, signal.getsignal


class TooLate(Exception):
    pass


def too_late(_number, _frame):
    raise TooLate


class InterruptsTest(unittest.TestCase):
    """12 tensors of 256 KiB in a budget of 1.5 MiB."""

    def setUp(self):
        torch.manual_seed(1)
        self.plain = [torch.randn(1 << 16) for _ in range(12)]
        self.before = signal.signal(signal.SIGINT, signal.default_int_handler)
        swapmm.torch.budget("1500KiB", "cpu")
        torch.manual_seed(1)
        self.tensors = [torch.randn(1 << 16) for _ in range(12)]
        self.adapter = swapmm.torch._session.adapter

    def tearDown(self):
        swapmm.torch.off()
        signal.signal(signal.SIGINT, self.before)

    def pass_over(self):
        for tensor in self.tensors:
            tensor.add_(1)

    def interrupt(self, where, name, error=KeyboardInterrupt, number=signal.SIGINT):
        """The signal comes while that function is called for the fifth time."""
        original, calls = getattr(where, name), []

        def called(*args):
            calls.append(None)
            if len(calls) == 5:
                signal.raise_signal(number)
            result = original(*args)
            if len(calls) == 9:
                signal.raise_signal(number)
            return result

        setattr(where, name, called)
        seen = 0
        try:
            for _ in range(4):
                try:
                    self.pass_over()
                except error:
                    seen += 1
        finally:
            setattr(where, name, original)
        self.assertEqual(seen, 2)

    def interrupted_in_library(self, name):
        library, adapter = self.adapter._library, self.adapter

        class Calls:
            def __getattr__(self, other):
                return getattr(library, other)

        adapter._library = Calls()
        setattr(adapter._library, name, getattr(library, name))
        try:
            self.interrupt(adapter._library, name)
        finally:
            adapter._library = library

    def test_no_code_runs_where_a_storage_ends(self):
        """A signal's handler would run in it, and Python drops errors of such code."""
        tensor, calls = torch.randn(1 << 16), []
        tensor + 1
        self.adapter.sweep()
        known = len(self.adapter.memory.records)
        sys.setprofile(lambda frame, event, _: calls.append(frame.f_code.co_name) if event == "call" else None)
        del tensor
        sys.setprofile(None)
        self.assertEqual(calls, [])
        self.adapter.sweep()
        self.assertEqual(len(self.adapter.memory.records), known - 1)

    def test_around_the_begin_of_an_operation(self):
        self.interrupted_in_library("operation_begin")
        self.check_all_whole()

    def test_around_the_end_of_an_operation(self):
        self.interrupted_in_library("operation_end")
        self.check_all_whole()

    def check_all_whole(self):
        # The two passes that were interrupted ended early.
        added = [(ours - theirs).round().unique().tolist() for ours, theirs in zip(self.tensors, self.plain)]
        self.assertTrue(all(len(values) == 1 and 2 <= values[0] <= 4 for values in added), added)
        swapmm.torch.step()
        self.pass_over()
        self.assertTrue(all(ours.numel() == 1 << 16 for ours in self.tensors))
        swapmm.torch.off()
        for ours, theirs, values in zip(self.tensors, self.plain, added):
            for _ in range(int(values[0]) + 1):
                theirs = theirs + 1
            self.assertTrue(torch.equal(ours, theirs))

    def test_within_copies(self):
        for name in ("_copy_part_to_host", "_copy_part_to_device"):
            with self.subTest(name):
                self.tearDown()
                self.setUp()
                self.interrupt(self.adapter.memory, name)
                self.check_all_whole()

    def test_handlers_that_are_set_later(self):
        before = signal.signal(signal.SIGALRM, too_late)
        self.assertIs(signal.getsignal(signal.SIGALRM), too_late)
        try:
            self.interrupt(self.adapter.memory, "_copy_part_to_host", TooLate, signal.SIGALRM)
            self.check_all_whole()  # ends the budget
            self.assertIs(signal.getsignal(signal.SIGALRM), too_late)
            with self.assertRaises(TooLate):
                signal.raise_signal(signal.SIGALRM)
        finally:
            self.assertIs(signal.signal(signal.SIGALRM, before), too_late)

    def test_handlers_as_the_program_knows_them(self):
        self.assertIs(signal.getsignal(signal.SIGINT), signal.default_int_handler)
        self.assertIs(signal.signal(signal.SIGINT, signal.SIG_IGN), signal.default_int_handler)
        signal.raise_signal(signal.SIGINT)
        self.assertIs(signal.signal(signal.SIGINT, signal.default_int_handler), signal.SIG_IGN)
        self.assertNotEqual((signal.signal, signal.getsignal), FUNCTIONS)
        swapmm.torch.off()
        self.assertIs(signal.getsignal(signal.SIGINT), signal.default_int_handler)
        self.assertEqual((signal.signal, signal.getsignal), FUNCTIONS)

    def test_while_the_budget_ends(self):
        with self.assertRaises(KeyboardInterrupt):
            library, calls = self.adapter._library, []

            class Calls:
                def __getattr__(self, other):
                    return getattr(library, other)

                def tensor_download(self, *args):
                    calls.append(None)
                    if len(calls) == 3:
                        signal.raise_signal(signal.SIGINT)
                    return library.tensor_download(*args)

            self.adapter._library = Calls()
            swapmm.torch.off()
        for ours, theirs in zip(self.tensors, self.plain):
            self.assertTrue(torch.equal(ours, theirs))
        self.assertIs(signal.getsignal(signal.SIGINT), signal.default_int_handler)

    def test_several_signals_at_once(self):
        seen = []
        before = signal.signal(signal.SIGALRM, lambda *_: seen.append("alarm"))
        try:
            with self.assertRaises(KeyboardInterrupt):
                with self.adapter.lock:
                    signal.raise_signal(signal.SIGINT)
                    signal.raise_signal(signal.SIGALRM)
                    self.assertEqual(seen, [])
            self.assertEqual(seen, ["alarm"])
        finally:
            signal.signal(signal.SIGALRM, before)

    def test_while_the_process_forks(self):
        original = self.adapter.before_fork

        def before_fork():
            original()
            signal.raise_signal(signal.SIGINT)

        self.adapter.before_fork = before_fork
        with self.assertRaises(KeyboardInterrupt):
            child = os.fork()
            if child == 0:
                os._exit(0)
            os.waitpid(child, 0)
            for _ in range(1000):
                time.sleep(0.01)
        self.assertTrue(torch.equal(self.tensors[0] + 1, self.plain[0] + 1))

    def test_operators_that_wait_for_a_pool(self):
        swapmm.torch.off()
        with ThreadPoolExecutor(1) as pool:
            pool.submit(int).result()
            swapmm.torch.budget("1500KiB", "cpu")

            @torch.library.custom_op("swapmm_test::pooled", mutates_args=())
            def pooled(tensor: torch.Tensor) -> torch.Tensor:
                return pool.submit(lambda: tensor + 1).result(timeout=60)

            self.assertTrue(torch.equal(pooled(self.plain[0]), self.tensors[0] + 1))

    def test_the_thread_that_ends_the_budget(self):
        errors = []

        def end():
            try:
                swapmm.torch.off()
            except swapmm.UsageError as error:
                errors.append(str(error))

        thread = threading.Thread(target=end)
        thread.start()
        thread.join()
        self.assertIn("in the thread that has called budget()", errors[0])
        swapmm.torch.off()
        swapmm.torch.budget("1500KiB", "cpu")

    def test_an_operator_that_does_not_end(self):
        @torch.library.custom_op("swapmm_test::waits", mutates_args=())
        def waits(tensor: torch.Tensor) -> torch.Tensor:
            for _ in range(3):
                os.kill(os.getpid(), signal.SIGINT)
            return tensor + 1

        with self.assertRaises(KeyboardInterrupt):
            waits(self.tensors[0])
        self.assertTrue(torch.equal(self.tensors[0], self.plain[0]))
        self.assertTrue(torch.equal(self.tensors[1] + 1, self.plain[1] + 1))


if __name__ == "__main__":
    unittest.main()
