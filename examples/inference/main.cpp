// SPDX-License-Identifier: Apache-2.0
// Runs a stack of layers whose weights are larger than the budget, three times: with all weights on the device, on
// demand, and by a plan that brings each layer's weights in while the layers before it compute. The results must be
// equal bit for bit.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <numeric>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <swapmm/swapmm.hpp>

#include "inference/stack.hpp"
#ifdef INFERENCE_WITH_FILES
#include "inference/weights_file.hpp"
#endif
#include "neural/arguments.hpp"
#include "neural/devices.hpp"
#include "neural/same_bits.hpp"

namespace {

constexpr std::string_view usage =
    "inference [--layers N] [--width N] [--batch N] [--budget FRACTION] [--weights FILE] [--device NAME]\n"
    "  --layers  default 24\n"
    "  --width   of each layer, which has width x width weights, default 1024\n"
    "  --batch   inputs side by side, default 64\n"
    "  --budget  on the device, as a part of all weights, default 0.25\n"
    "  --weights also run with the weights in that file (safetensors), which is made if there is none: they are read\n"
    "            whenever they are needed, and take no host memory but 32 MiB\n";

constexpr std::size_t batches = 16;
constexpr std::size_t aside = 6;  // of them, at the beginning: kernels are compiled, and the plan is made

template <class Math>
using ManagerOf = swapmm::MemoryManager<typename Math::Backend>;
using Milliseconds = std::chrono::duration<double, std::milli>;

double mb(swapmm::Bytes bytes) { return static_cast<double>(bytes.value) / 1e6; }

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

struct Run {
  std::vector<float> results;  // of all batches
  double latency = 0;          // ms from an input to its result, median
  double mb_in = 0;            // per batch
  double mb_out = 0;
};

template <class Math>
Run infer_all(ManagerOf<Math>& manager, inference::Stack<Math>& stack, const inference::Settings& settings) {
  Run run;
  std::vector<double> latencies;
  swapmm::Report before;
  for (std::size_t i = 0; i < batches; ++i) {
    if (i == aside) before = manager.report();
    const std::vector<float> inputs =
        inference::uniform(settings.batch * settings.width, 1, static_cast<std::uint32_t>(1'000'000 + i));
    const auto start = std::chrono::steady_clock::now();
    const std::vector<float> result = stack.infer(inputs);
    if (i >= aside) latencies.push_back(Milliseconds(std::chrono::steady_clock::now() - start).count());
    run.results.insert(run.results.end(), result.begin(), result.end());
  }
  const swapmm::Report after = manager.report();
  run.latency = median(latencies);
  run.mb_in = mb(after.h2d - before.h2d) / (batches - aside);
  run.mb_out = mb(after.d2h - before.d2h) / (batches - aside);
  return run;
}

template <class Math>
Run infer_all(Math& math, ManagerOf<Math>& manager, const inference::Settings& settings) {
  inference::Stack stack(math, manager, settings);
  return infer_all(manager, stack, settings);
}

// A line of the table; false where the results are not those of the first run.
bool print(std::string_view name, const Run& run, const swapmm::Report& report, const Run& first) {
  const bool same = neural::same_bits(run.results, first.results);
  std::cout << std::left << std::setw(14) << name << std::right << std::setprecision(1) << std::setw(12)
            << mb(report.device_peak) << std::setw(14) << run.latency << std::setprecision(2) << std::setw(8)
            << run.latency / first.latency << std::setprecision(1) << std::setw(8) << run.mb_in << std::setw(8)
            << run.mb_out << "  " << (same ? "equal" : "DIFFERENT") << std::endl;
  return same;
}

// How far from the best possible. What is on the device when a batch begins fits into the budget, in whole layers; the
// others must come in before it ends, and so must the input.
template <class Manager>
void print_bound(const inference::Settings& settings, Manager& all, Manager& planned, const Run& run) {
  const std::uint64_t layer = settings.weights().value / settings.layers;
  const std::uint64_t stay = std::min<std::uint64_t>(planned.report().device_budget.value / layer, settings.layers);
  const swapmm::Bytes needed{(settings.layers - stay) * layer + settings.values().value};
  const swapmm::Link link = planned.machine().h2d;
  const double copies = 1e3 * static_cast<double>(needed.value) / static_cast<double>(link.bytes_per_second);

  const auto trace = all.scheduler().trace("infer");
  const auto sum = std::accumulate(trace->operations.begin(), trace->operations.end(), std::chrono::nanoseconds{0},
                                   [](auto time, const auto& operation) { return time + operation.duration; });
  const double computes = Milliseconds(sum).count();
  std::cout << "\nPer batch at least " << mb(needed) << " MB must come in: " << copies << " ms at the "
            << static_cast<double>(link.bytes_per_second) / 1e9 << " GB/s observed. The layers compute for " << computes
            << " ms.\nSo " << (copies > computes ? "copies" : "computations") << " are the bound: the plan takes "
            << std::setprecision(2) << run.latency / std::max(copies, computes) << " times as long.\n";
}

// Weights are only read: results are all that ever leaves the device.
void print_copied_out(const inference::Settings& settings, const swapmm::Report& report) {
  const swapmm::Bytes results{settings.values().value * batches};
  std::cout << "Copied out from the first batch to the last: " << std::setprecision(1) << mb(results)
            << " MB of results and " << mb(report.d2h - results) << " MB beside them.\n\n";
}

#ifdef INFERENCE_WITH_FILES
template <class Math>
bool run_from_file(Math& math, const inference::Settings& settings, swapmm::Bytes budget, const std::string& path,
                   const Run& first) {
  if (!std::ifstream(path)) inference::write_weights(path, settings);
  const auto file = swapmm::file::open_weights(path);
  ManagerOf<Math> manager(math.backend(), {.device_budget = budget, .file = file});
  auto stack = inference::stack_from(math, manager, settings, file);
  const Run run = infer_all(manager, stack, settings);
  const bool same = print("from the file", run, manager.report(), first);
  std::cout << "              host memory: " << mb(manager.report().host_peak)
            << " MB; read from the file: " << mb(manager.report().file_read) << " MB in all\n";
  return same;
}
#endif

template <class Math>
int run(Math& math, const inference::Settings& settings, double fraction, [[maybe_unused]] const std::string& weights) {
  using Manager = ManagerOf<Math>;
  const auto& backend = math.backend();
  const swapmm::Bytes budget{static_cast<std::uint64_t>(fraction * static_cast<double>(settings.weights().value))};
  std::cout << std::fixed << std::setprecision(1) << settings.layers << " layers of " << settings.width << " x "
            << settings.width << ": " << mb(settings.weights()) << " MB of weights, with a budget of " << mb(budget)
            << " MB\n\n              on device MB  ms per batch   ratio   MB in  MB out  results\n";

  const neural::Convolution layer{.images = settings.batch, .in = settings.width, .out = settings.width};
  const std::uint64_t others = 6 * settings.values().value + neural::forward_work(math, layer).bytes();
  const std::uint64_t padding = (settings.layers * 2 + 8) * 4096;
  Manager all(backend, {.device_budget = swapmm::Bytes{settings.weights().value + others + padding}});
  const Run first = infer_all(math, all, settings);
  print("all resident", first, all.report(), first);

  bool same = true;
  {
    Manager on_demand(backend, {.device_budget = budget}, swapmm::Scheduler({.observe = 0}));
    const Run demanded = infer_all(math, on_demand, settings);
    same = print("on demand", demanded, on_demand.report(), first);
  }
  Manager planned(backend, {.device_budget = budget});
  const Run by_plan = infer_all(math, planned, settings);
  same = print("by the plan", by_plan, planned.report(), first) && same;
#ifdef INFERENCE_WITH_FILES
  if (!weights.empty()) same = run_from_file(math, settings, budget, weights, first) && same;
#else
  if (!weights.empty()) throw std::invalid_argument("--weights needs the component file, which was not built");
#endif

  print_bound(settings, all, planned, by_plan);
  print_copied_out(settings, planned.report());
  std::cout << planned.report();
  return same ? 0 : 1;
}

int start(const neural::Arguments& arguments) {
  inference::Settings settings;
  settings.layers = arguments.whole("--layers", settings.layers, 1, 10'000);
  settings.width = arguments.whole("--width", settings.width, 1, 100'000);
  settings.batch = arguments.whole("--batch", settings.batch, 1, 100'000);
  const double fraction = arguments.number("--budget", 0.25, 10);
  return neural::on_device(arguments.text("--device"), std::clog,
                           [&](auto& math) { return run(math, settings, fraction, arguments.text("--weights")); });
}

}  // namespace

int main(int count, char** words) {
  const std::string all_usage = std::string(usage) + std::string(neural::device_usage);
  return neural::run_example(count, words, all_usage,
                             {"--layers", "--width", "--batch", "--budget", "--weights", "--device"}, start);
}
