# SPDX-License-Identifier: Apache-2.0
"""Traces as files: their text, their digest, and what is refused."""

import gzip
import os
import tempfile
import unittest
from pathlib import Path

import swapmm
from swapmm import Trace, TraceOperation, TraceTensor

TRACES = Path(os.environ.get("SWAPMM_TEST_TRACES", Path(__file__).resolve().parents[3] / "tests/data/traces"))


class Files(unittest.TestCase):
    trace = Trace(
        'a "name"',
        [TraceTensor("x", 5, "input", 1), TraceTensor("y", 7)],
        [TraceOperation("first", 3, writes=[1]), TraceOperation("second", 4, reads=[0], updates=[1])],
        [(1, 1)],
    )
    text = """{"format": "swapmm-trace", "version": 1, "name": "a \\"name\\"",
 "tensors": [
  {"name": "x", "bytes": 5, "kind": "input", "available_from": 1},
  {"name": "y", "bytes": 7, "kind": "transient"}],
 "operations": [
  {"name": "first", "duration_ns": 3, "writes": [1]},
  {"name": "second", "duration_ns": 4, "reads": [0], "updates": [1]}],
 "host_reads": [
  {"tensor": 1, "after_operation": 1}]}
"""

    def test_the_text_has_one_tensor_or_operation_a_line(self):
        self.assertEqual(self.trace.to_json(), self.text)
        lingering = Trace("", [], [], [], [(1, 1, 2)]).to_json()
        self.assertIn(',\n "lingering": [\n  {"tensor": 1, "last_use": 1, "until": 2}]}\n', lingering)

    def test_a_file_whose_name_ends_with_gz_is_compressed(self):
        with tempfile.TemporaryDirectory() as folder:
            plain, packed = Path(folder, "t.json"), Path(folder, "t.json.gz")
            for path in (plain, packed):
                self.trace.save(path)
                self.assertEqual(Trace.load(path), self.trace)
            self.assertEqual(plain.read_text(), self.text)
            with gzip.open(str(packed), "rt", encoding="utf-8") as file:
                self.assertEqual(file.read(), self.text)
            self.assertEqual(packed.read_bytes()[3:8], bytes(5))  # neither a name nor a time in it

    @unittest.skipIf(not TRACES.is_dir(), f"no traces in {TRACES}")
    def test_a_recorded_file_is_written_as_it_was_read(self):
        path = TRACES / "pytorch/lstm.json"
        self.assertEqual(Trace.load(path).to_json(), path.read_text(encoding="utf-8"))

    def test_the_digest_is_that_of_the_format(self):
        # printf 'T 5 input\nT 7 transient\nO r w1 u\nO r0 w u1\n' | sha256sum
        self.assertEqual(self.trace.digest, "9e17a25583b400b0720d2559f70706d072e76f216301e8a5b0cec4b800a79811")

    def test_broken_traces_are_refused(self):
        def broken(*operations, tensor=("x", 1, "transient")):
            return Trace("", [TraceTensor(*tensor)], list(operations))

        write = TraceOperation("o", 1, writes=[0])
        for trace, message in [
            (broken(), "at least one"),
            (broken(TraceOperation("o", 1, reads=[0])), "no value before it is written"),
            (broken(write, TraceOperation("o", 1, reads=[0], writes=[0])), r"operations\[1\].*tensor 0"),
            (broken(TraceOperation("o", -1, writes=[0])), "below 0"),
            (broken(write, tensor=("x", 1, "weights")), "not one of"),
            (broken(write, tensor=("x", 1, "transient", 1)), "available_from"),
            (broken(write, write, tensor=("x", 1, "input", 1)), "no value before operation 1"),
        ]:
            with self.assertRaisesRegex(swapmm.UsageError, message):
                trace.check()


if __name__ == "__main__":
    unittest.main()
