# SPDX-License-Identifier: Apache-2.0
"""Values in and out: the buffer protocol, NumPy, DLPack."""

import array
import ctypes
import unittest

import swapmm
from swapmm import _memory

try:
    import numpy
except ImportError:
    numpy = None


class Capsule:
    """An object with DLPack and nothing else, made by hand."""

    def __init__(self, data, shape, code=0, bits=32, strides=None, device=_memory.CPU, offset=0):
        self.data, self.device = data, device
        self.shape = (ctypes.c_int64 * len(shape))(*shape)
        self.strides = (ctypes.c_int64 * len(shape))(*strides) if strides else None
        self.managed = _memory.DLManagedTensor()
        tensor = self.managed.tensor
        tensor.data = ctypes.addressof(data)
        tensor.device_type, tensor.ndim = device, len(shape)
        tensor.code, tensor.bits, tensor.lanes = code, bits, 1
        tensor.shape = self.shape
        if strides:
            tensor.strides = self.strides
        tensor.byte_offset = offset

    def __dlpack_device__(self):
        return self.device, 0

    def __dlpack__(self, stream=None):
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return new(ctypes.addressof(self.managed), b"dltensor", None)


class Values(unittest.TestCase):
    def setUp(self):
        self.manager = swapmm.Manager(swapmm.simulated.create(1 << 20), 16384)
        self.addCleanup(self.manager.close)

    def bytes_of(self, tensor):
        return bytes(tensor.download(bytearray(tensor.nbytes)))

    def test_sizes_and_types(self):
        tensor = self.manager.tensor((3, 4), "float16", "t")
        self.assertEqual((tensor.nbytes, tensor.shape, tensor.dtype), (24, (3, 4), "float16"))
        self.assertEqual(self.manager.tensor(5, "int64").shape, (5,))
        self.assertEqual(self.manager.tensor((), "float64").nbytes, 8)
        self.assertEqual(self.manager.tensor("4KiB").nbytes, 4096)
        self.assertEqual(repr(tensor), "<swapmm tensor 't', 24 bytes, float16[3, 4]>")
        with self.assertRaisesRegex(swapmm.UsageError, "float7"):
            self.manager.tensor(3, "float7")
        with self.assertRaisesRegex(swapmm.UsageError, "from 0 to 2"):
            self.manager.tensor(-3)
        with self.assertRaises(swapmm.UsageError):
            self.manager.tensor(0)
        with self.assertRaises(swapmm.UsageError):
            self.manager.tensor((1 << 40, 1 << 40), "float64")

    def test_objects_with_the_buffer_protocol(self):
        tensor = self.manager.tensor(8)
        for data in (b"abcdefgh", bytearray(b"abcdefgh"), memoryview(b"xabcdefghx")[1:9], memoryview(b"hgfedcba")[::-1],
                     array.array("H", b"abcdefgh"), (ctypes.c_char * 8)(*b"abcdefgh")):  # fmt: skip
            tensor.upload(bytes(8))
            tensor.upload(data)
            self.assertEqual(self.bytes_of(tensor), b"abcdefgh")
        with self.assertRaisesRegex(swapmm.UsageError, "tensor 'tensor' has 8 bytes, the data has 3"):
            tensor.upload(b"abc")
        tensor.upload(b"XY", offset=3)
        self.assertEqual(self.bytes_of(tensor), b"abcXYfgh")
        with self.assertRaises(swapmm.UsageError):
            tensor.upload(b"XYZ", offset=6)
        for wrong in (17, None, "abcdefgh", [1, 2]):
            with self.assertRaisesRegex(swapmm.UsageError, "neither the buffer protocol nor"):
                tensor.upload(wrong)

    def test_types_of_elements_are_compared(self):
        tensor = self.manager.tensor(2, "float32", "f")
        tensor.upload(array.array("f", [1.5, 2.5]))
        tensor.upload(bytes(8))
        with self.assertRaisesRegex(swapmm.UsageError, "'f' is of float32, the data of int32"):
            tensor.upload(array.array("i", [1, 2]))
        with self.assertRaisesRegex(swapmm.UsageError, "'f' is of float32, the data of int32"):
            tensor.download(array.array("i", [1, 2]))

    def test_downloads(self):
        tensor = self.manager.tensor(8)
        tensor.upload(b"abcdefgh")
        self.assertEqual(tensor.download(), bytearray(b"abcdefgh"))
        self.assertEqual(tensor.download(offset=2, nbytes=3), bytearray(b"cde"))
        out = array.array("H", bytes(8))
        self.assertIs(tensor.download(out), out)
        self.assertEqual(out.tobytes(), b"abcdefgh")
        part = bytearray(3)
        tensor.download(part, offset=5)
        self.assertEqual(part, b"fgh")
        typed = tensor.download(dtype="uint16", shape=(2, 2))
        self.assertEqual((typed.shape, memoryview(typed).tobytes()), ((2, 2), b"abcdefgh"))
        with self.assertRaisesRegex(swapmm.UsageError, "9223372036854775808 bytes from byte 4 on of tensor 'tensor'"):
            tensor.download(offset=4, nbytes=2**63)  # takes no memory
        for call in (lambda: tensor.download(b"abcdefgh"), lambda: tensor.download(bytearray(4)),
                     lambda: tensor.download(shape=(8,)), lambda: tensor.download(dtype="int32", shape=(3,)),
                     lambda: tensor.download(offset=9, nbytes=1), lambda: tensor.download(memoryview(bytearray(16))[::2]),
                     lambda: tensor.download(bytearray(8), dtype="int8")):  # fmt: skip
            with self.assertRaises(swapmm.UsageError):
                call()

    def test_dlpack_without_numpy(self):
        tensor = self.manager.tensor((2, 3), "int32", "t")
        data = (ctypes.c_int32 * 8)(9, 1, 2, 3, 4, 5, 6, 9)
        tensor.upload(Capsule(data, (2, 3), offset=4))
        self.assertEqual(list(array.array("i", self.bytes_of(tensor))), [1, 2, 3, 4, 5, 6])
        tensor.upload(Capsule(data, (2, 3), strides=(3, 1)))
        self.assertEqual(list(array.array("i", self.bytes_of(tensor))), [9, 1, 2, 3, 4, 5])
        tensor.upload(Capsule(data, (2, 1, 3), strides=(3, 77, 1), device=_memory.CUDA_HOST))
        with self.assertRaisesRegex(swapmm.UsageError, "make it contiguous"):
            tensor.upload(Capsule(data, (2, 3), strides=(1, 2)))
        with self.assertRaisesRegex(swapmm.UsageError, "copy it there first"):
            tensor.upload(Capsule(data, (2, 3), device=_memory.CUDA))
        with self.assertRaisesRegex(swapmm.UsageError, "of int32, the data of float32"):
            tensor.upload(Capsule(data, (2, 3), code=2))
        half = self.manager.tensor(4, "bfloat16")
        half.upload(Capsule((ctypes.c_int16 * 4)(1, 2, 3, 4), (4,), code=4, bits=16))
        self.assertEqual(list(array.array("h", self.bytes_of(half))), [1, 2, 3, 4])

    @unittest.skipIf(numpy is None, "no NumPy")
    def test_numpy(self):
        tensor = self.manager.tensor((3, 4), numpy.float32, "t")
        values = numpy.arange(12, dtype="float32").reshape(3, 4)
        tensor.upload(values)
        found = tensor.download()
        self.assertEqual((found.dtype.name, found.shape), ("float32", (3, 4)))
        numpy.testing.assert_array_equal(found, values)
        tensor.upload(numpy.asfortranarray(values) + 1)
        numpy.testing.assert_array_equal(tensor.download(), values + 1)
        tensor.upload(numpy.zeros((6, 8), "float32")[::2, ::2] + 3)
        tensor.upload(numpy.arange(48, dtype="float32").reshape(6, 8)[::2, ::2])
        self.assertEqual(tensor.download()[1, 1], 18)
        out = numpy.empty((3, 4), "float32")
        self.assertIs(tensor.download(out), out)
        self.assertEqual(out[2, 3], 38)
        with self.assertRaisesRegex(swapmm.UsageError, "of float32, the data of float64"):
            tensor.upload(numpy.zeros(6))
        with self.assertRaisesRegex(swapmm.UsageError, "big-endian float32"):
            tensor.upload(values.astype(">f4"))
        with self.assertRaisesRegex(swapmm.UsageError, "other order"):
            self.manager.tensor(4, numpy.dtype(">f4"))
        # Objects are addresses, which nobody may copy, whatever the type of the tensor.
        objects = self.manager.tensor(16)
        for call in (objects.upload, objects.download):
            with self.assertRaisesRegex(swapmm.UsageError, "elements of format 'O'"):
                call(numpy.array(["a", "b"], object))
        for other in (numpy.zeros(3, "S4"), numpy.zeros(3, "U1"), numpy.zeros(3, "V4")):
            with self.assertRaisesRegex(swapmm.UsageError, "'t' is of float32"):
                self.manager.tensor(3, "float32", "t").upload(other)
        values.flags.writeable = False
        tensor.upload(values)
        with self.assertRaises(swapmm.UsageError):
            tensor.download(values)
        pair = self.manager.tensor(2, "complex64")
        pair.upload(numpy.array([1 + 2j, 3], "complex64"))
        self.assertEqual(pair.download()[0], 1 + 2j)

        def kernel(data):
            self.assertEqual((data.dtype.name, data.shape), ("float32", (3, 4)))
            data *= 2

        with self.manager.operation("double", updates=tensor) as op:
            op.launch(kernel, tensor)
        numpy.testing.assert_array_equal(tensor.download(), 2 * values)


if __name__ == "__main__":
    unittest.main()
