# SPDX-License-Identifier: Apache-2.0
"""Training in a part of the memory gives the same losses and weights, bit for bit, and never uses more."""

import os
import sys
import unittest
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples" / "pytorch"))

import models  # noqa: E402
from outside import within  # noqa: E402

MiB = 1 << 20


class Residual(nn.Module):
    def __init__(self, channels_in, channels, time):
        super().__init__()
        self.norm = nn.GroupNorm(4, channels_in)
        self.first = nn.Conv2d(channels_in, channels, 3, padding=1)
        self.time = nn.Linear(time, channels)
        self.second = nn.Conv2d(channels, channels, 3, padding=1)
        self.skip = nn.Conv2d(channels_in, channels, 1)

    def forward(self, x, t):
        y = self.first(functional.silu(self.norm(x))) + self.time(t)[:, :, None, None]
        return self.skip(x) + self.second(functional.dropout(functional.silu(y), 0.1, self.training))


class Diffusion(nn.Module):
    """A small U-Net that predicts the noise in an image, given the time."""

    def __init__(self, width=32, time=64):
        super().__init__()
        self.time = nn.Sequential(nn.Linear(time, time), nn.SiLU(), nn.Linear(time, time))
        self.enter = nn.Conv2d(3, width, 3, padding=1)
        self.down = nn.ModuleList([Residual(width, width, time), Residual(width, 2 * width, time)])
        self.attention = nn.MultiheadAttention(2 * width, 4, batch_first=True)
        self.up = nn.ModuleList([Residual(4 * width, width, time), Residual(2 * width, width, time)])
        self.leave = nn.Conv2d(width, 3, 3, padding=1)

    def forward(self, x, t):
        half = self.time[0].in_features // 2
        angles = t[:, None] * torch.exp(-torch.arange(half) / half * 9.0)
        t = self.time(torch.cat([angles.sin(), angles.cos()], 1))
        first = self.down[0](self.enter(x), t)
        second = self.down[1](functional.avg_pool2d(first, 2), t)
        batch, channels, height, width = second.shape
        flat = second.flatten(2).transpose(1, 2)
        middle = second + self.attention(flat, flat, flat)[0].transpose(1, 2).view(batch, channels, height, width)
        y = self.up[0](torch.cat([middle, second], 1), t)
        y = self.up[1](torch.cat([functional.interpolate(y, scale_factor=2.0), first], 1), t)
        return self.leave(y)


class LanguageModel(nn.Module):
    """torch's own transformer layers, with dropout."""

    def __init__(self, width=128, layers=3, vocabulary=500, length=64):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        layer = nn.TransformerEncoderLayer(width, 4, 4 * width, 0.1, "gelu", batch_first=True, norm_first=True)
        self.layers = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(length))

    def forward(self, tokens):
        x = self.tokens(tokens) + self.positions(torch.arange(tokens.shape[1]))
        return self.layers(x, mask=self.mask, is_causal=True) @ self.tokens.weight.t()


def case(name, sizes, optimizer=None, clip=None, autocast=False):
    """A function that trains so many steps, with new data in each, and returns losses and weights."""

    def train(steps):
        made = models.build(name, overrides=sizes, autocast=autocast)
        network = made.network
        chosen = optimizer(network.parameters()) if optimizer else made.optimizer
        losses = []
        for _ in range(steps):
            if made.inputs.dtype.is_floating_point:
                made.inputs = torch.randn_like(made.inputs)
            chosen.zero_grad()
            loss = made.loss()
            loss.backward()
            if clip:
                nn.utils.clip_grad_norm_(network.parameters(), clip)
            chosen.step()
            losses.append(loss.item())
        return losses, [value.detach() for value in network.state_dict().values()]

    return train


def diffusion(steps):
    torch.manual_seed(3)
    network = Diffusion()
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-3)
    losses = []
    for _ in range(steps):
        images, t, noise = torch.randn(16, 3, 16, 16), torch.rand(16), torch.randn(16, 3, 16, 16)
        mixed = images * (1 - t)[:, None, None, None].sqrt() + noise * t[:, None, None, None].sqrt()
        loss = functional.mse_loss(network(mixed, t * 1000), noise)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, [value.detach() for value in network.parameters()]


def language_model(steps):
    torch.manual_seed(4)
    network = LanguageModel()
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-3, foreach=True)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        for _ in range(2):  # gradients of two batches are added up
            tokens = torch.randint(500, (8, 65))
            loss = functional.cross_entropy(network(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten()) / 2
            loss.backward()
            losses.append(loss.item())
        nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
        schedule.step()
    return losses, [value.detach() for value in network.parameters()]


def lstm(steps):
    """torch's own LSTM, bidirectional, in a packed sequence."""
    torch.manual_seed(5)
    network = nn.LSTM(64, 64, 2, bidirectional=True, dropout=0.2)
    head = nn.Linear(128, 10)
    parameters = [*network.parameters(), *head.parameters()]
    optimizer = torch.optim.RMSprop(parameters, lr=1e-3)
    losses = []
    for _ in range(steps):
        lengths = torch.tensor([40, 33, 20, 20, 7])
        packed = nn.utils.rnn.pack_padded_sequence(torch.randn(40, 5, 64), lengths)
        states, _ = nn.utils.rnn.pad_packed_sequence(network(packed)[0])
        loss = functional.cross_entropy(head(states).mean(0), torch.randint(10, (5,)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, [value.detach() for value in parameters]


CASES = {
    "gpt, AdamW, clipped": case("gpt", dict(batch=4, layers=4, width=128, heads=4, sequence=64, vocabulary=1000),
                                lambda p: torch.optim.AdamW(p, lr=1e-3), clip=1.0),
    "gpt, autocast": case("gpt", dict(batch=4, layers=2, width=128, heads=4, sequence=64, vocabulary=500), autocast=True),
    "vit, Adam": case("vit", dict(batch=8, layers=4, width=128, heads=4, image=64, patch=8)),
    "resnet50, SGD": case("resnet50", dict(batch=4, image=64, width=16, blocks=(2, 2, 2, 2))),
    "unet, Adam": case("unet", dict(batch=2, image=64, levels=3, width=16)),
    "lstm cells, Adam": case("lstm", dict(batch=16, sequence=16, layers=2, width=128, vocabulary=500)),
    "lstm, packed": lstm,
    "diffusion": diffusion,
    "language model, foreach, accumulated": language_model,
}
STEPS = 8
# A few of them take as long as all other tests of the package together.
CHOSEN = CASES if os.environ.get("SWAPMM_TEST_EVERYTHING") else ["resnet50, SGD", "diffusion", "language model, foreach, accumulated"]
SHARES = (1.0, 0.5, 0.25) if os.environ.get("SWAPMM_TEST_EVERYTHING") else (0.25,)


class NetworksTest(unittest.TestCase):
    def test_networks(self):
        for name in CHOSEN:
            train = CASES[name]
            plain_losses, plain_weights = train(STEPS)
            _, need, _ = within(1 << 40, lambda: train(STEPS))
            for share in SHARES:
                with self.subTest(name, share=share):
                    size = int(need * share) + (256 << 10)
                    (losses, weights), peak, report = within(size, lambda: train(STEPS))
                    print(f"{name}: need {need / MiB:.1f} MiB, budget {size / MiB:.1f}, peak {peak / MiB:.1f}, "
                          f"{report.copied_in / MiB:.0f} + {report.copied_out / MiB:.0f} MiB copied, "
                          f"{report.iterations_followed} of {report.iterations} steps by plan, "
                          f"{report.unforeseen} unforeseen")
                    self.assertEqual(losses, plain_losses)
                    for ours, theirs in zip(weights, plain_weights):
                        self.assertTrue(torch.equal(ours, theirs))
                    self.assertLessEqual(peak, size)
                    self.assertGreater(report.iterations_followed, 0 if "packed" not in name else -1)


if __name__ == "__main__":
    torch.set_num_threads(1)
    unittest.main()
