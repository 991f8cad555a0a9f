# SPDX-License-Identifier: Apache-2.0
"""Other devices beside a manager's own: a neighbour's memory, and links that managers share."""

import array
import unittest

import swapmm
from swapmm import _native


def add(a, b):
    for i in range(len(b)):
        b[i] = (b[i] + a[i]) % 1000003


class Program:
    """Each tensor is added to the next one, and back."""

    layers, numbers = 6, 64

    def __init__(self, backend, **options):
        self.manager = swapmm.Manager(backend, 3 * 4 * self.numbers, **options)
        self.model = [[1000 * t + i for i in range(self.numbers)] for t in range(self.layers)]
        self.tensors = [self.manager.tensor(self.numbers, "int32", f"t{t}") for t in range(self.layers)]
        for tensor, values in zip(self.tensors, self.model):
            tensor.upload(array.array("i", values))

    def iterate(self):
        with self.manager.iteration("step"):
            for o in range(2 * self.layers):
                last = 2 * self.layers - 1
                source, target = (o, (o + 1) % self.layers) if o < self.layers else ((last + 1 - o) % self.layers, last - o)
                with self.manager.operation("add", reads=self.tensors[source], updates=self.tensors[target]) as op:
                    op.launch(add, self.tensors[source], self.tensors[target], nanoseconds=500)
                self.model[target] = [(b + a) % 1000003 for a, b in zip(self.model[source], self.model[target])]

    def values(self):
        return [list(array.array("i", bytes(tensor.download(bytearray(tensor.nbytes))))) for tensor in self.tensors]


class OtherDevices(unittest.TestCase):
    def test_a_neighbour_holds_values(self):
        neighbour = swapmm.simulated.neighbour("1KiB")
        program = Program(swapmm.simulated.create(1 << 16), neighbours=[neighbour], host_budget=1024)
        for _ in range(12):
            program.iterate()
        self.assertEqual(program.values(), program.model)
        report = program.manager.report()
        self.assertEqual(report.neighbours_budget, 1024)
        self.assertGreater(report.neighbours_read, 0)
        program.manager.set_neighbour_budget(neighbour, 512)
        program.iterate()
        self.assertEqual(program.values(), program.model)
        self.assertEqual(program.manager.report().neighbours_budget, 512)
        self.assertRegex(repr(neighbour), "neighbour on a simulated device")
        with self.assertRaises(swapmm.UsageError):
            program.manager.set_neighbour_budget(swapmm.simulated.neighbour(64), 64)
        self.assertEqual(swapmm.simulated.violations(program.manager.backend), 0)

    def test_managers_that_share_links_plan_together(self):
        links = swapmm.SharedLinks(both_ways="1GB")
        # What is planned stays, so that it can be seen.
        devices = [swapmm.simulated.create(1 << 16) for _ in range(2)]
        programs = [Program(device, shared_links=links, trial_iterations=0) for device in devices]
        for _ in range(40):
            for program in programs:
                program.iterate()
        for program in programs:
            self.assertEqual(program.values(), program.model)
            self.assertEqual([plan.devices for plan in program.manager.report().plans], [2])

    def test_links_are_measured(self):
        devices = [swapmm.simulated.create(1 << 16) for _ in range(2)]
        self.assertIsNone(swapmm.SharedLinks.measured(devices, 4096))  # they share nothing
        with self.assertRaises(swapmm.OutOfMemory):
            swapmm.SharedLinks.measured(devices, "1MiB")

    def test_bad_input(self):
        with self.assertRaisesRegex(swapmm.UsageError, "all capacities are 0"):
            swapmm.SharedLinks()
        with self.assertRaisesRegex(swapmm.UsageError, "needs backends"):
            swapmm.SharedLinks.measured([])
        with self.assertRaises(swapmm.UsageError):
            swapmm.SharedLinks(to_devices="fast")

    @unittest.skipIf(not _native.path_of("opencl").exists(), "the OpenCL backend was not built")
    def test_all_devices_are_of_one_kind(self):
        try:
            opencl = swapmm.opencl.pick()
        except (swapmm.Error, OSError) as reason:
            self.skipTest(f"no OpenCL device: {reason}")
        _, device = swapmm.opencl.native(opencl)
        neighbour = swapmm.opencl.neighbour(device, "64KiB", "16KiB")
        with self.assertRaisesRegex(swapmm.UsageError, "for managers on such devices"):
            swapmm.Manager(swapmm.simulated.create(), 1024, neighbours=[neighbour])
        with swapmm.Manager(opencl, "64KiB", neighbours=[neighbour]) as manager:
            self.assertEqual(manager.report().neighbours_budget, 65536)
        with self.assertRaisesRegex(swapmm.UsageError, "backends of one kind"):
            swapmm.SharedLinks.measured([opencl, swapmm.simulated.create()])
        links = swapmm.SharedLinks(to_devices=1000)
        with swapmm.Manager(opencl, "64KiB", shared_links=links), self.assertRaisesRegex(swapmm.UsageError, "of one kind"):
            swapmm.Manager(swapmm.simulated.create(), 1024, shared_links=links)


if __name__ == "__main__":
    unittest.main()
