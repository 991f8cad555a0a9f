# SPDX-License-Identifier: Apache-2.0
"""Runs a program natively or below the layer, with the layer that watches the device from outside always beneath."""
import json
import os
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
WATCH = ROOT / "build" / "dev" / "tests" / "libswapmm_opencl_watch.so"
LAYER = ROOT / "build" / "dev" / "backends" / "opencl" / "layer" / "libswapmm_opencl_layer.so"
ALIGNMENT_ROOM = 64 << 10  # pieces of the budget lie at multiples of the device's alignment: the most that this may cost
FOREIGN = ("SWAPMM_", "WATCH_", "OPENCL_LAYERS", "LENS_")


@dataclass
class Libraries:
    watch: Path = WATCH
    layer: Path = LAYER


@dataclass
class Figures:
    """What the watching layer saw of all processes of a run, in bytes."""
    peak: int = 0
    pinned_peak: int = 0
    fixed_peak: int = 0  # images and what else cannot leave
    largest_launch: int = 0
    refused: int = 0
    processes: int = 0

    @property
    def floor(self):
        """The least budget that the program can run in."""
        return max(self.largest_launch, self.fixed_peak) + ALIGNMENT_ROOM

    def budget(self, part):
        """For that part of the peak: at least the floor, and all that is needed from 1 on."""
        return max(self.need if part >= 1 else int(self.peak * part), self.floor)

    @property
    def need(self):
        """The most that the program had on the device, with buffers that may live in either memory."""
        return self.peak + self.pinned_peak + ALIGNMENT_ROOM


@dataclass
class Outcome:
    code: object  # of the exit, or words
    output: str
    errors: str
    seconds: float
    figures: Figures
    layer_started: bool = False

    def complaints(self, native, budget):
        """What is wrong with a run below the layer, as lines, apart from the result."""
        wrong = []
        if self.code != native.code:
            wrong.append(f"exit code {self.code}, natively {native.code}: {last_line(self.errors)}")
        if not self.layer_started:
            wrong.append("the layer did not start")
        if self.figures.peak > budget:
            wrong.append(f"{self.figures.peak} bytes taken of a budget of {budget}")
        if self.figures.refused:
            wrong.append(f"{self.figures.refused} allocations beyond the budget")
        return wrong


def read_reports(folder):
    """The one place that knows the reports of the watching layer."""
    figures = Figures()
    for path in Path(folder).glob("watch*.json"):
        try:
            told = json.loads(path.read_text(encoding="utf-8"))
        except ValueError:  # killed while it wrote
            continue
        figures.peak = max(figures.peak, told["peak"])
        figures.pinned_peak = max(figures.pinned_peak, told["pinned_peak"])
        figures.largest_launch = max(figures.largest_launch, told["largest_need"])
        figures.fixed_peak = max(figures.fixed_peak, told.get("fixed_peak", 0))
        figures.refused += told["refused"]
        figures.processes += 1
    return figures


def run(command, libraries, *, folder, limit, environment=None, budget=None, layered=False, settings=None, standard_input="",
        device_memory=None):
    """Without `layered`: natively. `budget` in bytes, or None for the layer's own default. `device_memory`: beyond so many
    bytes the device refuses."""
    with tempfile.TemporaryDirectory() as scratch:
        everything = {k: v for k, v in os.environ.items() if not k.startswith(FOREIGN)}
        everything.update(environment or {}, WATCH_REPORT=f"{scratch}/watch-%p.json", OPENCL_LAYERS=str(libraries.watch))
        if device_memory is not None:
            everything["WATCH_CAP"] = str(device_memory)
        if layered:
            everything["OPENCL_LAYERS"] += f":{libraries.layer}"
            everything["SWAPMM_STARTED"] = f"{scratch}/started"
            if budget is not None:
                everything["SWAPMM_BUDGET"] = str(budget)
                everything["WATCH_CAP"] = str(budget)
        everything.update(settings or {})
        begin = time.monotonic()
        process = subprocess.Popen([str(word) for word in command], cwd=folder, env=everything, text=True, errors="replace",
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   start_new_session=True)
        try:
            output, errors = process.communicate(standard_input, timeout=limit)
            code = process.returncode
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            output, errors = process.communicate()
            code = f"none after {limit:g} s"
        return Outcome(code, output or "", errors or "", time.monotonic() - begin, read_reports(scratch),
                       (Path(scratch) / "started").exists())


def last_line(text):
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "no output"


def mebibytes(count):
    return f"{count / (1 << 20):.1f}"
