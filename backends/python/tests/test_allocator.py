# SPDX-License-Identifier: Apache-2.0
"""What PyTorch's requests get while a compiled graph runs: without a device, because addresses alone are handed out."""

import ctypes
import unittest

from swapmm import _native

KiB = 1 << 10


@unittest.skipIf(not _native.path_of("cuda").exists(), "the CUDA backend was not built")
class Room(unittest.TestCase):
    begin = 1 << 20

    def setUp(self):
        try:
            self.library = ctypes.CDLL(str(_native.path_of("cuda")))
        except OSError as reason:
            self.skipTest(f"the CUDA backend cannot be loaded: {reason}")
        for name, result, arguments in (
            ("allocate", ctypes.c_void_p, [ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p]),
            ("free", None, [ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p]),
            ("room", None, [ctypes.c_uint64] * 3),
            ("room_peak", ctypes.c_uint64, []),
            ("room_live", ctypes.c_uint64, []),
            ("request_of", ctypes.c_int64, [ctypes.c_uint64]),
            ("expect", None, [ctypes.c_uint64, ctypes.c_void_p, ctypes.c_void_p]),
            ("expect_requests", None, [ctypes.c_uint64, ctypes.c_void_p]),
        ):
            function = getattr(self.library, f"swapmm_torch_{name}")
            function.restype, function.argtypes = result, arguments
            setattr(self, name + "_", function)
        self.room_(self.begin, 64 * KiB, 4 * KiB)
        self.addCleanup(self.room_, 0, 0, 0)
        self.addCleanup(self.expect_, 0, None, None)

    def take(self, size):
        return self.allocate_(size, 0, None) - self.begin

    def give(self, place, size):
        self.free_(self.begin + place, size, 0, None)

    def expect(self, entries):
        """(size, place, request)"""
        count = len(entries)
        sizes, places = ((ctypes.c_uint64 * count)(*[entry[i] for entry in entries]) for i in (0, 1))
        self.expect_(count, ctypes.addressof(sizes), ctypes.addressof(places))
        requests = (ctypes.c_int64 * count)(*[entry[2] for entry in entries])
        self.expect_requests_(count, ctypes.addressof(requests))

    def test_the_first_place_that_is_free(self):
        self.assertEqual(self.take(8 * KiB), 0)
        self.assertEqual(self.take(5000), 8 * KiB)
        self.assertEqual(self.take(16 * KiB), 8 * KiB + 5120)  # places are multiples of 512
        self.give(0, 8 * KiB)
        self.assertEqual(self.take(9 * KiB), 24 * KiB + 5120)  # does not fit before
        self.assertEqual(self.take(4 * KiB), 0)
        self.assertEqual(self.take(4 * KiB), 4 * KiB)
        self.give(8 * KiB, 5000)
        self.assertEqual(self.take(5120), 8 * KiB)
        self.assertEqual(self.room_peak_(), 33 * KiB + 5120)
        self.assertEqual(self.room_live_(), 5)
        self.give(8 * KiB, 5120)
        self.assertEqual(self.room_live_(), 4)
        self.assertEqual(self.request_of_(self.begin + 8 * KiB), 6)
        self.assertEqual(self.request_of_(self.begin + 24 * KiB + 5120), 3)
        self.assertEqual(self.request_of_(77), -1)

    def test_results_get_their_own_places(self):
        far = 1 << 30
        self.expect([(8 * KiB, far, 2), (8 * KiB, far + 8 * KiB, 1), (6 * KiB, far + 16 * KiB, -1)])
        self.assertEqual(self.take(8 * KiB), 0)  # of the same size, and none of them
        self.assertEqual(self.allocate_(8 * KiB, 0, None), far + 8 * KiB)
        self.assertEqual(self.allocate_(8 * KiB, 0, None), far)
        self.assertEqual(self.allocate_(6 * KiB, 0, None), far + 16 * KiB)
        self.assertEqual(self.take(6 * KiB), 8 * KiB)
        self.assertEqual(self.room_peak_(), 14 * KiB)
        self.assertEqual([self.request_of_(far), self.request_of_(far + 8 * KiB)], [2, 1])

    def test_a_new_room_knows_nothing_of_the_last_one(self):
        self.take(32 * KiB)
        self.room_(self.begin, 64 * KiB, 4 * KiB)
        self.assertEqual(self.room_peak_(), 0)
        self.assertEqual(self.take(64 * KiB), 0)
        self.assertEqual(self.request_of_(self.begin), 0)


if __name__ == "__main__":
    unittest.main()
