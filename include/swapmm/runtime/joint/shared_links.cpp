// SPDX-License-Identifier: Apache-2.0
#include <swapmm/interface/shared_links.hpp>

#include <swapmm/base/error.hpp>
#include <swapmm/runtime/joint/link_group.hpp>

namespace swapmm {

SharedLinks::SharedLinks(const LinkCapacities& capacities) : group_(std::make_shared<runtime::LinkGroup>(capacities)) {
  if (capacities.empty()) throw UsageError("SharedLinks: the devices share nothing: say how many bytes per second");
}
SharedLinks::~SharedLinks() = default;

const LinkCapacities& SharedLinks::capacities() const { return group_->capacities(); }
std::size_t SharedLinks::managers() const { return group_->members(); }
std::uint64_t SharedLinks::joint_plans() const { return group_->plans(); }

}  // namespace swapmm
