# SPDX-License-Identifier: Apache-2.0
"""Operators that a plan runs again instead of copying what they made: the bits are the same, whatever the program does."""

import os
import sys
import time
import unittest
from pathlib import Path
from unittest import mock

import torch

import swapmm
import swapmm.torch
from swapmm.torch import places
from swapmm.torch.operators import signature_of
from swapmm.torch.repeats import Repeats

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples" / "pytorch"))

import models  # noqa: E402
from outside import within  # noqa: E402

KiB = 1 << 10
COUNT = 12


def slowly(copy, bytes_per_second=20e6):
    """A copy over a slow link, so that computing is cheaper."""

    def slow(memory, context, number, place, other, size):
        result = copy(memory, context, number, place, other, size)
        time.sleep(size / bytes_per_second)
        return result

    return slow


class Chain:
    """An iteration: 12 tensors of 64 KiB are made of one, and needed once more in reverse order. Hooks change it in
    the middle, when the plan has dropped some of the tensors."""

    def __init__(self):
        torch.manual_seed(7)
        self.x = torch.randn(128, 128)
        self.scale = torch.randn(8)  # small: it stays where it is
        self.form = lambda x, scale: x * scale
        self.between = lambda values: None
        self.lost = ()  # those that the program lets go at once

    def values(self):
        made = []
        for i in range(COUNT):
            value = self.form(self.x + i, self.scale[i % 8])
            made.append(None if i in self.lost else value)
            del value
        return made

    def iterate(self):
        values = self.values()
        total = torch.zeros(128, 128)
        self.between(values)
        while values:
            value = values.pop()
            if value is not None:
                total = total * 0.5 + value
            del value
        return total.tolist()


class Device:
    """Values by address, and the allocator of the adapter."""

    def __init__(self):
        self.values, self.pool, self.next = {}, 1000, None

    def torch_next(self, place):
        self.next = place

    def torch_expect(self, count, sizes, places_at):
        assert count == 0

    def allocate(self):
        if self.next is None:
            self.pool += 8
            return self.pool
        place, self.next = self.next, None
        return place


class Storage:
    """A storage of 8 bytes of that device."""

    def __init__(self, device, place=None, value=None):
        self.device, self.place = device, place
        if place is not None:
            device.values[place] = value

    def nbytes(self):
        return 0 if self.place is None else 8

    def data_ptr(self):
        return self.place

    def resize_(self, size):
        before, self.place = self.place, self.device.allocate() if size else None
        if before is not None and self.place is not None:
            self.device.values[self.place] = self.device.values[before]

    def copy_(self, other):
        self.device.values[self.place] = self.device.values[other.place]


class RepeatsTest(unittest.TestCase):
    def setUp(self):
        for name in ("_copy_to_host", "_copy_to_device"):
            patch = mock.patch.object(places.CpuMemory, name, slowly(getattr(places.CpuMemory, name)))
            patch.start()
            self.addCleanup(patch.stop)

    def compare(self, change=None, settle=6, prepared=Chain, **options):
        """Iterates without a budget and with one; in iteration `settle` the program does something else. The chain, and
        the number of runs again before and after that."""
        chain = self.compare_once(change, settle, prepared, **options)
        if not any(self.runs) and options.get("recompute", True):  # on a busy machine operators may have seemed to be slow
            swapmm.torch.off()
            chain = self.compare_once(change, settle, prepared, **options)
        return chain

    def compare_once(self, change, settle, prepared, **options):
        chain = prepared()
        wanted = []

        def iterations(step):
            for i in range(settle + 3):
                chain.between = (lambda values: change(chain, values)) if change and i == settle else lambda values: None
                yield chain.iterate()
                step(i)

        wanted = list(iterations(lambda i: None))
        swapmm.torch.budget("320KiB", "cpu", planning_time_ms=200, **options)
        self.addCleanup(swapmm.torch.off)
        chain = prepared()
        runs = []

        def ended(_):
            swapmm.torch.step()
            runs.append(swapmm.torch.report().run_again)

        self.assertEqual(list(iterations(ended)), wanted)
        self.runs = runs
        return chain

    def test_runs_again(self):
        self.compare()
        report = swapmm.torch.report()
        self.assertGreater(self.runs[-1], self.runs[-2])
        self.assertEqual(report.divergences, 0)
        self.assertEqual(report.manager["values_saved"], 0)
        self.assertIn(f"and {self.runs[-1]} run again", str(report))
        self.assertLessEqual(report.peak, 320 * KiB)

    def test_can_be_switched_off(self):
        self.compare(recompute=False)
        self.assertEqual(self.runs[-1], 0)
        self.assertGreater(swapmm.torch.report().iterations_followed, 0)

    def test_a_small_operand_changes(self):
        self.compare(lambda chain, values: chain.scale.add_(1))
        self.assertGreater(self.runs[6], self.runs[5])

    def test_an_array_shares_a_small_operand(self):
        def change(chain, values):
            chain.scale.numpy()[:] = 3.0

        self.compare(change)
        self.assertGreater(self.runs[6], self.runs[5])
        # From then on the value may change at any time, so nothing that reads it runs again.
        self.assertEqual(self.runs[-1], self.runs[-2])

    def test_an_array_owns_a_small_operand(self):
        """From the beginning: nothing that reads it runs again."""
        def prepared():
            chain = Chain()
            chain.array = chain.scale.clone().numpy()
            chain.scale = torch.from_numpy(chain.array)
            return chain

        def change(chain, values):
            chain.array[:] = 3.0

        self.compare(change, prepared=prepared)

    def test_another_tensor_gets_the_bytes_of_a_small_operand(self):
        def change(chain, values):
            torch.from_dlpack(torch.utils.dlpack.to_dlpack(chain.scale)).mul_(3)

        self.compare(change)

    def test_operators_in_place(self):
        def prepared():
            chain = Chain()
            chain.form = lambda x, scale: (x * scale).relu_().add_(1).mul_(scale)
            return chain

        self.compare(prepared=prepared)
        self.assertGreater(self.runs[-1] - self.runs[-2], 3)
        self.assertEqual(swapmm.torch.report().manager["values_saved"], 0)

    def test_batch_normalization_leaves_its_statistics(self):
        def prepared():
            chain = Chain()
            chain.norm = torch.nn.BatchNorm1d(128)
            chain.form = lambda x, scale: chain.norm(x).detach().relu_()
            return chain

        chain = self.compare(prepared=prepared)
        self.assertGreater(self.runs[-1] - self.runs[-2], 3)
        statistics = [value.tolist() for value in chain.norm.buffers()]
        swapmm.torch.off()
        chain = prepared()
        for _ in range(9):
            chain.iterate()
        self.assertEqual([value.tolist() for value in chain.norm.buffers()], statistics)

    def test_random_numbers(self):
        """What draws random numbers draws the same ones when it runs again, and what is drawn later is as without a budget."""
        own = torch.Generator()
        forms = {
            "noise": lambda x, scale: x * scale + torch.randn_like(x),
            "dropout": lambda x, scale: torch.nn.functional.dropout(x * scale, 0.3),
            "native dropout": lambda x, scale: torch.native_dropout(x * scale, 0.3, True)[0],
            "a generator": lambda x, scale: torch.normal(x * scale, 1.0, generator=own),
            "in place": lambda x, scale: (x * scale).uniform_(-1, 1),
            "attention": lambda x, scale: torch.nn.functional.scaled_dot_product_attention(
                *((x * scale).reshape(1, 4, 32, 128),) * 3, dropout_p=0.2).reshape(128, 128),
        }
        usual = ("native dropout", "a generator", "in place")
        for name, form in forms.items():
            if name not in usual and not os.environ.get("SWAPMM_TEST_EVERYTHING"):
                continue

            def prepared(form=form):
                chain = Chain()
                own.manual_seed(3)
                chain.form = form
                return chain

            with self.subTest(name):
                chain = self.compare(lambda chain, values: None, prepared=prepared)
                self.assertGreater(self.runs[-1], self.runs[-2])
                self.assertEqual(swapmm.torch.report().manager["values_saved"], 0)
                left = torch.rand(4).tolist(), torch.rand(4, generator=own).tolist()
                swapmm.torch.off()
                chain = prepared()
                for _ in range(9):
                    chain.iterate()
                self.assertEqual((torch.rand(4).tolist(), torch.rand(4, generator=own).tolist()), left)

    def test_random_numbers_when_a_plan_is_left(self):
        """What was dropped is made at once, between operators that draw on their own."""
        def prepared():
            chain = Chain()
            chain.form = lambda x, scale: torch.nn.functional.dropout(x * scale, 0.3)
            return chain

        def change(chain, values):
            values[3].mul_(torch.rand(128, 128))
            values[4] = values[4] + torch.rand(128, 128)

        self.compare(change, prepared=prepared)
        self.assertGreater(self.runs[6], self.runs[5])

    def test_random_numbers_when_running_again_fails(self):
        """The generator has its own state again."""
        from swapmm.torch import repeats

        generator = torch.Generator().manual_seed(1)
        other = torch.Generator().manual_seed(2).get_state()
        wanted = generator.get_state()
        with self.assertRaises(KeyError), repeats._with_state(generator, other):
            self.assertTrue(torch.equal(generator.get_state(), other))
            torch.rand(4, generator=generator)
            raise KeyError
        self.assertTrue(torch.equal(generator.get_state(), wanted))

    def test_the_default_type_changes(self):
        """An operator that is given none has the one that it had."""
        def prepared():
            chain = Chain()
            chain.form = lambda x, scale: torch.full((128, 128), 0.1)
            return chain

        def change(chain, values):
            torch.set_default_dtype(torch.float64)

        self.addCleanup(torch.set_default_dtype, torch.float32)
        chain = self.compare(prepared=prepared)
        chain.between = lambda values: torch.set_default_dtype(torch.float64)
        values = chain.values()
        chain.between(values)
        swapmm.torch.step()
        self.assertTrue(all(torch.equal(value, torch.full((128, 128), 0.1, dtype=torch.float32)) for value in values))

    def test_the_newer_switches_of_precision(self):
        if not hasattr(torch._C, "_get_fp32_precision_getter"):
            self.skipTest("this PyTorch has none")
        before = torch.backends.cuda.matmul.fp32_precision
        self.addCleanup(setattr, torch.backends.cuda.matmul, "fp32_precision", before)

        def change(chain, values):
            torch.backends.cuda.matmul.fp32_precision = "tf32"

        self.compare(change)
        self.assertGreater(self.runs[6], self.runs[5])

    def test_on_demand_per_operation(self):
        chain = self.compare(demand_mode="per_operation")
        values = chain.values()
        swapmm.torch.step()
        self.assertEqual([value.tolist() for value in values], [value.tolist() for value in Chain().values()])

    def test_modes_do_not_see_it(self):
        seen = []

        class Mode(torch.overrides.TorchFunctionMode):
            def __torch_function__(self, function, types, args=(), kwargs=None):
                seen.append(function)
                return function(*args, **(kwargs or {}))

        chain = self.compare()
        values = chain.values()
        before = swapmm.torch.report().run_again
        with Mode():
            swapmm.torch.step()
        self.assertGreater(swapmm.torch.report().run_again, before)
        self.assertEqual(seen, [])
        del values

    def test_it_fails_when_an_iteration_ends(self):
        chain = self.compare()
        values = chain.values()
        failures = []

        def perform(repeats, repeat, operation, plain=Repeats._perform):
            if len(failures) < 1:
                failures.append(repeat.function)
                raise KeyboardInterrupt
            plain(repeats, repeat, operation)

        with mock.patch.object(Repeats, "_perform", perform):
            with self.assertRaises(KeyboardInterrupt):
                swapmm.torch.step()
            swapmm.torch.step()  # once more
        self.assertEqual([value.tolist() for value in values], [value.tolist() for value in Chain().values()])
        del values
        # What fails twice is lost, and nothing else.
        for _ in range(4):
            chain.iterate()
            swapmm.torch.step()
        values = chain.values()
        failing = mock.Mock(side_effect=RuntimeError)
        with mock.patch.object(Repeats, "_perform", failing):
            for _ in range(40):
                try:
                    swapmm.torch.step()
                    break
                except swapmm.WorkFailed:
                    pass
        lost = 0
        for value, plain in zip(values, Chain().values()):
            try:
                self.assertEqual(value.tolist(), plain.tolist())
            except swapmm.Error:
                lost += 1
        self.assertGreater(lost, 0)
        self.assertEqual(chain.x.tolist(), Chain().x.tolist())
        failing.reset_mock()  # it keeps what it was called with
        del values, value
        self.assertEqual(chain.iterate(), Chain().iterate())

    def test_a_large_operand_changes(self):
        self.compare(lambda chain, values: chain.x.add_(1))

    def test_an_operand_gets_another_shape(self):
        def change(chain, values):
            chain.x.t_()
            chain.scale.data = chain.scale.clone()[:8]

        self.compare(change)
        self.assertGreater(self.runs[6], self.runs[5])

    def test_an_operand_gets_other_bytes(self):
        def change(chain, values):
            chain.x.data = torch.ones(128, 128)

        self.compare(change)

    def test_the_program_keeps_an_address(self):
        self.compare(lambda chain, values: chain.x.data_ptr())

    def test_a_setting_changes(self):
        """Operators run again under the settings that they ran under."""
        seen = []

        def perform(repeats, repeat, operation, plain=Repeats._perform):
            function = repeat.function
            repeat.function = lambda *args, **kwargs: (seen.append(torch.backends.mkldnn.enabled), function(*args, **kwargs))[1]
            plain(repeats, repeat, operation)
            repeat.function = function
            seen.append(torch.backends.mkldnn.enabled)

        def change(chain, values):
            torch._C._set_mkldnn_enabled(False)
            torch.use_deterministic_algorithms(True, warn_only=True)

        self.addCleanup(torch._C._set_mkldnn_enabled, True)
        self.addCleanup(torch.use_deterministic_algorithms, False)
        with mock.patch.object(Repeats, "_perform", perform):
            chain = self.compare()
            seen.clear()
            chain.between = lambda values: change(chain, values)
            chain.iterate()
        self.assertEqual(set(seen[::2]), {True})
        self.assertIn(False, seen[1::2])
        self.assertTrue(torch.is_deterministic_algorithms_warn_only_enabled())

    def test_an_operand_is_resized(self):
        def change(chain, values):
            spare = chain.x.clone()
            chain.x.resize_(8, 8)
            chain.x.resize_(128, 128).copy_(spare)

        self.compare(change)

    def test_values_are_looked_at(self):
        seen = []
        self.compare(lambda chain, values: seen.append([value.tolist() for value in values]))
        self.assertEqual(seen[0], seen[1])

    def test_values_go_early_and_late(self):
        kept = []
        self.compare(lambda chain, values: (kept.append(values[3]), values.pop(7), values.pop(5)))
        self.assertTrue(torch.equal(kept[0], kept[1]))

    def test_values_go_before_the_plan_has_copied_them(self):
        for recompute in (True, False):
            chain, plain = self.compare(recompute=recompute), Chain()
            for lost in range(0, COUNT, 1 if os.environ.get("SWAPMM_TEST_EVERYTHING") else 4):
                chain.lost = plain.lost = {lost}
                wanted = None
                with self.subTest(recompute=recompute, lost=lost):
                    result = chain.iterate()
                    swapmm.torch.step()
                    wanted = plain.iterate()
                    swapmm.torch.step()
                    self.assertEqual(result, wanted)
                    chain.lost = ()
                    for _ in range(2):
                        chain.iterate()
                        swapmm.torch.step()

    def test_an_iteration_ends_early(self):
        chain = self.compare()
        values = chain.values()
        before = swapmm.torch.report().run_again
        swapmm.torch.step()
        self.assertGreater(swapmm.torch.report().run_again, before)
        self.assertEqual([value.tolist() for value in values], [value.tolist() for value in Chain().values()])

    def test_it_ends_in_the_middle(self):
        chain = self.compare()
        values = chain.values()
        swapmm.torch.off()
        self.assertEqual([value.tolist() for value in values], [value.tolist() for value in Chain().values()])

    def test_a_child_of_a_fork(self):
        chain = self.compare()
        values = chain.values()
        child = os.fork()
        if child == 0:
            wanted = [value.tolist() for value in Chain().values()]
            os._exit(0 if [value.tolist() for value in values] == wanted else 1)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        self.assertEqual([value.tolist() for value in values], [value.tolist() for value in Chain().values()])

    def test_it_fails_when_it_runs_again(self):
        chain = self.compare()
        failures = []

        def perform(repeats, repeat, operation, plain=Repeats._perform):
            if not failures:
                failures.append(repeat.function)
                raise KeyboardInterrupt
            plain(repeats, repeat, operation)

        with mock.patch.object(Repeats, "_perform", perform):
            with self.assertRaises(KeyboardInterrupt):
                chain.iterate()
        self.assertEqual(len(failures), 1)
        swapmm.torch.step()
        self.assertEqual(chain.iterate(), Chain().iterate())
        self.assertEqual(chain.x.tolist(), Chain().x.tolist())

    def test_what_may_run_again(self):
        repeatable = lambda name, overload="default": signature_of(
            getattr(getattr(torch.ops.aten, name), overload)).repeatable  # noqa: E731
        for name, overload in (("mm", "default"), ("gelu", "default"), ("add", "Tensor"), ("convolution", "default"),
                               ("native_layer_norm", "default"), ("_softmax", "default"), ("_to_copy", "default"), ("cat", "default"),
                               ("_scaled_dot_product_flash_attention_for_cpu", "default"),
                               ("add_", "Tensor"), ("relu_", "default"), ("native_batch_norm", "default"),
                               ("native_dropout", "default"), ("bernoulli_", "float"), ("normal_", "default"), ("randn", "default")):
            self.assertTrue(repeatable(name, overload), name)
        for name, overload in (("add", "out"), ("mm", "out"), ("native_dropout", "out"), ("_cudnn_rnn", "default"), ("multinomial", "default"),
                               ("cumprod", "default"), ("_softmax_backward_data", "default"), ("_foreach_add_", "List"),
                               ("gelu_backward", "default"), ("view", "default"),
                               ("nonzero", "default"), ("empty", "memory_format"), ("index_add", "default"), ("cumsum", "default"),
                               ("_foreach_add", "List"), ("matmul", "default"), ("item", "default")):
            self.assertFalse(repeatable(name, overload), name)

    def test_results_at_the_place_of_another_one(self):
        """On CUDA, an operator that allocates two results of one size in the other order."""
        from swapmm.torch import cuda
        from swapmm.torch.cuda import CudaMemory

        calls = {"address_of": Storage.data_ptr, "nbytes_of": Storage.nbytes, "resize_storage": Storage.resize_,
                 "copy_storage": Storage.copy_}
        for name, call in calls.items():
            self.addCleanup(setattr, cuda, name, getattr(cuda, name))
            setattr(cuda, name, call)
        device = Device()
        memory = CudaMemory.__new__(CudaMemory)
        memory.places, memory.records, memory.library = places.Places(), {}, device
        for again in (False, True):
            records = [places.Record(i, 8) for i in (1, 2)]
            device.pool = 1000
            new = [Storage(device, 200, "first"), Storage(device, 100, "second")]
            known = [Storage(device), Storage(device)] if again else new
            for record, storage in zip(records, known):
                record.storage = lambda storage=storage: storage
            if again:
                memory.made_again(list(zip(records, known, (100, 200))), new)
                self.assertEqual([storage.nbytes() for storage in new], [0, 0])
            else:
                memory.made(list(zip(records, new, (100, 200))))
            self.assertEqual([storage.data_ptr() for storage in known], [100, 200])
            self.assertEqual([device.values.get(place) for place in (100, 200)], ["first", "second"])
            self.assertEqual([record.place for record in records], [100, 200])
            for record in records:
                memory.places.take(record)

    def test_networks(self):
        cases = [
            ("gpt", dict(batch=4, layers=1, width=128, heads=4, sequence=64, vocabulary=500), 0.1),
            ("gpt", dict(batch=4, layers=3, width=128, heads=4, sequence=64, vocabulary=500), 0.0),
            ("vit", dict(batch=8, layers=3, width=128, heads=4, image=64, patch=8), 0.0),
        ]
        for name, sizes, dropout in cases if os.environ.get("SWAPMM_TEST_EVERYTHING") else cases[:1]:
            def train(name=name, sizes=sizes, dropout=dropout):
                made = models.build(name, overrides=sizes)
                torch.manual_seed(2)
                losses = []
                for _ in range(6):
                    made.optimizer.zero_grad()
                    loss = torch.nn.functional.dropout(made.loss().expand(4096), dropout).mean()
                    loss.backward()
                    made.optimizer.step()
                    losses.append(loss.item())
                return losses, [value.detach() for value in made.network.state_dict().values()]

            with self.subTest(name, dropout=dropout):
                losses, weights = train()
                _, need, _ = within(1 << 40, train)
                size = need // 2 + (256 << 10)
                (ours, ours_weights), peak, report = within(size, train, planning_time_ms=5000)
                print(f"{name}: {report.run_again} operators run again")
                self.assertEqual(ours, losses)
                for a, b in zip(ours_weights, weights):
                    self.assertTrue(torch.equal(a, b))
                self.assertLessEqual(peak, size)
                self.assertGreater(report.run_again, 0)
                self.assertEqual(report.manager["values_saved"], 0)


if __name__ == "__main__":
    torch.set_num_threads(1)
    unittest.main()
