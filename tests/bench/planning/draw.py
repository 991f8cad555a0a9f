#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws what the benchmark of the planners wrote: slowdown over memory for each trace, planning time over operations,
slowdown with neighbours' spare memory, slowdown with other ways than copies.

    draw.py RESULTS OUT      RESULTS: folder with curve.csv, scale.csv, harvest.csv or ways.csv; OUT: folder for planning-*.svg

Standard library alone; what it draws with is that of tests/bench/gpu/plot.py.
"""

import csv
import math
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "gpu"))
from plot import (BOTTOM, FLOOR_LINE, HEIGHT, LEFT, RIGHT, SLOWDOWNS, TOP, WIDTH, Log, escape, line,  # noqa: E402
                  marker, number, polyline, stroke, text, text_width)

# In the order of the legend: colour, marker, dashes.
STYLES = {
    "best": ("#1a3a5c", "circle", ""),
    "ilp": ("#c0392b", "cross", ""),
    "excess-overlap": ("#56b4e9", "square", ""),
    "excess": ("#cc79a7", "square", "2 3"),
    "slack": ("#e69f00", "triangle", ""),
    "vdnn-all": ("#009e73", "diamond", "2 3"),
    "vdnn-conv": ("#7fc97f", "diamond", "2 3"),
    "belady": ("#7a7a7a", "triangle", "2 3"),
    "on-demand": ("#b0b0b0", "square", "2 3"),
    "per-operation": ("#d8b4d8", "cross", "2 3"),
}
TICKS = 'stroke="#000" stroke-opacity="0.12"'


def read(name):
  with open(name, encoding="utf-8", newline="") as file:
    return list(csv.DictReader(file))


def opening(title, below):
  return [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" '
          'font-family="sans-serif" font-size="12" fill="#222">', f"<title>{escape(title)}</title>",
          f'<rect x="0" y="0" width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
          text(20, 26, title, 'font-size="16" font-weight="bold"'), text(20, 47, below, 'fill="#555"')]


def legend(entries):
  """Of (label, [element, ...] at 0, 0)."""
  parts, x, y = [], LEFT, 76
  for label, elements in entries:
    wide = 28 + text_width(label)
    if x + wide > WIDTH - RIGHT:
      x, y = LEFT, y + 19
    parts += [f'<g transform="translate({number(x)} {number(y - 4)})">', *elements, "</g>", text(x + 28, y, label)]
    x += wide + 16
  return parts


def curve(trace, rows):
  """One trace: the planners and the floor."""
  points = {}
  for row in rows:
    if row["slowdown"]:
      points.setdefault(row["planner"], []).append((float(row["share"]), float(row["slowdown"]), row))
  for of_one in points.values():
    of_one.sort(key=lambda point: point[0])
  floor = points.pop("bound", [])
  everything = [point for of_one in points.values() for point in of_one] + floor
  highest = max(slowdown for _, slowdown, _ in everything)
  peak = max(float(row["budget_bytes"]) / float(row["share"]) for row in rows) / 1e9
  x = Log(min(share for share, _, _ in everything) * 0.95, 1.05, LEFT, WIDTH - RIGHT)
  y = Log(0.96, next((s for s in SLOWDOWNS[1:] if s >= highest * 1.02), highest * 1.1), HEIGHT - BOTTOM, TOP)
  parts = opening(f"{trace}: slowdown over memory",
                  f"simulated, 15.754 GB/s each way; the peak of live bytes is {peak:.1f} GB")
  entries = [("floor: no plan can be faster", [line(0, 0, 22, 0, FLOOR_LINE)])] if floor else []
  shown = [name for name in STYLES if name in points]
  entries += [(name, [line(0, 0, 22, 0, stroke(STYLES[name][0], STYLES[name][2])),
                      marker(STYLES[name][1], 11, 0, STYLES[name][0])]) for name in shown]
  parts += legend(entries)
  parts.append('<g font-size="11" fill="#555">')
  for percent in (1, 2, 3, 5, 7, 10, 13, 17, 22, 28, 35, 42, 50, 60, 70, 80, 90, 100):
    if x.low <= percent / 100 <= x.high:
      at = x.at(percent / 100)
      parts.append(line(at, TOP, at, HEIGHT - BOTTOM + 6, TICKS))
      if percent not in (80, 90):  # too close for words
        parts.append(text(at, HEIGHT - BOTTOM + 20, f"{percent} %", 'text-anchor="middle"'))
  for slowdown in SLOWDOWNS:
    if y.low <= slowdown <= y.high:
      parts += [line(LEFT, y.at(slowdown), WIDTH - RIGHT, y.at(slowdown), TICKS),
                text(LEFT - 8, y.at(slowdown) + 4, f"{slowdown:g} x", 'text-anchor="end"')]
  parts += [text(WIDTH - RIGHT, HEIGHT - 12, "budget, in parts of the peak", 'text-anchor="end"'), "</g>"]
  for name in reversed(shown):  # the better ones on top
    colour, shape, dashes = STYLES[name]
    places = [(x.at(share), y.at(slowdown)) for share, slowdown, _ in points[name]]
    if len(places) > 1:
      parts.append(polyline(places, stroke(colour, dashes)))
    for place, (share, slowdown, row) in zip(places, points[name]):
      title = f"{name}: {slowdown:.3f} x in {100 * share:.3g} % of the peak, planned in {float(row['planning_s']):.2f} s"
      parts.append(marker(shape, *place, colour, title))
  if floor:
    parts.append(polyline([(x.at(share), y.at(slowdown)) for share, slowdown, _ in floor], FLOOR_LINE))
  return "\n".join([*parts, "</svg>"]) + "\n"


def scale(rows):
  """Seconds over operations, both logarithmic, and n log n through the first point."""
  series = {"until a plan is good": ("planning s", "#1a3a5c", "circle"),
            "of that, the relaxed problem": ("relaxation s", "#56b4e9", "square"),
            "validation": ("validation s", "#e69f00", "diamond"), "simulation": ("simulation s", "#7a7a7a", "triangle")}
  found = {name: [(int(row["operations"]), float(row[column])) for row in rows if float(row[column]) > 0]
           for name, (column, _, _) in series.items()}
  seconds = [s for points in found.values() for _, s in points]
  operations = [n for points in found.values() for n, _ in points]
  x = Log(min(operations) * 0.9, max(operations) * 1.1, LEFT, WIDTH - RIGHT)
  y = Log(10.0**math.floor(math.log10(min(seconds))), 10.0**math.ceil(math.log10(max(seconds))), HEIGHT - BOTTOM, TOP)
  parts = opening("Planning time over the size of the trace",
                  "until a plan is at most 1.05 of its bound; half of the peak, synthetic training steps, two tensors an operation")
  entries = [(name, [line(0, 0, 22, 0, stroke(colour, "")), marker(shape, 11, 0, colour)])
             for name, (_, colour, shape) in series.items()]
  parts += legend([("n log n", [line(0, 0, 22, 0, FLOOR_LINE)]), *entries])
  parts.append('<g font-size="11" fill="#555">')
  for n in sorted(set(operations)):
    parts += [line(x.at(n), TOP, x.at(n), HEIGHT - BOTTOM + 6, TICKS),
              text(x.at(n), HEIGHT - BOTTOM + 20, f"{n:,}", 'text-anchor="middle"')]
  power = y.low
  while power <= y.high * 1.0001:
    parts += [line(LEFT, y.at(power), WIDTH - RIGHT, y.at(power), TICKS),
              text(LEFT - 8, y.at(power) + 4, f"{power:g} s", 'text-anchor="end"')]
    power *= 10
  parts += [text(WIDTH - RIGHT, HEIGHT - 12, "operations", 'text-anchor="end"'), "</g>"]
  first, at_first = found["until a plan is good"][0]
  ideal = [(n, at_first * n * math.log(n) / (first * math.log(first))) for n in sorted(set(operations))]
  parts.append(polyline([(x.at(n), y.at(s)) for n, s in ideal if s <= y.high], FLOOR_LINE))
  for name, (_, colour, shape) in series.items():
    places = [(x.at(n), y.at(s)) for n, s in found[name]]
    parts.append(polyline(places, stroke(colour, "")))
    parts += [marker(shape, *place, colour, f"{name}: {s:.3g} s for {n:,} operations")
              for place, (n, s) in zip(places, found[name])]
  return "\n".join([*parts, "</svg>"]) + "\n"


def harvest(trace, rows):
  """One trace: slowdown over peak / budget, with the host alone and with neighbours before it."""
  ratios = sorted({int(row["neighbour link / host link"]) for row in rows})
  series = {"host only": ("host only", ratios[0], "#7a7a7a", "triangle", "")}
  for count, colour, shape in (("1 neighbour", "#56b4e9", "square"), ("3 neighbours", "#1a3a5c", "circle")):
    for ratio, dashes in ((ratios[0], "2 3"), (ratios[-1], "")):
      series[f"{count}, links {ratio} x the host's"] = (count, ratio, colour, shape, dashes)
  found = {name: sorted((float(row["peak / budget"]), float(row[column])) for row in rows
                        if int(row["neighbour link / host link"]) == ratio)
           for name, (column, ratio, _, _, _) in series.items()}
  highest = max(slowdown for points in found.values() for _, slowdown in points)
  budgets = sorted({budget for points in found.values() for budget, _ in points})
  x = Log(budgets[0] * 0.95, budgets[-1] * 1.05, LEFT, WIDTH - RIGHT)
  y = Log(0.96, next((s for s in SLOWDOWNS[1:] if s >= highest * 1.02), highest * 1.1), HEIGHT - BOTTOM, TOP)
  parts = opening(f"{trace}: spare memory of neighbours before the host",
                  "simulated; each neighbour spares a quarter of the peak; host link 15.754 GB/s each way")
  parts += legend([(name, [line(0, 0, 22, 0, stroke(colour, dashes)), marker(shape, 11, 0, colour)])
                   for name, (_, _, colour, shape, dashes) in series.items()])
  parts.append('<g font-size="11" fill="#555">')
  for budget in budgets:
    parts += [line(x.at(budget), TOP, x.at(budget), HEIGHT - BOTTOM + 6, TICKS),
              text(x.at(budget), HEIGHT - BOTTOM + 20, f"{budget:g}", 'text-anchor="middle"')]
  for slowdown in SLOWDOWNS:
    if y.low <= slowdown <= y.high:
      parts += [line(LEFT, y.at(slowdown), WIDTH - RIGHT, y.at(slowdown), TICKS),
                text(LEFT - 8, y.at(slowdown) + 4, f"{slowdown:g} x", 'text-anchor="end"')]
  parts += [text(WIDTH - RIGHT, HEIGHT - 12, "peak / budget", 'text-anchor="end"'), "</g>"]
  for name, (_, _, colour, shape, dashes) in series.items():
    places = [(x.at(budget), y.at(slowdown)) for budget, slowdown in found[name]]
    parts.append(polyline(places, stroke(colour, dashes)))
    parts += [marker(shape, *place, colour, f"{name}: {slowdown:.3f} x at peak / budget {budget:g}")
              for place, (budget, slowdown) in zip(places, found[name])]
  return "\n".join([*parts, "</svg>"]) + "\n"


def ways(rows):
  """Each instance: its slowdown with other ways over that with copies alone."""
  series = {"swap and recompute": ("both", "#56b4e9", "square"), "all ways": ("all", "#1a3a5c", "circle")}
  highest = max(float(row["swap"]) for row in rows)
  top = next((s for s in SLOWDOWNS[1:] if s >= highest * 1.02), highest * 1.1)
  x = Log(0.98, top, LEFT, WIDTH - RIGHT)
  y = Log(0.98, top, HEIGHT - BOTTOM, TOP)
  parts = opening("Ways back: slowdown with others than copies, over that with copies alone",
                  f"simulated; {len(rows)} instances: traces at 50 to 10 % of the peak, links of 6 to 55 GB/s")
  entries = [("copies alone", [line(0, 0, 22, 0, stroke("#7a7a7a", "2 3"))])]
  entries += [(name, [marker(shape, 11, 0, colour)]) for name, (_, colour, shape) in series.items()]
  entries.append(("to the bound of all ways", [line(0, 0, 22, 0, FLOOR_LINE)]))
  parts += legend(entries)
  parts.append('<g font-size="11" fill="#555">')
  for slowdown in SLOWDOWNS:
    if 1 <= slowdown <= top:
      parts += [line(x.at(slowdown), TOP, x.at(slowdown), HEIGHT - BOTTOM + 6, TICKS),
                text(x.at(slowdown), HEIGHT - BOTTOM + 20, f"{slowdown:g} x", 'text-anchor="middle"'),
                line(LEFT, y.at(slowdown), WIDTH - RIGHT, y.at(slowdown), TICKS),
                text(LEFT - 8, y.at(slowdown) + 4, f"{slowdown:g} x", 'text-anchor="end"')]
  parts += [text(WIDTH - RIGHT, HEIGHT - 12, "copies alone", 'text-anchor="end"'), "</g>"]
  parts.append(line(x.at(1), y.at(1), x.at(top), y.at(top), stroke("#7a7a7a", "2 3")))
  for row in sorted(rows, key=lambda row: float(row["swap"])):
    at = x.at(float(row["swap"]))
    parts.append(line(at, y.at(float(row["all"])), at, y.at(max(1.0, float(row["bound"]))), FLOOR_LINE))
    for name, (column, colour, shape) in series.items():
      title = (f"{row['trace']}, {row['budget / peak']} of the peak, {row['GB/s']} GB/s: {name} {row[column]}, "
               f"copies alone {row['swap']}, bound of all ways {row['bound']}")
      parts.append(marker(shape, at, y.at(float(row[column])), colour, title))
  return "\n".join([*parts, "</svg>"]) + "\n"


def main(arguments):
  if len(arguments) != 2:
    print(__doc__, file=sys.stderr)
    return 2
  results, out = arguments
  pictures = {}
  if os.path.exists(os.path.join(results, "curve.csv")):
    rows = read(os.path.join(results, "curve.csv"))
    for trace in dict.fromkeys(row["trace"] for row in rows):
      pictures[f"planning-{trace}.svg"] = curve(trace, [row for row in rows if row["trace"] == trace])
  if os.path.exists(os.path.join(results, "scale.csv")):
    pictures["planning-scale.svg"] = scale(read(os.path.join(results, "scale.csv")))
  if os.path.exists(os.path.join(results, "harvest.csv")):
    rows = read(os.path.join(results, "harvest.csv"))
    for trace in dict.fromkeys(row["trace"] for row in rows):
      pictures[f"planning-harvest-{trace}.svg"] = harvest(trace, [row for row in rows if row["trace"] == trace])
  if os.path.exists(os.path.join(results, "ways.csv")):
    pictures["planning-ways.svg"] = ways(read(os.path.join(results, "ways.csv")))
  os.makedirs(out, exist_ok=True)
  for name, document in pictures.items():
    with open(os.path.join(out, name), "w", encoding="utf-8", newline="\n") as file:
      file.write(document)
    print(os.path.join(out, name))
  return 0


if __name__ == "__main__":
  sys.exit(main(sys.argv[1:]))
