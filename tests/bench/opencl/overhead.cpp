// SPDX-License-Identifier: Apache-2.0
// What swapmm costs a program that fits: the chain of the peers on a manager whose budget holds everything, and on raw
// buffers, by turns in one process. Prints the ratio of the times with a 95 % bootstrap interval, for a raw program
// with a buffer per tensor and for one that, like swapmm, has sub-buffers of one large buffer. usage: overhead [PAIRS
// [MB [INNER]]]
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <random>
#include <vector>

#include "chain.hpp"

namespace {

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

double milliseconds_of(const auto& run) {
  const auto start = std::chrono::steady_clock::now();
  run();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

/// Times both by turns and prints the ratio. False where the plan was not followed or the values differ.
bool compare(const char* what, swapmm::MemoryManager<bench::Device>& manager, bench::Managed& managed, bench::Raw& raw,
             const bench::Chain& chain, std::size_t pairs) {
  const auto with = [&] {
    managed.iterate();
    manager.synchronize();
  };
  const auto without = [&] {
    raw.iterate();
    raw.finish();
  };
  for (int warm_up = 0; warm_up < 6; ++warm_up) {
    with();
    without();
  }
  const std::uint64_t followed = manager.report().iterations_followed;
  std::vector<double> ratios;
  std::vector<double> with_times;
  std::vector<double> without_times;
  for (std::size_t pair = 0; pair < pairs; ++pair) {
    // Who goes first changes from pair to pair.
    const bool with_first = pair % 2 == 0;
    const double first = with_first ? milliseconds_of(with) : milliseconds_of(without);
    const double second = with_first ? milliseconds_of(without) : milliseconds_of(with);
    with_times.push_back(with_first ? first : second);
    without_times.push_back(with_first ? second : first);
    ratios.push_back(with_times.back() / without_times.back());
  }
  if (manager.report().iterations_followed < followed + pairs) {
    std::puts("the plan was not followed");
    return false;
  }
  std::mt19937_64 random(1);
  std::vector<double> medians;
  for (int sample = 0; sample < 10000; ++sample) {
    std::vector<double> drawn;
    for (std::size_t i = 0; i < pairs; ++i) drawn.push_back(ratios[random() % pairs]);
    medians.push_back(median(drawn));
  }
  std::sort(medians.begin(), medians.end());
  std::printf(
      "%zu pairs of %zu operations, raw program with %s: swapmm %.3f ms, raw %.3f ms; ratio %.4f, 95 %% interval "
      "%.4f to %.4f\n",
      pairs, chain.steps.size(), what, median(with_times), median(without_times), median(ratios), medians[250],
      medians[9750]);
  return true;
}

}  // namespace

int main(int count, char** arguments) {
  const auto number = [&](int position, std::size_t otherwise) {
    return position < count ? static_cast<std::size_t>(std::atoi(arguments[position])) : otherwise;
  };
  const std::size_t pairs = number(1, 60);
  const std::size_t n = number(2, 4) * (1U << 20U) / sizeof(float);
  const int inner = static_cast<int>(number(3, 8));

  const bench::Device device = bench::Device::pick(std::cerr);
  const bench::Chain chain(16);
  bench::Kernels kernels(device);
  for (const auto allocation : {bench::Allocation::buffer_each, bench::Allocation::parts_of_one}) {
    swapmm::MemoryManager manager{device,
                                  {.device_budget = swapmm::Bytes{chain.tensors * n * sizeof(float)}},
                                  swapmm::Scheduler({.trial_iterations = 0})};
    bench::Managed managed(manager, chain, kernels, n, inner);
    bench::Raw raw(device, chain, kernels, n, inner, allocation);
    const char* const what =
        allocation == bench::Allocation::buffer_each ? "a buffer per tensor" : "sub-buffers of one buffer";
    if (!compare(what, manager, managed, raw, chain, pairs)) return 1;
    for (const std::size_t tensor : chain.persistent) {
      if (managed.value(tensor) != raw.value(tensor)) {
        std::printf("tensor %zu differs from that of the raw program\n", tensor);
        return 1;
      }
    }
  }
}
