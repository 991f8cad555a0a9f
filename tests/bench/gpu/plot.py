#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws what the benchmark measured: how much slower each contender is in how much memory. One picture per network.

    plot.py --out-dir DIR FILE...        FILE: results of `networks` and of contenders.py; README.md has their fields

Writes DIR/NETWORK.svg. A slowdown is the time of an iteration over that of the same program with everything resident,
where they were measured by turns; else over the all-resident record of swapmm, or of PyTorch. Standard library alone.
"""

import argparse
import json
import math
import os
import sys
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 900, 520
LEFT, RIGHT, TOP, BOTTOM = 76, 36, 128, 56

# In the order of the legend: colour, marker, line. The colours of profiles (include/swapmm/formats/profile_svg.cpp).
STYLES = {
    "swapmm plan": ("#1a3a5c", "circle", ""),
    "swapmm plan, recompute": ("#009e73", "circle", ""),
    "swapmm plan, compress": ("#7d3c98", "circle", ""),
    "swapmm on demand": ("#56b4e9", "square", ""),
    "PyTorch checkpointing": ("#7a7a7a", "diamond", "2 3"),
    "PyTorch overlapped offload": ("#e69f00", "triangle", "2 3"),
    "PyTorch save_on_cpu": ("#c0392b", "cross", "2 3"),
}
FLOOR = "floor"
RESIDENT = {"swapmm": "all-resident", "PyTorch": "PyTorch all-resident"}
SLOWDOWNS = (1, 1.1, 1.2, 1.5, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, 200, 500, 1000)


class Log:
  """A logarithmic axis: `low` is at `start`, `high` at `end`."""

  def __init__(self, low, high, start, end):
    self.low, self.high, self.start, self.end = low, high, start, end

  def at(self, value):
    return self.start + (self.end - self.start) * math.log(value / self.low) / math.log(self.high / self.low)


class Point:
  def __init__(self, memory_gb, slowdown, record):
    self.memory_gb, self.slowdown, self.record = memory_gb, slowdown, record


def points_of(records):
  """{contender: [Point, ...] by memory}, of one network. Records without a time, and those of what is resident, have no
  point."""
  base = {}
  for family, name in RESIDENT.items():
    times = [r["iteration_ms"] for r in records if r["contender"] == name and r.get("iteration_ms")]
    base[family] = times[0] if times else None
  found = {}
  for record in records:
    name = record["contender"]
    if name in RESIDENT.values() or not record.get("iteration_ms") or not record.get("memory_bytes"):
      continue
    resident = record.get("resident_ms") or base["PyTorch" if name.startswith("PyTorch") else "swapmm"]
    if not resident:
      raise ValueError(f"{name}: there is no time with everything resident")
    point = Point(record["memory_bytes"] / 1e9, record["iteration_ms"] / resident, record)
    found.setdefault(name, []).append(point)
  for points in found.values():
    points.sort(key=lambda point: point.memory_gb)
  return found


def sizes_of(records):
  """What all configurations say; ValueError where two of them differ: the networks would not be the same."""
  sizes = {}
  for record in records:
    for key, value in record.get("config", {}).items():
      if key == "share":
        continue
      if sizes.setdefault(key, value) != value:
        raise ValueError(f"{record['network']}: {key} is {sizes[key]} in one record and {value} in another")
  return sizes


def axes(points):
  everything = [point for of_one in points.values() for point in of_one]
  memories = [point.memory_gb for point in everything]
  low, high = 2.0**math.floor(math.log2(min(memories))), 2.0**math.ceil(math.log2(max(memories)))
  highest = max(point.slowdown for point in everything)
  lowest = min(point.slowdown for point in everything)
  top = next((s for s in SLOWDOWNS[1:] if s >= highest * 1.02), highest * 1.1)
  x = Log(low, high if high > low else 2 * low, LEFT, WIDTH - RIGHT)
  y = Log(min(0.95, lowest * 0.98), top, HEIGHT - BOTTOM, TOP)
  return x, y


# ---- Elements --------------------------------------------------------------------------------------------------------


def number(value):
  """In hundredths, in as few characters as it takes."""
  return f"{value:.2f}".rstrip("0").rstrip(".")


def text(x, y, content, style=""):
  return f'<text x="{number(x)}" y="{number(y)}"{" " + style if style else ""}>{escape(content)}</text>'


def text_width(content):
  """About, and not less, in a usual sans-serif font of 12 pixels."""
  return sum(12 if c in "mwMW" else 4.5 if c in " .,:;ijl|" else 7.8 for c in content)


def line(x1, y1, x2, y2, style):
  return f'<line x1="{number(x1)}" y1="{number(y1)}" x2="{number(x2)}" y2="{number(y2)}" {style}/>'


def polyline(places, style):
  return f'<polyline points="{" ".join(f"{number(x)},{number(y)}" for x, y in places)}" fill="none" {style}/>'


def marker(shape, x, y, colour, title=""):
  """Its middle is at x, y."""
  inside = f"<title>{escape(title)}</title>" if title else ""
  if shape == "circle":
    return f'<circle cx="{number(x)}" cy="{number(y)}" r="4.5" fill="{colour}">{inside}</circle>'
  if shape == "cross":
    arms = "M-4-4L4 4M-4 4L4-4"
    return (f'<path d="{arms}" transform="translate({number(x)} {number(y)})" stroke="{colour}" stroke-width="2.25">'
            f"{inside}</path>")
  outline = {"square": "M-4-4H4V4H-4Z", "diamond": "M0-6L6 0L0 6L-6 0Z", "triangle": "M0-6L5.5 4H-5.5Z"}[shape]
  return f'<path d="{outline}" transform="translate({number(x)} {number(y)})" fill="{colour}">{inside}</path>'


def legend(points):
  parts, x, y = [], LEFT, 93

  def entry(label, draw):
    nonlocal x, y
    wide = 28 + text_width(label)
    if x + wide > WIDTH - RIGHT:
      x, y = LEFT, y + 19
    parts.extend(draw(x, y - 4))
    parts.append(text(x + 28, y, label))
    x += wide + 16

  if FLOOR in points:
    entry("floor: no plan that only copies can be faster", lambda x, y: [line(x, y, x + 22, y, FLOOR_LINE)])
  for name, (colour, shape, dashes) in STYLES.items():
    if name in points:
      entry(name, lambda x, y: [line(x, y, x + 22, y, stroke(colour, dashes)), marker(shape, x + 11, y, colour)])
  return parts


FLOOR_LINE = 'stroke="#000" stroke-width="1.25" stroke-dasharray="7 4"'


def stroke(colour, dashes):
  return f'stroke="{colour}" stroke-width="1.5"' + (f' stroke-dasharray="{dashes}"' if dashes else "")


def time_of(record):
  return f"{record['iteration_ms']:.1f} ms"


def title_of(point):
  record = point.record
  words = [f"{record['contender']}: {point.slowdown:.3f} x, {time_of(record)} in {point.memory_gb:.3g} GB"]
  if record.get("k"):
    words.append(f"k {record['k']:.2f}")
  if record.get("config", {}).get("share") is not None:
    words.append(f"share {record['config']['share']:g}")
  return ", ".join(words)


def picture(network, records):
  """The document of one network; None where nothing of it can be drawn."""
  points = points_of(records)
  unknown = set(points) - set(STYLES) - {FLOOR}
  if unknown:
    raise ValueError(f"unknown contender: {', '.join(sorted(unknown))}")
  if not points:
    return None
  x, y = axes(points)
  sizes = ", ".join(f"{key} {value}" for key, value in sizes_of(records).items())
  residents = [f"{name} {time_of(r)}" + (f" in {r['memory_bytes'] / 1e9:.3g} GB" if r.get("memory_bytes") else "")
               for name in RESIDENT.values() for r in records if r["contender"] == name and r.get("iteration_ms")]
  title = f"{network}: slowdown over memory"
  parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" '
           'font-family="sans-serif" font-size="12" fill="#222">', f"<title>{escape(title)}</title>",
           f'<rect x="0" y="0" width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
           text(20, 26, title, 'font-size="16" font-weight="bold"'), text(20, 47, sizes, 'fill="#555"'),
           text(20, 67, "; ".join(residents)), *legend(points), '<g font-size="11" fill="#555">']
  grid = 'stroke="#000" stroke-opacity="0.12"'
  memory = x.low
  while memory <= x.high:
    parts.append(line(x.at(memory), TOP, x.at(memory), HEIGHT - BOTTOM + 6, grid))
    parts.append(text(x.at(memory), HEIGHT - BOTTOM + 22, f"{memory:g} GB", 'text-anchor="middle"'))
    memory *= 2
  for slowdown in SLOWDOWNS:
    if y.low <= slowdown <= y.high:
      parts.append(line(LEFT, y.at(slowdown), WIDTH - RIGHT, y.at(slowdown), grid))
      parts.append(text(LEFT - 8, y.at(slowdown) + 4, f"{slowdown:g} x", 'text-anchor="end"'))
  what_x_is = "memory on the device: a budget, or what PyTorch had allocated at the most"
  parts.append(text(WIDTH - RIGHT, HEIGHT - 12, what_x_is, 'text-anchor="end"'))
  parts.append("</g>")
  if FLOOR in points:
    parts.append(polyline([(x.at(p.memory_gb), y.at(p.slowdown)) for p in points[FLOOR]], FLOOR_LINE))
  for name, (colour, shape, dashes) in STYLES.items():
    of_one = points.get(name, [])
    places = [(x.at(point.memory_gb), y.at(point.slowdown)) for point in of_one]
    if len(places) > 1:
      parts.append(polyline(places, stroke(colour, dashes)))
    parts += [marker(shape, *place, colour, title_of(point)) for place, point in zip(places, of_one)]
  return "\n".join([*parts, "</svg>"]) + "\n"


def main(arguments=None):
  parser = argparse.ArgumentParser(description="Draws slowdown over memory from the benchmark's results.")
  parser.add_argument("files", nargs="+", metavar="FILE")
  parser.add_argument("--out-dir", required=True)
  options = parser.parse_args(arguments)
  networks = {}
  try:
    for name in options.files:
      with open(name, encoding="utf-8") as file:
        for record in json.load(file):
          networks.setdefault(record["network"], []).append(record)
    os.makedirs(options.out_dir, exist_ok=True)
    for network, records in networks.items():
      document = picture(network, records)
      if document is None:
        print(f"{network}: nothing to draw", file=sys.stderr)
        continue
      path = os.path.join(options.out_dir, f"{network}.svg")
      with open(path, "w", encoding="utf-8", newline="\n") as out:
        out.write(document)
      print(path)
  except (OSError, ValueError, KeyError) as error:
    print(f"plot.py: {error}", file=sys.stderr)
    return 1
  return 0


if __name__ == "__main__":
  sys.exit(main())
