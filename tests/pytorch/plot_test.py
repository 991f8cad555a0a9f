# SPDX-License-Identifier: Apache-2.0
"""tests/bench/gpu/plot.py: points land where they should."""

import contextlib
import io
import json
import math
import os
import sys
import tempfile
import unittest
from xml.etree import ElementTree

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "bench", "gpu"))

import plot

SVG = "{http://www.w3.org/2000/svg}"


def record(contender, gigabytes, ms, **more):
  return {"network": "cnn", "contender": contender, "config": {"batch": 8}, "memory_bytes": gigabytes * 10**9,
          "iteration_ms": ms, **more}


MADE_UP = [
    record("all-resident", 16, 100), record("PyTorch all-resident", 20, 50),
    record("floor", 16, 100), record("floor", 4, 120), record("floor", 8, 100),
    record("swapmm plan", 8, 150, k=2.0), record("swapmm plan", 4, 300, resident_ms=150),
    record("swapmm on demand", 4, 480),
    record("PyTorch checkpointing", 16, 75, config={"batch": 8, "share": 0.5}),
    record("PyTorch save_on_cpu", 4, 100),
]


class Points(unittest.TestCase):
  def test_slowdowns(self):
    points = plot.points_of(MADE_UP)
    self.assertEqual({name: [(p.memory_gb, p.slowdown) for p in of_one] for name, of_one in points.items()}, {
        "floor": [(4, 1.2), (8, 1.0), (16, 1.0)],
        "swapmm plan": [(4, 2.0), (8, 1.5)],  # the first one over what was measured by turns with it
        "swapmm on demand": [(4, 4.8)],
        "PyTorch checkpointing": [(16, 1.5)],
        "PyTorch save_on_cpu": [(4, 2.0)]})

  def test_what_has_no_time_has_no_point(self):
    note = {"network": "cnn", "contender": "swapmm plan", "memory_bytes": 1, "note": "the largest bundle has 2 bytes"}
    self.assertEqual(plot.points_of([note]), {})
    self.assertIsNone(plot.picture("cnn", [note]))

  def test_a_time_alone_is_no_slowdown(self):
    with self.assertRaisesRegex(ValueError, "everything resident"):
      plot.points_of([record("swapmm plan", 8, 150), record("PyTorch all-resident", 20, 50)])

  def test_different_networks_are_not_compared(self):
    with self.assertRaisesRegex(ValueError, "batch is 8 in one record and 9"):
      plot.sizes_of([record("floor", 1, 1), record("floor", 1, 1, config={"batch": 9})])
    self.assertEqual(plot.sizes_of([record("floor", 1, 1), record("floor", 1, 1, config={"share": 1, "width": 3})]),
                     {"batch": 8, "width": 3})


class Picture(unittest.TestCase):
  def setUp(self):
    self.root = ElementTree.fromstring(plot.picture("cnn", MADE_UP))

  def test_axes(self):
    # 4 to 16 GB over 76 to 864; 0.95 to 5 times over 464 to 128, both logarithmic.
    x, y = plot.axes(plot.points_of(MADE_UP))
    self.assertEqual((x.low, x.high, y.low, y.high), (4, 16, 0.95, 5))
    self.assertEqual((x.at(4), x.at(8), x.at(16)), (76, 470, 864))
    self.assertEqual((y.at(0.95), y.at(5)), (464, 128))
    self.assertAlmostEqual(y.at(math.sqrt(0.95 * 5)), 296)

  def test_markers(self):
    circles = [(c.get("cx"), c.get("cy"), c[0].text) for c in self.root.iter(SVG + "circle") if len(c)]
    # 464 - 336 * ln(2 / 0.95) / ln(5 / 0.95) = 313.38, and with 1.5 in place of 2: 371.59
    self.assertEqual(circles, [("76", "313.38", "swapmm plan: 2.000 x, 300.0 ms in 4 GB"),
                               ("470", "371.59", "swapmm plan: 1.500 x, 150.0 ms in 8 GB, k 2.00")])
    others = [(p.get("transform"), p[0].text) for p in self.root.iter(SVG + "path") if len(p)]
    self.assertEqual(others, [
        ("translate(76 136.26)", "swapmm on demand: 4.800 x, 480.0 ms in 4 GB"),
        ("translate(864 371.59)", "PyTorch checkpointing: 1.500 x, 75.0 ms in 16 GB, share 0.5"),
        ("translate(76 313.38)", "PyTorch save_on_cpu: 2.000 x, 100.0 ms in 4 GB")])

  def test_the_floor_and_the_plan_are_lines(self):
    lines = [(p.get("points"), p.get("stroke-dasharray")) for p in self.root.iter(SVG + "polyline")]
    self.assertEqual(lines, [("76,416.73 470,453.62 864,453.62", "7 4"), ("76,313.38 470,371.59", None)])

  def test_legend_and_axes_have_words(self):
    words = [t.text for t in self.root.iter(SVG + "text")]
    for expected in ("cnn: slowdown over memory", "batch 8",
                     "all-resident 100.0 ms in 16 GB; PyTorch all-resident 50.0 ms in 20 GB",
                     "floor: no plan that only copies can be faster", "swapmm plan", "swapmm on demand", "PyTorch checkpointing",
                     "PyTorch save_on_cpu", "4 GB", "8 GB", "16 GB", "1 x", "2 x", "5 x"):
      self.assertEqual(words.count(expected), 1, expected)
    self.assertNotIn("PyTorch overlapped offload", words)

  def test_everything_lies_in_the_picture(self):
    for element in self.root.iter():
      for keys, most in ((("x", "x1", "x2", "cx"), 900), (("y", "y1", "y2", "cy"), 520)):
        for key in keys:
          self.assertTrue(0 <= float(element.get(key, 0)) <= most)


class CommandLine(unittest.TestCase):
  def run_main(self, *contents):
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
      names = []
      for i, content in enumerate(contents):
        names.append(os.path.join(folder, f"{i}.json"))
        with open(names[-1], "w", encoding="utf-8") as file:
          file.write(content)
      with contextlib.redirect_stderr(io.StringIO()) as errors:
        status = plot.main([*names, "--out-dir", os.path.join(folder, "out")])
      out = os.path.join(folder, "out")
      return status, errors.getvalue(), sorted(os.listdir(out)) if os.path.isdir(out) else []

  def test_a_picture_for_each_network_from_all_files(self):
    others = [dict(r, network="transformer") for r in MADE_UP]
    self.assertEqual(self.run_main(json.dumps(MADE_UP[:4] + others), json.dumps(MADE_UP[4:])),
                     (0, "", ["cnn.svg", "transformer.svg"]))

  def test_what_is_wrong_is_said(self):
    self.assertEqual(self.run_main("[{}]")[:2], (1, "plot.py: 'network'\n"))
    self.assertRegex(self.run_main("[")[1], "^plot.py: Expecting")
    self.assertEqual(self.run_main(json.dumps([*MADE_UP, record("another", 4, 100)]))[1],
                     "plot.py: unknown contender: another\n")


if __name__ == "__main__":
  unittest.main()
