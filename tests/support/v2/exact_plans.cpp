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

#include "support/v2/itineraries.hpp"

namespace swapmm::test::general {
namespace {

using std::chrono::nanoseconds;
using swapmm::v2::Command;
using swapmm::v2::CommandKind;
using swapmm::v2::EngineId;
using swapmm::v2::Machine;
using swapmm::v2::MemoryId;
using swapmm::v2::Place;
using swapmm::v2::Plan;

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
      of.push_back(list_itineraries(trace_, machine_, device_, id_at<TensorId>(t)));
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
