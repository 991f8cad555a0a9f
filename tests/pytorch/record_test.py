# SPDX-License-Identifier: Apache-2.0
"""swapmm.torch.record(): what becomes an operation, a tensor and an access. The command examples/pytorch/record.py."""

import contextlib
import gzip
import io
import json
import os
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples", "pytorch"))

import torch
from torch.multiprocessing.reductions import StorageWeakRef

import models
import record as command
import swapmm
from swapmm.torch import record
from swapmm.torch.operators import storage_of

PYTORCH_2 = not torch.__version__.startswith("1.")


def bundles(trace):
  """(name, reads, writes, updates) with the names of the tensors."""
  def names(ids):
    return [trace.tensors[t].name for t in ids]
  return [(o.name, names(o.reads), names(o.writes), names(o.updates)) for o in trace.operations]


def lines(trace):
  """What identifies the program, as docs/formats.md has it for the digest: sizes, kinds and bundles."""
  tensors = [f"T {tensor.bytes} {tensor.kind}" for tensor in trace.tensors]
  operations = [[",".join(map(str, sorted(ids))) for ids in (o.reads, o.writes, o.updates)] for o in trace.operations]
  return tensors + ["O r{} w{} u{}".format(*lists) for lists in operations]


def kinds(trace):
  return {tensor.name: tensor.kind for tensor in trace.tensors}


def filled(*shape):
  return torch.full(shape, 0.5)


class Operations(unittest.TestCase):
  def test_a_small_program_gives_the_bundles_worked_out_by_hand(self):
    linear, x, sums = torch.nn.Linear(3, 4), filled(2, 3), []

    def step():
      with torch.no_grad():
        hidden = linear(x)
        hidden.relu_()
        hidden.view(-1)[0:2].fill_(0.25)
        sums.append(hidden.sum().item())

    trace = record(step, inputs=x, parameters=linear, name="small", warmup=2, repeat=3)
    self.assertEqual(trace.name, "small")
    self.assertEqual(len(sums), 2 + 1 + 3)
    self.assertEqual(lines(trace), [
        "T 16 persistent", "T 24 input", "T 48 persistent", "T 32 transient", "T 4 transient",
        "O r0,1,2 w3 u", "O r w u3", "O r w u3", "O r3 w4 u"])
    self.assertEqual([o.name for o in trace.operations], ["addmm", "relu_", "fill_.Scalar", "sum"])
    self.assertEqual([t.name for t in trace.tensors], ["bias", "input", "weight", "addmm.0", "sum.3"])
    self.assertEqual(trace.host_reads, [(4, 3)])
    self.assertTrue(all(operation.duration_ns > 0 for operation in trace.operations))
    # Alone in 256 bytes each; in the bundle of the first operation, of which bias and weight live on.
    self.assertEqual(trace.largest_bundle_bytes(), 4 * 256)
    self.assertEqual(trace.peak_bytes(), 4 * 256)

  def test_two_recordings_of_a_program_have_one_digest(self):
    traces = [record(case.step, inputs=[case.inputs, case.targets], parameters=[case.network, case.optimizer], repeat=1)
              for case in (models.build("lstm"), models.build("lstm"))]
    self.assertEqual(*(lines(trace) for trace in traces))
    self.assertEqual(traces[0].digest, traces[1].digest)

  def test_steps_that_differ_are_refused(self):
    calls = []

    def step():
      calls.append(0)
      return filled(4).add_(1) if len(calls) < 5 else filled(4).mul_(2)

    with self.assertRaisesRegex(swapmm.UsageError, "operation 1 on.*add_.*mul_"):
      record(step)

  def test_a_step_without_operations_is_refused(self):
    with self.assertRaisesRegex(swapmm.UsageError, "no operation on cpu"):
      record(lambda: None)

  def test_views_are_no_operations(self):
    x = filled(4, 6)

    def step():
      with torch.no_grad():
        y = x.t().reshape(6, 4)[1:3].unsqueeze(0).detach().expand(5, 2, 4).select(0, 1)
        y.split(2)[0].sum()

    self.assertEqual(bundles(record(step, inputs=x)), [("sum", ["input"], ["sum.0"], [])])

  def test_what_changes_the_shape_alone_is_no_operation(self):
    def step():
      x = torch.zeros(6)
      x.resize_(2, 3).t_()
      torch.empty(0).set_(x).exp()

    self.assertEqual(bundles(record(step)), [("zeros", [], ["zeros.0"], []), ("exp", ["zeros.0"], ["exp.1"], [])])

  def test_an_operator_that_may_return_a_view_is_seen_where_it_copies(self):
    x = filled(4, 6)

    def step():
      with torch.inference_mode():
        x.reshape(24).sum()  # a view
        x.t().reshape(24).sum()  # a copy

    found = bundles(record(step, inputs=x))
    self.assertEqual([len(reads) for _, reads, _, _ in found], [1, 1, 1])
    self.assertEqual([reads[0] for _, reads, _, _ in found], ["input", "input", found[1][2][0]])

  def test_what_is_given_for_its_shape_alone_is_not_read(self):
    x = filled(4)
    self.assertEqual(bundles(record(lambda: (torch.zeros_like(x), x.new_ones(3), x.exp()), inputs=x)),
                     [("zeros_like", [], ["zeros_like.0"], []), ("new_ones", [], ["new_ones.1"], []),
                      ("exp", ["input"], ["exp.2"], [])])


class Writes(unittest.TestCase):
  """On `kept`, which lives on: there a first access may be anything."""

  def accesses(self, change, others=()):
    kept = filled(4, 6)
    trace = record(lambda: change(kept), parameters={"kept": kept, **dict(others)})
    return bundles(trace)

  def test_in_place_is_an_update(self):
    self.assertEqual(self.accesses(lambda kept: kept.mul_(1.0)), [("mul_.Tensor", [], [], ["kept"])])

  def test_in_place_on_a_view_updates_the_whole(self):
    self.assertEqual(self.accesses(lambda kept: kept[1].mul_(1.0)), [("mul_.Tensor", [], [], ["kept"])])
    self.assertEqual(self.accesses(lambda kept: kept[1].zero_()), [("zero_", [], [], ["kept"])])

  def test_what_overwrites_all_is_a_write(self):
    other = filled(4, 6)
    self.assertEqual(self.accesses(lambda kept: kept.zero_()), [("zero_", [], ["kept"], [])])
    self.assertEqual(self.accesses(lambda kept: kept.t().fill_(2)), [("fill_.Scalar", [], ["kept"], [])])
    self.assertEqual(self.accesses(lambda kept: kept.copy_(other), {"other": other}),
                     [("copy_", ["other"], ["kept"], [])])
    self.assertEqual(self.accesses(lambda kept: torch.exp(other, out=kept), {"other": other}),
                     [("exp.out", ["other"], ["kept"], [])])

  def test_a_part_of_an_out_argument_is_an_update(self):
    other = filled(2, 6)
    self.assertEqual(self.accesses(lambda kept: torch.exp(other, out=kept[:2]), {"other": other}),
                     [("exp.out", ["other"], [], ["kept"])])

  def test_a_tensor_that_is_read_and_overwritten_is_an_update(self):
    self.assertEqual(self.accesses(lambda kept: torch.exp(kept, out=kept)), [("exp.out", [], [], ["kept"])])

  def test_a_tensor_stands_once_in_a_bundle(self):
    self.assertEqual(self.accesses(lambda kept: kept.mul_(kept)), [("mul_.Tensor", [], [], ["kept"])])
    self.assertEqual([access[1] for access in self.accesses(lambda kept: kept.mul(kept))], [["kept"]])

  def test_lists_of_tensors(self):
    other = filled(3)
    self.assertEqual(self.accesses(lambda kept: torch._foreach_mul_([kept, other], 1.0), {"other": other}),
                     [("_foreach_mul_.Scalar", [], [], ["kept", "other"])])
    self.assertEqual(self.accesses(lambda kept: torch._foreach_zero_([kept, other]), {"other": other}),
                     [("_foreach_zero_", [], ["kept", "other"], [])])

  def test_a_sparse_tensor_is_what_it_is_made_of(self):
    dense, factor = torch.eye(50), filled(50, 2)

    def step():
      with torch.no_grad():
        sparse = dense.to_sparse()
        sparse._values().mul_(2)
        return torch.mm(sparse, factor)

    made, doubled, product = record(step, device="cpu", repeat=1).operations
    indices, values = made.writes
    self.assertEqual(doubled.updates, [values])
    self.assertEqual(product.reads[:2], [indices, values])
    self.assertEqual(len(product.reads), 3)

  @unittest.skipUnless(PYTORCH_2, "needs PyTorch 2")
  def test_operators_of_a_tensor_with_a_dispatch_of_its_own(self):
    rows = [filled(length, 8) for length in (3, 5)]

    def step():
      with torch.no_grad():
        nested = torch.nested.nested_tensor(rows, layout=torch.jagged)
        return (nested * 2).sin()

    names = [name for name, *_ in bundles(record(step, device="cpu", repeat=1))]
    self.assertIn("mul.Tensor", names)
    self.assertIn("sin", names)

  def test_an_overlapping_view_is_not_the_whole(self):
    self.assertEqual(self.accesses(lambda kept: torch.as_strided(kept, (4, 6), (1, 1)).zero_()),
                     [("zero_", [], [], ["kept"])])

  def test_running_statistics_of_a_batch_norm_are_updated(self):
    x, norm = filled(2, 3), torch.nn.BatchNorm1d(3)
    for training in (True, False):
      norm.train(training)
      trace = record(lambda: norm(x).sum(), inputs=x, parameters=norm)
      (_, reads, _, updates), = [b for b in bundles(trace) if b[0].endswith(("batch_norm", "batch_norm_with_update"))]
      changed, unchanged = (updates, reads) if training else (reads, updates)
      self.assertEqual([name for name in changed if "running" in name], ["running_mean", "running_var"])
      self.assertEqual([name for name in unchanged if "running" in name], [])


class FirstAccess(unittest.TestCase):
  """A transient has no value before it is written."""

  def test_the_first_write_of_an_allocation_is_the_whole_value(self):
    def step():
      fresh = torch.empty(4, 6)
      fresh[0].zero_()
      fresh[1:].fill_(1)
      fresh.sum()

    self.assertEqual([b[1:] for b in bundles(record(step))],
                     [([], ["zero_.0"], []), ([], [], ["zero_.0"]), (["zero_.0"], ["sum.2"], [])])

  def test_an_update_of_undefined_bytes_is_a_write(self):
    found = bundles(record(lambda: torch.empty(4).mul_(2)))
    self.assertEqual(found, [("mul_.Tensor", [], ["mul_.Tensor.0"], [])])

  def test_a_read_of_undefined_bytes_comes_behind_an_operation_of_its_own(self):
    trace = record(lambda: torch.empty(4).exp())
    self.assertEqual([(o.name, o.reads, o.writes) for o in trace.operations],
                     [("uninitialised", [], [0]), ("exp", [0], [1])])
    self.assertEqual(trace.operations[0].duration_ns, 1)


class Identity(unittest.TestCase):
  def test_an_address_that_is_used_again_is_another_tensor(self):
    addresses = []

    def step():
      addresses.clear()
      for _ in range(20):
        temporary = torch.ones(1000)
        addresses.append(temporary.data_ptr())
        temporary.sum()

    trace = record(step)
    self.assertLess(len(set(addresses)), 20, "nothing is tested: no address came twice")
    ones = [o.writes for o in trace.operations if o.name == "ones"]
    sums = [o.reads for o in trace.operations if o.name == "sum"]
    self.assertEqual(ones, sums)
    self.assertEqual(len({tensor for tensor, in ones}), 20)

  def test_views_share_their_storage(self):
    def step():
      whole = torch.zeros(8)
      left, right = whole[:4], whole[4:]
      left += right

    trace = record(step)
    self.assertEqual([(t.bytes, t.kind) for t in trace.tensors], [(32, "transient")])
    self.assertEqual([(o.writes, o.updates) for o in trace.operations], [([0], []), ([], [0])])

  def test_what_autograd_saves_lives_until_the_backward_pass(self):
    weight, x = filled(4).requires_grad_(), filled(4)

    def step():
      weight.grad = None
      saved = (weight * x).tanh()
      for _ in range(3):
        saved = saved + 1  # the name is gone, the tensor is not
      saved.sum().backward()

    trace = record(step, inputs=x, parameters={"weight": weight})
    tanh, = [o for o in trace.operations if o.name == "tanh"]
    backward, = [o for o in trace.operations if o.name == "tanh_backward"]
    self.assertIn(tanh.writes[0], backward.reads)
    self.assertLess(trace.operations.index(tanh) + 4, trace.operations.index(backward))

  def test_a_storage_that_grows_has_its_largest_size(self):
    def step():
      small = torch.zeros(2)
      torch.ones(10, out=small.resize_(10))

    self.assertEqual([t.bytes for t in record(step).tensors], [40])

  def test_nothing_of_the_program_is_kept_alive(self):
    alive = []

    def step():
      self.assertTrue(all(reference.expired() for reference in alive))
      fresh = torch.ones(10)
      alive.append(StorageWeakRef(storage_of(fresh)))
      fresh.view(2, 5).sum()
      self.assertFalse(alive[-1].expired())

    record(step)
    self.assertEqual(len(alive), 6)


class Kinds(unittest.TestCase):
  def test_what_is_declared(self):
    network = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))
    x = filled(2, 3)
    found = kinds(record(lambda: network(x).sum(), inputs={"images": x}, parameters=network))
    self.assertEqual(found["images"], "input")
    for name in ("0.weight", "0.bias", "1.weight", "1.running_mean", "1.num_batches_tracked"):
      self.assertEqual(found.pop(name), "persistent")
    self.assertEqual({kind for name, kind in found.items() if name[0] not in "1i"}, {"transient"})

  def test_an_optimizer_step_updates_in_place_what_lives_on(self):
    weight, gradient = filled(4).requires_grad_(), filled(4)
    optimizer = torch.optim.SGD([weight], lr=0.1, momentum=0.9, foreach=False)

    def step():
      weight.grad = gradient * 2
      optimizer.step()

    trace = record(step, inputs={"gradient": gradient}, parameters=[{"weight": weight}, optimizer])
    # PyTorch 1 makes a number of its own here, which nothing reads.
    self.assertEqual([bundle for bundle in bundles(trace) if bundle[0] != "zeros"], [
        ("mul.Tensor", ["gradient"], ["mul.Tensor.0"], []),
        ("mul_.Tensor", [], [], ["momentum_buffer of a parameter"]),
        ("add_.Tensor", ["mul.Tensor.0"], [], ["momentum_buffer of a parameter"]),
        ("add_.Tensor", ["momentum_buffer of a parameter"], [], ["weight"])])
    found = kinds(trace)
    self.assertEqual([found[name] for name in ("gradient", "mul.Tensor.0", "momentum_buffer of a parameter", "weight")],
                     ["input", "transient", "persistent", "persistent"])

  def test_adams_counters_stay_on_the_host(self):
    network = torch.nn.Linear(3, 1)
    optimizer = torch.optim.Adam(network.parameters(), foreach=False)

    def step():
      optimizer.zero_grad(set_to_none=True)
      network(filled(2, 3)).sum().backward()
      optimizer.step()

    trace = record(step, parameters=[network, optimizer])
    self.assertEqual(trace.host_reads, [])
    persistent = {name for name, kind in kinds(trace).items() if kind == "persistent"}
    self.assertEqual(persistent, {"weight", "bias"} | {
        f"{state} of {name}" for state in ("exp_avg", "exp_avg_sq") for name in ("weight", "bias")})

  def test_a_constant_from_before_the_step_is_persistent(self):
    constant = filled(4)
    for warmup in (0, 1, 2):
      trace = record(lambda: constant.exp(), warmup=warmup)
      self.assertEqual([tensor.kind for tensor in trace.tensors], ["persistent", "transient"])

  def test_what_the_host_makes_in_the_step_is_an_input(self):
    trace = record(lambda: (torch.ones(3), torch.tensor([1.0, 2.0]).exp()))
    tensor, = [t for t in trace.tensors if t.kind == "input"]
    self.assertEqual((tensor.bytes, tensor.available_from), (8, 1))

  def test_a_copy_from_the_host_is_no_operation(self):
    batch, static = filled(2, 3), torch.empty(4, device="meta")

    def step():
      torch.ones(5, device="meta")
      batch.to("meta").exp()
      static.copy_(filled(4)).exp()

    for inputs, name in ((), "input.3"), ({"static": static}, "static"):
      trace = record(step, inputs=inputs, device="meta")
      self.assertEqual([(t.bytes, t.kind, t.available_from) for t in trace.tensors],
                       [(20, "transient", 0), (24, "input", 1), (24, "transient", 0), (16, "input", 2),
                        (16, "transient", 0)])
      self.assertEqual([o.name for o in trace.operations], ["ones", "exp", "exp"])

  def test_a_copy_from_the_host_into_a_part_is_an_operation(self):
    kept = torch.empty(4, device="meta")
    for parameters in ({"kept": kept}, ()):
      trace = record(lambda: kept[:2].copy_(filled(2)), parameters=parameters, device="meta")
      self.assertEqual([(o.name, o.reads, o.writes, o.updates) for o in trace.operations], [("copy_", [], [], [0])])
      self.assertEqual(trace.tensors[0].kind, "persistent")

  def test_a_copy_from_the_host_to_a_parameter_is_an_operation(self):
    kept = torch.empty(4, device="meta")
    trace = record(lambda: kept.copy_(filled(4)), parameters={"kept": kept})
    self.assertEqual(bundles(trace), [("copy_", [], ["kept"], [])])

  def test_a_state_that_goes_on_in_another_storage_is_persistent_in_both(self):
    state = [filled(4)]

    def step():
      state[0] = state[0].exp().clamp(max=1.0)

    trace = record(step)
    self.assertEqual([t.kind for t in trace.tensors], ["persistent", "transient", "persistent"])


class HostReads(unittest.TestCase):
  def test_a_value_is_read_behind_the_operation_that_wrote_it(self):
    def step():
      total = filled(4).sum()
      filled(3)
      total.item()
      return total.mul_(2).item()

    trace = record(step)
    self.assertEqual([(o.name, o.writes + o.updates) for o in trace.operations],
                     [("full", [0]), ("sum", [1]), ("full", [2]), ("mul_.Tensor", [1])])
    self.assertEqual(trace.host_reads, [(1, 1), (1, 3)])

  def test_a_value_of_the_step_before_is_one_behind_its_last_operation(self):
    loss = filled(1)

    def step():
      loss.item()
      loss.copy_(filled(2).sum())

    trace = record(step, parameters={"loss": loss})
    self.assertEqual([o.name for o in trace.operations], ["full", "sum", "copy_"])
    self.assertEqual(trace.host_reads, [(2, 2)])


class Plans(unittest.TestCase):
  def test_a_recorded_step_is_planned_in_half_of_its_memory(self):
    case = models.build("lstm")
    trace = record(case.step, inputs=[case.inputs, case.targets], parameters=[case.network, case.optimizer], repeat=1)
    self.assertEqual(trace.peak_bytes(), 106_496)
    plan = swapmm.plan(trace, budget="50%", planner="belady")
    self.assertEqual(swapmm.validate(trace, plan), [])
    self.assertEqual(plan.machine.device_budget_bytes, 53_248)
    self.assertLessEqual(plan.predicted.peak_bytes, 53_248)
    self.assertGreater(plan.predicted.bytes_moved, 0)

  @unittest.skipUnless(PYTORCH_2, "budget() needs PyTorch 2")
  def test_a_budget_is_in_the_way(self):
    swapmm.torch.budget("8MB", "cpu")
    try:
      with self.assertRaisesRegex(swapmm.UsageError, "without a budget"):
        record(lambda: filled(2).exp())
    finally:
      swapmm.torch.off()
    self.assertEqual(len(record(lambda: filled(2).exp()).operations), 2)

  @unittest.skipIf(PYTORCH_2, "an old PyTorch is needed")
  def test_a_budget_wants_a_newer_pytorch(self):
    with self.assertRaisesRegex(swapmm.UsageError, r"^swapmm.torch.budget\(\) needs PyTorch 2.4 or newer, this is 1\."):
      swapmm.torch.budget("8MB")
    with self.assertRaisesRegex(swapmm.UsageError, "was not called"):
      swapmm.torch.report()
    swapmm.torch.off()  # does nothing


class CommandLine(unittest.TestCase):
  def test_one_model(self):
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()) as printed:
      path = os.path.join(folder, "lstm.json")
      arguments = ["lstm", "--batch", "3", "--size", "sequence=2,width=8", "--repeat", "1", "--json", "--out", path]
      self.assertEqual(command.main(arguments), 0)
      row = json.loads(printed.getvalue())
      with open(path, encoding="utf-8") as file:
        trace = json.load(file)
    self.assertEqual((row["name"], trace["name"]), ("lstm-b3", "lstm-b3"))
    self.assertEqual(row["operations"], len(trace["operations"]))
    tokens, = [t for t in trace["tensors"] if t["name"] == "input.0"]
    self.assertEqual((tokens["kind"], tokens["bytes"]), ("input", 2 * 3 * 8))

  def test_a_model_that_fails_does_not_end_the_others(self):
    presets = models.PRESETS
    models.PRESETS = {"no_such_model": None, "lstm": presets["lstm"]}
    try:
      with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()) as printed:
        with contextlib.redirect_stderr(io.StringIO()):
          self.assertEqual(command.main(["--all", "--out-dir", folder, "--repeat", "1"]), 1)
        self.assertEqual(os.listdir(folder), ["lstm.json.gz"])
    finally:
      models.PRESETS = presets
    rows = printed.getvalue().splitlines()[2:]
    self.assertRegex(rows[0], "no_such_model . failed: .*invalid choice")
    self.assertRegex(rows[1], "^. lstm-b4 . [0-9]+ . ")

  def test_a_name_that_ends_with_gz_makes_a_compressed_file(self):
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
      path = os.path.join(folder, "lstm.json.gz")
      self.assertEqual(command.main(["lstm", "--repeat", "1", "--out", path]), 0)
      with gzip.open(path, "rt", encoding="utf-8") as file:
        self.assertEqual(json.load(file)["name"], "lstm-b4")

  def test_without_the_package_it_says_how_to_install_it(self):
    for prepare in ("sys.modules['swapmm'] = None", "os.environ['SWAPMM_PYTHON_LIBRARY'] = '/nonexistent'"):
      code = f"import os, runpy, sys; {prepare}; runpy.run_path({command.__file__!r}, run_name='__main__')"
      done = subprocess.run([sys.executable, "-c", code], stderr=subprocess.PIPE, universal_newlines=True)
      self.assertEqual(done.returncode, 1)
      self.assertRegex(done.stderr, "^record.py needs .* the Python package of swapmm: .*\n.*pip install")

  def test_a_large_model_is_sized_without_its_memory(self):
    # GPT-2 medium, 16 sequences of 1024: between 20 and 100 GB, as all models of that preset are meant to be.
    case = models.build("gpt", "gpu", "meta")
    trace = record(case.step, inputs=[case.inputs, case.targets], parameters=[case.network, case.optimizer], warmup=1,
                   repeat=1, device="meta")
    # Per layer and sequence position: what autograd saves; see examples/pytorch/README.md.
    self.assertEqual(round(trace.peak_bytes() / 1e9, 1), 65.8)


if __name__ == "__main__":
  unittest.main()
