// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/baselines/on_demand.hpp>

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include <swapmm/plan/schedule/fit.hpp>

namespace swapmm::planning {
namespace {

/// Runs through the iteration repeatedly, from a given set of residents.
class Residency {
 public:
  Residency(const PlanningCase& planning, Victim victim, std::uint64_t bytes)
      : planning_(planning),
        victim_(victim),
        bytes_(bytes),
        n_(planning.operations),
        tensors_(planning.sizes.size()),
        dying_(planning.operations) {
    list_dying();
  }

  /// Runs the iteration once, starting from `residents`. Returns the residents (by id) at its end; stays() are those of
  /// this run.
  std::vector<std::uint32_t> run(const std::vector<std::uint32_t>& residents) {
    start_from(residents);
    for (std::uint32_t i = 0; i < n_; ++i) run_operation(i);
    std::vector<std::uint32_t> end;
    for (std::uint32_t t = 0; t < tensors_.size(); ++t) {
      if (tensors_[t].resident) end.push_back(t);
    }
    return end;
  }

  /// The stays of the last run, which began with `residents`. Other tensors that are resident at its end leave there.
  std::vector<Stay> stays(const std::vector<std::uint32_t>& residents) {
    std::vector<Stay> result = std::move(stays_);
    for (std::uint32_t t = 0; t < tensors_.size(); ++t) {
      const State& state = tensors_[t];
      if (!state.resident || is_in(residents, t)) continue;
      result.push_back(make_stay(TensorId{t}, state.arrived, n_));
    }
    for (const std::uint32_t t : residents) {
      const State& state = tensors_[t];
      if (!state.left_first) {
        result.push_back(make_permanent_stay(TensorId{t}, n_));
      } else {
        result.push_back(make_stay(TensorId{t}, state.arrived, n_ + *state.left_first));
      }
    }
    return result;
  }

 private:
  struct State {
    bool resident = false;
    bool from_start = false;  ///< the present stay began in the iteration before
    bool dirty = false;
    bool lingers = false;                     ///< since its last use
    std::uint32_t uses = 0;                   ///< number of its uses in this run
    std::uint32_t arrived = 0;                ///< gap; not valid if from_start
    std::uint64_t key = 0;                    ///< the larger, the sooner it leaves
    std::optional<std::uint32_t> left_first;  ///< the gap in which the stay from the iteration before ended
  };
  struct Candidate {
    std::uint64_t key;
    std::uint32_t tensor;
    friend bool operator<(const Candidate& a, const Candidate& b) {
      return a.key != b.key ? a.key < b.key : a.tensor > b.tensor;
    }
  };

  static bool is_in(const std::vector<std::uint32_t>& sorted, std::uint32_t t) {
    return std::binary_search(sorted.begin(), sorted.end(), t);
  }

  /// Lists the tensors that leave when their value has lingered long enough. A value that is overwritten then makes
  /// room for the next one.
  void list_dying() {
    for (const LingeringValue& value : planning_.trace.lingering) {
      const std::vector<Use>& uses = planning_.liveness.uses[index(value.tensor)];
      const auto use =
          std::find_if(uses.begin(), uses.end(), [&](const Use& each) { return each.operation == value.last_use; });
      const auto gap = gap_after_use(planning_, value.tensor, static_cast<std::size_t>(use - uses.begin()));
      if (gap->to == gap->lost_from) dying_[gap->to % n_].push_back(static_cast<std::uint32_t>(value.tensor));
    }
  }

  void start_from(const std::vector<std::uint32_t>& residents) {
    std::vector<State> before = std::exchange(tensors_, std::vector<State>(tensors_.size()));
    stays_.clear();
    candidates_.clear();
    held_ = 0;
    for (const std::uint32_t t : residents) {
      State& state = tensors_[t];
      state.resident = true;
      state.from_start = true;
      state.dirty = before[t].dirty;
      held_ += planning_.sizes[t];
      const std::vector<Use>& uses = planning_.liveness.uses[t];
      const auto last = static_cast<std::uint32_t>(uses.back().operation);
      const auto gap = gap_after_use(planning_, TensorId{t}, uses.size() - 1);
      // Operations of this run are counted from n on, so that the last use is before them.
      offer(t, last, gap->to);
      state.lingers = gap->lingers();
    }
  }

  void offer(std::uint32_t t, std::uint64_t last_use, std::uint64_t next_use) {
    State& state = tensors_[t];
    state.key = victim_ == Victim::least_recently_used ? ~last_use : 2 * next_use + (state.dirty ? 0 : 1);
    candidates_.push_back({state.key, t});
    std::push_heap(candidates_.begin(), candidates_.end());
  }

  void leave(std::uint32_t t, std::uint32_t gap) {
    State& state = tensors_[t];
    if (state.from_start) {
      state.left_first = gap;
    } else {
      stays_.push_back(make_stay(TensorId{t}, state.arrived, gap));
    }
    state.resident = false;
    state.from_start = false;
    state.dirty = false;
    held_ -= planning_.sizes[t];
  }

  /// Frees `need` bytes before operation i, whose bundle stays.
  void make_room(std::uint32_t i, std::uint64_t need) {
    set_aside_.clear();
    while (held_ + need > bytes_ && !candidates_.empty()) {
      const Candidate candidate = candidates_.front();
      std::pop_heap(candidates_.begin(), candidates_.end());
      candidates_.pop_back();
      const State& state = tensors_[candidate.tensor];
      if (!state.resident || state.key != candidate.key) continue;  // it was used again, or has left, since
      if (is_in(bundle_, candidate.tensor)) {
        set_aside_.push_back(candidate);
      } else {
        leave(candidate.tensor, i);
      }
    }
    for (const Candidate& candidate : set_aside_) {
      candidates_.push_back(candidate);
      std::push_heap(candidates_.begin(), candidates_.end());
    }
  }

  void run_operation(std::uint32_t i) {
    for (const std::uint32_t t : dying_[i]) {
      if (tensors_[t].resident && tensors_[t].lingers) leave(t, i);
    }
    bundle_.clear();
    std::uint64_t need = 0;
    for_each_access(planning_.trace.operations[i], [&](TensorId id, Access) {
      const auto t = static_cast<std::uint32_t>(id);
      bundle_.push_back(t);
      if (!tensors_[t].resident) need += planning_.sizes[t];
    });
    std::sort(bundle_.begin(), bundle_.end());
    make_room(i, need);
    for_each_access(planning_.trace.operations[i], [&](TensorId id, Access access) { use(i, id, access); });
  }

  void use(std::uint32_t i, TensorId id, Access access) {
    const auto t = static_cast<std::uint32_t>(id);
    State& state = tensors_[t];
    if (!state.resident) {
      state.resident = true;
      state.arrived = i;
      held_ += planning_.sizes[t];
    }
    if (access != Access::read) state.dirty = true;
    const auto gap = gap_after_use(planning_, id, state.uses++);
    if (!gap || !gap->value_needed) return leave(t, i + 1);
    state.lingers = gap->lingers();
    offer(t, std::uint64_t{n_} + i, std::uint64_t{n_} + gap->to);
  }

  const PlanningCase& planning_;
  Victim victim_;
  std::uint64_t bytes_;
  std::uint32_t n_;
  std::vector<State> tensors_;
  std::vector<Candidate> candidates_;  ///< a heap; entries of tensors used again since are skipped
  std::vector<Candidate> set_aside_;
  std::vector<std::uint32_t> bundle_;              ///< of the present operation, sorted
  std::vector<std::vector<std::uint32_t>> dying_;  ///< per gap
  std::vector<Stay> stays_;
  std::uint64_t held_ = 0;
};

std::vector<std::uint32_t> common(const std::vector<std::uint32_t>& a, const std::vector<std::uint32_t>& b) {
  std::vector<std::uint32_t> both;
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(both));
  return both;
}

}  // namespace

std::vector<Stay> on_demand_stays(const PlanningCase& planning, Victim victim, std::uint64_t bytes, int settling_runs) {
  Residency residency(planning, victim, bytes);
  std::vector<std::uint32_t> start;
  for (int run = 0; run < settling_runs; ++run) {
    std::vector<std::uint32_t> end = residency.run(start);
    if (end == start) return residency.stays(start);
    start = std::move(end);
  }
  // Close the cycle by force: begin with the residents that a run both begins and ends with, and let the others leave
  // at the end. The set only shrinks, so this ends.
  for (;;) {
    const std::vector<std::uint32_t> kept = common(start, residency.run(start));
    if (kept == start) return residency.stays(start);
    start = kept;
  }
}

Result<Plan> build_on_demand_plan(const PlanningCase& planning, std::string_view planner, Pace pace, Victim victim,
                                  const OnDemandOptions& options) {
  return build_fitting_plan(planning, planner, pace, options.fitting, [&](std::uint64_t bytes) {
    return on_demand_stays(planning, victim, bytes, options.settling_runs);
  });
}

}  // namespace swapmm::planning
