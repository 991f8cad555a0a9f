// SPDX-License-Identifier: Apache-2.0
// Doubles numbers on whatever device there is.
#include <swapmm/opencl/backend.hpp>
#include <swapmm/opencl/devices.hpp>
#include <swapmm/opencl/program.hpp>
#include <swapmm/swapmm.hpp>

#include <cstddef>
#include <iostream>
#include <vector>

namespace {

// With the header that the library brings along.
constexpr const char* source = R"(
#include <swapmm/kernel.h>
SWAPMM_KERNEL void twice(SWAPMM_VIEW(float, x)) { SWAPMM_AT1(x, SWAPMM_ID(0)) *= 2.0f; }
)";

}  // namespace

int main() {
  const std::vector<swapmm::opencl::Device> devices = swapmm::opencl::devices();
  for (std::size_t i = 0; i < devices.size(); ++i) std::cout << swapmm::opencl::describe(devices[i], i) << '\n';
  if (devices.empty()) {
    std::cout << "no OpenCL device: nothing was run\n";
    return 0;
  }

  const auto backend = swapmm::opencl::Backend::pick();
  const swapmm::opencl::Program program(backend, source);
  swapmm::opencl::Kernel twice = program.kernel("twice");

  swapmm::MemoryManager manager{backend, {.device_budget = swapmm::Bytes{64 * 1024}}};
  auto x = manager.tensor<float>({1000}, "x");
  x.upload(std::vector<float>(1000, 21.0F));
  manager.run("twice", swapmm::updates(x),
              [&](auto& op) { twice.set(swapmm::opencl::argument(op[x], x)).enqueue(op.queue(), {x.size()}); });
  const bool right = x.download() == std::vector<float>(1000, 42.0F);
  std::cout << (right ? "1000 times 42, as it must be\n" : "wrong\n");
  return right ? 0 : 1;
}
