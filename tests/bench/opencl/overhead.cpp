// SPDX-License-Identifier: Apache-2.0
// What swapmm costs a program that fits: the chain of the peers on a manager whose budget holds everything, and on raw
// buffers, by turns in one process. Prints the ratio of the times with a 95 % bootstrap interval.
// usage: overhead [PAIRS [MB [INNER]]]
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <random>
#include <vector>

#include "raw_chain.hpp"

namespace {

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
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
  swapmm::MemoryManager manager{device, {.device_budget = swapmm::Bytes{chain.tensors * n * sizeof(float)}}};
  bench::Managed managed(manager, chain, kernels, n, inner);
  bench::Raw raw(device, chain, kernels, n, inner);

  const auto time = [](auto&& run) {
    const auto start = std::chrono::steady_clock::now();
    run();
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  };
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
  std::vector<double> ratios;
  std::vector<double> managed_times;
  std::vector<double> raw_times;
  for (std::size_t pair = 0; pair < pairs; ++pair) {
    // Who goes first changes from pair to pair.
    double a = 0;
    double b = 0;
    if (pair % 2 == 0) {
      a = time(with);
      b = time(without);
    } else {
      b = time(without);
      a = time(with);
    }
    managed_times.push_back(a);
    raw_times.push_back(b);
    ratios.push_back(a / b);
  }
  if (manager.report().iterations_followed < pairs) {
    std::puts("the plan was not followed");
    return 1;
  }
  for (const std::size_t tensor : chain.persistent) {
    if (managed.value(tensor) != raw.value(tensor)) {
      std::printf("tensor %zu differs from that of the raw program\n", tensor);
      return 1;
    }
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
      "%zu pairs, %zu operations on %zu KiB tensors: swapmm %.3f ms, raw %.3f ms; ratio %.4f, 95 %% interval "
      "%.4f to %.4f\n",
      pairs, chain.steps.size(), n * sizeof(float) >> 10U, median(managed_times), median(raw_times), median(ratios),
      medians[250], medians[9750]);
}
