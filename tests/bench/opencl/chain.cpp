// SPDX-License-Identifier: Apache-2.0
// The chain of the peers on swapmm. Prints what they print.
// usage: chain LAYERS MB INNER ITERATIONS LIMIT_MB [PLANNER [--report]]
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <iostream>

#include "chain.hpp"

int main(int count, char** arguments) {
  const auto number = [&](int position, std::size_t otherwise) {
    return position < count ? static_cast<std::size_t>(std::atoi(arguments[position])) : otherwise;
  };
  const bench::Chain chain(number(1, 16));
  const std::size_t n = number(2, 16) * (1U << 20U) / sizeof(float);
  const int inner = static_cast<int>(number(3, 8));
  const std::size_t iterations = number(4, 5);
  const std::size_t limit = number(5, 0);  // 0: none
  const std::size_t total = chain.tensors * n * sizeof(float);

  const bench::Device device = bench::Device::pick(std::cerr);
  bench::Kernels kernels(device);
  swapmm::SchedulerOptions scheduling{.trial_iterations = 0};
  if (count > 6) scheduling.planner = arguments[6];
  swapmm::MemoryManager manager{
      device, {.device_budget = swapmm::Bytes{limit == 0 ? total : limit << 20U}}, swapmm::Scheduler(scheduling)};
  bench::Managed managed(manager, chain, kernels, n, inner);

  std::printf("working set %zu MB, budget %zu MB\n", total >> 20U, limit);
  swapmm::Report before = manager.report();
  for (std::size_t i = 0; i < iterations; ++i) {
    const auto start = std::chrono::steady_clock::now();
    managed.iterate();
    manager.synchronize();
    const double ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    const swapmm::Report after = manager.report();
    std::printf("iter %zu %.1f ms up %llu MB down %llu MB %s\n", i, ms,
                static_cast<unsigned long long>((after.h2d - before.h2d).value >> 20U),
                static_cast<unsigned long long>((after.d2h - before.d2h).value >> 20U),
                after.iterations_followed > before.iterations_followed ? "followed" : "on demand");
    before = after;
  }
  double sum = 0;
  for (std::size_t weight = 0; weight + 1 < chain.persistent.size(); ++weight) {
    for (const float value : managed.value(chain.persistent[weight])) sum += static_cast<double>(value);
  }
  std::printf("checksum %.6f\n", sum);
  if (count > 7) std::cout << manager.report();
}
