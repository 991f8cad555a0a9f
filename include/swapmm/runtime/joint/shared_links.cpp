// SPDX-License-Identifier: Apache-2.0
#include <swapmm/interface/shared_links.hpp>

#include <cstdint>
#include <string>

#include <swapmm/base/error.hpp>
#include <swapmm/runtime/joint/link_group.hpp>

namespace swapmm {

SharedLinks::SharedLinks(const LinkCapacities& capacities) : group_(std::make_shared<runtime::LinkGroup>(capacities)) {
  if (capacities.empty())
    throw UsageError("SharedLinks: all capacities are 0. Devices that share nothing need no Options::shared_links");
  constexpr std::uint64_t most = std::uint64_t{1} << 62U;
  for (const std::uint64_t rate : {capacities.to_devices, capacities.from_devices, capacities.both_ways}) {
    if (rate >= most) throw UsageError("SharedLinks: " + std::to_string(rate) + " bytes per second are 2^62 or more");
  }
}
SharedLinks::~SharedLinks() = default;

const LinkCapacities& SharedLinks::capacities() const { return group_->capacities(); }
std::size_t SharedLinks::managers() const { return group_->members(); }
std::uint64_t SharedLinks::joint_plans() const { return group_->plans(); }

}  // namespace swapmm
