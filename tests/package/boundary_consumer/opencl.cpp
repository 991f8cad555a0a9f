// SPDX-License-Identifier: Apache-2.0
#include "check.hpp"

#include <swapmm/opencl/backend.hpp>
#include <swapmm/opencl/devices.hpp>
#include <swapmm/opencl/program.hpp>
#include <swapmm/swapmm.hpp>

#include <sstream>
#include <vector>

int check_opencl() {
  int failed = expect_exception<swapmm::UsageError>("opencl: no such device", [] {
    std::ostringstream out;
    (void)swapmm::opencl::Backend::pick("no device has this name", out);
  });
  failed += expect_exception<swapmm::UsageError>("opencl: no context",
                                                 [] { (void)swapmm::opencl::Backend(nullptr, nullptr); });
  if (swapmm::opencl::devices().empty()) return failed;
  std::ostringstream out;
  const auto backend = swapmm::opencl::Backend::pick({}, out);
  failed += expect_exception<swapmm::BackendError>(
      "opencl: a kernel that does not compile", [&] { const swapmm::opencl::Program program(backend, "no kernel"); });
  swapmm::MemoryManager manager{backend, {.device_budget = swapmm::Bytes{64 * 1024}}};
  auto x = manager.tensor<float>({1000}, "x");
  x.upload(std::vector<float>(1000, 21.0F));
  failed += expect_exception<swapmm::NestedOperation>("opencl: a call from within an operation", [&] {
    manager.run("outer", swapmm::reads(x), [&](auto&) { (void)x.download(); });
  });
  failed += expect("opencl: the value", x.download() == std::vector<float>(1000, 21.0F));
  return failed;
}
