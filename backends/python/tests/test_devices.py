# SPDX-License-Identifier: Apache-2.0
"""The OpenCL backend on whatever device there is, and the CUDA backend on a GPU or on a runtime that only records calls."""

import array
import ctypes
import os
import unittest

import swapmm
from swapmm import _memory, _native

try:
    import numpy
except ImportError:
    numpy = None


@unittest.skipIf(not _native.path_of("opencl").exists(), "the OpenCL backend was not built")
class OpenCL(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        try:
            cls.backend = swapmm.opencl.pick()
            cls.api = ctypes.CDLL("libOpenCL.so.1")
        except (swapmm.Error, OSError) as reason:
            raise unittest.SkipTest(f"no OpenCL device: {reason}")

    def fill(self, op, tensor, value):
        """Of the API itself, on the operation's queue."""
        pattern = ctypes.c_int32(value)
        fill = self.api.clEnqueueFillBuffer
        fill.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_size_t,
                         ctypes.c_uint32, ctypes.c_void_p, ctypes.c_void_p]  # fmt: skip
        event = ctypes.c_void_p()
        status = fill(op.queue, op[tensor], ctypes.byref(pattern), 4, 0, tensor.nbytes, op.wait_count, op.waits, ctypes.byref(event))
        self.assertEqual(status, 0)
        return event.value

    def test_tensors_that_do_not_fit_together(self):
        with swapmm.Manager(self.backend, "64KiB") as manager:
            tensors = [manager.tensor(4096, "int32", f"t{i}", "kept") for i in range(12)]
            for step in range(6):
                with manager.iteration("step"):
                    for i, tensor in enumerate(tensors):
                        with manager.operation("fill", writes=tensor, takes_waits=i % 2 == 1) as op:
                            event = self.fill(op, tensor, 100 * step + i)
                            if i % 2 == 1:
                                op.end(event)
            for i, tensor in enumerate(tensors):
                self.assertEqual(array.array("i", bytes(tensor.download(bytearray(tensor.nbytes)))), array.array("i", [500 + i] * 4096))
            self.assertLessEqual(manager.numbers().device_peak, 65536)
            self.assertGreater(manager.numbers().d2h, 0)

    def test_native_handles_and_a_backend_on_them(self):
        context, device = swapmm.opencl.native(self.backend)
        self.assertTrue(context and device)

        class Handle:  # as PyOpenCL's objects are
            def __init__(self, number):
                self.int_ptr = number

        backend = swapmm.opencl.create(Handle(context), device)
        self.assertEqual(swapmm.opencl.native(backend), (context, device))
        with self.assertRaisesRegex(swapmm.UsageError, "not one of CUDA: it is one of opencl"):
            swapmm.cuda.device(backend)
        with self.assertRaisesRegex(swapmm.UsageError, "not one of OpenCL: it is one of simulated"):
            swapmm.opencl.native(swapmm.simulated.create())
        with self.assertRaises(swapmm.UsageError):
            swapmm.opencl.pick("no device is called so")

    def test_what_only_other_backends_have(self):
        with swapmm.Manager(self.backend, "64KiB") as manager:
            tensor = manager.tensor(16)
            tensor.upload(bytes(16))
            with manager.operation("x", reads=tensor) as op:
                with self.assertRaisesRegex(swapmm.UsageError, "a view needs a manager on CUDA"):
                    op.view(tensor)
                with self.assertRaisesRegex(swapmm.UsageError, "needs a manager on a simulated device"):
                    op.launch(print)


@unittest.skipIf(not _native.path_of("cuda").exists(), "the CUDA backend was not built")
class Cuda(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        try:
            cls.backend = swapmm.cuda.create(0)
        except swapmm.Error as reason:
            raise unittest.SkipTest(f"no CUDA device: {reason}")

    def test_values_survive_swaps(self):
        with swapmm.Manager(self.backend, "64KiB") as manager:
            tensors = [manager.tensor(4096, "int32", f"t{i}") for i in range(12)]
            for i, tensor in enumerate(tensors):
                tensor.upload(array.array("i", [i] * 4096))
            for tensor in tensors:
                with manager.operation("looks", reads=tensor) as op:
                    self.assertTrue(op.queue)
            for i, tensor in enumerate(tensors):
                self.assertEqual(array.array("i", bytes(tensor.download(bytearray(tensor.nbytes)))), array.array("i", [i] * 4096))
            self.assertGreater(manager.numbers().h2d, 0)

    def test_devices_and_streams(self):
        self.assertEqual(swapmm.cuda.device(self.backend), 0)
        backend = swapmm.cuda.create(0, stream=0)
        with swapmm.Manager(backend, "64KiB") as manager:
            with manager.operation("on the default stream") as op:
                self.assertIsNone(op.queue)
        with self.assertRaises(swapmm.UsageError):
            swapmm.cuda.create(4711)

    def test_views(self):
        with swapmm.Manager(self.backend, "64KiB") as manager:
            tensor = manager.tensor((4, 8), "float16", "t")
            tensor.upload(bytes(64))
            with manager.operation("views", updates=tensor) as op:
                view = op.view(tensor)
                self.assertEqual((view.shape, view.dtype), ((4, 8), "float16"))
                self.assertEqual(view.__cuda_array_interface__, {
                    "shape": (4, 8), "typestr": "<f2", "data": (op[tensor], False), "strides": None, "version": 3,
                    "stream": op.queue})  # fmt: skip
                self.assertEqual(view.__dlpack_device__(), (_memory.CUDA, 0))
                for stream in (op.queue, -1):
                    capsule = view.__dlpack__(stream=stream, max_version=(1, 0))
                    pointer = _memory._capsule_pointer(capsule, b"dltensor")
                    made = ctypes.cast(pointer, ctypes.POINTER(_memory.DLManagedTensor)).contents.tensor
                    self.assertEqual((made.data, made.device_type, made.ndim, made.code, made.bits, made.lanes), (op[tensor], 2, 2, 2, 16, 1))
                    self.assertEqual(([made.shape[0], made.shape[1]], bool(made.strides), made.byte_offset), ([4, 8], False, 0))
                    del capsule
                # One that a consumer takes: it is renamed, and its deleter called.
                capsule = view.__dlpack__(stream=-1)
                pointer = _memory._capsule_pointer(capsule, b"dltensor")
                rename = ctypes.pythonapi.PyCapsule_SetName
                rename.argtypes = [ctypes.py_object, ctypes.c_char_p]
                used = b"used_dltensor"
                rename(capsule, used)
                del capsule
                managed = ctypes.cast(pointer, ctypes.POINTER(_memory.DLManagedTensor))
                managed.contents.deleter(managed)
                for stream in (None, 0, 7):
                    with self.assertRaisesRegex(BufferError, "must be on the operation's queue"):
                        view.__dlpack__(stream=stream)
                with self.assertRaises(BufferError):
                    view.__dlpack__(stream=-1, copy=True)
                with self.assertRaises(BufferError):
                    view.__dlpack__(stream=-1, dl_device=(1, 0))
            with self.assertRaisesRegex(swapmm.UsageError, "is not running"):
                view.__dlpack__(stream=-1)
            with self.assertRaisesRegex(swapmm.UsageError, "is not running"):
                view.__cuda_array_interface__
            with manager.operation("waits", reads=tensor, takes_waits=True) as op:
                with self.assertRaisesRegex(swapmm.UsageError, "does not wait for the tensor"):
                    op.view(tensor)
            with manager.operation("bytes", outputs=[swapmm.Output(32), swapmm.Output(3, "bfloat16"), swapmm.Output(2, "bool")]) as op:
                plain, half, truth = (op.view(made) for made in op.outputs)
                self.assertEqual(plain.__cuda_array_interface__["typestr"], "|u1")
                self.assertEqual(truth.__cuda_array_interface__["typestr"], "|b1")
                with self.assertRaisesRegex(swapmm.UsageError, "no bfloat16"):
                    half.__cuda_array_interface__
                self.assertEqual(half.__dlpack_device__(), (2, 0))


if __name__ == "__main__":
    if os.environ.get("SWAPMM_FAKE_CUDA"):
        print("the CUDA runtime records calls, and has no device")
    unittest.main()
