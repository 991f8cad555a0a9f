# SPDX-License-Identifier: Apache-2.0
"""Fourier transforms of images by pyvkfft, which is linked with the system's OpenCL loader, on arrays of PyOpenCL, whose
wheel brings a loader of its own: python vkfft_transforms.py [SIZE] [ROUNDS]. Prints a digest of all results."""
import hashlib
import sys

import numpy as np
import pyopencl as cl
import pyopencl.array as cla
from pyvkfft.fft import irfftn, rfftn
from pyvkfft.opencl import VkFFTApp

size = int(sys.argv[1]) if len(sys.argv) > 1 else 256
rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 10
context = cl.create_some_context(interactive=False)
queue = cl.CommandQueue(context)
random = np.random.default_rng(1)
digest = hashlib.sha256()


def images():
    shape = (4, size, size)
    return cla.to_device(queue, (random.standard_normal(shape) + 1j * random.standard_normal(shape)).astype(np.complex64))


stacks = [images() for _ in range(5)]
apart = VkFFTApp(stacks[0].shape, stacks[0].dtype, queue, ndim=2, inplace=False)
in_place = VkFFTApp(stacks[0].shape, stacks[0].dtype, queue, ndim=2, inplace=True)
spectrum = cla.empty_like(stacks[0])
for number in range(rounds):
    total = None
    for stack in stacks:
        spectrum = apart.fft(stack, spectrum)
        back = spectrum * np.float32(0.5)
        back = in_place.ifft(back, back)
        total = back if total is None else total + back
    for i, stack in enumerate(stacks):
        stacks[i] = stack * np.float32(0.9) + total * np.float32(0.01 * (i + 1))
    digest.update(total.get().tobytes())
signal = cla.to_device(queue, random.standard_normal((2, size, size)).astype(np.float32))
for number in range(rounds):
    signal = signal * np.float32(0.5) + irfftn(rfftn(signal, ndim=2), ndim=2) * np.float32(0.5)
digest.update(signal.get().tobytes())
print(f"rounds {rounds} hash {digest.hexdigest()[:16]}")
