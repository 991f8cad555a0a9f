# SPDX-License-Identifier: Apache-2.0
"""torch.compile: graphs of PyTorch's compiler run as one operation each, with the same bits as without a budget."""

import contextlib
import gc
import os
import queue
import shutil
import sysconfig
import tempfile
import threading
import unittest
import unittest.mock
import warnings

import numpy

# Before PyTorch is imported; its own default needs a user with a name.
os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", os.path.join(tempfile.gettempdir(), f"swapmm-inductor-{os.getuid()}"))
# Else PyTorch compiles a program for each set of vector instructions, and loads it in a process of its own: 45 s.
os.environ.setdefault("TORCHINDUCTOR_VEC_ISA_OK", "1")

import torch  # noqa: E402
from torch import nn  # noqa: E402
from torch._dynamo import config as dynamo  # noqa: E402
from torch._inductor import config as inductor  # noqa: E402
from torch.nn import functional  # noqa: E402

import swapmm  # noqa: E402
import swapmm.torch  # noqa: E402
from swapmm.torch import modes, places, regions  # noqa: E402

MiB = 1 << 20
MISSING = ("PyTorch runs what it has compiled as before below a dispatch mode; since 2.8 it does not have to" if not modes.COMPILES else
           "PyTorch's compiler needs a C++ compiler" if shutil.which("g++") is None and shutil.which("clang++") is None else
           "PyTorch's compiler needs Python's headers" if not os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h")) else "")
#: To compile takes long.
everything = bool(os.environ.get("SWAPMM_TEST_EVERYTHING"))
rarely = unittest.skipUnless(everything, "only in ./dev pytorch")


class Convolutions(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(3, 16, 3, padding=1)
        self.norm = nn.BatchNorm2d(16)
        self.second = nn.Conv2d(16, 32, 3, padding=1)
        self.head = nn.Linear(32, 10)

    def forward(self, images):
        found = functional.relu(self.norm(self.first(images)))
        found = functional.dropout(functional.gelu(self.second(found)), 0.3, self.training)
        return self.head(found.mean((2, 3)))


class Block(nn.Module):
    """A layer of a transformer."""

    def __init__(self, width=128, heads=4):
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.heads = heads
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.parts = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, values):
        q, k, v = self.qkv(self.norms[0](values)).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        seen = functional.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(-2)
        values = values + self.out(seen)
        return values + self.parts(self.norms[1](values))


class Transformer(nn.Module):
    def __init__(self, layers=6, width=128, words=500):
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.layers = nn.ModuleList(Block(width) for _ in range(layers))
        self.head = nn.Linear(width, 10)

    def forward(self, words):
        values = self.words(words)
        for layer in self.layers:
            values = layer(values)
        return self.head(values.mean(1))


def perceptron():
    return nn.Sequential(nn.Linear(256, 512), nn.GELU(), nn.Linear(512, 512), nn.LayerNorm(512), nn.Linear(512, 10))


@unittest.skipIf(MISSING, MISSING)
class CompiledTest(unittest.TestCase):
    """Each program natively, and within a budget."""

    def setUp(self):
        warnings.filterwarnings("error", ".*global hooks.*")  # a program must not be warned of what we do
        self.addCleanup(warnings.resetwarnings)

    @contextlib.contextmanager
    def within(self, size, **options):
        swapmm.torch.budget(size, "cpu", **options)
        names = []
        adapter = swapmm.torch._adapter()
        run = adapter.run_call

        def noted(call):
            names.append(call.signature.key.decode())
            return run(call)

        adapter.run_call = noted
        try:
            yield names
        finally:
            swapmm.torch.off()

    def train(self, build, size, steps=6, compiled=torch.compile, batch=64, shape=(256,), words=0, native=None):
        """Natively, then within the budget. Returns the names of the graphs that ran, and the report. Programs with the same
        list as `native` run natively once."""

        def program():
            torch.compiler.reset()
            torch.manual_seed(3)
            network = build()
            step = compiled(network)
            steps_of = torch.optim.AdamW(network.parameters(), lr=0.01)
            inputs = torch.randint(0, words, (batch, *shape)) if words else torch.randn(batch, *shape)
            labels = torch.randint(0, 10, (batch,))
            losses = []
            for _ in range(steps):
                steps_of.zero_grad()
                loss = functional.cross_entropy(step(inputs), labels)
                loss.backward()
                steps_of.step()
                losses.append(loss.item())
            return losses, [value.detach().clone() for value in network.state_dict().values()]

        native = [] if native is None else native
        if not native:
            native.append(program())
        losses, values = native[0]
        with self.within(size) as names:
            ours, found = program()
            report = swapmm.torch.report()
            self.assertEqual(ours, losses)
            for theirs, value in zip(values, found):
                self.assertTrue(torch.equal(theirs, value))
        self.assertEqual(len(set(losses)), len(losses))
        self.assertLessEqual(report.peak, report.budget)
        self.assertEqual(report.unforeseen, 0)
        return names, report

    def test_a_network_of_matrices(self):
        names, report = self.train(perceptron, "5MiB", 8)
        self.assertEqual(sum("forward" in name for name in names), 8)
        self.assertEqual(sum("backward" in name for name in names), 8)
        self.assertGreater(report.iterations_followed, 1)
        self.assertGreater(report.copied_out, 0)

    @rarely
    def test_convolutions_that_change_their_statistics(self):
        """The kernels of convolutions ask PyTorch for memory themselves."""
        names, report = self.train(Convolutions, "8MiB", 8, batch=16, shape=(3, 32, 32))
        self.assertEqual(len(names), 16)
        self.assertGreater(report.iterations_followed, 1)

    def test_layers_of_a_transformer(self):
        """Each is compiled by itself, so that half and a quarter of the memory are enough. They share their graphs."""

        layers = 6 if everything else 4  # a layer must fit into the smallest share

        def by_layers(network):
            for layer in network.layers:
                layer.compile()
            return network

        peak, native = None, []
        for share in (1, 0.5, 0.25) if everything else (1, 0.4):
            with self.subTest(share=share):
                size = 256 * MiB if peak is None else int(peak * share)
                names, report = self.train(lambda: Transformer(layers), size, 8, by_layers, batch=16, shape=(64,), words=500, native=native)
                self.assertEqual(len(names), 2 * layers * 8)
                self.assertEqual(len(set(names)), 2)
                self.assertGreater(report.iterations_followed, 1)
                if peak is None:
                    peak = report.peak
                else:
                    self.assertGreater(report.copied_in, peak // 4)

    @rarely
    def test_each_operator_alone(self):
        """A backend that keeps PyTorch's operators leaves them to the manager."""
        names, report = self.train(perceptron, "4MiB", 6, lambda network: torch.compile(network, backend="aot_eager"))
        self.assertEqual(names, [])
        self.assertGreater(report.operations, 100)

    def test_parts_that_are_not_compiled(self):
        class Broken(nn.Module):
            def __init__(self):
                super().__init__()
                self.one, self.two, self.three = (nn.Linear(256, 256) for _ in range(3))
                self.seen = []

            def forward(self, values):
                values = functional.gelu(self.one(values))
                self.seen.append(values[0, 0].item())
                values = functional.gelu(self.two(values) + torch.tensor([values[1, 1], 2.0]).sum())
                torch._dynamo.graph_break()
                return functional.gelu(self.three(values))

        names, _ = self.train(Broken, "3MiB", 3)
        self.assertGreaterEqual(sum("forward" in name for name in names), 6)

    @rarely
    def test_sizes_that_change(self):
        def program():
            torch.compiler.reset()
            torch.manual_seed(3)
            network = nn.Sequential(nn.Linear(64, 512), nn.GELU(), nn.Linear(512, 64))
            step = torch.compile(network, dynamic=True)
            results = []
            for batch in (300, 500, 300, 700, 500, 4, 2, 300):
                torch.manual_seed(batch)
                values = torch.randn(batch, 64, requires_grad=True)
                step(values).square().sum().backward()
                results += [values.grad.clone(), network[0].weight.grad.clone()]
            return results

        plain = program()
        with self.within("8MiB", demand_mode="per_operation") as names:
            ours = program()
            self.assertEqual(swapmm.torch.report().unforeseen, 0)
            for theirs, value in zip(plain, ours):
                self.assertTrue(torch.equal(theirs, value))
        self.assertEqual(len(names), 16)

    @rarely
    def test_numbers_that_change(self):
        """They are inputs, but decide nothing about sizes: what is known of the graph stays known. Unless they do."""

        def scaled(values, scale, count):
            return (values * scale + count).sin() * 2

        def repeated(values, count):
            return torch.cat([values.sin(), torch.zeros(count, 512)])

        def program():
            torch.compiler.reset()
            torch.manual_seed(1)
            values = torch.randn(128, 512)
            first, second = torch.compile(scaled, dynamic=True), torch.compile(repeated, dynamic=True)
            results = [first(values, 0.5 + i, i + 5) for i in range(6)]
            return results + [second(values, 50 + 10 * i % 40) for i in range(6)]

        plain = program()
        with self.within("3MiB", demand_mode="per_operation") as names:
            for theirs, value in zip(plain, program()):
                self.assertTrue(torch.equal(theirs, value))
            known = [each for each in regions._all_known.values() if each._session is swapmm.torch._session.parts[-1]]
            self.assertEqual(len(names), 12)
            self.assertEqual(sorted(len(each._regions) for each in known), [1, 5])

    def test_arguments_that_change(self):
        @torch.compile
        def update(state, other):
            state.mul_(0.5).add_(other.sin())
            return (state * other).sum()

        def program():
            torch.manual_seed(1)
            states = [torch.randn(1 << 18) for _ in range(6)]
            return [update(state, states[0].cos()).item() for _ in range(4) for state in states], states

        totals, states = program()
        with self.within("4MiB", demand_mode="per_operation"):
            ours, found = program()
            self.assertEqual(ours, totals)
            for theirs, value in zip(states, found):
                self.assertTrue(torch.equal(theirs, value))
        totals_after, _ = program()  # it runs as before
        self.assertEqual(totals_after, totals)

    def test_functions_that_the_adapter_wraps(self):
        """PyTorch's compiler finds them in the program, and goes on as before."""

        def program(values):
            constant = torch.tensor([1.0, 2.0, 3.0])
            other = torch.tensor([values[1, 1], 2.0])
            return values * constant.sum() + other.sum() + torch.as_tensor(3.0)

        values = torch.arange(1 << 16, dtype=torch.float32).view(256, 256)
        plain = torch.compile(program, fullgraph=True)(values)
        torch.compiler.reset()
        with self.within("2MiB"):
            self.assertTrue(torch.equal(torch.compile(program, fullgraph=True)(values), plain))

    @rarely
    def test_inference(self):
        torch.manual_seed(2)
        network = nn.Sequential(*[nn.Linear(256, 256) for _ in range(16)]).eval()
        inputs = torch.randn(8, 256)
        compiled = torch.compile(network, fullgraph=True)
        with torch.no_grad():
            plain = compiled(inputs)
            with self.within("6MiB") as names:  # it was compiled before
                swapmm.torch.stream(compiled)
                for _ in range(6):
                    self.assertTrue(torch.equal(compiled(inputs), plain))
                self.assertEqual(len(names), 6)
                self.assertEqual(swapmm.torch.report().iterations, 6)
            self.assertTrue(torch.equal(compiled(inputs), plain))

    def test_graphs_that_are_too_large_run_operator_by_operator(self):
        """The whole network in one graph, in a quarter of what that needs. The results are PyTorch's, not the compiler's."""

        def program(compiled):
            torch.compiler.reset()
            torch.manual_seed(3)
            network = nn.Sequential(*[nn.Sequential(nn.Linear(256, 256), nn.BatchNorm1d(256), nn.GELU()) for _ in range(12)])
            step = torch.compile(network) if compiled else network
            optimizer = torch.optim.SGD(network.parameters(), lr=0.01)
            inputs = torch.randn(512, 256)
            losses = []
            for _ in range(6):
                optimizer.zero_grad()
                loss = step(inputs).square().mean()
                loss.backward()
                optimizer.step()
                losses.append(loss.item())
            return losses, [value.detach().clone() for value in network.state_dict().values()]

        eager, theirs = program(False)
        sizes = (("5MiB", 2), ("10MiB", 2), ("64MiB", 0))
        for size, too_large in sizes if everything else sizes[:1]:
            with self.subTest(size=size), self.within(size):
                with warnings.catch_warnings(record=True) as caught:
                    warnings.simplefilter("always")
                    losses, values = program(True)
                self.assertEqual(sum("run one by one" in str(each.message) for each in caught), too_large)
                for ours, value in zip(losses, eager):
                    self.assertAlmostEqual(ours, value, delta=1e-4 * abs(value))
                for ours, value in zip(values, theirs):
                    self.assertTrue(torch.allclose(ours.double(), value.double(), rtol=1e-3, atol=1e-4))
                self.assertGreaterEqual(swapmm.torch.report().iterations_followed, 1)

    @rarely
    def test_what_does_not_fit(self):
        """What is random in a graph would be another one operator by operator."""
        torch.manual_seed(2)
        network = nn.Sequential(perceptron(), nn.Dropout(0.2))
        before = [value.clone() for value in network.state_dict().values()]
        inputs = torch.randn(64, 256)
        compiled = torch.compile(network)
        with self.within("2MiB"):
            with self.assertRaisesRegex(swapmm.Error, "compiled forward.*such as each layer"):
                compiled(inputs)
            gc.collect()
            network.eval()
            eager = network(inputs).sum().item()  # the model remains usable, and whole
        for value, theirs in zip(network.state_dict().values(), before):
            self.assertTrue(torch.equal(value, theirs))
        self.assertEqual(network(inputs).sum().item(), eager)

    @rarely
    def test_room_that_operators_of_a_graph_ask_for(self):
        """These are counted, and refused, too."""
        values = torch.randn(1, 64, 64, 64)
        layer = nn.Conv2d(64, 64, 3, padding=1)
        compiled = torch.compile(lambda x: layer(layer(layer(x))).sum())
        with torch.no_grad():
            plain = compiled(values)
            with self.within("5MiB"):
                self.assertTrue(torch.equal(compiled(values), plain))
                self.assertTrue(torch.equal(compiled(values), plain))
            with self.within("2MiB"):
                with self.assertRaisesRegex(swapmm.OutOfMemory, "compiled forward"):
                    compiled(values)

    @rarely
    def test_steps_of_optimizers(self):
        def program(compiled):
            torch.compiler.reset()
            torch.manual_seed(3)
            network = nn.Linear(256, 256)
            optimizer = torch.optim.SGD(network.parameters(), lr=0.01, momentum=0.9)
            step = torch.compile(optimizer.step) if compiled else optimizer.step
            inputs = torch.randn(8, 256)
            for _ in range(4):
                optimizer.zero_grad()
                network(inputs).square().sum().backward()
                step()
            return [value.detach().clone() for value in network.state_dict().values()]

        plain = program(True)
        with self.within("2MiB"):
            ours = program(True)
            for theirs, value in zip(plain, ours):
                self.assertTrue(torch.equal(theirs, value))

    def test_what_a_graph_knows_is_forgotten_with_it(self):
        with self.within("8MiB"):
            gc.collect()
            before = len(regions._all_known)
            compiled = torch.compile(lambda x: x.sin() + 1)
            compiled(torch.ones(1 << 16))
            self.assertEqual(len(regions._all_known), before + 1)
            del compiled
            torch.compiler.reset()
            gc.collect()
            self.assertLessEqual(len(regions._all_known), before)



@unittest.skipIf(MISSING, MISSING)
class CompiledCornersTest(unittest.TestCase):
    """Everything leaves after each operation."""

    def setUp(self):
        warnings.simplefilter("ignore")
        self.addCleanup(warnings.resetwarnings)
        self.addCleanup(torch.compiler.reset)
        self.addCleanup(swapmm.torch.off)
        torch.compiler.reset()

    def begin(self, size="1MiB"):
        swapmm.torch.budget(size, "cpu", demand_mode="per_operation")

    def move(self):
        for _ in range(3):
            for _ in range(9):
                torch.randn(1 << 15).sin()

    @rarely
    def test_compiled_functions_in_operators(self):
        inner = torch.compile(lambda x: x.sin() + 1)

        @torch.library.custom_op("swapmm_test::nested", mutates_args=())
        def nested(x: torch.Tensor) -> torch.Tensor:
            return inner(x)

        nested.register_fake(torch.empty_like)
        outer = torch.compile(lambda x: nested(x * 2) + 1)
        x = torch.randn(1 << 15)
        plain = nested(x), outer(x)
        torch.compiler.reset()
        self.begin()
        for _ in range(3):
            self.assertTrue(torch.equal(nested(x), plain[0]))
            self.assertTrue(torch.equal(outer(x), plain[1]))
            self.move()

    def test_operators_that_make_arrays(self):
        """As PyTorch's manual has them. Neither operands nor results that share their bytes with an array ever move again."""

        @torch.library.custom_op("swapmm_test::array_sine", mutates_args=())
        def sine(x: torch.Tensor) -> torch.Tensor:
            return torch.from_numpy(numpy.sin(x.numpy()))

        sine.register_fake(torch.empty_like)
        compiled = torch.compile(lambda x: sine(x * 2) + sine(x))
        x = torch.randn(1 << 15)
        plain = compiled(x), sine(x)
        torch.compiler.reset()
        self.begin("2MiB")
        for _ in range(3):
            self.assertTrue(torch.equal(compiled(x), plain[0]))
            self.move()
            self.assertTrue(torch.equal(sine(x), plain[1]))
            self.move()
        swapmm.torch.off()
        self.assertTrue(torch.equal(sine(x), plain[1]))

    def test_operators_that_look_at_others_than_their_operands(self):
        self.begin()
        others = [torch.full((1 << 15,), float(i)) for i in range(12)]

        @torch.library.custom_op("swapmm_test::looks", mutates_args=())
        def looks(x: torch.Tensor) -> torch.Tensor:
            return x + others[0].tolist()[5]

        @torch.library.custom_op("swapmm_test::adds_others", mutates_args=())
        def adds_others(x: torch.Tensor) -> torch.Tensor:
            return x + others[0]

        for operator in (looks, adds_others):
            with self.assertRaisesRegex(swapmm.UsageError, "not on the device, within an operator"):
                operator(others[3])
        self.assertEqual(others[0].tolist()[5], 0.0)

    def test_what_was_changed_before_an_error_stays_changed(self):
        @torch.library.custom_op("swapmm_test::fails", mutates_args=())
        def fails(x: torch.Tensor) -> torch.Tensor:
            if x[0].item() > 2:
                raise ValueError("no")
            return x + 1

        fails.register_fake(torch.empty_like)

        @torch.library.custom_op("swapmm_test::adds", mutates_args={"to"})
        def adds(to: torch.Tensor, x: torch.Tensor) -> None:
            to.add_(x)
            raise ValueError("no")

        compiled = torch.compile(lambda x, to: (to.add_(x), fails(x * 1) * 2)[1])
        self.begin()
        total, ones = torch.zeros(1 << 15), torch.ones(1 << 15)
        for i in (1, 1):
            compiled(ones * i, total)
        for call in (lambda: compiled(ones * 3, total), lambda: adds(total, ones)):
            before = total[0].item()
            with self.assertRaises(ValueError):
                call()
            now = total[0].item()
            self.assertGreater(now, before)
            self.move()
            self.assertEqual(set(total.tolist()), {now})

    def test_threads_that_began_before(self):
        compiled = torch.compile(lambda x: (x.sin() * 2, x + 1))
        x = torch.randn(1 << 15)
        plain = [value.clone() for value in compiled(x)]
        work, done = queue.Queue(), queue.Queue()

        def run():
            while (given := work.get()) is not None:
                results = compiled(given)
                done.put([torch.equal(ours, theirs) for ours, theirs in zip(results, plain)])

        thread = threading.Thread(target=run)
        thread.start()
        self.begin()
        x = x.clone()
        try:
            for _ in range(3):
                self.move()
                work.put(x)
                self.assertEqual(done.get(timeout=60), [True, True])
                swapmm.torch.step()
        finally:
            work.put(None)
            thread.join()

    @rarely
    def test_frozen_weights(self):
        """They are part of a graph, and no input of it."""
        layer = nn.Linear(128, 128)
        x = torch.randn(64, 128)
        for when in ("before", "within"):
            with self.subTest(when=when), torch.no_grad(), inductor.patch(freezing=True):
                torch.compiler.reset()
                compiled = torch.compile(lambda x: layer(x) * 2 + layer.weight.sum())
                expected = layer(x) * 2 + layer.weight.sum()
                if when == "before":
                    compiled(x)
                self.begin("800KiB")
                layer.weight.sum()
                for _ in range(3):
                    self.move()
                    self.assertTrue(torch.allclose(compiled(x), expected, atol=1e-4))
                swapmm.torch.off()

    @rarely
    def test_graphs_that_need_all_the_room(self):
        """The peak of what is temporary and the results are of different moments."""

        def function(x):
            values = x.repeat(4).cumsum(0)
            values = values.flip(0).cumsum(0)[: 1 << 15].cumsum(0)
            return (values + torch.rand_like(x)).repeat(4).cumsum(0)

        x = torch.ones(1 << 15)
        compiled = torch.compile(function)
        torch.manual_seed(1)
        plain = [compiled(x) for _ in range(4)]
        torch.compiler.reset()
        self.begin("1500KiB")
        torch.manual_seed(1)
        for theirs in plain:
            self.assertTrue(torch.equal(compiled(x), theirs))

    @rarely
    def test_branches_that_need_different_room(self):
        def function(x, which):
            return torch.cond(which.sum() > 0, lambda x: x.repeat(32).cumsum(0).flip(0).cumsum(0).sum() + x, lambda x: x + 1, (x,))

        compiled = torch.compile(function)
        x, small, large = torch.ones(4096), torch.zeros(1), torch.ones(1)
        plain = compiled(x, small), compiled(x, large)
        torch.compiler.reset()
        self.begin("200KiB")
        self.assertTrue(torch.equal(compiled(x, small), plain[0]))
        self.assertTrue(torch.equal(compiled(x, small), plain[0]))
        with self.assertRaises(swapmm.OutOfMemory):
            compiled(x, large)
        swapmm.torch.off()
        self.begin("2MiB")
        for _ in range(2):
            self.assertTrue(torch.equal(compiled(x, small), plain[0]))
            self.assertTrue(torch.equal(compiled(x, large), plain[1]))

    @rarely
    def test_sizes_that_depend_on_values(self):
        compiled = torch.compile(lambda x: torch.ones(x.sum().item() * 2) + 1, fullgraph=True)
        x = torch.full((2048,), 3)
        with dynamo.patch(capture_scalar_outputs=True):
            plain = compiled(x)
            torch.compiler.reset()
            self.begin()
            for _ in range(2):
                self.assertTrue(torch.equal(compiled(x), plain))

    def test_results_that_have_to_leave_the_room(self):
        """On CUDA those of a first run are in the operation's work area, and leave by way of host memory."""
        compiled, x = torch.compile(lambda x: (x.sin() + 1, x * 2)), torch.randn(1 << 15)
        plain = compiled(x)
        torch.compiler.reset()
        self.begin()
        with unittest.mock.patch.object(places.CpuMemory, "in_room", lambda *_: True):
            for _ in range(3):
                for ours, theirs in zip(compiled(x), plain):
                    self.assertTrue(torch.equal(ours, theirs))
                self.move()

    def test_a_second_budget(self):
        """What is too large runs operator by operator there, too."""
        network = nn.Sequential(*[nn.Linear(128, 128) for _ in range(6)])
        compiled, x = torch.compile(network), torch.randn(8, 128)
        expected = network(x)
        for size in ("300KiB", "300KiB", "4MiB"):
            self.begin(size)
            with torch.no_grad():
                self.assertTrue(torch.allclose(compiled(x), expected, atol=1e-5))
            swapmm.torch.off()

    @rarely
    def test_functions_that_are_asked_to_make_their_memory_in_another_way(self):
        """CUDA graphs, and code in C++ that calls the operators."""
        for options in (dict(mode="reduce-overhead"), dict(options={"cpp_wrapper": True})):
            with self.subTest(options=options):
                torch.compiler.reset()
                self.begin("400KiB")
                compiled = torch.compile(lambda x: x.repeat(64).cumsum(0).flip(0).cumsum(0).sum() + x, **options)
                with self.assertRaises(swapmm.Error):
                    compiled(torch.ones(4096))
                swapmm.torch.off()


if __name__ == "__main__":
    unittest.main()
