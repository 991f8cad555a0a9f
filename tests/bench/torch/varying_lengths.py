#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How much host memory a program needs whose batches have many lengths: a small network on the CPU, in a budget.

Prints the memory of the process and, with a budget, what the adapter reports. docs/measurements.md has the command.
"""

import argparse
import os

import torch
from torch import nn


def memory_of_process():
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("lengths", type=int, help="how many lengths, from 256 to 656 rows; at most 400")
    parser.add_argument("--budget", type=int, default=3_000_000, help="bytes; 0: no adapter")
    parser.add_argument("--iterations", type=int, default=1000)
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    if options.budget:
        import swapmm.torch

        swapmm.torch.budget(options.budget, "cpu")
    model = nn.Sequential(*[layer for _ in range(6) for layer in (nn.Linear(256, 256), nn.ReLU())])
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    losses = 0.0
    for i in range(options.iterations):
        rows = 256 + 400 // options.lengths * (i * 7919 % options.lengths)
        loss = model(torch.randn(rows, 256)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses += loss.item()
    print(f"sum of losses {losses!r}, memory of the process {memory_of_process() / 1e6:.0f} MB")
    if options.budget:
        print(swapmm.torch.report())


if __name__ == "__main__":
    main()
