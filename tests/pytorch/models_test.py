# SPDX-License-Identifier: Apache-2.0
"""The trace of each model in examples/pytorch has the expected figures, and is the same in a file. swapmm plans it with
half of its memory, and the plan is valid."""

import os
import sys
import tempfile
import unittest

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(here, "..", "..", "examples", "pytorch"))

import models
import swapmm
from swapmm.torch import record


# Of the preset tiny: peak of live bytes, largest bundle (both with sizes rounded up to 256), and what lives on from
# step to step. The last one by hand for the LSTM: (31*16 + 2*(2*64*16 + 2*64) + 31*16 + 31) numbers of 4 bytes, and two
# more of each for Adam.
EXPECTED = {
    "gpt": (547_840, 49_152, 349_568),
    "vit": (614_656, 78_336, 390_648),
    "resnet50": (1_774_080, 299_520, 1_057_496),
    "resnet152": (2_055_168, 299_520, 1_238_536),
    "unet": (1_661_440, 336_896, 356_968),
    "lstm": (106_496, 12_288, 64_500),
}


class Models(unittest.TestCase):
  def check(self, name, autocast=False):
    case = models.build(name, autocast=autocast)
    trace = record(case.step, inputs=[case.inputs, case.targets], parameters=[case.network, case.optimizer],
                   name=case.name, repeat=1)
    with tempfile.TemporaryDirectory() as folder:
      path = os.path.join(folder, "trace.json")
      trace.save(path)
      self.assertEqual(swapmm.Trace.load(path), trace)
    self.assertEqual(len(trace.host_reads), 1)  # the loss
    plan = swapmm.plan(trace, "50%", planner="excess-overlap")
    self.assertEqual(swapmm.validate(trace, plan), [])
    self.assertLessEqual(plan.predicted.peak_bytes, trace.peak_bytes() // 2)
    self.assertGreater(len(plan.commands), 0)
    # Each parameter lives on, in so many bytes.
    sizes = {t.name: t.bytes for t in trace.tensors if t.kind == "persistent"}
    for parameter_name, parameter in case.network.named_parameters():
      self.assertEqual(sizes[parameter_name], parameter.numel() * 4, parameter_name)
    self.assertEqual([t.name for t in trace.tensors if t.kind == "input"], ["input.0", "input.1"])
    return trace.peak_bytes(), trace.largest_bundle_bytes(), sum(sizes.values())

  def test_every_model(self):
    self.assertEqual(set(EXPECTED), set(models.PRESETS))
    for name, expected in EXPECTED.items():
      with self.subTest(name):
        self.assertEqual(self.check(name), expected)

  def test_half_precision_takes_less(self):
    peak, _, persistent = self.check("unet", autocast=True)
    self.assertLess(peak, EXPECTED["unet"][0])
    self.assertEqual(persistent, EXPECTED["unet"][2])

  def test_the_recorded_trace_of_the_repository(self):
    trace = swapmm.Trace.load(os.path.join(here, "..", "data", "traces", "pytorch", "lstm.json"))
    self.assertEqual((len(trace.operations), len(trace.tensors)), (367, 300))
    self.assertEqual((trace.peak_bytes(), trace.largest_bundle_bytes()), EXPECTED["lstm"][:2])

  def test_an_unknown_model_or_size_is_refused(self):
    with self.assertRaisesRegex(ValueError, "no model 'bert'"):
      models.build("bert")
    with self.assertRaisesRegex(ValueError, "no size 'patch'"):
      models.build("gpt", overrides={"patch": 3})

  def test_networks_are_of_the_known_sizes(self):
    """The numbers of parameters that are published for these networks."""
    def count(network):
      return sum(parameter.numel() for parameter in network.parameters())

    sizes = {name: dict(preset["gpu"]) for name, preset in models.PRESETS.items()}
    self.assertEqual(count(models.ResNet(sizes["resnet50"]["blocks"], 64, 1000)), 25_557_032)
    self.assertEqual(count(models.ResNet(sizes["resnet152"]["blocks"], 64, 1000)), 60_192_808)
    self.assertEqual(count(models.Gpt(12, 768, 12, 1024, 50257)), 124_439_808)
    self.assertEqual(count(models.Vit(12, 768, 12, 224, 16, 1000)), 86_567_656)


if __name__ == "__main__":
  unittest.main()
