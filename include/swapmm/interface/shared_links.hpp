// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include <swapmm/base/export.hpp>
#include <swapmm/plan/machine.hpp>

namespace swapmm {

namespace runtime {
class LinkGroup;
}  // namespace runtime

/// What the devices of several managers share on their way to the host. Managers that have the same object in
/// Options::shared_links make their plans together: each plan is made for what the others leave, and copies of later
/// managers wait for those of earlier ones where that is faster for all. It pays if their iterations run side by side,
/// as those of replicas do. See docs/several_devices.md. Any thread may use it.
class SWAPMM_EXPORT SharedLinks {
 public:
  /// With capacities that are known: measure_shared_links() finds them. Each is below 2^62 bytes per second. Throws
  /// UsageError if all are 0: devices that share nothing need no such object.
  explicit SharedLinks(const LinkCapacities& capacities);
  SharedLinks(const SharedLinks&) = delete;
  SharedLinks& operator=(const SharedLinks&) = delete;
  ~SharedLinks();

  /// What the devices' copies share.
  [[nodiscard]] const LinkCapacities& capacities() const;
  /// Number of managers that take part now.
  [[nodiscard]] std::size_t managers() const;
  /// Number of plans for several of them that were made so far.
  [[nodiscard]] std::uint64_t joint_plans() const;

 private:
  friend struct SharedLinksAccess;
  std::shared_ptr<runtime::LinkGroup> group_;
};

/// Used by managers only.
struct SharedLinksAccess {
  static const std::shared_ptr<runtime::LinkGroup>& group(const SharedLinks& links) { return links.group_; }
};

}  // namespace swapmm
