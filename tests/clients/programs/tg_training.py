# SPDX-License-Identifier: Apache-2.0
# What the training programs for tinygrad share.
import hashlib, sys, time
from tinygrad import Tensor, TinyJit, Device, nn
from tinygrad.helpers import Context

def train(net, opt, batches):
  """Learns from pairs of arrays, with tinygrad's JIT if the command line says --jit. Prints the losses and a hash of all weights."""
  def step(x, y):
    opt.zero_grad()
    loss = net(x).sparse_categorical_crossentropy(y)
    loss.backward()
    return loss.realize(*opt.schedule_step())
  f = TinyJit(step) if "--jit" in sys.argv else step
  losses, t0 = [], time.time()
  with Context(TRAINING=1):
    for i, (x, y) in enumerate(batches):
      losses.append(f(Tensor(x).realize(), Tensor(y).realize()).item())
      print(f"step {i} loss {losses[-1]:.9g}", f"{time.time()-t0:.4f}s", file=sys.stderr, flush=True)
    h = hashlib.sha256()
    for name, p in sorted(nn.state.get_state_dict(net).items()): h.update(name.encode()); h.update(p.numpy().tobytes())
  print("losses", " ".join(f"{l:.9g}" for l in losses)); print("weights", h.hexdigest()[:16], "device", Device.DEFAULT)
