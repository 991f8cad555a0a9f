// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <swapmm/plan/problem/overlap_ledger.hpp>
#include <swapmm/plan/search/timing/range_load.hpp>

namespace swapmm::planning {

/// Computes when everything moves, and how long an iteration takes, from the decisions about which tensors are away
/// over which absences. One pass takes about (operations + absences) x log(absences).
///
/// A pass starts from a guess of when operations end. Values go to the host in the order in which their room can be
/// released, each as soon as it is written. Tensors return in the order of their use, each as soon as the link has
/// finished the copies before it and there is room until the use. This gives each command its gap. Then the iteration
/// is simulated with these orders. Bytes are free as soon as enough has been released; places are not considered. The
/// ends of its operations are the guess for the next pass.
class SwapTiming {
 public:
  /// Begins with decisions in which only inputs are away, before they arrive.
  explicit SwapTiming(OverlapLedger& ledger);

  [[nodiscard]] std::size_t absences() const { return away_.size(); }
  [[nodiscard]] bool is_arrival(std::uint32_t absence) const { return ledger_.absences[absence].is_arrival; }
  [[nodiscard]] bool lingers(std::uint32_t absence) const { return ledger_.absences[absence].lingers; }
  [[nodiscard]] std::int64_t size(std::uint32_t absence) const { return swaps_[absence].bytes; }
  [[nodiscard]] std::uint32_t length(std::uint32_t absence) const {
    return swaps_[absence].end - swaps_[absence].first;
  }
  [[nodiscard]] std::uint32_t first(std::uint32_t absence) const { return swaps_[absence].first; }
  [[nodiscard]] std::uint32_t end(std::uint32_t absence) const { return swaps_[absence].end; }
  [[nodiscard]] const OverlapLedger& ledger() const { return ledger_; }

  [[nodiscard]] const std::vector<char>& away() const { return away_; }
  /// Lets the tensor go out or stay over an absence, which must not be an arrival.
  void set_away(std::uint32_t absence, bool away);
  void set_away(const std::vector<char>& away);

  [[nodiscard]] std::int64_t bundle(std::uint32_t operation) const { return bundles_[operation]; }

  /// What is decided about stores if the ledger has them: a store for each value, that is for each version, and for
  /// each tensor with absences that have none.
  [[nodiscard]] bool has_stores() const { return ledger_.stores != nullptr; }
  [[nodiscard]] std::uint8_t stores() const { return stores_; }
  [[nodiscard]] std::size_t kept_values() const { return kept_.size(); }
  [[nodiscard]] const std::vector<std::uint8_t>& store_of_kept() const { return store_of_kept_; }
  /// Whether a value must stay in the store that it has.
  [[nodiscard]] bool is_fixed(std::uint32_t kept) const { return kept_[kept].is_fixed; }
  /// Whether it is away over any absence, or copied for the host.
  [[nodiscard]] bool is_stored(std::uint32_t kept) const { return kept_[kept].length > 0; }
  [[nodiscard]] std::int64_t size_of_kept(std::uint32_t kept) const { return kept_[kept].bytes; }
  /// How often it is copied in an iteration, in both directions.
  [[nodiscard]] double copies_of_kept(std::uint32_t kept) const {
    return kept_[kept].away + (kept_[kept].version != no_absence ? 1.0 : 0.0);
  }
  [[nodiscard]] const std::vector<std::uint32_t>& absences_of_kept(std::uint32_t kept) const {
    return kept_[kept].absences;
  }
  [[nodiscard]] double length_of_kept(std::uint32_t kept) const { return kept_[kept].length; }
  [[nodiscard]] std::uint32_t kept_of(std::uint32_t absence) const { return kept_of_[absence]; }
  void set_store(std::uint32_t kept, std::uint8_t store);
  void set_stores(const std::vector<std::uint8_t>& stores);
  /// When values are in their stores, by the last pass: from the gap of the copy to that of the last return.
  struct TimesStored {
    std::vector<std::uint32_t> first;   ///< per value: an operation
    std::vector<std::uint32_t> length;  ///< per value
  };
  [[nodiscard]] TimesStored times_stored() const;
  /// Takes the times over from the last pass. Values that are away over other absences afterwards count from their
  /// write to the end of their last absence again.
  void store_as_passed();
  /// Takes over times that were found before, for the same decisions.
  void set_times_stored(const TimesStored& times);
  /// The bytes by which stores are too small, in total.
  [[nodiscard]] std::int64_t overrun_of_stores() const;
  /// Takes over the stores that the ledger says.
  void set_stores_by_ledger();
  /// How late tensors leave for limited stores: 0: as soon as they can; 1: as late as there is room on the device. Late
  /// ones leave more room in the stores, and less on the device.
  [[nodiscard]] double lateness() const { return lateness_; }
  void set_lateness(double part) { lateness_ = part; }
  /// Stores count as so large a part of their capacity: what fits by bytes may find no place.
  void set_part_of_stores(double part);
  /// The bytes by which a store is too small at the most crowded operation; not above 0: it is large enough.
  [[nodiscard]] std::int64_t store_overrun(std::uint8_t store) const {
    return is_limited_[store] ? store_loads_[store].most(0, operations_) : -1;
  }
  /// An operation at which a store is too small; there must be one.
  [[nodiscard]] std::uint32_t overrun_of_store_at(std::uint8_t store) const {
    return store_loads_[store].until_above(0, operations_, 0);
  }
  /// Whether a value is stored while an operation runs.
  [[nodiscard]] bool is_stored_at(std::uint32_t kept, std::uint32_t operation) const {
    const Kept& value = kept_[kept];
    return (operation + operations_ - value.first) % operations_ < value.length;
  }
  /// Whether a store has room for a value that is in another one.
  [[nodiscard]] bool store_has_room(std::uint8_t store, std::uint32_t kept) const;

  /// The bytes that an operation may hold (at most the budget), and how many more the decisions make it hold (0: none).
  [[nodiscard]] std::int64_t limit(std::uint32_t operation) const { return limits_[operation]; }
  [[nodiscard]] const std::vector<std::int64_t>& limits() const { return limits_; }
  void set_limit(std::uint32_t operation, std::int64_t bytes);
  [[nodiscard]] std::int64_t overrun(std::uint32_t operation) const { return overruns_.at(operation); }
  [[nodiscard]] std::int64_t largest_overrun() const { return overruns_.most(0, operations_); }
  /// Whether there is room for the tensor to stay over the absence.
  [[nodiscard]] bool has_room_for(std::uint32_t absence) const;

  /// Sets the guess for the first pass: nanoseconds from each operation's start to the next one's.
  void guess(std::span<const double> times);
  /// Sets the guess to the ends() and the iteration() of another pass.
  void guess(const std::vector<double>& ends, double iteration);
  [[nodiscard]] const std::vector<double>& ends() const { return ends_; }
  [[nodiscard]] double iteration() const { return iteration_; }

  /// Runs one pass. No operation may be over its limit. Returns the time of the iteration in nanoseconds.
  double pass();

  /// After a pass: lets returning tensors reserve their room as late as they can without being late, by the times of
  /// that pass. `margin` is added to the length of each copy. Late reservations pack more easily, and a copy still
  /// starts as soon as its bytes are free.
  void reserve_late(double margin);

  /// Writes the decisions and gaps of the last pass into the ledger, for stays_of().
  void write_decisions();

 private:
  /// An absence. Operations are counted on from 0 so that first < end; both may be in the next iteration.
  struct Swap {
    std::uint32_t first = 0;
    std::uint32_t end = 0;
    std::int64_t bytes = 0;     ///< rounded up to the alignment
    double copy_in = 0;         ///< ns
    std::uint32_t leaves = 0;   ///< gap, from first to end
    std::uint32_t returns = 0;  ///< gap, from leaves to end
    double left = 0;            ///< when it has left, in the last iteration of a pass; its copy may run until then
  };
  /// A value that the device writes.
  struct Value {
    std::uint32_t write = 0;              ///< the operation that writes it
    double copy_out = 0;                  ///< ns
    bool host_reads = false;              ///< it goes to the host in any case
    std::uint32_t overwritten = 0;        ///< the operation that overwrites it, counted on from the write's iteration
    std::vector<std::uint32_t> absences;  ///< in the order of time
    std::uint32_t copied = 0;             ///< gap of its place in the queue, counted on like `overwritten`
    std::uint32_t released_by = no_absence;  ///< the first absence over which it is away; it leaves after the copy
  };
  /// A copy to the host in one pass.
  struct CopyOut {
    std::uint32_t value = 0;
    std::uint32_t due = 0;  ///< gap from which its room can be released, counted on from the write's iteration
    double start = 0;       ///< ns; of an iteration that begins at 0
    double end = 0;
  };
  /// A value as stores see it, and the operations during which it is there.
  struct Kept {
    std::uint32_t version = no_absence;  ///< of the ledger; none: a value that no operation writes
    std::vector<std::uint32_t> absences;
    std::int64_t bytes = 0;
    bool is_fixed = false;
    std::uint32_t first = 0;   ///< the operation from which it is in its store
    std::uint32_t length = 0;  ///< the number of operations for which it is
    std::uint32_t away = 0;    ///< the number of absences over which it is away
  };
  /// Bytes that are released at one time.
  struct Release {
    double time = 0;
    std::int64_t bytes = 0;
  };
  class Run;
  class RoomToReturn;

  void list_tensors();
  void list_values();
  void list_kept();
  void copy_times_of(std::uint32_t kept);
  void store_again(std::uint32_t kept);
  void load_store(std::uint32_t kept, int sign);
  void store_from(std::uint32_t kept, std::uint32_t first, std::uint32_t length);
  [[nodiscard]] double time_of(std::uint32_t gap) const;
  [[nodiscard]] std::uint32_t gap_at(double time) const;
  [[nodiscard]] std::uint32_t counted_from(std::uint32_t write, std::uint32_t first) const {
    return first > write ? first : first + operations_;
  }
  void hold_by_decisions();
  void list_copies_out();
  void time_copies_out();
  void time_copies_out(const std::vector<std::uint32_t>& members);
  [[nodiscard]] std::uint8_t store_of(std::uint32_t absence) const {
    return stores_ > 1 ? store_of_kept_[kept_of_[absence]] : std::uint8_t{0};
  }
  [[nodiscard]] std::uint8_t store_of_value(std::uint32_t value) const {
    return stores_ > 1 ? store_of_kept_[value] : std::uint8_t{0};
  }
  [[nodiscard]] RangeLoad room_by_limits() const;
  void place_leavings();
  void list_returns();
  [[nodiscard]] double latest_first_start() const;
  void place_returns();
  void place_returns_from_stores();
  [[nodiscard]] std::uint32_t use_of(std::uint32_t absence) const {
    return swaps_[absence].end % operations_ + operations_;
  }

  OverlapLedger& ledger_;
  std::uint32_t operations_;
  bool one_engine_;
  std::vector<double> durations_;
  std::vector<std::int64_t> bundles_;    ///< bytes, per operation
  std::vector<std::int64_t> allocated_;  ///< bytes of whole writes, per operation
  std::vector<std::int64_t> dead_;       ///< bytes of values that are dead after their last use by an operation
  std::vector<Swap> swaps_;              ///< like ledger.absences
  std::vector<Value> values_;            ///< like ledger.versions
  std::vector<char> away_;
  std::vector<std::int64_t> limits_;
  RangeLoad overruns_;

  std::uint8_t stores_ = 1;
  std::vector<Kept> kept_;                   ///< like values_, then tensors that no operation writes
  std::vector<std::uint32_t> kept_of_;       ///< of each absence
  std::vector<std::uint8_t> store_of_kept_;  ///< of each of kept_
  std::vector<char> is_limited_;             ///< of each store
  double lateness_ = 0;
  std::vector<std::int64_t> store_limits_;  ///< of each store
  std::vector<RangeLoad> store_loads_;      ///< of each store: bytes above its limit, per operation

  /// The guess: when each gap begins, from 0 to the iteration's end; one more than operations.
  std::vector<double> ends_;
  double iteration_ = 0;
  std::vector<double> waits_;  ///< of the last pass: how long each operation waits
  /// Per gap, in the last iteration of the last pass, ns: when bytes are first taken in it.
  std::vector<std::int64_t> gap_starts_;

  std::vector<std::int64_t> held_;                    ///< per operation, by the decisions and gaps so far
  std::vector<CopyOut> copies_out_;                   ///< of the pass, in the order of the writes
  std::vector<std::uint32_t> by_start_;               ///< positions in copies_out_
  std::vector<std::vector<std::uint32_t>> to_store_;  ///< positions in copies_out_, for each store
  std::vector<std::uint32_t> returns_;  ///< absences over which tensors are away, in the order of use; without `gone_`
  std::vector<std::uint32_t> gone_;     ///< absences from which lingering values do not return
};

}  // namespace swapmm::planning
