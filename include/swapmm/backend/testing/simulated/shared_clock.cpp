// SPDX-License-Identifier: Apache-2.0
#include <swapmm/backend/testing/simulated/shared_clock.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>

#include <swapmm/backend/testing/simulated/device.hpp>

namespace swapmm::simulated {

bool SharedClock::has(const detail::Device* device) const { return std::ranges::count(devices_, device) != 0; }

void SharedClock::settle() {
  for (bool moved = true; std::exchange(moved, false);) {
    for (detail::Device* const device : devices_) moved = device->start_or_end_now() || moved;
  }
}

/// Max-min fair: the flows that get least, because of a capacity or of their own link, are fixed first.
void SharedClock::share(std::vector<Flow>& flows) const {
  struct Shared {
    double left;
    std::array<bool, 2> ways;  // by Way
  };
  constexpr double per_nanosecond = 1e-9;
  std::vector<Shared> all;
  const auto add = [&](std::uint64_t capacity, bool to_device, bool from_device) {
    if (capacity != 0) all.push_back({static_cast<double>(capacity) * per_nanosecond, {to_device, from_device}});
  };
  add(capacities_.to_devices, true, false);
  add(capacities_.from_devices, false, true);
  add(capacities_.both_ways, true, true);
  std::vector<Flow*> open;
  for (Flow& flow : flows) open.push_back(&flow);
  while (!open.empty()) {
    const auto takes = [](const Shared& shared, const Flow& flow) {
      return shared.ways[static_cast<std::size_t>(flow.way)];
    };
    const auto level_of = [&](const Shared& shared) {
      const auto users = std::ranges::count_if(open, [&](const Flow* flow) { return takes(shared, *flow); });
      return users == 0 ? std::numeric_limits<double>::infinity() : shared.left / static_cast<double>(users);
    };
    double least = std::numeric_limits<double>::infinity();
    for (const Flow* const flow : open) least = std::min(least, flow->fastest);
    for (const Shared& shared : all) least = std::min(least, level_of(shared));
    std::vector<Flow*> fixed;
    for (Flow* const flow : open) {
      const bool is_least = flow->fastest <= least || std::ranges::any_of(all, [&](const Shared& shared) {
                              return takes(shared, *flow) && level_of(shared) <= least;
                            });
      if (is_least) fixed.push_back(flow);
    }
    for (Flow* const flow : fixed) {
      flow->rate = least;
      std::erase(open, flow);
      for (Shared& shared : all) {
        if (takes(shared, *flow)) shared.left -= least;
      }
    }
  }
}

bool SharedClock::advance(std::int64_t limit) {
  settle();
  std::vector<Flow> flows;
  std::int64_t next = std::numeric_limits<std::int64_t>::max();
  for (detail::Device* const device : devices_) next = std::min(next, device->next_end(flows));
  share(flows);
  for (const Flow& flow : flows) {
    const double left = flow.device->bytes_left(flow.queue);
    const auto length = static_cast<std::int64_t>(std::ceil(left / flow.rate - 1e-6));
    next = std::min(next, now_ + std::max<std::int64_t>(length, 1));
  }
  const std::int64_t until = std::min(next, limit);
  if (until == std::numeric_limits<std::int64_t>::max()) return false;
  for (const Flow& flow : flows) {
    flow.device->pass_bytes(flow.queue, flow.rate * static_cast<double>(until - now_));
  }
  now_ = until;
  settle();
  return next <= limit;
}

}  // namespace swapmm::simulated
