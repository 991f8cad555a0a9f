// SPDX-License-Identifier: Apache-2.0
#include <swapmm/cuda/numa.hpp>

#include <fstream>
#include <optional>
#include <string>
#include <string_view>

#if defined(__linux__)
#include <linux/mempolicy.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace swapmm::cuda::detail {

std::optional<int> numa_node_of(std::string_view bus, const std::string& pci_devices) {
  std::ifstream file(pci_devices + "/" + std::string(bus) + "/numa_node");
  int node = -1;  // the system reports -1 if there is only one node
  if (!(file >> node) || node < 0) return std::nullopt;
  return node;
}

#if defined(__linux__)

// Makes two system calls, like libnuma.
NearDevice::NearDevice(std::optional<int> node) noexcept {
  if (!node || static_cast<unsigned long>(*node) >= nodes) return;
  if (syscall(SYS_get_mempolicy, &mode_, mask_, nodes, nullptr, 0UL) != 0) return;
  constexpr unsigned long bits = 8 * sizeof(unsigned long);
  unsigned long wanted[nodes / bits] = {};
  wanted[static_cast<unsigned long>(*node) / bits] = 1UL << (static_cast<unsigned long>(*node) % bits);
  changed_ = syscall(SYS_set_mempolicy, MPOL_PREFERRED, wanted, nodes) == 0;
}

NearDevice::~NearDevice() {
  if (changed_) (void)syscall(SYS_set_mempolicy, mode_, mask_, nodes);
}

#else

NearDevice::NearDevice(std::optional<int>) noexcept {}
NearDevice::~NearDevice() = default;

#endif

}  // namespace swapmm::cuda::detail
