#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""few_pictures.py FOLDER TRAIN TEST: writes the four files of Fashion-MNIST with so many pictures of noise."""

import gzip
import random
import struct
import sys
from pathlib import Path


def main():
    folder, *counts = sys.argv[1:]
    Path(folder).mkdir(parents=True, exist_ok=True)
    noise = random.Random(1)
    for name, count in zip(("train", "t10k"), map(int, counts)):
        images = struct.pack(">IIII", 2051, count, 28, 28) + noise.randbytes(count * 784)
        labels = struct.pack(">II", 2049, count) + bytes(noise.randrange(10) for _ in range(count))
        for kind, content in (("images-idx3", images), ("labels-idx1", labels)):
            Path(folder, f"{name}-{kind}-ubyte.gz").write_bytes(gzip.compress(content))


if __name__ == "__main__":
    main()
