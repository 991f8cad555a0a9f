# SPDX-License-Identifier: Apache-2.0
"""What libraries on top of PyTorch do: save models in other formats, look functions up, step within backward()."""

import ctypes
import importlib.util
import os
import tempfile
import types
import unittest

import torch
import torch.utils._device

import swapmm
import swapmm.torch

#: As libraries that save models have it: it compares addresses, and does not read there.
COMPARING = """
def storage_ptr(tensor):
    return tensor.untyped_storage().data_ptr()

def _end_ptr(tensor):
    return tensor.view(-1)[-1].data_ptr() + tensor.element_size()

def areas(tensors):
    return [(storage_ptr(tensor), _filter_shared_not_shared(tensor)) for tensor in tensors]

def _filter_shared_not_shared(tensor):
    return tensor.data_ptr(), _end_ptr(tensor)

def address(tensor):
    return tensor.data_ptr()
"""


def library(name):
    module = types.ModuleType(name)
    exec(COMPARING, module.__dict__)  # pylint: disable=exec-used
    return module


class AddressesTest(unittest.TestCase):
    """Eight tensors of 1 MiB in a budget of 3 MiB."""

    def setUp(self):
        swapmm.torch.budget("3MiB", "cpu")
        self.tensors = [torch.full((1 << 18,), float(i)) for i in range(8)]

    def tearDown(self):
        swapmm.torch.off()

    def test_libraries_that_compare_addresses_need_no_bytes(self):
        saving = library("safetensors.torch")
        parts = [self.tensors[0][:1024], self.tensors[0][1024:]]
        before = swapmm.torch.report().copied_in
        areas = saving.areas([*self.tensors, *parts])
        self.assertEqual(len({storage for storage, _ in areas[:8]}), 8)
        self.assertEqual([storage for storage, _ in areas[8:]], [areas[0][0]] * 2)
        begin, end = areas[0][1]
        self.assertEqual(end - begin, 1 << 20)
        self.assertEqual(areas[8][1], (begin, begin + 4096))
        self.assertEqual(areas[9][1], (begin + 4096, end))
        self.assertNotIn("the program called data_ptr()", swapmm.torch.report().kept)
        self.assertEqual(swapmm.torch.report().copied_in, before)

    def test_all_others_get_the_address(self):
        for module in (library("safetensors.torch"), library("my.saving")):
            self.assertEqual(list((ctypes.c_float * 4).from_address(module.address(self.tensors[5]))), [5.0] * 4)
        self.assertIn("the program called data_ptr()", swapmm.torch.report().kept)
        with self.assertRaises(swapmm.BundleTooLarge):
            library("my.saving").areas(self.tensors)


@unittest.skipUnless(importlib.util.find_spec("safetensors"), "the package safetensors is not installed")
class SafetensorsTest(unittest.TestCase):

    @staticmethod
    def model():
        torch.manual_seed(1)
        model = torch.nn.Sequential(*[torch.nn.Linear(512, 512) for _ in range(8)])
        model[3].weight = model[0].weight
        return model

    def test_a_model_that_is_larger_than_the_budget_is_saved(self):
        from safetensors.torch import load_file, load_model, save, save_file, save_model

        expected = self.model().state_dict()
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.safetensors")
            swapmm.torch.budget("3MiB", "cpu")
            try:
                model = self.model()
                save_model(model, path)
                for parameter in model.parameters():
                    parameter.data.zero_()
                load_model(model, path)
                with self.assertRaisesRegex(RuntimeError, "share memory"):
                    save_file(model.state_dict(), path)
                model[3].weight = torch.nn.Parameter(model[0].weight.detach().clone())
                save_file(model.state_dict(), path)
                text = save({"one": model[1].weight})
                self.assertLessEqual(swapmm.torch.report().peak, 3 << 20)
                self.assertNotIn("the program called data_ptr()", swapmm.torch.report().kept)
            finally:
                swapmm.torch.off()
            found = load_file(path)
            self.assertEqual(sorted(found), sorted(expected))
            for name, tensor in expected.items():
                self.assertTrue(torch.equal(found[name], tensor), name)
            self.assertIn(expected["1.weight"].numpy().tobytes(), text)


class FunctionsTest(unittest.TestCase):

    def test_a_device_for_all_that_is_made_holds_though_pytorch_asks_for_it_late(self):
        torch.utils._device._device_constructors.cache_clear()  # as in a program that has not used it yet
        swapmm.torch.budget("1MiB", "cpu")
        try:
            with torch.device("meta"):
                self.assertEqual(torch.tensor([1.0]).device.type, "meta")
                self.assertEqual(torch.as_tensor([1.0]).device.type, "meta")
                self.assertEqual(torch.get_default_device().type, "meta")
        finally:
            swapmm.torch.off()
        with torch.device("meta"):
            self.assertEqual(torch.tensor([1.0]).device.type, "meta")

    def test_tables_of_functions_have_pytorchs_own(self):
        torch.overrides.get_ignored_functions.cache_clear()
        torch.overrides._get_overridable_functions.cache_clear()
        swapmm.torch.budget("1MiB", "cpu")
        try:
            ignored = torch.overrides.get_ignored_functions()
            self.assertNotIn(torch.tensor, ignored)  # what stands for it now
        finally:
            swapmm.torch.off()
        self.assertIn(torch.tensor, ignored)

    def test_a_number_for_each_tensor_of_a_list_out_of_one_tensor(self):
        def program():
            lists = [[torch.full((1 << 16,), float(i + k)) for i in range(6)] for k in (0, 1, 2)]
            table = torch.arange(60000.0).view(10000, 6) / 1000  # it has to leave, too
            for i in range(3):
                others = [torch.full((1 << 18,), float(k)).mul_(2) for k in range(3)]
                torch._foreach_addcdiv_(*lists, torch.arange(6.0))
                torch._foreach_addcmul_(*lists, scalars=table[300 * i])
                del others
            return [tensor.clone() for tensor in lists[0]]

        plain = program()
        swapmm.torch.budget("4MiB", "cpu")
        try:
            ours = program()
            self.assertTrue(all(torch.equal(a, b) for a, b in zip(ours, plain)))
        finally:
            swapmm.torch.off()


class OperatorsTest(unittest.TestCase):
    def test_operators_of_programs_run_once(self):
        library = torch.library.Library("swapmm_libraries_test", "DEF")
        library.define("noisy(Tensor x) -> Tensor")
        devices = []

        def noisy(x):
            devices.append(x.device.type)
            return x + torch.randn(x.shape)

        library.impl("noisy", noisy, "CompositeExplicitAutograd")
        torch.manual_seed(1)
        plain = [torch.ops.swapmm_libraries_test.noisy(torch.ones(100, 100)) for _ in range(3)]
        del devices[:]
        swapmm.torch.budget("1MiB", "cpu")
        try:
            torch.manual_seed(1)
            ours = [torch.ops.swapmm_libraries_test.noisy(torch.ones(100, 100)) for _ in range(3)]
            self.assertEqual(devices, ["cpu"] * 3)
            self.assertTrue(all(torch.equal(a, b) for a, b in zip(ours, plain)))
        finally:
            swapmm.torch.off()


class StepsTest(unittest.TestCase):
    def same_within(self, size, program, steps):
        """The report of a program within a budget, whose losses and parameters are those without one."""
        losses, parameters = program(steps)
        swapmm.torch.budget(size, "cpu")
        try:
            ours, values = program(steps)
            report = swapmm.torch.report()
        finally:
            swapmm.torch.off()
        self.assertEqual(ours, losses)
        self.assertTrue(all(torch.equal(a, b) for a, b in zip(values, parameters)))
        return report


class StepsOfManyTest(StepsTest):
    """An optimizer for each layer."""

    @staticmethod
    def program(steps, ended=lambda: None):
        torch.manual_seed(1)
        model = torch.nn.Sequential(*[torch.nn.Linear(160, 160) for _ in range(6)])
        optimizers = [torch.optim.Adam(layer.parameters(), lr=1e-3) for layer in model]
        losses = []
        for _ in range(steps):
            loss = model(torch.ones(8, 160)).square().mean()
            loss.backward()
            for optimizer in optimizers:
                optimizer.step()
                optimizer.zero_grad()
            ended()
            losses.append(loss.item())
        return losses, [parameter.detach().clone() for parameter in model.parameters()]

    def test_steps_one_after_another_end_one_iteration(self):
        report = self.same_within("1400KiB", self.program, 16)
        self.assertEqual(report.iterations, 6 + 15)  # the first time, it is not known what follows
        self.assertGreaterEqual(report.iterations_followed, 8)

    def test_a_step_that_is_named_ends_no_other_iteration(self):
        swapmm.torch.budget("1400KiB", "cpu")
        try:
            self.program(5, swapmm.torch.step)
            self.assertEqual(swapmm.torch.report().iterations, 6 + 4)
        finally:
            swapmm.torch.off()

    def test_addresses_after_a_step(self):
        parameters = [torch.nn.Parameter(torch.ones(5000)) for _ in range(2)]
        optimizers = [torch.optim.SGD([parameter], lr=1.0) for parameter in parameters]
        swapmm.torch.budget("1MiB", "cpu")
        try:
            others = [torch.ones(1 << 16) for _ in range(6)]
            for _ in range(4):
                sum((parameter * 2).sum() for parameter in parameters).backward()
                for optimizer in optimizers:
                    optimizer.step()
                value = others[0] + 1
                address = value.data_ptr()
                for other in others:
                    other.mul_(1)
                self.assertEqual(ctypes.c_float.from_address(address).value, 2.0)
                self.assertEqual(value.data_ptr(), address)
        finally:
            swapmm.torch.off()

    def test_a_step_that_fails_does_not_join_iterations(self):
        parameters = [torch.nn.Parameter(torch.ones(5000)) for _ in range(2)]
        first, second = (torch.optim.SGD([parameter], lr=1.0) for parameter in parameters)

        def fails():
            raise ValueError

        swapmm.torch.budget("1MiB", "cpu")
        try:
            for _ in range(4):
                sum((parameter * 2).sum() for parameter in parameters).backward()
                first.step()
                with self.assertRaises(ValueError):
                    second.step(fails)
            self.assertEqual(swapmm.torch.report().iterations, 4)
        finally:
            swapmm.torch.off()

    def test_optimizers_that_are_made_for_one_step(self):
        parameter = torch.nn.Parameter(torch.ones(5000))
        parameter.grad = torch.ones(5000)
        swapmm.torch.budget("1MiB", "cpu")
        try:
            for _ in range(6):
                torch.optim.SGD([parameter], lr=1.0).step()
            self.assertEqual(swapmm.torch.report().iterations, 6)
        finally:
            swapmm.torch.off()

    def test_each_step_of_one_optimizer_ends_an_iteration(self):
        parameter = torch.nn.Parameter(torch.ones(5000))
        parameter.grad = torch.ones(5000)
        optimizer = torch.optim.SGD([parameter], lr=1.0)
        swapmm.torch.budget("1MiB", "cpu")
        try:
            for _ in range(6):
                optimizer.step()
            self.assertEqual(swapmm.torch.report().iterations, 6)
            self.assertEqual(parameter.sum().item(), -25000)
        finally:
            swapmm.torch.off()


class StepsWithinBackwardTest(StepsTest):
    """An optimizer for each parameter, which makes its step as soon as the gradient is there."""

    @staticmethod
    def program(steps):
        torch.manual_seed(2)
        model = torch.nn.Sequential(*[torch.nn.Linear(256, 256) for _ in range(6)])
        optimizers = {}

        def step(parameter):
            optimizers[parameter].step()
            optimizers[parameter].zero_grad()

        for parameter in model.parameters():
            optimizers[parameter] = torch.optim.Adam([parameter], lr=1e-3)
            parameter.register_post_accumulate_grad_hook(step)
        losses = []
        for i in range(steps):
            loss = model(torch.full((64, 256), float(i))).square().mean()
            loss.backward()
            losses.append(loss.item())
        return losses, [parameter.detach().clone() for parameter in model.parameters()]

    def test_one_backward_is_one_iteration(self):
        report = self.same_within("3MiB", self.program, 12)
        self.assertEqual(report.iterations, 12)
        self.assertGreaterEqual(report.iterations_followed, 6)


if __name__ == "__main__":
    unittest.main()
