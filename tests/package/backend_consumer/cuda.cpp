// SPDX-License-Identifier: Apache-2.0
// Clears numbers on the CUDA device, if there is one; without one, or without a driver, the program starts all the
// same.
#include <swapmm/cuda/backend.hpp>
#include <swapmm/cuda/devices.hpp>
#include <swapmm/swapmm.hpp>

#include <iostream>
#include <vector>

int main() {
  const swapmm::cuda::DeviceList list = swapmm::cuda::devices();
  for (const swapmm::cuda::Device& device : list.devices) std::cout << swapmm::cuda::describe(device) << '\n';
  if (list.devices.empty()) {
    std::cout << list.why_none << " Nothing was run.\n";
    return list.why_none.empty() ? 1 : 0;
  }

  swapmm::MemoryManager manager{swapmm::cuda::Backend::pick(), {.device_budget = swapmm::Bytes{64 * 1024}}};
  auto x = manager.tensor<float>({1000}, "x");
  x.upload(std::vector<float>(1000, 21.0F));
  manager.run("clear", swapmm::writes(x),
              [&](auto& op) { (void)cudaMemsetAsync(op[x], 0, op[x].bytes(), op.stream()); });
  const bool right = x.download() == std::vector<float>(1000, 0.0F);
  std::cout << (right ? "1000 times 0, as it must be\n" : "wrong\n");
  return right ? 0 : 1;
}
