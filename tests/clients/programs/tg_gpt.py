# SPDX-License-Identifier: Apache-2.0
# A small GPT learns a sequence of tokens: tinygrad as it comes from PyPI, on its OpenCL device.
#   DEV=CL python tg_gpt.py [steps] [batch] [length] [layers] [width] [heads] [vocabulary] [--jit]
# Prints the losses and a hash of all weights.
import sys
args = [a for a in sys.argv[1:] if not a.startswith("-")]
steps, batch, length, layers, width, heads, vocabulary = (int(a) for a in (args + ["4", "4", "32", "2", "64", "4", "128"][len(args):]))
import numpy as np
from tinygrad import Tensor, nn
from tg_training import train
rng = np.random.default_rng(11)
class Block:
  def __init__(self):
    self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
    self.query, self.key, self.value, self.mix = (nn.Linear(width, width) for _ in range(4))
    self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
  def __call__(self, x, mask):
    y = self.before(x)
    q, k, v = (f(y).reshape(-1, length, heads, width // heads).transpose(1, 2) for f in (self.query, self.key, self.value))
    weights = (q @ k.transpose(2, 3) * (width // heads) ** -0.5 + mask).softmax()
    x = x + self.mix((weights @ v).transpose(1, 2).reshape(-1, length, width))
    return x + self.down(self.up(self.between(x)).gelu())
class Gpt:
  def __init__(self):
    self.tokens, self.places = nn.Linear(vocabulary, width, bias=False), nn.Embedding(length, width)
    self.blocks = [Block() for _ in range(layers)]
    self.last, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)
  def __call__(self, x):
    mask = Tensor.full((1, 1, length, length), float("-inf")).triu(1)
    x = self.tokens(x.one_hot(vocabulary).float()) + self.places.weight
    for block in self.blocks: x = block(x, mask)
    return self.head(self.last(x))
net = Gpt()
for name, p in sorted(nn.state.get_state_dict(net).items()):  # weights from numpy: the same everywhere
  draw = rng.standard_normal(p.shape).astype(np.float32) * 0.05
  p.assign(Tensor(draw + 1 if name.endswith(("before.weight", "between.weight", "last.weight")) else draw)).realize()
opt = nn.optim.AdamW(nn.state.get_parameters(net), lr=1e-3)
text = np.cumsum(rng.integers(0, 3, (4 * batch, length + 1)), 1) % vocabulary
parts = (text[(i % 4) * batch:(i % 4 + 1) * batch].astype(np.int32) for i in range(steps))
train(net, opt, ((part[:, :-1].copy(), part[:, 1:].copy()) for part in parts))
