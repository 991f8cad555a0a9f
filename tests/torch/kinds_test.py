# SPDX-License-Identifier: Apache-2.0
"""Tensors that are made of others (sparse, nested, quantized), that have no bytes, or a dispatch of their own."""

import unittest
import warnings

import torch
from torch import nn
from torch.utils._pytree import tree_map

import swapmm.torch

KiB = 1 << 10
MiB = 1 << 20


class Doubled(torch.Tensor):
    """Holds another tensor, and stands for twice its value."""

    @staticmethod
    def __new__(cls, half):
        return torch.Tensor._make_wrapper_subclass(cls, half.shape, dtype=half.dtype, device=half.device)

    def __init__(self, half):
        self.half = half

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        def plain(value):
            return value.half * 2 if isinstance(value, Doubled) else value

        return function(*tree_map(plain, args), **tree_map(plain, kwargs or {}))


class KindsTest(unittest.TestCase):
    """A program without a budget, and in one in which everything leaves after each operator."""

    def setUp(self):
        warnings.simplefilter("ignore")  # some of these are betas

    def compare(self, program, size="8MiB"):
        torch.manual_seed(1)
        plain = program(lambda: None)
        torch.manual_seed(1)
        swapmm.torch.budget(size, "cpu", demand_mode="per_operation")
        try:
            others = [torch.full((1 << 18,), float(i)) for i in range(12)]  # more than the budget

            def move():
                for other in others:
                    other.add_(1)

            result = program(move)
            report = swapmm.torch.report()
        finally:
            swapmm.torch.off()
        self.assertEqual(len(result), len(plain))
        for ours, theirs in zip(result, plain):
            self.assertTrue(torch.equal(ours, theirs))
        for i, other in enumerate(others):
            self.assertEqual(set(other.tolist()), {other[0].item()})
            self.assertGreater(other[0].item(), i)
        return report

    def test_sparse_tensors(self):
        for layout in (torch.sparse_coo, torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc):
            blocks = (2, 2) if layout in (torch.sparse_bsr, torch.sparse_bsc) else None

            def program(move, layout=layout, blocks=blocks):
                dense = torch.rand(200, 100)
                sparse = (dense * (dense > 0.7)).to_sparse(layout=layout, blocksize=blocks)
                move()
                values = sparse.values() if layout is not torch.sparse_coo else sparse._values()
                values.mul_(3)
                move()
                twice = sparse * 2
                move()
                return [sparse.to_dense(), twice.to_dense(), values.clone()]

            with self.subTest(layout=layout):
                report = self.compare(program)
                self.assertGreater(report.kept["parts of sparse, nested or quantized tensors"], 10 * KiB)

    def test_sparse_tensors_share_what_they_are_made_of(self):
        def program(move):
            indices = torch.stack([torch.randperm(2000), torch.randperm(2000)])
            values = torch.rand(2000, 8)
            move()
            sparse = torch.sparse_coo_tensor(indices, values, (2000, 2000, 8))
            move()
            values.add_(1)
            move()
            sparse.add_(sparse)
            move()
            joined = sparse.coalesce()
            move()
            return [sparse.to_dense().sum(0), joined.indices().clone(), joined.values().clone(), values.clone()]

        self.compare(program, "1GiB")
        self.compare(program, "300MiB")

    def test_embeddings_with_sparse_gradients(self):
        def program(move):
            embedding = nn.Embedding(3000, 32, sparse=True)
            head = nn.Linear(32, 64)
            sparse, dense = torch.optim.SparseAdam(embedding.parameters()), torch.optim.SGD(head.parameters(), 0.1)
            for _ in range(4):
                loss = head(embedding(torch.randint(3000, (500,)))).square().mean()
                loss.backward()
                move()
                sparse.step()
                dense.step()
                embedding.zero_grad()
                head.zero_grad()
            return [embedding.weight.detach().clone(), head.weight.detach().clone()]

        self.compare(program)

    def test_nested_tensors(self):
        def program(move):
            rows = [torch.rand(300, 64), torch.rand(100, 64), torch.rand(200, 64)]
            nested = torch.nested.nested_tensor(rows)
            move()
            first = nested.unbind()[0]
            first.mul_(2)
            move()
            twice = nested * 2
            padded = twice.to_padded_tensor(0.0)
            move()
            return [first.clone(), padded, *(row.clone() for row in nested.unbind())]

        report = self.compare(program)
        self.assertGreaterEqual(report.kept["parts of sparse, nested or quantized tensors"], 600 * 64 * 4)

    def test_layers_on_nested_tensors(self):
        """Composite operators, which have kernels of their own for them."""

        def program(move):
            weight, bias = torch.rand(64, 64, requires_grad=True), torch.rand(64, requires_grad=True)
            nested = torch.nested.nested_tensor([torch.rand(rows, 64) for rows in (300, 100, 200)])
            move()
            with torch.no_grad():
                values = nn.functional.linear(nested, weight, bias)
            others = torch.nested.nested_tensor([torch.rand(64, 8) for _ in range(3)])
            move()
            products = torch.matmul(values, others)
            nn.functional.linear(nested, weight, bias).to_padded_tensor(0.0).square().mean().backward()
            move()
            return [values.to_padded_tensor(0.0), products.to_padded_tensor(0.0), weight.grad.clone(), bias.grad.clone()]

        self.compare(program)

    def test_many_nested_tensors(self):
        """Their sizes are large tensors, too."""

        def program(move):
            nested = torch.nested.nested_tensor([torch.rand(2, 3) for _ in range(2000)])
            move()
            padded = (nested + nested).to_padded_tensor(1.0)
            move()
            return [padded, nested._nested_tensor_size().clone()]

        self.compare(program)

    def test_the_fast_path_of_transformers(self):
        def program(move):
            layer = nn.TransformerEncoderLayer(32, 4, 128, batch_first=True).eval()
            encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=True).eval()
            padding = torch.arange(50) >= torch.tensor([50, 20, 30, 40])[:, None]
            with torch.inference_mode():
                results = []
                for _ in range(2):
                    results.append(encoder(torch.rand(4, 50, 32), src_key_padding_mask=padding).clone())
                    move()
            return results

        self.compare(program)

    def test_jagged_tensors(self):
        def program(move):
            rows = [torch.rand(length, 64) for length in (300, 100, 200)]
            nested = torch.nested.nested_tensor(rows, layout=torch.jagged, requires_grad=True)
            move()
            result = (nested * 2).sin()
            move()
            result.values().sum().backward()
            move()
            return [result.values().detach().clone(), nested.grad.values().clone()]

        self.compare(program)

    def test_tensors_with_a_dispatch_of_their_own(self):
        def program(move):
            doubled = Doubled(torch.rand(100, 100))
            move()
            total = doubled + torch.ones(100, 100)
            move()
            return [total, torch.mm(total, doubled)]

        self.compare(program)

    def test_quantized_tensors(self):
        def program(move):
            values = torch.rand(2000, 32) - 0.5
            whole = torch.quantize_per_tensor(values, 0.01, 10, torch.qint8)
            by_row = torch.quantize_per_channel(values, torch.rand(2000) + 0.01, torch.zeros(2000), 0, torch.qint8)
            move()
            results = [whole.dequantize(), by_row.dequantize(), whole.int_repr()]
            move()
            return results

        self.compare(program)

    def test_a_subclass_sees_the_program_alone(self):
        """What the adapter asks its tensors is not among what __torch_function__ is called for."""
        seen = []

        class Seeing(torch.Tensor):
            @classmethod
            def __torch_function__(cls, function, types, args=(), kwargs=None):
                seen.append(function.__name__)
                return super().__torch_function__(function, types, args, kwargs or {})

        def program(move):
            layer = nn.Linear(64, 64)
            value = torch.rand(300, 64).as_subclass(Seeing)
            move()
            result = torch.relu(layer(value)).as_subclass(torch.Tensor)
            result.sum().backward()
            return [result.detach(), layer.weight.grad.clone()]

        self.compare(program)
        self.assertEqual(seen, 2 * ["linear", "relu"])

    def test_quantized_layers(self):
        """Their packed weights are objects that cannot be compared."""

        def program(move):
            layer = torch.ao.nn.quantized.dynamic.Linear(64, 32)
            packed = torch.quantize_per_tensor(torch.rand(32, 64) - 0.5, 0.01, 0, torch.qint8)
            layer.set_weight_bias(packed, torch.rand(32))
            results = []
            for rows in (300, 300, 200):
                results.append(layer(torch.rand(rows, 64)))
                move()
            return results

        self.compare(program)

    def test_derivatives_forward(self):
        def program(move):
            weight, change = torch.rand(64, 64), torch.rand(64, 64)
            move()

            def function(value):
                return (value @ value).sin(), value.new_ones(64, 64)

            values, derivatives = torch.func.jvp(function, (weight,), (change,))
            move()
            return [*values, *derivatives]

        self.compare(program)


if __name__ == "__main__":
    unittest.main()
