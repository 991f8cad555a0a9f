// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <swapmm/base/export.hpp>
#include <swapmm/plan/machine.hpp>

namespace swapmm::simulated {

namespace detail {
class Device;
}  // namespace detail

/// One clock for several simulated devices whose copies share capacities, max-min fair. Queues of one of these devices
/// may wait for events of another one. Time passes while the host waits for any of them, and nowhere else. For one
/// thread.
class SWAPMM_EXPORT SharedClock {
 public:
  /// What the devices' copies share.
  explicit SharedClock(const LinkCapacities& capacities = {}) : capacities_(capacities) {}
  SharedClock(const SharedClock&) = delete;
  SharedClock& operator=(const SharedClock&) = delete;
  ~SharedClock() = default;

  /// The time.
  [[nodiscard]] std::chrono::nanoseconds now() const { return std::chrono::nanoseconds{now_}; }
  /// What the devices' copies share.
  [[nodiscard]] const LinkCapacities& capacities() const { return capacities_; }

 private:
  friend class detail::Device;

  /// The direction of a copy that may share capacities.
  enum class Way : std::uint8_t { to_device, from_device };
  /// A copy whose bytes are on their way.
  struct Flow {
    detail::Device* device = nullptr;
    std::size_t queue = 0;
    Way way = Way::to_device;
    double fastest = 0;  // bytes per nanosecond, alone
    double rate = 0;     // bytes per nanosecond, now
  };

  /// @{
  /// A device appears, and gets a number; or is gone.
  std::uint64_t add(detail::Device& device) {
    devices_.push_back(&device);
    return ++last_number_;
  }
  void remove(detail::Device& device) noexcept { std::erase(devices_, &device); }
  /// @}
  [[nodiscard]] bool has(const detail::Device* device) const;

  /// Starts what can start, and ends what takes no time.
  void settle();
  /// Lets time pass until something ends, but not beyond `limit`. False if nothing is under way until then.
  bool advance(std::int64_t limit);
  /// Finds the rates of all flows.
  void share(std::vector<Flow>& flows) const;

  LinkCapacities capacities_;
  std::vector<detail::Device*> devices_;
  std::int64_t now_ = 0;
  std::uint64_t last_number_ = 0;
};

}  // namespace swapmm::simulated
