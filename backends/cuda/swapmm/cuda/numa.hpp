// SPDX-License-Identifier: Apache-2.0
#pragma once

// Inside of the backend: not for programs.

#include <optional>
#include <string>
#include <string_view>

namespace swapmm::cuda::detail {

/// The NUMA node a PCI device ("0000:3b:00.0") is attached to; none where the system does not say, or has only one.
[[nodiscard]] std::optional<int> numa_node_of(std::string_view bus, const std::string& pci_devices);

/// As long as it lives, the thread prefers memory of that node. Afterwards its policy is the one from before. Where the
/// system does not let it, nothing happens: memory further away is slower, no more.
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
