// SPDX-License-Identifier: Apache-2.0
#pragma once

// Internal to the backend; not for programs.

#include <optional>
#include <string>
#include <string_view>

namespace swapmm::cuda::detail {

/// The NUMA node of a PCI device ("0000:3b:00.0"); none if the system does not report it, or has only one.
[[nodiscard]] std::optional<int> numa_node_of(std::string_view bus, const std::string& pci_devices);

/// While it exists, the thread prefers memory of that node. The destructor restores the previous policy. If the system
/// does not permit this, it has no effect: memory of another node is only slower.
class NearDevice {
 public:
  explicit NearDevice(std::optional<int> node) noexcept;
  NearDevice(const NearDevice&) = delete;
  NearDevice& operator=(const NearDevice&) = delete;
  ~NearDevice();

 private:
  static constexpr unsigned long nodes = 1024;  // as many as Linux can have
  bool changed_ = false;
  int mode_ = 0;
  unsigned long mask_[nodes / (8 * sizeof(unsigned long))] = {};
};

}  // namespace swapmm::cuda::detail
