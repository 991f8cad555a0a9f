// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/ways/candidate.hpp>

#include <algorithm>
#include <utility>
#include <vector>

#include <swapmm/plan/ways/program/written.hpp>

namespace swapmm::planning {
namespace {

/// The list without its elements at [first, end), which may lie beyond it.
template <class T>
void erase_range(std::vector<T>& list, std::size_t first, std::size_t end) {
  const auto at = [&](std::size_t i) { return list.begin() + static_cast<std::ptrdiff_t>(std::min(i, list.size())); };
  list.erase(at(first), at(end));
}

/// The ways without those at [first, end), which may lie beyond them. Replays are counted first, then codings.
WaysBack without(WaysBack ways, std::size_t first, std::size_t end) {
  const std::size_t replays = ways.replays.size();
  erase_range(ways.replays, first, end);
  erase_range(ways.codings, std::max(first, replays) - replays, std::max(end, replays) - replays);
  return ways;
}

std::size_t count(const WaysBack& ways) { return ways.replays.size() + ways.codings.size(); }

}  // namespace

std::chrono::nanoseconds relaxed_time(const Trace& trace, const ValueHistory& history, const WaysBack& ways,
                                      const Machine& machine, const BoundEffort& effort) {
  const Result<WrittenTrace> written = with_ways(trace, history, ways);
  if (!written) return std::chrono::nanoseconds::max();
  const Result<std::chrono::nanoseconds> bound = lower_bound(written->trace, machine, effort);
  return bound ? *bound : std::chrono::nanoseconds::max();
}

std::size_t changes_of(const Trace& trace, const PlannedWaysOptions& options) {
  const std::size_t by_work = options.change_work / std::max<std::size_t>(trace.operations.size(), 1);
  return options.work == 0 || by_work < options.least_changes ? 0 : std::min(by_work, options.most_changes);
}

WayRating::WayRating(const Trace& trace, const ValueHistory& history, const Machine& machine,
                     const WaysOptions& options)
    : trace_(trace), history_(history), machine_(machine), options_(options) {
  constexpr std::size_t least = 8;  // a few would prefer the choices that have them
  close_left_ = std::min(options.close_work / std::max<std::size_t>(trace.operations.size(), 1), options.most_close);
  if (close_left_ < least || changes_of(trace, options.planned) > 0) close_left_ = 0;
}

std::chrono::nanoseconds WayRating::quick(const WaysBack& ways) const {
  return relaxed_time(trace_, history_, ways, machine_, options_.rating);
}

std::chrono::nanoseconds WayRating::close(const WaysBack& ways, std::chrono::nanoseconds quick) {
  if (close_left_ > 0) --close_left_;
  return std::max(quick, relaxed_time(trace_, history_, ways, machine_, options_.close_rating));
}

void leave_ways_out(WaysBack ways, const std::function<bool()>& go_on,
                    const std::function<bool(const WaysBack&)>& accept) {
  for (std::size_t length = (count(ways) + 3) / 4; length > 0; length /= 2) {
    for (std::size_t first = 0; first < count(ways);) {
      if (!go_on()) return;
      WaysBack fewer = without(ways, first, first + length);
      if (accept(fewer)) {
        ways = std::move(fewer);
      } else {
        first += length;
      }
    }
  }
}

}  // namespace swapmm::planning
