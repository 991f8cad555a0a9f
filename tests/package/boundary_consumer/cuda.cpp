// SPDX-License-Identifier: Apache-2.0
#include "check.hpp"

#include <swapmm/cuda/backend.hpp>
#include <swapmm/cuda/devices.hpp>
#include <swapmm/swapmm.hpp>

#include <sstream>

// Compiled in full, whether there is a device or not.
static int check_device() {
  swapmm::MemoryManager manager{swapmm::cuda::Backend::pick(), {.device_budget = swapmm::Bytes{64 * 1024}}};
  auto x = manager.tensor<float>({1000}, "x");
  return expect_exception<swapmm::UndefinedValue>("cuda: a value that nobody wrote",
                                                  [&] { manager.run("read", swapmm::reads(x), [](auto&) {}); });
}

int check_cuda() {
  const int failed = expect_exception<swapmm::UsageError>("cuda: no such device", [] {
    std::ostringstream out;
    (void)swapmm::cuda::Backend::pick("no device has this name", out);
  });
  return failed + (swapmm::cuda::devices().devices.empty() ? 0 : check_device());
}
