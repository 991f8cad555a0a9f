# SPDX-License-Identifier: Apache-2.0
"""The networks of README.md in PyTorch.

A network is a list of parts, one behind the other; a part is what checkpointing computes again. loss() takes how a part
is run, so that whoever measures may wrap it.
"""

import math

import torch
from torch import nn
from torch.nn import functional


class Stage(nn.Module):
  """Convolutions of examples/fashion_mnist/architecture.hpp, each with its ReLU, and the 2 x 2 pool behind the last."""

  def __init__(self, *shapes):
    super().__init__()
    self.convolutions = nn.ModuleList(nn.Conv2d(a, b, size, padding=size // 2) for a, b, size in shapes)

  def forward(self, x):
    for convolution in self.convolutions:
      x = functional.relu(convolution(x), inplace=True)
    return functional.max_pool2d(x, 2)


class Dense(nn.Module):
  def __init__(self, channels, hidden, classes):
    super().__init__()
    self.dense1 = nn.Linear(49 * channels, hidden)
    self.dense2 = nn.Linear(hidden, classes)

  def forward(self, x):
    x = x.permute(0, 2, 3, 1).flatten(1)  # as it lies: NHWC
    return self.dense2(functional.relu(self.dense1(x), inplace=True))


class Cnn(nn.Module):
  momentum = 0.9

  def __init__(self, device, batch=512, channels=32, hidden=128):
    super().__init__()
    torch.manual_seed(1)
    c = channels
    first, second = Stage((1, c, 3), (c, c, 1), (c, c, 1)), Stage((c, c, 3), (c, c, 1))
    self.parts = nn.ModuleList([first, second, Dense(c, hidden, 10)])
    for layer in self.modules():
      if isinstance(layer, (nn.Conv2d, nn.Linear)):
        nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
        nn.init.zeros_(layer.bias)
    self.to(device=device, memory_format=torch.channels_last)
    images = torch.randn(batch, 1, 28, 28, device=device)
    self.batch_inputs = images.contiguous(memory_format=torch.channels_last)
    self.labels = torch.randint(10, (batch,), device=device)

  def loss_of(self, out):
    return functional.cross_entropy(out, self.labels)


class Block(nn.Module):
  def __init__(self, width, heads):
    super().__init__()
    self.heads = heads
    self.norm1 = nn.LayerNorm(width, eps=1e-5)
    self.qkv = nn.Linear(width, 3 * width, bias=False)
    self.project = nn.Linear(width, width, bias=False)
    self.norm2 = nn.LayerNorm(width, eps=1e-5)
    self.up = nn.Linear(width, 4 * width, bias=False)
    self.down = nn.Linear(4 * width, width, bias=False)

  def forward(self, x):
    middle = x + self.project(self.attention(self.qkv(self.norm1(x))))
    return middle + self.down(functional.gelu(self.up(self.norm2(middle)), approximate="tanh"))

  def attention(self, qkv):
    """Whole matrices of probabilities, which are kept: what is compared is moving them. The queries are scaled, not the
    scores: these are the largest of all."""
    batch, sequence, width = qkv.shape[0], qkv.shape[1], qkv.shape[2] // 3
    q, k, v = qkv.view(batch, sequence, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
    scores = (q * (width // self.heads)**-0.5) @ k.transpose(-2, -1)
    return (scores.softmax(-1) @ v).transpose(1, 2).reshape(batch, sequence, width)


class Transformer(nn.Module):
  momentum = 0.0

  def __init__(self, device, layers=2, width=64, heads=4, sequence=32, batch=2):
    super().__init__()
    torch.manual_seed(1)
    # In bf16 and on the device from the beginning: many billions of numbers take long on a host.
    self.parts = nn.ModuleList(Block(width, heads).to(device, torch.bfloat16) for _ in range(layers))
    for block in self.parts:
      for dense in (block.qkv, block.up, block.project, block.down):
        residual = dense in (block.project, block.down)
        deviation = dense.in_features**-0.5 / (math.sqrt(2 * layers) if residual else 1)
        nn.init.uniform_(dense.weight, -deviation * 3**0.5, deviation * 3**0.5)
    self.batch_inputs = torch.randn(batch, sequence, width, device=device, dtype=torch.bfloat16)

  def loss_of(self, out):
    return out.square().mean(dtype=torch.float32)


NETWORKS = {"cnn": Cnn, "transformer": Transformer}


def loss(network, run_part=lambda part, x: part(x)):
  x = network.batch_inputs
  for part in network.parts:
    x = run_part(part, x)
  return network.loss_of(x)


class Learner:
  """SGD, parameter by parameter: each learns as soon as its gradient is complete, which then goes, as in the program
  that is compared. PyTorch 1 cannot do that: there they learn behind the backward pass."""

  def __init__(self, network, rate=0.01):
    self.rate, self.momentum = rate, network.momentum
    self.parameters = list(network.parameters())
    self.speeds = {p: torch.zeros_like(p) for p in self.parameters} if self.momentum else {}
    self.at_once = hasattr(torch.Tensor, "register_post_accumulate_grad_hook")
    self.hooks = [p.register_post_accumulate_grad_hook(self.learn) for p in self.parameters] if self.at_once else []

  def finish(self):
    """Behind the backward pass."""
    if not self.at_once:
      for parameter in self.parameters:
        self.learn(parameter)

  @torch.no_grad()
  def learn(self, parameter):
    step = parameter.grad
    if self.momentum:
      step = self.speeds[parameter].mul_(self.momentum).add_(step)
    parameter.add_(step, alpha=-self.rate)
    parameter.grad = None
