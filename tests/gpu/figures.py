# SPDX-License-Identifier: Apache-2.0
"""What the measurements say, beside what was aimed at. Nothing here decides whether a check has passed."""

# name, target, unit; what a figure is made from stands below.
TARGETS = {
    "overhead": "at most 1.005: upper end of the 95 % interval of swapmm / raw, where everything fits",
    "copies": "at least 0.95 of the raw page-locked bandwidth, both ways at once",
    "bound": "at most 1.03 x (the plan's bound and what copies cost kernels), at every k",
    "identical": "results equal those of the all-resident run in every bit",
    "cpu": "below 3 us of the processor per operation more than the raw program, in the steady state",
    "prediction": "within 3 % of the measured time",
    "speed": "all resident / by the fastest plan in half of the memory: at least 0.97 for the CNN, 0.90 for the transformer",
    "contenders": "faster than every PyTorch contender at equal measured memory",
}


SPEEDS = {"cnn": 0.97, "transformer": 0.90}


def is_plan(record):
  """Whether it is one of swapmm's plans: "swapmm plan", or "swapmm plan, recompute"."""
  return record["contender"].split(",")[0] == "swapmm plan"


def figure(name, value, met, what):
  return {"name": name, "value": value, "met": met, "what": what, "target": TARGETS[name]}


def overhead_figures(results):
  for chain in results.get("overhead", {}).get("chains", []):
    high = chain["interval_95"][1]
    what = f"{chain['chain']}, {chain['pairs']} pairs, median {chain['ratio']:.4f}"
    yield figure("overhead", high, high <= 1.005, what)
    if not chain["identical"]:
      yield figure("identical", 0, False, f"overhead, {chain['chain']}")
    for key, k in (("cpu_us_per_operation", 1), ("cpu_us_per_operation_k2", 2)):
      raw = chain["raw_cpu_us_per_operation"]
      yield figure("cpu", chain[key] - raw, chain[key] - raw < 3, f"{chain['chain']}, k = {k}; raw program {raw:.2f} us")


def copy_figures(results):
  for copy in results.get("links", {}).get("copies", []):
    yield figure("copies", copy["ratio"], copy["ratio"] >= 0.95, f"{copy['direction']}, {copy['bytes'] >> 20} MiB")


def network_figures(records):
  """For each plan. What copies cost kernels is the time of the operations in a recorded iteration, less that in one
  with everything resident, and less that of those that run again."""
  resident = {r["network"]: r for r in records if r["contender"] == "all-resident"}
  for r in records:
    what = f"{r['network']}, {r['contender']}, k = {r['k']:g}"
    if r.get("identical") is False:
      yield figure("identical", 0, False, what)
    if not is_plan(r) or "predicted_ms" not in r:
      continue
    dearer = max(0.0, r["compute_ms"] - r.get("replay_ms", 0) - resident[r["network"]]["compute_ms"])
    ratio = r["iteration_ms"] / (r["lower_bound_ms"] + dearer)
    if not r.get("encoded"):  # the bound does not know how small values become
      yield figure("bound", ratio, ratio <= 1.03, what)
    error = r["predicted_ms"] / r["iteration_ms"] - 1
    yield figure("prediction", error, abs(error) <= 0.03, what)
  # Of the fastest plan alone.
  halves = [r for r in records if is_plan(r) and r["k"] == 2 and "resident_ms" in r and r["network"] in SPEEDS]
  for r in sorted(halves, key=lambda r: r["iteration_ms"] / r["resident_ms"])[:1]:
    speed = r["resident_ms"] / r["iteration_ms"]
    yield figure("speed", speed, speed >= SPEEDS[r["network"]], f"{r['network']}, {r['contender']}, k = 2")
  if records and not any(r.get("identical") is False for r in records):
    runs = sum("identical" in r for r in records)
    yield figure("identical", 1, True, f"all {runs} runs of {records[0]['network']}")


def contender_figures(records, contenders):
  """Each contender against the fastest plan in the largest memory that is no larger than the contender's."""
  for other in contenders:
    if other.get("contender") == "PyTorch all-resident" or not other.get("memory_bytes") or "iteration_ms" not in other:
      continue
    plans = [r for r in records if r["network"] == other["network"] and is_plan(r) and "iteration_ms" in r and
             r["memory_bytes"] <= other["memory_bytes"]]
    if not plans:
      continue
    plan = min(plans, key=lambda r: (-r["memory_bytes"], r["iteration_ms"]))
    ratio = plan["iteration_ms"] / other["iteration_ms"]
    yield figure("contenders", ratio, ratio < 1,
                 f"{other['network']}, {other['contender']} in {other['memory_bytes'] / 1e9:.2f} GB; {plan['contender'].removeprefix('swapmm ')} in "
                 f"{plan['memory_bytes'] / 1e9:.2f} GB")


def figures(results):
  """`results`: {name of file without .json: its content}."""
  found = [*overhead_figures(results), *copy_figures(results)]
  records, contenders = [], []
  for name, content in results.items():
    if name.startswith(("networks-", "parts-")):
      found += network_figures(content)  # each file has its own run with everything resident
      records += content
    if name.startswith("contenders-"):
      contenders += content
  return found + list(contender_figures(records, contenders))


def table(all_figures):
  lines = []
  for f in all_figures:
    lines.append(f"{f['name']:<11} {f['value']:>9.4f}  {'met   ' if f['met'] else 'MISSED'}  {f['what']}")
  for name in TARGETS:
    if any(f["name"] == name for f in all_figures):
      lines.append(f"{name}: {TARGETS[name]}")
  return "\n".join(lines)
