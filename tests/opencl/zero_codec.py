#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Decodes what the device encoded, from docs/compression.md alone, and compares with what was encoded.

    zero_codec.py FOLDER

FOLDER has pairs NAME.plain and NAME.encoded. Prints their number, and fails if one differs, or if there is none."""

import sys
from pathlib import Path

import numpy as np

BLOCK = 4096


def decoded(encoded):
    """The bytes of the elements."""
    magic, form, n, size, block, nonzeros, total, reserved = np.frombuffer(encoded, "<u8", 8)
    assert magic.tobytes() == b"SWAPMZ01" and block == BLOCK and reserved == 0 and total == len(encoded)
    n, size, nonzeros = int(n), int(size), int(nonzeros)
    elements = f"<u{size}"
    if form == 0:
        assert total == 64 + n * size
        return encoded[64:]
    assert form == 1
    blocks, words = -(-n // BLOCK), -(-n // 32)
    table = np.frombuffer(encoded, "<u4", blocks, 64)
    bitmap = np.frombuffer(encoded, "u1", 4 * words, 64 + 4 * blocks)
    is_set = np.unpackbits(bitmap, bitorder="little").astype(bool)
    assert not is_set[n:].any()
    is_set = is_set[:n]
    padded = np.pad(is_set, (0, blocks * BLOCK - n))
    assert (padded.reshape(blocks, BLOCK).sum(axis=1) == table).all() and table.sum() == nonzeros
    alignment = max(4, size)
    values_at = -(-(64 + 4 * (blocks + words)) // alignment) * alignment
    assert total == values_at + nonzeros * size
    plain = np.zeros(n, elements)
    plain[is_set] = np.frombuffer(encoded, elements, nonzeros, values_at)
    return plain.tobytes()


def main():
    folder = Path(sys.argv[1])
    checked = 0
    for path in sorted(folder.glob("*.plain")):
        plain, encoded = path.read_bytes(), path.with_suffix(".encoded").read_bytes()
        if decoded(encoded) != plain:
            print(f"{path.name} differs")
            return 1
        checked += 1
    print(f"{checked} values decoded")
    return 0 if checked else 1


if __name__ == "__main__":
    sys.exit(main())
