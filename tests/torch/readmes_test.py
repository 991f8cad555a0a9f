# SPDX-License-Identifier: Apache-2.0
"""Programs as READMEs of packages on PyPI show them, and a loop of training around: with the two lines, and without."""

import importlib.util
import unittest

import torch

from outside import within


def vit():
    """vit-pytorch, "Usage"."""
    from vit_pytorch import ViT

    v = ViT(image_size=64, patch_size=8, num_classes=100, dim=128, depth=3, heads=4, mlp_dim=256, dropout=0.1,
            emb_dropout=0.1)
    optimizer = torch.optim.AdamW(v.parameters(), lr=1e-3)
    for _ in range(6):
        img = torch.randn(8, 3, 64, 64)
        preds = v(img)
        loss = torch.nn.functional.cross_entropy(preds, torch.randint(100, (8,)))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    return v


def lion():
    """lion-pytorch, "Usage"."""
    from lion_pytorch import Lion

    model = torch.nn.Sequential(*(torch.nn.Linear(256, 256) for _ in range(8)))
    opt = Lion(model.parameters(), lr=1e-4, weight_decay=1e-2)
    for _ in range(6):
        x = torch.randn(32, 256)
        loss = (model(x) - x).square().mean()
        loss.backward()
        opt.step()
        opt.zero_grad()
    return model


def diffusion():
    """denoising-diffusion-pytorch, "Usage"."""
    from denoising_diffusion_pytorch import GaussianDiffusion, Unet

    model = Unet(dim=16, dim_mults=(1, 2), flash_attn=False)
    diffusion = GaussianDiffusion(model, image_size=32, timesteps=20)
    optimizer = torch.optim.Adam(diffusion.parameters(), lr=1e-4)
    for _ in range(6):
        training_images = torch.rand(4, 3, 32, 32)
        loss = diffusion(training_images)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    diffusion.sample(batch_size=1)
    return diffusion


def language_model():
    """x-transformers, "Usage": decoder-only, with its wrapper for training."""
    from x_transformers import AutoregressiveWrapper, Decoder, TransformerWrapper

    model = TransformerWrapper(num_tokens=1000, max_seq_len=256, attn_layers=Decoder(dim=128, depth=3, heads=4))
    model = AutoregressiveWrapper(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in range(6):
        x = torch.randint(0, 1000, (4, 129))
        loss = model(x)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    return model


PROGRAMS = {"vit_pytorch": vit, "lion_pytorch": lion, "denoising_diffusion_pytorch": diffusion,
            "x_transformers": language_model}


class ReadmesTest(unittest.TestCase):
    """A test for each program."""


def weights_of(program):
    torch.manual_seed(7)
    return list(program().state_dict().values())


def add(package, program):
    @unittest.skipUnless(importlib.util.find_spec(package), f"{package} is not installed: ./dev pytorch does it")
    def test(self):
        plain = weights_of(program)
        _, need, _ = within(1 << 40, lambda: weights_of(program))
        for share in (0.5, 0.3):
            size = int(need * share) + (256 << 10)
            ours, peak, report = within(size, lambda: weights_of(program))
            print(f"{package}: need {need / 2**20:.1f} MiB, budget {size / 2**20:.1f}, peak {peak / 2**20:.1f}, "
                  f"{report.copied_in / 2**20:.0f} + {report.copied_out / 2**20:.0f} MiB copied")
            self.assertEqual(len(ours), len(plain))
            for a, b in zip(ours, plain):
                self.assertTrue(torch.equal(a, b))
            self.assertLessEqual(peak, size)

    setattr(ReadmesTest, f"test_{package}", test)


for _package, _program in PROGRAMS.items():
    add(_package, _program)

if __name__ == "__main__":
    torch.set_num_threads(1)
    unittest.main()
