# SPDX-License-Identifier: Apache-2.0
"""Training steps of well-known networks, written out in plain torch.nn.

build(name, preset, device, overrides) gives a Case: its step() is one iteration of training. Optimizers go parameter by
parameter (foreach=False): an operation on all parameters at once would be a bundle as large as the model.
"""

import contextlib

import torch
from torch import nn
from torch.nn import functional


class Attention(nn.Module):
  """Softmax attention with all its matrices in memory; causal for language models."""

  def __init__(self, width, heads, causal_length=0):
    super().__init__()
    self.heads = heads
    self.qkv = nn.Linear(width, 3 * width)
    self.out = nn.Linear(width, width)
    if causal_length:
      self.register_buffer("mask", torch.ones(causal_length, causal_length, dtype=torch.bool).triu(1))
    else:
      self.mask = None

  def forward(self, x):
    batch, length, width = x.shape
    shape = (batch, length, 3, self.heads, width // self.heads)
    q, k, v = self.qkv(x).view(shape).permute(2, 0, 3, 1, 4)
    scores = q @ k.transpose(-2, -1) * (width // self.heads)**-0.5
    if self.mask is not None:
      scores = scores.masked_fill(self.mask, float("-inf"))
    mixed = scores.softmax(-1) @ v
    return self.out(mixed.transpose(1, 2).reshape(batch, length, width))


class Block(nn.Module):
  """Pre-norm transformer block."""

  def __init__(self, width, heads, causal_length=0):
    super().__init__()
    self.norm1 = nn.LayerNorm(width)
    self.attention = Attention(width, heads, causal_length)
    self.norm2 = nn.LayerNorm(width)
    self.up = nn.Linear(width, 4 * width)
    self.down = nn.Linear(4 * width, width)

  def forward(self, x):
    x = x + self.attention(self.norm1(x))
    return x + self.down(functional.gelu(self.up(self.norm2(x))))


class Gpt(nn.Module):
  """GPT-2 without dropout; the output shares the weights of the token embedding."""

  def __init__(self, layers, width, heads, sequence, vocabulary):
    super().__init__()
    self.tokens = nn.Embedding(vocabulary, width)
    self.positions = nn.Parameter(torch.zeros(sequence, width))
    self.blocks = nn.Sequential(*(Block(width, heads, sequence) for _ in range(layers)))
    self.norm = nn.LayerNorm(width)

  def forward(self, tokens):
    x = self.norm(self.blocks(self.tokens(tokens) + self.positions))
    return functional.linear(x, self.tokens.weight).flatten(0, 1)


class Vit(nn.Module):
  def __init__(self, layers, width, heads, image, patch, classes):
    super().__init__()
    self.patches = nn.Conv2d(3, width, patch, patch)
    self.token = nn.Parameter(torch.zeros(1, 1, width))
    self.positions = nn.Parameter(torch.zeros((image // patch)**2 + 1, width))
    self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(layers)))
    self.norm = nn.LayerNorm(width)
    self.head = nn.Linear(width, classes)

  def forward(self, images):
    x = self.patches(images).flatten(2).transpose(1, 2)
    x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.positions
    return self.head(self.norm(self.blocks(x))[:, 0])


def convolution(channels_in, channels_out, size, stride=1):
  return nn.Sequential(nn.Conv2d(channels_in, channels_out, size, stride, size // 2, bias=False),
                       nn.BatchNorm2d(channels_out))


class Bottleneck(nn.Module):
  def __init__(self, channels_in, channels, stride):
    super().__init__()
    self.reduce = convolution(channels_in, channels, 1)
    self.spatial = convolution(channels, channels, 3, stride)
    self.expand = convolution(channels, 4 * channels, 1)
    same = stride == 1 and channels_in == 4 * channels
    self.shortcut = nn.Identity() if same else convolution(channels_in, 4 * channels, 1, stride)

  def forward(self, x):
    y = functional.relu(self.reduce(x), inplace=True)
    y = functional.relu(self.spatial(y), inplace=True)
    return functional.relu(self.expand(y) + self.shortcut(x), inplace=True)


class ResNet(nn.Module):
  def __init__(self, blocks, width, classes):
    super().__init__()
    self.stem = convolution(3, width, 7, 2)
    stages, channels_in = [], width
    for stage, count in enumerate(blocks):
      for block in range(count):
        channels = width << stage
        stages.append(Bottleneck(channels_in, channels, 2 if stage and block == 0 else 1))
        channels_in = 4 * channels
    self.stages = nn.Sequential(*stages)
    self.head = nn.Linear(channels_in, classes)

  def forward(self, images):
    x = functional.relu(self.stem(images), inplace=True)
    x = functional.max_pool2d(x, 3, 2, 1)
    return self.head(self.stages(x).mean((2, 3)))


class UNet(nn.Module):
  """Ronneberger's, with padding and batch norm: each level halves the image and doubles the channels."""

  def __init__(self, levels, width, classes):
    super().__init__()
    widths = [width << level for level in range(levels)]
    self.down = nn.ModuleList(self._pair(3 if i == 0 else widths[i - 1], w) for i, w in enumerate(widths))
    self.up = nn.ModuleList(nn.ConvTranspose2d(2 * w, w, 2, 2) for w in widths[-2::-1])
    self.merge = nn.ModuleList(self._pair(2 * w, w) for w in widths[-2::-1])
    self.head = nn.Conv2d(width, classes, 1)

  @staticmethod
  def _pair(channels_in, channels):
    return nn.Sequential(*convolution(channels_in, channels, 3), nn.ReLU(inplace=True),
                         *convolution(channels, channels, 3), nn.ReLU(inplace=True))

  def forward(self, x):
    skips = []
    for level, pair in enumerate(self.down):
      x = pair(functional.max_pool2d(x, 2) if level else x)
      skips.append(x)
    skips.pop()
    for up, merge in zip(self.up, self.merge):
      x = merge(torch.cat([skips.pop(), up(x)], 1))
    return self.head(x)


class Lstm(nn.Module):
  """A language model of LSTM cells, unrolled: an operation works on one layer and one time step."""

  def __init__(self, layers, width, vocabulary):
    super().__init__()
    self.tokens = nn.Embedding(vocabulary, width)
    self.cells = nn.ModuleList(nn.LSTMCell(width, width) for _ in range(layers))
    self.head = nn.Linear(width, vocabulary)

  def forward(self, tokens):
    first = self.tokens.weight.new_zeros(tokens.shape[1], self.tokens.embedding_dim)
    states = [(first, first) for _ in self.cells]
    for now in tokens:
      x = self.tokens(now)
      for layer, cell in enumerate(self.cells):
        states[layer] = cell(x, states[layer])
        x = states[layer][0]
    return self.head(x)


# What --size sets, per preset. The peak of live bytes of the gpu presets, which README.md lists, is 20 to 100 GB.
PRESETS = {
    "gpt": {
        "tiny": dict(batch=2, layers=2, width=32, heads=2, sequence=16, vocabulary=97),
        "gpu": dict(batch=16, layers=24, width=1024, heads=16, sequence=1024, vocabulary=50257)},
    "vit": {
        "tiny": dict(batch=2, layers=2, width=32, heads=2, image=32, patch=8, classes=10),
        "gpu": dict(batch=128, layers=24, width=1024, heads=16, image=224, patch=16, classes=1000)},
    "resnet50": {
        "tiny": dict(batch=2, image=32, width=8, classes=10, blocks=(1, 1, 1, 1)),
        "gpu": dict(batch=512, image=224, width=64, classes=1000, blocks=(3, 4, 6, 3))},
    "resnet152": {
        "tiny": dict(batch=2, image=32, width=8, classes=10, blocks=(1, 2, 2, 1)),
        "gpu": dict(batch=256, image=224, width=64, classes=1000, blocks=(3, 8, 36, 3))},
    "unet": {
        "tiny": dict(batch=2, image=32, levels=3, width=8, classes=2),
        "gpu": dict(batch=32, image=512, levels=5, width=64, classes=2)},
    "lstm": {
        "tiny": dict(batch=4, sequence=4, layers=2, width=16, vocabulary=31),
        "gpu": dict(batch=1024, sequence=256, layers=2, width=4096, vocabulary=32000)},
}


class Case:
  """A network, its optimizer and one batch. step() is one iteration of training."""

  def __init__(self, name, network, optimizer, inputs, targets, autocast):
    self.name, self.network, self.optimizer = name, network, optimizer
    self.inputs, self.targets, self.autocast = inputs, targets, autocast

  def loss(self):
    lower = torch.autocast(self.inputs.device.type, torch.bfloat16) if self.autocast else contextlib.nullcontext()
    with lower:
      return functional.cross_entropy(self.network(self.inputs), self.targets)

  def step(self):
    self.optimizer.zero_grad(set_to_none=True)
    loss = self.loss()
    loss.backward()
    self.optimizer.step()
    return None if loss.is_meta else loss.item()


def build(name, preset="tiny", device="cpu", overrides=None, autocast=False):
  """A Case on random data, the same from run to run. `overrides` replaces sizes of the preset; ValueError for a name or
  a size that there is not."""
  if name not in PRESETS:
    raise ValueError(f"there is no model {name!r}: {', '.join(PRESETS)}")
  sizes = dict(PRESETS[name][preset])
  for key, value in (overrides or {}).items():
    if key not in sizes:
      raise ValueError(f"{name} has no size {key!r}: {', '.join(sizes)}")
    sizes[key] = value
  torch.manual_seed(1)
  batch = sizes.pop("batch")
  label = f"{name}-b{batch}"
  images = [batch, 3, sizes.get("image"), sizes.get("image")]
  if name in ("gpt", "lstm"):
    tokens = [batch, sizes["sequence"]] if name == "gpt" else [sizes["sequence"], batch]
    inputs = torch.randint(sizes["vocabulary"], tokens, device=device)
    # gpt: the next token at each place; lstm: the one behind the last.
    targets = torch.randint(sizes["vocabulary"], [batch * sizes["sequence"] if name == "gpt" else batch], device=device)
  else:
    inputs = torch.randn(images, device=device)
    shape = [batch, *images[2:]] if name == "unet" else [batch]
    targets = torch.randint(sizes["classes"], shape, device=device)
  if name == "lstm":
    del sizes["sequence"]
  elif name != "vit":
    sizes.pop("image", None)
  kind = {"gpt": Gpt, "vit": Vit, "unet": UNet, "lstm": Lstm}.get(name, ResNet)
  network = kind(**sizes).to(device)
  if kind is ResNet:
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1, momentum=0.9, foreach=False)
  else:
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-4, foreach=False)
  return Case(label, network, optimizer, inputs, targets, autocast)
