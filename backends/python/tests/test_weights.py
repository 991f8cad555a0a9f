# SPDX-License-Identifier: Apache-2.0
"""Files of weights: what is in them, and constants of a manager."""

import array
import json
import os
import random
import tempfile
import unittest

import swapmm

KIB = 1024


def file_of(folder, tensors, name="weights.safetensors", head=None):
    """A file of the format with tensors of (type, shape, bytes)."""
    entries, offset = {}, 0
    for key, (type_, shape, content) in tensors.items():
        entries[key] = {"dtype": type_, "shape": shape, "data_offsets": [offset, offset + len(content)]}
        offset += len(content)
    text = json.dumps({"__metadata__": {"format": "pt"}, **entries}).encode() if head is None else head
    path = os.path.join(folder, name)
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for _, _, content in tensors.values():
            file.write(content)
    return path


class Weights(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def test_what_is_in_a_file(self):
        path = file_of(self.folder, {"a.b": ("F32", [2, 3], bytes(24)), "c": ("BF16", [], b"xy"), "none": ("I64", [0, 4], b""),
                                     "new": ("F4", [5], b"abc")})  # fmt: skip
        found = swapmm.read_safetensors(path)
        self.assertEqual(list(found), ["a.b", "c", "none", "new"])
        begin = os.path.getsize(path) - 29
        self.assertEqual(found["a.b"][:3] + found["a.b"][4:], ("a.b", "float32", (2, 3), begin, 24))
        self.assertEqual(found["c"][1:3] + found["c"][4:], ("bfloat16", (), begin + 24, 2))
        self.assertEqual((found["none"].nbytes, found["new"].dtype, found["new"].nbytes), (0, "F4", 3))
        self.assertEqual(found["c"].file.path, path)

    def test_several_files(self):
        first = file_of(self.folder, {"a": ("U8", [3], b"abc")}, "one.safetensors")
        second = file_of(self.folder, {"b": ("U8", [2], b"de")}, "two.safetensors")
        for paths in ([first, second], self.folder):
            found = swapmm.open_weights(paths)
            self.assertEqual([(name, weight.file.path) for name, weight in sorted(found.items())], [("a", first), ("b", second)])
        file_of(self.folder, {"a": ("U8", [2], b"de")}, "two.safetensors")
        with self.assertRaisesRegex(swapmm.UsageError, "'a' is in .*one.* and in .*two"):
            swapmm.open_weights(self.folder)
        with tempfile.TemporaryDirectory() as empty, self.assertRaisesRegex(swapmm.UsageError, "no files"):
            swapmm.open_weights(empty)

    def refuses(self, reason, tensors=None, head=None):
        path = file_of(self.folder, tensors or {"a": ("U8", [3], b"abc")}, head=head)
        with self.assertRaisesRegex(swapmm.UsageError, reason):
            swapmm.read_safetensors(path)

    def test_what_is_no_such_file(self):
        entry = {"dtype": "U8", "shape": [3], "data_offsets": [0, 3]}

        def head(**changes):
            return json.dumps({"a": {**entry, **changes}}).encode()

        self.refuses("needs 12", {"a": ("F32", [3], b"abc")})
        self.refuses("no 'dtype'", head=json.dumps({"a": {"shape": [3], "data_offsets": [0, 3]}}).encode())
        self.refuses("no object", head=b"[1]")
        self.refuses("safetensors", head=b"{")
        self.refuses("safetensors", head=b"\xff{}")
        self.refuses("safetensors", head=b"[" * 100000)
        self.refuses("stands twice", head=b'{"a": 1, "a": 2}')
        self.refuses("has 3", head=head(shape=[4], data_offsets=[0, 4]))
        self.refuses("no number", head=head(shape=[-3]))
        self.refuses("no number", head=head(shape=[True, 3]))
        self.refuses("no number", head=head(shape=[3.0]))
        self.refuses("bytes from 3 to 2", head=head(data_offsets=[3, 2]))
        self.refuses("overlaps", head=json.dumps({"a": entry, "b": {**entry, "data_offsets": [2, 3], "shape": [1]}}).encode())
        path = os.path.join(self.folder, "short")
        with open(path, "wb") as file:
            file.write(b"abc")
        with self.assertRaisesRegex(swapmm.UsageError, "the file has 3"):
            swapmm.read_safetensors(path)
        with open(path, "wb") as file:
            file.write((1 << 62).to_bytes(8, "little") + b"{}")
        with self.assertRaisesRegex(swapmm.UsageError, "its head would have"):
            swapmm.read_safetensors(path)
        for missing in ("nowhere", ""):
            with self.assertRaises(swapmm.BackendError):
                swapmm.read_safetensors(os.path.join(self.folder, missing))

    def test_files_with_mistakes(self):
        path = file_of(self.folder, {"a": ("F32", [2, 3], bytes(24)), "b": ("U8", [5], b"abcde")})
        with open(path, "rb") as file:
            right = file.read()
        random.seed(3)
        refused = 0
        for _ in range(2000):
            wrong = bytearray(right)
            for _ in range(random.randint(1, 3)):
                wrong[random.randrange(len(wrong) - 29)] = random.choice(b"0123456789[]{},:\"aU\x00\xff")
            with open(path, "wb") as file:
                file.write(wrong[: random.randint(0, len(wrong))] if random.random() < 0.2 else wrong)
            try:
                found = swapmm.read_safetensors(path)
                size = os.path.getsize(path)
                for weight in found.values():
                    self.assertLessEqual(weight.offset + weight.nbytes, size)
            except swapmm.UsageError:
                refused += 1
        self.assertGreater(refused, 1000)

    def test_constants_are_read_when_they_are_needed(self):
        contents = {f"w{i}": array.array("i", [i] * KIB) for i in range(8)}
        path = file_of(self.folder, {name: ("I32", [KIB], values.tobytes()) for name, values in contents.items()})
        weights = swapmm.read_safetensors(path)
        seen = []

        def sum_of(first, to):
            to[0] = first[0] + first[KIB - 1]

        backend = swapmm.simulated.create(1 << 20)
        with swapmm.Manager(backend, "16KiB", file=weights["w0"].file, file_staging="64KiB") as manager:
            tensors = [manager.constant(weight.shape, weight.file, weight.offset, weight.dtype, name) for name, weight in weights.items()]
            for _ in range(8):
                with manager.iteration("read"):
                    for tensor in tensors:
                        with manager.operation("sum", reads=tensor, outputs=[swapmm.Output(1, "int32", "sum")]) as op:
                            (made,) = op.outputs
                            op.launch(sum_of, tensor, made, nanoseconds=5000)
                        seen.append(made.download()[0])
            self.assertEqual(seen, 8 * [2 * i for i in range(8)])
            numbers = manager.numbers()
            self.assertGreaterEqual(numbers.h2d, 8 * 5 * 4 * KIB)
            self.assertLess(numbers.host_used, 100 * KIB)  # the way through, and no values
            self.assertEqual(tensors[3].download()[7], 3)
            with self.assertRaisesRegex(swapmm.UsageError, "constant"):
                tensors[3].upload(contents["w4"])
            with self.assertRaisesRegex(swapmm.UsageError, "constant"):
                with manager.operation("writes", updates=tensors[3]):
                    pass
            with self.assertRaises(swapmm.UsageError):
                manager.constant(KIB, weights["w7"].file, weights["w7"].offset + 1, "int32")  # beyond its end
            with self.assertRaises(swapmm.UsageError):
                manager.constant(KIB, weights["w7"].file, -1, "int32")
        self.assertEqual(swapmm.simulated.violations(backend), 0)

    def test_a_manager_without_a_file_has_no_constants(self):
        path = file_of(self.folder, {"a": ("U8", [3], b"abc")})
        with swapmm.Manager(swapmm.simulated.create(1 << 20), "16KiB") as manager:
            with self.assertRaisesRegex(swapmm.UsageError, "file"):
                manager.constant(3, swapmm.WeightsFile(path), 0)
            with self.assertRaisesRegex(swapmm.BackendError, "nowhere"):
                manager.constant(3, swapmm.WeightsFile("/nowhere/file"), 0)


if __name__ == "__main__":
    unittest.main()
