// SPDX-License-Identifier: Apache-2.0
#include "support/v2/exact_plans.hpp"

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>
#include <vector>

#include <swapmm/plan/v2/schedule/waits.hpp>
#include <swapmm/plan/v2/simulate.hpp>
#include <swapmm/plan/v2/validate.hpp>

namespace swapmm::test::general {
namespace {

using std::chrono::nanoseconds;
using swapmm::v2::Command;
using swapmm::v2::CommandKind;
using swapmm::v2::EngineId;
using swapmm::v2::LinkId;
using swapmm::v2::Machine;
using swapmm::v2::MemoryId;
using swapmm::v2::Place;
using swapmm::v2::Plan;

/// A copy that may stand anywhere in its gap, and the places that are given back right behind it.
struct Move {
  std::size_t gap = 0;
  Command copy;
  std::vector<Command> releases;
};

/// Everything that happens to one tensor in an iteration. Gap g is between operations g - 1 and g.
struct Itinerary {
  std::vector<std::pair<std::size_t, Command>> first;  ///< at the beginning of a gap: places are given back
  std::vector<Move> moves;
  std::vector<std::pair<std::size_t, Command>> last;  ///< at the end of a gap: places for writes
  std::vector<MemoryId> permanent;                    ///< memories with a limit that keep a place of it for good
  std::vector<bool> held;                             ///< for each operation, whether the device has it meanwhile
};

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

class Search {
 public:
  Search(const Trace& trace, const Machine& machine, std::uint64_t most)
      : trace_(trace),
        machine_(machine),
        most_(most),
        n_(trace.operations.size()),
        device_(*machine.engines[index(v2::default_engine(machine))].memory) {
    for (const TraceOperation& operation : trace.operations) compute_ += operation.duration;
  }

  std::optional<ExactPlan> run() {
    std::vector<std::vector<Itinerary>> of;
    for (std::size_t t = 0; t < trace_.tensors.size(); ++t) {
      of.push_back(Itineraries(trace_, machine_, device_, id_at<TensorId>(t)).list());
    }
    std::vector<const Itinerary*> chosen;
    combine(of, chosen);
    if (too_many_) return std::nullopt;
    // The least work on engines first: what has more than the best time can be left out.
    std::ranges::stable_sort(combinations_, {}, &Combination::load);
    for (const Combination& combination : combinations_) {
      if (best_ && (combination.load >= best_->iteration || best_->iteration <= compute_)) break;
      place_moves(combination);
      if (too_many_) return std::nullopt;
    }
    if (best_) best_->simulated = simulated_;
    return std::move(best_);
  }

 private:
  struct Combination {
    std::vector<const Itinerary*> of;  // of each tensor
    nanoseconds load{0};
  };

  [[nodiscard]] Bytes size(TensorId tensor) const { return trace_.tensors[index(tensor)].bytes; }
  [[nodiscard]] bool limited(MemoryId memory) const { return machine_.memories[index(memory)].bytes.has_value(); }

  void combine(const std::vector<std::vector<Itinerary>>& of, std::vector<const Itinerary*>& chosen) {
    if (too_many_) return;
    if (!fits(chosen)) return;
    if (chosen.size() == of.size()) {
      combinations_.push_back({chosen, load_of(chosen)});
      too_many_ = combinations_.size() > 10 * most_;
      return;
    }
    for (const Itinerary& itinerary : of[chosen.size()]) {
      chosen.push_back(&itinerary);
      combine(of, chosen);
      chosen.pop_back();
    }
  }

  /// Whether the device has enough bytes for what is on it during each operation.
  [[nodiscard]] bool fits(const std::vector<const Itinerary*>& chosen) const {
    for (std::size_t i = 0; i < n_; ++i) {
      Bytes held;
      for (std::size_t t = 0; t < chosen.size(); ++t) {
        if (chosen[t]->held[i]) held += size(id_at<TensorId>(t));
      }
      if (held > *machine_.memories[index(device_)].bytes) return false;
    }
    return true;
  }

  [[nodiscard]] nanoseconds load_of(const std::vector<const Itinerary*>& chosen) const {
    std::map<EngineId, nanoseconds> loads;
    for (const Itinerary* itinerary : chosen) {
      for (const Move& move : itinerary->moves) {
        const v2::Link& link = machine_.links[index(move.copy.link)];
        const auto flow =
            static_cast<std::int64_t>(size(move.copy.tensor).value * 1'000'000'000 / link.bytes_per_second);
        loads[v2::engine_of(machine_, move.copy.link)] += link.latency + nanoseconds{flow};
      }
    }
    nanoseconds most = compute_;
    for (const auto& [engine, load] : loads) most = std::max(most, load);
    return most;
  }

  void place_moves(const Combination& combination) {
    first_.assign(n_, {});
    last_.assign(n_, {});
    moves_.assign(n_, {});
    permanent_.clear();
    for (std::size_t t = 0; t < combination.of.size(); ++t) {
      for (const auto& [gap, release] : combination.of[t]->first) first_[gap].push_back(release);
      for (const auto& [gap, allocate] : combination.of[t]->last) last_[gap].push_back(allocate);
      for (const Move& move : combination.of[t]->moves) moves_[move.gap].push_back(&move);
      for (const MemoryId memory : combination.of[t]->permanent) permanent_.push_back({id_at<TensorId>(t), memory});
    }
    permute(0);
  }

  void permute(std::size_t gap) {
    if (too_many_) return;
    if (gap == n_) {
      too_many_ = too_many_ || ++steps_ > 100 * most_;
      find_places();
      return;
    }
    std::vector<const Move*> sorted = moves_[gap];
    std::ranges::sort(sorted);
    const std::vector<const Move*> before = moves_[gap];
    do {
      moves_[gap] = sorted;
      permute(gap + 1);
    } while (std::next_permutation(sorted.begin(), sorted.end()));
    moves_[gap] = before;
  }

  using Key = std::pair<TensorId, MemoryId>;
  [[nodiscard]] std::optional<MemoryId> taken_by(const Command& command) const {
    if (command.kind == CommandKind::allocate) return command.memory;
    if (command.kind != CommandKind::copy) return std::nullopt;
    const MemoryId to = machine_.links[index(command.link)].to;
    return limited(to) ? std::optional{to} : std::nullopt;
  }

  void find_places() {
    serial_ = {};
    for (std::size_t gap = 0; gap < n_; ++gap) {
      const auto add = [&](const Command& command) {
        serial_.commands.push_back(command);
        serial_.before.push_back(static_cast<std::uint32_t>(gap));
      };
      for (const Command& command : first_[gap]) add(command);
      for (const Move* move : moves_[gap]) {
        add(move->copy);
        for (const Command& command : move->releases) add(command);
      }
      for (const Command& command : last_[gap]) add(command);
    }
    // What is given back before it is taken is there at the beginning.
    std::map<Key, bool> at_beginning;
    for (const Command& command : serial_.commands) {
      if (command.kind == CommandKind::release) at_beginning.try_emplace({command.tensor, command.memory}, true);
      if (const auto memory = taken_by(command)) at_beginning.try_emplace({command.tensor, *memory}, false);
    }
    initial_.clear();
    for (const auto& [key, there] : at_beginning) {
      if (there) initial_.push_back(key);
    }
    initial_.insert(initial_.end(), permanent_.begin(), permanent_.end());
    occupied_.clear();
    place_initial(0);
  }

  [[nodiscard]] bool is_free(const Key& key, Bytes offset) const {
    const Bytes end = offset + size(key.first);
    if (end > *machine_.memories[index(key.second)].bytes) return false;
    return std::ranges::none_of(occupied_, [&](const auto& place) {
      return place.first.second == key.second && place.second < end && offset < place.second + size(place.first.first);
    });
  }

  template <class Then>
  void at_each_offset(const Key& key, Then then) {
    for (Bytes offset; offset + size(key.first) <= *machine_.memories[index(key.second)].bytes; offset += Bytes{1}) {
      if (too_many_ || !is_free(key, offset)) continue;
      occupied_[key] = offset;
      then(offset);
      occupied_.erase(key);
    }
  }

  void place_initial(std::size_t i) {
    if (i == initial_.size()) {
      begin_ = occupied_;
      place_commands(0);
      return;
    }
    at_each_offset(initial_[i], [&](Bytes) { place_initial(i + 1); });
  }

  void place_commands(std::size_t j) {
    // Most ways to place the first commands leave no place for a later one.
    too_many_ = too_many_ || ++steps_ > 100 * most_;
    if (too_many_) return;
    if (j == serial_.commands.size()) {
      if (occupied_ == begin_) judge();
      return;
    }
    Command& command = serial_.commands[j];
    if (command.kind == CommandKind::release) {
      const auto found = occupied_.find({command.tensor, command.memory});
      if (found == occupied_.end()) return;
      const auto place = *found;
      occupied_.erase(found);
      place_commands(j + 1);
      occupied_.insert(place);
      return;
    }
    const auto memory = taken_by(command);
    if (!memory) {
      place_commands(j + 1);
      return;
    }
    const Key key{command.tensor, *memory};
    if (occupied_.contains(key)) return;
    at_each_offset(key, [&](Bytes offset) {
      command.offset = offset;
      place_commands(j + 1);
    });
  }

  void judge() {
    too_many_ = ++simulated_ > most_;
    if (too_many_) return;
    v2::planning::SerialPlan serial = serial_;
    for (const auto& [key, offset] : begin_) {
      Place place;
      place.tensor = key.first;
      place.memory = key.second;
      place.offset = offset;
      serial.initial.push_back(place);
    }
    v2::planning::write_waits(trace_, machine_, serial);
    Plan plan;
    plan.trace_digest = digest_;
    plan.planner = "exact";
    plan.machine = machine_;
    plan.initial = std::move(serial.initial);
    plan.commands = std::move(serial.commands);
    if (!v2::validate(trace_, plan).empty()) return;
    const nanoseconds time = v2::simulate(trace_, plan).iteration;
    if (!best_ || time < best_->iteration) best_ = ExactPlan{std::move(plan), time, 0};
  }

  const Trace& trace_;
  const Machine& machine_;
  std::uint64_t most_;
  std::size_t n_;
  MemoryId device_;
  const std::string digest_ = digest(trace_);
  nanoseconds compute_{0};
  std::vector<Combination> combinations_;
  // Of the combination that is examined, by gap:
  std::vector<std::vector<Command>> first_;
  std::vector<std::vector<Command>> last_;
  std::vector<std::vector<const Move*>> moves_;
  std::vector<Key> permanent_;
  v2::planning::SerialPlan serial_;
  std::vector<Key> initial_;
  std::map<Key, Bytes> occupied_;
  std::map<Key, Bytes> begin_;
  std::optional<ExactPlan> best_;
  std::uint64_t simulated_ = 0;
  std::uint64_t steps_ = 0;
  bool too_many_ = false;
};

}  // namespace

std::optional<ExactPlan> fastest_plan(const Trace& trace, const Machine& machine, std::uint64_t most) {
  return Search(trace, machine, most).run();
}

}  // namespace swapmm::test::general
