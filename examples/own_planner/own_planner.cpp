// SPDX-License-Identifier: Apache-2.0
// A program whose swaps are planned by a planner of its own (parking.hpp), handed to the scheduler as a function. The
// simulated backend stands in for a GPU.
#include <chrono>
#include <cstddef>
#include <iostream>
#include <string>
#include <vector>

#include <swapmm/backend/testing/simulated.hpp>
#include <swapmm/swapmm.hpp>

#include "parking.hpp"

using namespace std::chrono_literals;
using namespace swapmm::literals;
using swapmm::simulated::Touch;

int main() {
  constexpr std::size_t n = 1024;  // 4 KiB a tensor, and room for four of them
  const swapmm::simulated::Backend device;
  swapmm::SchedulerOptions options;
  options.planner = {"parking", park};  // the name is what the report shows
  swapmm::MemoryManager manager{device, {.device_budget = 16_KiB}, swapmm::Scheduler(options)};

  auto sum = manager.tensor<int>({n}, "sum");
  sum.upload(std::vector<int>(n, 0));
  std::vector<swapmm::Tensor<int, swapmm::simulated::Backend>> parts;
  for (int i = 0; i < 6; ++i) {
    parts.push_back(manager.tensor<int>({n}, "part " + std::to_string(i)));
    parts.back().upload(std::vector<int>(n, i));
  }

  constexpr int steps = 10;
  for (int step = 0; step < steps; ++step) {
    const auto iteration = manager.iteration("add up");
    for (const auto& part : parts) {
      manager.run("add", swapmm::reads(part), swapmm::updates(sum), [&](auto& op) {
        const auto from = op[part];
        const auto to = op[sum];
        op.queue().launch("add", 20us, {Touch::read(from), Touch::write(to)}, [from, to] {
          for (std::size_t k = 0; k < to.size(); ++k) to[k] += from[k];
        });
      });
    }
  }

  const swapmm::Report report = manager.report();
  const bool is_right = sum.download() == std::vector<int>(n, steps * (0 + 1 + 2 + 3 + 4 + 5));
  std::cout << report << (is_right ? "\nthe sum is right\n" : "\nTHE SUM IS WRONG\n");
  // A plan that breaks a rule would be a note here, and the program would go on on demand, as right as with it.
  return is_right && report.iterations_followed > 0 && report.notes.empty() ? 0 : 1;
}
