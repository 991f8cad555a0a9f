// SPDX-License-Identifier: Apache-2.0
// Trains a stack of transformer blocks on a CUDA device, in 16-bit numbers: with room for everything, then within a
// budget: on demand, by a plan of copies, and by one whose operations may also run again. The results must be equal bit
// for bit.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iomanip>
#include <iostream>
#include <string_view>

#include <swapmm/cuda/backend.hpp>
#include <swapmm/cuda/devices.hpp>
#include <swapmm/ir/liveness.hpp>
#include <swapmm/swapmm.hpp>

#include "neural/arguments.hpp"
#include "transformer/cuda_math.hpp"
#include "transformer/network.hpp"

namespace {

using transformer::CudaMath;
using Manager = swapmm::MemoryManager<swapmm::cuda::Backend>;

constexpr std::string_view usage =
    "transformer [--layers N] [--width N] [--heads N] [--sequence N] [--batch N] [--budget FRACTION] [--steps N]\n"
    "            [--device NAME]\n"
    "  --layers, --width, --heads, --sequence, --batch  default 6, 2048, 16, 1024, 8\n"
    "  --budget  as a part of the peak of live bytes, default 0.5\n"
    "  --steps   that are timed, default 10\n"
    "  --device  by its index, or a part of its name; default: the one with the most memory\n";

constexpr std::size_t aside = 5;  // steps at the beginning: observed ones, and those in which the plan begins

double gb(swapmm::Bytes bytes) { return static_cast<double>(bytes.value) / 1e9; }

struct Run {
  double ms = 0;  // per step
  double gb_in = 0;
  double gb_out = 0;
  double loss = 0;
  std::uint64_t digest = 0;  // of all weights
};

Run train(CudaMath& math, Manager& manager, const transformer::Settings& settings, std::size_t steps) {
  transformer::Network<CudaMath> network(math, manager, settings);
  for (std::size_t i = 0; i < aside; ++i) network.train(transformer::usual_rate);
  manager.synchronize();
  const swapmm::Report before = manager.report();
  const auto start = std::chrono::steady_clock::now();
  for (std::size_t i = 0; i < steps; ++i) network.train(transformer::usual_rate);
  manager.synchronize();
  const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - start;
  const swapmm::Report after = manager.report();
  const auto count = static_cast<double>(steps);
  return {time.count() / count, gb(after.h2d - before.h2d) / count, gb(after.d2h - before.d2h) / count,
          network.last_loss(), network.digest()};
}

// A line of the table; false where the results are not those of the first run.
bool print(std::string_view name, const Run& run, const swapmm::Report& report, const Run& first) {
  const bool same = run.digest == first.digest && run.loss == first.loss && std::isfinite(run.loss);
  std::cout << std::left << std::setw(16) << name << std::right << std::setprecision(2) << std::setw(13)
            << gb(report.device_peak) << std::setw(13) << run.ms << std::setw(8) << run.ms / first.ms << std::setw(8)
            << run.gb_in << std::setw(8) << run.gb_out << "  " << std::setprecision(6) << run.loss << "  "
            << (same ? "equal" : "DIFFERENT") << std::endl;
  return same;
}

int run(const swapmm::cuda::Backend& backend, const transformer::Settings& settings, double fraction,
        std::size_t steps) {
  CudaMath math(backend);
  std::cout << std::fixed << settings.layers << " blocks of width " << settings.width << ", " << settings.heads
            << " heads, " << settings.batch << " sequences of " << settings.sequence
            << "\n\n                on device GB  ms per step   ratio   GB in  GB out  loss      weights\n";
  swapmm::Bytes peak;
  Run first;
  {
    Manager all(backend);  // what is free
    first = train(math, all, settings, steps);
    print("all resident", first, all.report(), first);
    peak = swapmm::analyze_liveness(*all.scheduler().trace("train"), all.machine().alignment).peak;
  }
  const swapmm::Bytes budget{static_cast<std::uint64_t>(fraction * static_cast<double>(peak.value))};
  bool same = true;
  {
    Manager on_demand(backend, {.device_budget = budget}, swapmm::Scheduler({.observe = 0}));
    same = print("on demand", train(math, on_demand, settings, steps), on_demand.report(), first);
  }
  {
    Manager planned(backend, {.device_budget = budget});
    same = print("plan, copies", train(math, planned, settings, steps), planned.report(), first) && same;
  }
  transformer::Settings replayable = settings;
  replayable.replayable = true;
  Manager planned(backend, {.device_budget = budget});
  same = print("plan, recompute", train(math, planned, replayable, steps), planned.report(), first) && same;
  std::cout << "\nAt the peak of an iteration " << std::setprecision(2) << gb(peak) << " GB live; the budget is "
            << gb(budget) << " GB.\n\n"
            << planned.report();
  return same ? 0 : 1;
}

int start(const neural::Arguments& arguments) {
  transformer::Settings settings;
  settings.layers = arguments.whole("--layers", 6);
  settings.width = arguments.whole("--width", 2048);
  settings.heads = arguments.whole("--heads", 16);
  settings.sequence = arguments.whole("--sequence", 1024);
  settings.batch = arguments.whole("--batch", 8);
  transformer::check_for_cuda(settings);
  const double fraction = arguments.number("--budget", 0.5, 10);
  const std::size_t steps = arguments.whole("--steps", 10);
  const swapmm::cuda::DeviceList devices = swapmm::cuda::devices();
  if (devices.devices.empty()) {
    std::cout << "skipped: " << devices.why_none << '\n';
    return 0;
  }
  return run(swapmm::cuda::Backend::pick(arguments.text("--device"), std::clog), settings, fraction, steps);
}

}  // namespace

int main(int count, char** words) {
  return neural::run_example(
      count, words, usage,
      {"--layers", "--width", "--heads", "--sequence", "--batch", "--budget", "--steps", "--device"}, start);
}
