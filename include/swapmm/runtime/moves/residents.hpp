// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <swapmm/runtime/observe/use_history.hpp>
#include <swapmm/runtime/values/bundle.hpp>
#include <swapmm/runtime/values/none.hpp>
#include <swapmm/runtime/values/store.hpp>

namespace swapmm::runtime {

/// The tensors on the device, in the order in which operations on demand used them last, and which of them is to leave
/// next. With foresight (see DemandMode), that is the one that will be used latest, as far as the sequence of
/// operations so far tells, else the least recently used one.
template <Backend B>
class Residents {
 public:
  using Rec = Record<B>;

  Residents(Store<B>& store, bool foresees) : store_(store), foresees_(foresees) {}
  Residents(const Residents&) = delete;
  Residents& operator=(const Residents&) = delete;

  /// The tensor becomes the most recently used one.
  void touch(Rec& record) noexcept {
    if (record.id == newest_) return;
    remove(record);
    add(record);
  }
  void add(Rec& record) noexcept {
    record.recency.older = newest_;
    record.recency.newer = none;
    if (newest_ != none) store_.records[newest_].recency.newer = record.id;
    newest_ = record.id;
    if (oldest_ == none) oldest_ = record.id;
  }
  void remove(Rec& record) noexcept {
    if (record.recency.older != none) store_.records[record.recency.older].recency.newer = record.recency.newer;
    if (record.recency.newer != none) store_.records[record.recency.newer].recency.older = record.recency.older;
    if (oldest_ == record.id) oldest_ = record.recency.newer;
    if (newest_ == record.id) newest_ = record.recency.older;
    record.recency.older = record.recency.newer = none;
  }
  /// The caller will add all of them anew.
  void clear() noexcept { oldest_ = newest_ = none; }

  /// The least recently used one; null if there is none.
  [[nodiscard]] Rec* oldest() { return oldest_ == none ? nullptr : &store_.records[oldest_]; }
  [[nodiscard]] Rec* newer(const Rec& record) {
    return record.recency.newer == none ? nullptr : &store_.records[record.recency.newer];
  }

  /// The tensor that is to leave for an operation whose bundle has this stamp; null if there is none. Operations have
  /// consecutive stamps.
  ///
  /// One that was used just now is not taken, even if it will be used latest: its copy to the host would have to wait
  /// for that operation, and the next operation for the copy. It is the time that counts, and copies of others are
  /// hidden.
  [[nodiscard]] Rec* next_to_leave(std::uint64_t stamp) {
    Rec* const least_recent = least_recently_used(stamp);
    if (least_recent == nullptr || !history_) return least_recent;
    const std::uint64_t longest = age(*least_recent, stamp);
    const std::uint64_t just_now = std::max<std::uint64_t>(4, longest / 4);
    Rec* found = least_recent;
    std::uint64_t latest = 0;
    std::size_t seen = 0;
    for (Rec* record = least_recent; record != nullptr && seen < most_compared; record = newer(*record), ++seen) {
      if (age(*record, stamp) <= just_now) break;
      const std::uint64_t use = next_use(*record, stamp) + (record->host.valid ? worth_of_a_copy : 0);
      if (use <= latest) continue;
      latest = use;
      found = record;
    }
    return found;
  }
  /// When the tensor will be used, as a stamp. What is not known is guessed: one that was not used for some time will
  /// not be used for as long again.
  [[nodiscard]] std::uint64_t next_use(const Rec& record, std::uint64_t stamp) const {
    return record.use.expected > stamp ? record.use.expected : stamp + age(record, stamp);
  }

  /// Called when room is needed: from the first time on, operations are noted. A program that fits pays nothing.
  void room_is_needed() {
    if (foresees_ && !history_) history_.emplace();
  }
  /// Called for each operation on demand.
  void note(const Request<B>& request, std::uint64_t stamp, bool in_iteration) {
    if (!history_) return;
    uses_.clear();
    std::uint64_t token = request.items.size();
    for (const auto& item : request.items) {
      const Rec& record = *item.record;
      uses_.push_back({record.id, item.serial, item.access});
      // A tensor of this iteration counts by its size, because the next iteration has another in its place.
      const bool is_young = in_iteration && record.tensor.born == store_.iteration;
      token = (token + (is_young ? ~record.bytes.value : item.serial)) * 0x9e3779b97f4a7c15U;
      token = (token ^ (token >> 32U)) + static_cast<std::uint64_t>(item.access);
    }
    history_->add(token, uses_);
    for (std::size_t i = 0; i < request.items.size(); ++i) {
      const std::uint64_t distance = history_->distance(i);
      request.items[i].record->use.expected = distance == UseHistory::unknown ? 0 : stamp + distance;
    }
    last_noted_ = stamp;
  }
  /// Operations that follow a plan come between those on demand.
  void interrupt() noexcept {
    if (history_) history_->interrupt();
  }

  /// The number of operations that were noted, and what is known of the next ones; null before room was needed.
  [[nodiscard]] const UseHistory* history() const { return history_ ? &*history_ : nullptr; }
  /// The stamp of the operation that was noted last.
  [[nodiscard]] std::uint64_t last_noted() const { return last_noted_; }

 private:
  // A tensor whose value the host has leaves without a copy: it is taken as if it were used so many operations later.
  static constexpr std::uint64_t worth_of_a_copy = 10;
  // Tensors that are compared, so that many of them do not make a choice slow.
  static constexpr std::size_t most_compared = 128;

  [[nodiscard]] static std::uint64_t age(const Rec& record, std::uint64_t stamp) {
    return stamp - std::min(record.use.stamp, stamp);
  }

  Rec* least_recently_used(std::uint64_t stamp) {
    Rec* record = oldest();
    while (record != nullptr && record->use.stamp == stamp) record = newer(*record);
    return record;
  }

  Store<B>& store_;
  const bool foresees_;
  std::uint32_t oldest_ = none;
  std::uint32_t newest_ = none;
  std::optional<UseHistory> history_;
  std::vector<Use> uses_;
  std::uint64_t last_noted_ = 0;
};

}  // namespace swapmm::runtime
