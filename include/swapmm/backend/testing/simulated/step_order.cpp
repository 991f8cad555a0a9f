// SPDX-License-Identifier: Apache-2.0
#include <swapmm/backend/testing/simulated/step_order.hpp>

#include <algorithm>
#include <numeric>
#include <utility>

namespace swapmm::simulated {

std::uint32_t Choices::choose(std::uint32_t options) {
  if (options < 2) return 0;
  if (position == path.size()) path.push_back({0, options});
  path[position].options = options;
  return path[position++].taken;
}

bool Choices::next_path() {
  path.resize(position);
  position = 0;
  while (!path.empty()) {
    if (++path.back().taken < path.back().options) return true;
    path.pop_back();
  }
  return false;
}

}  // namespace swapmm::simulated

namespace swapmm::simulated::detail {

StepOrder::StepOrder(const Options& options)
    : order_(options.order),
      starved_(options.starved_queue),
      choices_(options.choices),
      max_pieces_(std::clamp(options.pieces, 1, 8)),
      random_(options.seed),
      eagerness_(random_.below(4)),
      change_point_count_(static_cast<std::size_t>(std::clamp(options.pct_depth - 1, 0, 8))) {
  std::iota(priority_.begin(), priority_.end(), std::int64_t{1});
  for (std::size_t i = priority_.size() - 1; i > 0; --i) {
    std::swap(priority_[i], priority_[random_.below(static_cast<std::uint32_t>(i) + 1)]);
  }
  draw_change_points();
}

void StepOrder::begin_call() {
  // The cases range from a device that runs only while the host waits to one that has nearly always finished already.
  switch (eagerness_) {
    case 0: steps_left_ = 0; break;
    case 1: steps_left_ = random_.below(2); break;
    case 2: steps_left_ = random_.below(4); break;
    default: steps_left_ = random_.below(16); break;
  }
}

std::optional<QueueKind> StepOrder::next(const Ready& ready, bool host_blocked) {
  if (order_ == Order::pct) return next_by_priority(ready, host_blocked);
  if (order_ == Order::chosen) return next_by_choice(ready, host_blocked);
  if (!host_blocked) {
    if (steps_left_ == 0) return std::nullopt;
    --steps_left_;
  }
  constexpr std::size_t compute = index(QueueKind::compute);
  Ready allowed = ready;
  const bool a_copy = std::find(ready.begin() + 1, ready.end(), true) != ready.end();
  if (order_ == Order::copies_first && a_copy) allowed[compute] = false;
  if (order_ == Order::copies_last && ready[compute]) allowed = Ready{true};
  if (order_ == Order::starved && ready[index(starved_)]) {
    allowed[index(starved_)] = false;
    if (std::find(allowed.begin(), allowed.end(), true) == allowed.end()) {
      if (!host_blocked) return std::nullopt;
      return starved_;
    }
  }
  return any_of(allowed);
}

QueueKind StepOrder::any_of(const Ready& ready) {
  const auto count = static_cast<std::uint32_t>(std::count(ready.begin(), ready.end(), true));
  std::uint32_t skip = count > 1 ? random_.below(count) : 0;
  for (std::size_t i = 0; i < queue_count; ++i) {
    if (ready[i] && skip-- == 0) return static_cast<QueueKind>(i);
  }
  return QueueKind::compute;  // not reached: something is ready
}

void StepOrder::draw_change_points() {
  // PCT needs the number of steps in advance. It is not known here, so windows of several lengths alternate.
  pct_window_ = 8U << (2 * random_.below(4));
  pct_tick_ = 0;
  for (std::size_t i = 0; i < change_point_count_; ++i) change_points_[i] = random_.below(pct_window_);
}

std::optional<QueueKind> StepOrder::next_by_priority(const Ready& ready, bool host_blocked) {
  const auto highest = [&] {
    std::size_t best = host_blocked ? queue_count + 1 : host;
    for (std::size_t i = 0; i < queue_count; ++i) {
      if (ready[i] && (best > host || priority_[i] > priority_[best])) best = i;
    }
    return best;
  };
  std::size_t chosen = highest();
  const auto changes_end = change_points_.begin() + static_cast<std::ptrdiff_t>(change_point_count_);
  for (auto point = change_points_.begin(); point != changes_end; ++point) {
    if (*point != pct_tick_) continue;
    priority_[chosen] = --lowest_;
    chosen = highest();
  }
  if (++pct_tick_ == pct_window_) draw_change_points();
  if (chosen == host) return std::nullopt;
  return static_cast<QueueKind>(chosen);
}

std::optional<QueueKind> StepOrder::next_by_choice(const Ready& ready, bool host_blocked) {
  std::uint32_t options = host_blocked ? 0 : 1;
  for (const bool is_ready : ready) options += is_ready ? 1 : 0;
  std::uint32_t skip = choices_ != nullptr ? choices_->choose(options) : 0;
  if (!host_blocked && skip-- == 0) return std::nullopt;
  for (std::size_t i = 0; i < queue_count; ++i) {
    if (ready[i] && skip-- == 0) return static_cast<QueueKind>(i);
  }
  return QueueKind::compute;  // not reached: something is ready
}

std::uint8_t StepOrder::pieces(std::uint64_t size) {
  if (order_ == Order::virtual_time) return 1;
  const auto limit = static_cast<std::uint32_t>(std::min(static_cast<std::uint64_t>(max_pieces_), size));
  if (limit < 2) return 1;
  return static_cast<std::uint8_t>(order_ == Order::chosen ? limit : 1 + random_.below(limit));
}

}  // namespace swapmm::simulated::detail
