// SPDX-License-Identifier: Apache-2.0
// A device with room for two vectors, and a program that works on four of them. swapmm watches the first iterations,
// plans the swaps, and moves the vectors while the device computes. The simulated backend stands in for a GPU.
#include <chrono>
#include <cstddef>
#include <iostream>
#include <string>
#include <vector>

#include <swapmm/backend/testing/simulated.hpp>
#include <swapmm/swapmm.hpp>

using namespace std::chrono_literals;
using namespace swapmm::literals;
using swapmm::simulated::Touch;

int main() {
  constexpr std::size_t n = 1024;  // 4 KiB a vector
  const swapmm::simulated::Backend device;
  swapmm::MemoryManager manager{device, {.device_budget = 8_KiB}};

  std::vector<swapmm::Tensor<float, swapmm::simulated::Backend>> vectors;
  for (int i = 0; i < 4; ++i) vectors.push_back(manager.tensor<float>({n}, "vector " + std::to_string(i)));
  for (std::size_t i = 0; i < 4; ++i) vectors[i].upload(std::vector<float>(n, static_cast<float>(i)));

  for (int step = 0; step < 10; ++step) {
    auto iteration = manager.iteration("smooth");
    for (std::size_t i = 0; i < vectors.size(); ++i) {
      auto& from = vectors[i];
      auto& to = vectors[(i + 1) % vectors.size()];
      manager.run("add", swapmm::reads(from), swapmm::updates(to), [&](auto& op) {
        auto a = op[from];  // where the vectors are on the device, just now
        auto b = op[to];
        op.queue().launch("add", 20us, {Touch::read(a), Touch::write(b)}, [a, b] {
          for (std::size_t k = 0; k < b.size(); ++k) b[k] += a[k];
        });
      });
      manager.run("halve", swapmm::updates(to), [&](auto& op) {
        auto b = op[to];
        op.queue().launch("halve", 20us, {Touch::write(b)}, [b] {
          for (float& x : b) x *= 0.5F;
        });
      });
    }
  }

  std::cout << "every element is " << vectors[3].download()[0] << "\n\n" << manager.report();
}
