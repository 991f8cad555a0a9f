// SPDX-License-Identifier: Apache-2.0
#include "support/v2/itineraries.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace swapmm::test::general {
namespace {

using swapmm::v2::Command;
using swapmm::v2::CommandKind;
using swapmm::v2::LinkId;
using swapmm::v2::Machine;
using swapmm::v2::MemoryId;

Command command(CommandKind kind, TensorId tensor, MemoryId memory) {
  Command result;
  result.kind = kind;
  result.tensor = tensor;
  result.memory = memory;
  return result;
}

/// Lists the itineraries of a tensor.
class Itineraries {
 public:
  Itineraries(const Trace& trace, const Machine& machine, MemoryId device, TensorId tensor)
      : trace_(trace), machine_(machine), device_(device), tensor_(tensor), n_(trace.operations.size()) {
    for (std::size_t i = 0; i < n_; ++i) {
      for_each_access(trace.operations[i], [&](TensorId id, Access access) {
        if (id == tensor) accesses_.push_back({i, access});
      });
    }
    make_intervals();
  }

  std::vector<Itinerary> list() {
    if (accesses_.empty()) {
      found_.emplace_back().held.assign(n_, false);
      return std::move(found_);
    }
    choose(0);
    return std::move(found_);
  }

 private:
  /// From one access to the next one. Positions go on in the next iteration.
  struct Interval {
    std::size_t begin = 0;  // operations
    std::size_t end = 0;
    bool dead = false;                 // the value is not needed again
    std::optional<std::size_t> given;  // the operation at whose end the host gives a new one
    bool begins_value = false;         // the access at the beginning makes a new value
    // What is chosen:
    std::optional<MemoryId> source;  // none: it stays
    std::size_t back = 0;            // the gap in which it comes back
    bool saves = false;              // it is saved for this return
    std::size_t save = 0;            // in this gap
    std::size_t save_interval = 0;
  };

  [[nodiscard]] bool is_input() const { return trace_.tensors[index(tensor_)].kind == TensorKind::input; }
  [[nodiscard]] bool limited(MemoryId memory) const { return machine_.memories[index(memory)].bytes.has_value(); }
  [[nodiscard]] std::optional<LinkId> link(MemoryId from, MemoryId to) const {
    for (std::size_t l = 0; l < machine_.links.size(); ++l) {
      if (machine_.links[l].from == from && machine_.links[l].to == to) return id_at<LinkId>(l);
    }
    return std::nullopt;
  }

  void make_intervals() {
    for (std::size_t i = 0; i < accesses_.size(); ++i) {
      Interval interval;
      const auto& next = accesses_[(i + 1) % accesses_.size()];
      interval.begin = accesses_[i].first;
      interval.end = next.first + (i + 1 == accesses_.size() ? n_ : 0);
      interval.dead = next.second == Access::write;
      interval.begins_value = accesses_[i].second != Access::read;
      if (is_input() && !interval.dead) {
        const std::size_t giver = giving_operation(trace_.tensors[index(tensor_)], n_);
        for (const std::size_t at : {giver, giver + n_}) {
          if (at >= interval.begin && at < interval.end) interval.given = at;
        }
      }
      intervals_.push_back(interval);
    }
  }

  /// Whether the value in an interval begins with an access, so that no other memory has it from the start; the
  /// interval in which it begins.
  [[nodiscard]] std::optional<std::size_t> begin_of_value(std::size_t interval) const {
    for (std::size_t back = 0; back < intervals_.size(); ++back) {
      const std::size_t i = (interval + intervals_.size() - back) % intervals_.size();
      if (back > 0 && intervals_[i].given) return std::nullopt;
      if (intervals_[i].begins_value) return i;
    }
    return std::nullopt;
  }

  void choose(std::size_t i) {
    if (i == intervals_.size()) {
      if (all_are_there()) choose_saves(0);
      return;
    }
    Interval& interval = intervals_[i];
    if (interval.dead) {
      choose(i + 1);
      return;
    }
    if (interval.given) {
      interval.source = machine_.host;
      for (interval.back = *interval.given + 1; interval.back <= interval.end; ++interval.back) choose(i + 1);
      return;
    }
    interval.source.reset();
    interval.saves = false;
    choose(i + 1);
    for (std::size_t m = 0; m < machine_.memories.size(); ++m) {
      const auto memory = id_at<MemoryId>(m);
      if (memory == device_ || !link(memory, device_)) continue;
      interval.source = memory;
      for (const bool saves : {false, true}) {
        interval.saves = saves;
        if (saves && !link(device_, memory)) continue;
        // What the host has once, it keeps.
        if (saves && !limited(memory) && (!begin_of_value(i) || is_saved_before(i, i, false))) continue;
        // A value that comes back before the next operation may lie elsewhere then.
        for (interval.back = interval.begin + 1; interval.back <= interval.end; ++interval.back) choose(i + 1);
      }
    }
    interval.source.reset();
    interval.saves = false;
  }

  /// Whether an interval before this one, in the circle and of the same value, saves it where this one takes it from.
  /// Intervals behind `chosen` may still do so.
  [[nodiscard]] bool is_saved_before(std::size_t interval, std::size_t chosen, bool unknown) const {
    const auto begin = begin_of_value(interval);
    for (std::size_t back = 1; back < intervals_.size(); ++back) {
      if (begin == (interval + intervals_.size() - back + 1) % intervals_.size()) return false;
      const std::size_t j = (interval + intervals_.size() - back) % intervals_.size();
      if (intervals_[j].given) return false;
      if (j > chosen) return unknown;
      if (intervals_[j].saves && intervals_[j].source == intervals_[interval].source) return true;
    }
    return false;
  }

  /// Whether each value that comes back is there: given, saved, or in the other memory for good.
  [[nodiscard]] bool all_are_there() const {
    for (std::size_t i = 0; i < intervals_.size(); ++i) {
      const Interval& interval = intervals_[i];
      if (!interval.source || interval.given || interval.saves) continue;
      const bool for_good = !begin_of_value(i) && (!limited(*interval.source) || !is_input());
      if (!for_good && !is_saved_before(i, intervals_.size(), false)) return false;
    }
    return true;
  }

  /// The gaps in which a value is on the device before it comes back in this interval.
  void choose_saves(std::size_t i) {
    while (i < intervals_.size() && !(intervals_[i].source && intervals_[i].saves)) ++i;
    if (i == intervals_.size()) {
      found_.push_back(make());
      return;
    }
    Interval& interval = intervals_[i];
    const auto begin = begin_of_value(i);
    for (std::size_t back = 0; back < intervals_.size(); ++back) {
      const std::size_t j = (i + intervals_.size() - back) % intervals_.size();
      const Interval& at = intervals_[j];
      if (back > 0 && (at.given || at.dead)) break;
      const std::size_t from = back > 0 && at.source ? at.back : at.begin + 1;
      const std::size_t to = back == 0 ? interval.back : at.end;
      for (std::size_t gap = from; gap <= to; ++gap) {
        interval.save = gap;
        interval.save_interval = j;
        choose_saves(i + 1);
      }
      if (begin == j) break;
    }
  }

  Itinerary make() const {
    Itinerary result;
    std::vector<std::size_t> returns;  // the move of each interval
    for (std::size_t i = 0; i < intervals_.size(); ++i) {
      const Interval& interval = intervals_[i];
      returns.push_back(result.moves.size());
      if (interval.dead) {
        result.last.push_back({interval.end % n_, command(CommandKind::allocate, tensor_, device_)});
      }
      if (!interval.source) continue;
      result.moves.push_back(move(*interval.source, device_, interval.back));
    }
    std::vector<bool> released(intervals_.size(), false);  // behind the copy that saves
    for (std::size_t i = 0; i < intervals_.size(); ++i) {
      const Interval& interval = intervals_[i];
      if (!interval.source || !interval.saves) continue;
      result.moves.push_back(move(device_, *interval.source, interval.save));
      if (interval.save_interval != i) continue;
      result.moves.back().releases.push_back(command(CommandKind::release, tensor_, device_));
      released[i] = true;
    }
    for (std::size_t i = 0; i < intervals_.size(); ++i) {
      const Interval& interval = intervals_[i];
      if ((!interval.dead && !interval.source) || released[i]) continue;
      result.first.push_back({(interval.begin + 1) % n_, command(CommandKind::release, tensor_, device_)});
    }
    result.held.assign(n_, false);
    for (const Interval& interval : intervals_) {
      result.held[interval.begin % n_] = true;
      if (interval.dead) continue;
      for (std::size_t at = interval.source ? interval.back : interval.begin; at < interval.end; ++at) {
        result.held[at % n_] = true;
      }
    }
    for (std::size_t m = 0; m < machine_.memories.size(); ++m) release_in(id_at<MemoryId>(m), returns, result);
    const bool stays = std::ranges::none_of(intervals_, [](const Interval& i) { return i.dead || i.source; });
    if (stays) result.permanent.push_back(device_);
    return result;
  }

  /// A saved value is given back behind its last return before it is saved again, or before it ends.
  void release_in(MemoryId memory, const std::vector<std::size_t>& returns, Itinerary& result) const {
    if (memory == device_ || !limited(memory)) return;
    const std::size_t count = intervals_.size();
    bool any = false;
    bool saves = false;
    for (const Interval& interval : intervals_) {
      any = any || interval.source == memory;
      saves = saves || (interval.source == memory && interval.saves);
    }
    if (any && !saves) result.permanent.push_back(memory);
    if (!saves) return;
    for (std::size_t i = 0; i < count; ++i) {
      if (intervals_[i].source != memory) continue;
      bool last = true;
      for (std::size_t next = 1; next < count; ++next) {
        const Interval& later = intervals_[(i + next) % count];
        if (later.begins_value || later.given) break;
        if (later.source != memory) continue;
        last = later.saves;
        break;
      }
      if (last) result.moves[returns[i]].releases.push_back(command(CommandKind::release, tensor_, memory));
    }
  }

  [[nodiscard]] Move move(MemoryId from, MemoryId to, std::size_t gap) const {
    Move result;
    result.gap = gap % n_;
    result.copy.kind = CommandKind::copy;
    result.copy.tensor = tensor_;
    result.copy.link = *link(from, to);
    return result;
  }

  const Trace& trace_;
  const Machine& machine_;
  MemoryId device_;
  TensorId tensor_;
  std::size_t n_;
  std::vector<std::pair<std::size_t, Access>> accesses_;
  std::vector<Interval> intervals_;
  std::vector<Itinerary> found_;
};

}  // namespace

std::vector<Itinerary> list_itineraries(const Trace& trace, const Machine& machine, MemoryId device, TensorId tensor) {
  return Itineraries(trace, machine, device, tensor).list();
}

}  // namespace swapmm::test::general
