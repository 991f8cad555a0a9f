# SPDX-License-Identifier: Apache-2.0
"""tests/bench/gpu/contenders.py: every contender computes what the all-resident one does, bit for bit, also where
copies end as late as the events allow."""

import contextlib
import io
import json
import os
import sys
import tempfile
import time
import unittest
import weakref

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "bench", "gpu"))

import torch
from torch.multiprocessing.reductions import StorageWeakRef

import contenders
import offload
from torch_networks import NETWORKS, Learner, loss

SIZES = {"cnn": dict(batch=6, channels=4, hidden=8),
         "transformer": dict(layers=4, width=16, heads=2, sequence=8, batch=2)}
CPU = torch.device("cpu")


class LateStreams:
  """Streams whose copies begin when somebody waits for their end, and not before: as late as is right. What a copy
  reads or writes must still be there then. The compute stream is the program itself."""
  out, back = "out", "back"

  def __init__(self):
    self.queues = {self.out: [], self.back: []}  # what has not begun: (event, what it waits for, the copy)
    self.ended = {self.out: 0, self.back: 0}

  def copy(self, stream, source, target, *events):
    work = self._copy_out(source, target) if stream == self.out else self._copy_back(source, target)
    event = stream, self.ended[stream] + len(self.queues[stream]) + 1
    self.queues[stream].append((events, work))
    return event

  def _copy_out(self, source, target):
    value, there = source.clone(), StorageWeakRef(offload._storage_of(source))

    def work():
      if there.expired():
        raise AssertionError("the device memory of a copy was given back before the copy ended")
      target.copy_(value)
    return work

  def _copy_back(self, source, target):
    target.fill_(0xAA)  # until the copy
    place = weakref.ref(target)  # nothing else is to keep it

    def work():
      if place() is None:
        raise AssertionError("the device memory of a copy was given back before the copy ended")
      place().copy_(source)
    return work

  def compute_waits(self, event):
    if event is None:
      return
    stream, position = event
    while self.ended[stream] < position:
      others, work = self.queues[stream].pop(0)
      for other in others:
        self.compute_waits(other)
      work()
      self.ended[stream] += 1

  def end(self):
    for stream, queue in self.queues.items():
      self.compute_waits((stream, self.ended[stream] + len(queue)))


def offload_of(network, **options):
  return contenders.Offload(network, **{"smallest": 0, "in_flight": 2000, **options})


def gradients(contender):
  """Loss and gradients of two iterations: the first one of an offload learns how much there is."""
  found = []
  for _ in range(2):
    for parameter in contender.network.parameters():
      parameter.grad = None
    found.append([contender.backward(), *(p.grad for p in contender.network.parameters())])
  return found


class SameBits(unittest.TestCase):
  def assert_same(self, expected, found):
    self.assertEqual(len(expected), len(found))
    for of_one, of_other in zip(expected, found):
      for a, b in zip(of_one, of_other):
        self.assertTrue(torch.equal(a, b), f"differ by up to {(a - b).abs().max().item()}")

  def test_gradients(self):
    for name, sizes in SIZES.items():
      network = NETWORKS[name](CPU, **sizes)
      expected = gradients(contenders.Resident(network))
      self.assertTrue(all(bool(g.abs().sum() > 0) for g in expected[0]))
      for label, contender in [
          ("save_on_cpu", contenders.SaveOnCpu(network)),
          ("checkpointing", contenders.Checkpointing(network)),
          ("checkpointing half", contenders.Checkpointing(network, 0.5)),
          ("offload", offload_of(network)),
          ("offload half", offload_of(network, share=0.5)),
          ("offload of large ones", offload_of(network, smallest=500)),
          ("offload, copies one by one", offload_of(network, in_flight=0)),
          ("offload, all in flight", offload_of(network, in_flight=1 << 40)),
          ("late offload", offload_of(network, streams=LateStreams())),
          ("late offload, copies one by one", offload_of(network, in_flight=0, streams=LateStreams())),
          ("late offload, all in flight", offload_of(network, in_flight=1 << 40, streams=LateStreams())),
          ("late offload half", offload_of(network, in_flight=0, share=0.5, streams=LateStreams()))]:
        with self.subTest(f"{name}, {label}"):
          self.assert_same(expected, gradients(contender))

  def test_weights_after_some_steps(self):
    for name, sizes in SIZES.items():
      results = []
      for make in (contenders.Resident, contenders.SaveOnCpu, contenders.Checkpointing,
                   lambda network: offload_of(network, streams=LateStreams())):
        network = NETWORKS[name](CPU, **sizes)
        contender, learner = make(network), Learner(network)
        losses = [contender.step(learner) for _ in range(4)]
        results.append([losses, list(network.parameters())])
      self.assertNotEqual(*results[0][0][:2])
      for result in results[1:]:
        with self.subTest(name):
          self.assert_same(results[0], result)


class Offloads(unittest.TestCase):
  """Of a chain of squares: what is saved is the input of each, 400 bytes."""

  class Chain:
    def __init__(self, length):
      self.batch_inputs = torch.linspace(0.5, 1.5, 100)
      self.weight = torch.full((100,), 1.0, requires_grad=True)
      self.parts = [torch.square] * length

    def parameters(self):
      return [self.weight]

    def buffers(self):
      return []

    def loss_of(self, out):
      return out.sum()

  def make(self, length=6, **options):
    network = self.Chain(length)
    contender = offload_of(network, **options)
    # The first square saves a product of weight and input; the product saves both, which live on.
    contender.network.parts = [lambda x: x * network.weight, *network.parts]
    return contender

  def test_each_storage_moves_once_in_each_direction(self):
    contender = self.make(in_flight=0)
    for _ in range(3):
      before = contender.hooks.bytes_out, contender.hooks.bytes_back
      contender.backward()
      # The last one is always in flight, and still there when it is needed.
      self.assertEqual((contender.hooks.bytes_out - before[0], contender.hooks.bytes_back - before[1]), (2400, 2000))

  def test_views_of_a_storage_move_as_one(self):
    contender = self.make(length=0, in_flight=0, smallest=100)

    def halves(x):
      both = x * 2
      return both[:50] * both[50:] * both[::2]

    contender.network.parts.append(halves)
    contender.backward()
    # Both halves and every second one are views of 400 bytes; the product of the halves, 200, is saved as well.
    self.assertEqual(contender.hooks.bytes_out, 600)

  def test_a_share_of_the_bytes_leaves(self):
    for share, expected in ((1.0, 2400), (0.5, 1200), (0.4, 800), (0.0, 0)):
      contender = self.make(in_flight=0, share=share)
      contender.backward()
      self.assertEqual(contender.hooks.bytes_out, 2400)  # how much there is nobody knows yet
      contender.backward()
      self.assertEqual(contender.hooks.bytes_out, 2400 + expected)

  def test_what_is_saved_last_stays(self):
    contender = self.make(in_flight=800)
    contender.backward()
    contender.backward()
    self.assertEqual(contender.hooks.bytes_out, 2400 + 1600)
    # Of the first iteration the last two were still on the device when they were needed.
    self.assertEqual(contender.hooks.bytes_back, 1600 + 800)

  def test_no_more_is_in_flight_than_allowed(self):
    contender = self.make(length=20, in_flight=1200)
    hooks, most = contender.hooks, [0, 0, 0]
    send, bring = hooks._send, hooks._bring

    def watch(function):
      def watched(entry):
        function(entry)
        most[0], most[1] = max(most[0], hooks.leaving_bytes), max(most[1], hooks.ahead_bytes)
        most[2] = max(most[2], sum(entry.bytes for entry in hooks.entries if entry.device is not None))
      return watched

    hooks._send, hooks._bring = watch(send), watch(bring)
    contender.backward()
    # Where the backward pass begins, two of the three that never went are there, and three that came back.
    self.assertEqual(most, [1200, 1200, 2000])

  def test_small_tensors_stay(self):
    contender = self.make(smallest=401)
    contender.backward()
    self.assertEqual(contender.hooks.bytes_out, 0)

  def test_host_memory_is_used_again(self):
    contender = self.make(in_flight=0)
    contender.hooks.pool.slab = 1 << 12
    for _ in range(4):
      contender.backward()
    self.assertEqual(contender.hooks.pool.bytes, 1 << 12)  # six times 512
    buffers = [buffer for of_size in contender.hooks.pool.free.values() for buffer, _ in of_size]
    self.assertEqual(len({buffer.data_ptr() for buffer in buffers}), 6)

  def test_a_large_block_has_a_slab_of_its_own(self):
    pool = offload.HostPool(False, slab=1024)
    self.assertEqual([pool.take(size)[0].numel() for size in (600, 3000, 400)], [600, 3000, 400])
    self.assertEqual(pool.bytes, 1024 + 4096 + 0)

  def test_nothing_is_left_behind_an_iteration(self):
    for smallest in (0, 1 << 20):
      contender, made = self.make(smallest=smallest), []

      def part(x):
        made.append(StorageWeakRef(offload._storage_of(x)))
        y = x.exp()  # autograd saves the result
        made.append(StorageWeakRef(offload._storage_of(y)))
        return y

      contender.network.parts.insert(2, part)
      for _ in range(2):
        contender.backward()
      self.assertEqual([reference.expired() for reference in made], [True] * 4)

  def test_a_value_that_is_changed_between_two_uses_is_two_values(self):
    def part(x):
      y = x * 1
      y.sin()  # saves y, and is not used
      y.add_(1)
      return y.cos()  # saves what y is now

    contender = self.make(length=0, in_flight=0)
    contender.network.parts += [part, torch.exp, torch.exp]  # behind these, the part's values have left the device
    expected = gradients(contenders.Resident(contender.network))
    for of_one, of_other in zip(expected, gradients(contender)):
      self.assertTrue(torch.equal(of_one[1], of_other[1]))

  def test_an_unused_value_goes_with_the_iteration(self):
    contender = self.make(in_flight=800, streams=LateStreams())
    with contender.hooks:
      loss(contender.network)
    contender.hooks._bring_ahead(5)
    contender.hooks.finish()
    contender.hooks.streams.end()
    self.assertEqual(contender.hooks.entries, [])
    self.assertEqual(sum(map(len, contender.hooks.pool.free.values())), 6)


class Networks(unittest.TestCase):
  def test_the_cnn_is_that_of_the_example(self):
    # examples/fashion_mnist/architecture.hpp: weights and biases of its seven layers.
    shapes = [(9, 32), (32, 32), (32, 32), (9 * 32, 32), (32, 32), (49 * 32, 128), (128, 10)]
    network = NETWORKS["cnn"](CPU, batch=2)
    self.assertEqual(sum(p.numel() for p in network.parameters()), sum(a * b + b for a, b in shapes))
    self.assertEqual(network.batch_inputs.shape, (2, 1, 28, 28))

  def test_the_transformer_is_that_of_the_example(self):
    # examples/transformer/shapes.hpp
    network = NETWORKS["transformer"](CPU, layers=3, width=16)
    self.assertEqual(sum(p.numel() for p in network.parameters()), 3 * (12 * 16 * 16 + 4 * 16))
    self.assertEqual({p.dtype for p in network.parameters()}, {torch.bfloat16})

  def test_attention_is_that_of_each_head(self):
    block = NETWORKS["transformer"](CPU, width=12, heads=3).parts[0].float()
    qkv = torch.randn(2, 5, 36)
    found = block.attention(qkv)
    for sequence in range(2):
      for head in range(3):
        q, k, v = (qkv[sequence, :, 12 * part + 4 * head:12 * part + 4 * head + 4] for part in range(3))
        expected = torch.softmax(q @ k.t() / 2, 1) @ v
        self.assertTrue(torch.allclose(found[sequence, :, 4 * head:4 * head + 4], expected, atol=1e-6))

  def test_the_loss_is_the_cross_entropy(self):
    network = NETWORKS["cnn"](CPU, batch=4)
    self.assertAlmostEqual(network.loss_of(torch.zeros(4, 10)).item(), 2.302585, 5)  # ln 10

  def test_the_loss_is_the_mean_of_squares(self):
    network = NETWORKS["transformer"](CPU)
    self.assertEqual(network.loss_of(torch.tensor([1.0, 3.0], dtype=torch.bfloat16)).item(), 5.0)

  def test_learning_with_momentum(self):
    class One(torch.nn.Module):
      momentum = 0.5

      def __init__(self):
        super().__init__()
        self.w = torch.nn.Parameter(torch.tensor([8.0]))

    network = One()
    learner, values = Learner(network, rate=0.25), []
    for _ in range(3):
      (network.w * 4).sum().backward()
      learner.finish()
      values.append(network.w.item())
    # speeds 4, 6, 7
    self.assertEqual(values, [7.0, 5.5, 3.75])
    self.assertIsNone(network.w.grad)


class CommandLine(unittest.TestCase):
  def run_main(self, *arguments):
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stderr(io.StringIO()) as printed:
      path = os.path.join(folder, "out.json")
      self.assertEqual(contenders.main(["--device", "cpu", "--warmup", "1", "--out", path, *arguments]), 0)
      self.assertEqual(os.listdir(folder), ["out.json"])
      with open(path, encoding="utf-8") as file:
        return json.load(file), printed.getvalue()

  def test_records(self):
    records, _ = self.run_main("--networks", "cnn", "--cnn", "batch=2,channels=2", "--iterations", "3",
                               "--shares", "1,0.5")
    self.assertEqual([(r["contender"], r["config"]["share"]) for r in records], [
        ("PyTorch all-resident", 1.0), ("PyTorch save_on_cpu", 1.0), ("PyTorch overlapped offload", 1.0),
        ("PyTorch overlapped offload", 0.5), ("PyTorch checkpointing", 1.0), ("PyTorch checkpointing", 0.5)])
    for record in records:
      self.assertEqual((record["network"], record["device"], record["torch"]), ("cnn", "cpu", torch.__version__))
      self.assertEqual(record["config"], {"batch": 2, "channels": 2, "hidden": 128, "share": record["config"]["share"]})
      self.assertEqual(len(record["iterations_ms"]), 3)
      self.assertEqual(sorted(record["iterations_ms"])[1], record["iteration_ms"])
      self.assertGreater(record["iteration_ms"], 0)
      self.assertIn("peak_allocated_bytes", record)
      self.assertIn("peak_reserved_bytes", record)
    self.assertEqual([r["resident_ms"] is None for r in records], [True] + 5 * [False])
    self.assertGreater(records[1]["d2h_bytes"], 0)

  def test_what_has_no_memory_is_noted_and_the_others_go_on(self):
    def fail(self, part, x):
      raise contenders.OUT_OF_MEMORY("CUDA out of memory. Tried")

    original = contenders.Checkpointing.run_part
    contenders.Checkpointing.run_part = fail
    try:
      records, printed = self.run_main("--cnn", "batch=2,channels=2", "--iterations", "1", "--shares", "1",
                                       "--contenders", "resident,checkpointing")
    finally:
      contenders.Checkpointing.run_part = original
    self.assertEqual([r.get("note") for r in records], [None, "out of memory"] * 2)
    self.assertIn("cnn, PyTorch checkpointing, share 1: out of memory\n", printed)

  def test_a_time_limit_leaves_what_there_is_time_for(self):
    records, printed = self.run_main("--networks", "cnn", "--cnn", "batch=2,channels=2", "--shares", "1",
                                     "--time-limit", "0")
    self.assertEqual([r.get("note") for r in records], 4 * ["no time was left"])
    self.assertIn("making the network cnn\n", printed)

    step = contenders.Resident.step

    def slow(self, learner):
      time.sleep(0.05)
      return step(self, learner)

    contenders.Resident.step = slow
    try:
      records, printed = self.run_main("--networks", "cnn", "--cnn", "batch=2,channels=2", "--iterations", "200",
                                       "--shares", "1", "--time-limit", "2", "--searched", "3")
    finally:
      contenders.Resident.step = step
    self.assertIn("PyTorch all-resident: the first step took", printed)
    self.assertEqual([r["algorithms_tried"] for r in records], 4 * [3])
    for record in records:
      self.assertGreaterEqual(len(record["iterations_ms"]), 1)
      self.assertLess(len(record["iterations_ms"]), 40)

  def test_an_unknown_size_is_refused(self):
    with contextlib.redirect_stderr(io.StringIO()) as printed, self.assertRaises(SystemExit):
      contenders.parse(["--cnn", "depth=3", "--out", "x"])
    self.assertIn("--cnn: depth is not one of batch, channels, hidden", printed.getvalue())


if __name__ == "__main__":
  unittest.main()
