# SPDX-License-Identifier: Apache-2.0
"""Weights that stay in their file: swapmm.torch.stream(..., weights=...)."""

import json
import os
import tempfile
import unittest

import torch
from torch import nn

import swapmm
import swapmm.torch
from swapmm.torch.operators import nbytes_of, storage_of

KiB, MiB = 1 << 10, 1 << 20
TYPES = {torch.float32: "F32", torch.bfloat16: "BF16", torch.int64: "I64", torch.float8_e4m3fn: "F8_E4M3"}


def save(path, tensors):
    """As safetensors.torch.save_file() does."""
    head, offset, contents = {}, 0, []
    for name, tensor in tensors.items():
        content = bytes(tensor.detach().contiguous().reshape(-1).view(torch.uint8).tolist())
        head[name] = {"dtype": TYPES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [offset, offset + len(content)]}
        offset += len(content)
        contents.append(content)
    text = json.dumps(head).encode()
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text + b"".join(contents))


class Network(nn.Module):
    """With parameters below 4 KiB, weights of two names, and a buffer."""

    def __init__(self, layers=12, width=128):
        super().__init__()
        self.words = nn.Embedding(256, width)
        self.layers = nn.ModuleList(nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)) for _ in range(layers))
        self.norm = nn.BatchNorm1d(width)
        self.head = nn.Linear(width, 256, bias=False)
        self.head.weight = self.words.weight

    def forward(self, words):
        values = self.words(words)
        for layer in self.layers:
            values = values + layer(values)
        return self.head(self.norm(values))


class WeightsTest(unittest.TestCase):
    """A network of 6 MiB in a budget of 2 MiB."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.addCleanup(swapmm.torch.off)
        self.folder, self.path = folder.name, os.path.join(folder.name, "weights.safetensors")
        torch.manual_seed(1)
        self.network = Network().eval()
        with torch.no_grad():
            self.network.norm.running_mean.normal_()
        self.words = torch.randint(0, 256, (32,))
        with torch.no_grad():
            self.expected = self.network(self.words)
        self.values = {name: value for name, value in self.network.state_dict().items() if name != "head.weight"}
        save(self.path, self.values)

    def on_meta(self):
        with torch.device("meta"):
            return Network().eval()

    def follows(self, network, rounds=8):
        with torch.no_grad():
            for _ in range(rounds):
                self.assertTrue(torch.equal(network(self.words), self.expected))

    def test_a_model_that_is_nowhere_else(self):
        """With a batch of one: the results of its layers are below 4 KiB, and whatever is copied is a weight."""
        self.words = self.words[:1]
        with torch.no_grad():
            self.expected = self.network(self.words)
        network = self.on_meta()
        swapmm.torch.stream(network, "2MiB", "cpu", weights=self.path, file_staging="256KiB")
        self.assertIs(network.head.weight, network.words.weight)
        self.assertEqual(nbytes_of(storage_of(network.layers[3][0].weight)), 0)
        self.follows(network)
        report = swapmm.torch.report()
        self.assertGreater(report.iterations_followed, 1)
        self.assertEqual(report.iterations, 8)
        self.assertEqual(report.copied_out, 0)
        self.assertGreater(report.copied_in, 8 * 4 * MiB)
        self.assertLess(report.host_bytes, MiB)
        self.assertLessEqual(report.peak, 2 * MiB)
        for name, value in network.state_dict().items():
            self.assertTrue(torch.equal(value, self.network.state_dict()[name]), name)
        swapmm.torch.off()  # all of it comes back
        self.follows(network, 1)
        self.assertEqual(nbytes_of(storage_of(network.layers[3][0].weight)), 256 * KiB)

    def test_a_model_that_has_values_already(self):
        """Those of the file count."""
        torch.manual_seed(7)
        network = Network().eval()
        swapmm.torch.stream(network, "2MiB", "cpu", weights=self.path)
        self.follows(network)

    def test_several_files(self):
        os.remove(self.path)
        for i in range(3):
            save(os.path.join(self.folder, f"part-{i}.safetensors"), dict(list(self.values.items())[i::3]))
        network = self.on_meta()
        swapmm.torch.stream(network, "2MiB", "cpu", weights=self.folder)
        self.follows(network)

    def test_other_types(self):
        values = torch.randn(64, 64)
        parts = {"a": values.bfloat16(), "b": values.to(torch.float8_e4m3fn), "c": torch.arange(2048)}
        save(self.path, parts)
        network = nn.Module()
        for name, value in parts.items():
            network.register_buffer(name, torch.empty_like(value, device="meta"))
        swapmm.torch.stream(network, "1MiB", "cpu", weights=self.path)
        for name, value in parts.items():
            self.assertTrue(torch.equal(getattr(network, name).float(), value.float()))

    def test_nothing_writes_them(self):
        network = self.on_meta()
        swapmm.torch.stream(network, "2MiB", "cpu", weights=self.path)
        self.assertFalse(network.layers[0][0].weight.requires_grad)
        with self.assertRaisesRegex(swapmm.UsageError, "constant"):
            network.layers[0][0].weight.mul_(2)
        self.follows(network, 2)

    def test_what_else_programs_do_with_them(self):
        network = self.on_meta()
        swapmm.torch.stream(network, "2MiB", "cpu", weights=self.path)
        weight, theirs = network.layers[2][0].weight, self.network.layers[2][0].weight
        self.assertTrue((weight.numpy() == theirs.detach().numpy()).all())
        self.assertEqual(network.layers[3][0].weight[5].tolist(), self.network.layers[3][0].weight[5].tolist())
        self.assertTrue(torch.equal(network.layers[1][0].weight.t() * 2, self.network.layers[1][0].weight.t() * 2))
        self.follows(network, 3)

    def test_files_that_become_shorter(self):
        network = self.on_meta()
        swapmm.torch.stream(network, "2MiB", "cpu", weights=self.path, trial_iterations=0)
        self.follows(network, 1)
        with open(self.path, "r+b") as file:
            file.truncate(os.path.getsize(self.path) // 2)
        with self.assertRaisesRegex(swapmm.Error, "ends at byte"), torch.no_grad():
            for _ in range(3):
                network(self.words)
        with self.assertRaisesRegex(swapmm.Error, "ends at byte"):
            swapmm.torch.off()

    def refuses(self, reason, network=None, weights=None, size="2MiB", error=swapmm.UsageError):
        with self.assertRaisesRegex(error, reason):
            swapmm.torch.stream(self.on_meta() if network is None else network, size, "cpu", weights=weights or self.path)
        with self.assertRaisesRegex(swapmm.UsageError, "budget"):
            swapmm.torch.report()  # nothing is left of it

    def test_refusals(self):
        self.refuses("needs a size", size=None)
        self.refuses("nowhere", weights="/nowhere/file", error=swapmm.BackendError)
        self.refuses(r"layers.0.0.weight is float32\[512, 128\] in the model, and float32\[256, 64\]", Network(width=128), self.saved(Network(width=64)))
        self.refuses(r"words.weight is bfloat16\[256, 128\] in the model, and float32", self.on_meta().bfloat16())
        missing = dict(self.values)
        del missing["layers.3.0.weight"], missing["norm.running_var"]
        save(self.path, missing)
        self.refuses("no values for layers.3.0.weight, norm.running_var: they are on the meta device")
        self.refuses("no tensor of the file has the name of one of the model's; the file has 'words.weight'", nn.Linear(2, 2))

    def saved(self, network):
        path = os.path.join(self.folder, "other.safetensors")
        values = network.state_dict()
        values.pop("head.weight")
        save(path, {**values, "words.weight": torch.zeros(256, 128)})
        return path


if __name__ == "__main__":
    unittest.main()
