// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/ilp/timed_plan.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <string>
#include <tuple>
#include <utility>

#include <swapmm/plan/packing.hpp>
#include <swapmm/plan/validate.hpp>

namespace swapmm::planning::ilp {
namespace {

/// A moment of the solution, as a time of each iteration: at `time` of the iteration that is so many after the one in
/// which a stay has its first use.
struct Moment {
  int iteration = 0;
  double time = 0;  ///< from 0 to below the iteration's
};

/// A time in which a tensor is on the device. Operations are counted on from those of the iteration of its first use.
struct TimedStay {
  std::size_t tensor = 0;
  bool comes_by_copy = false;
  Moment begin;
  Moment end;
  std::vector<Use> uses;
  int lingers_until = -1;  ///< after the last use, to the end of this operation; -1: it does not
  bool is_copied = false;
  Moment copy;             ///< if it is
  std::size_t before = 0;  ///< position of the tensor's stay before this one; itself, if it has no other
  Bytes offset;
};

class TimedPlan {
 public:
  TimedPlan(const OrdersModel& model, const std::vector<double>& values, const OverlapLedger& ledger)
      : model_(model),
        values_(values),
        ledger_(ledger),
        planning_(ledger.planning),
        n_(static_cast<int>(planning_.operations)),
        length_(value(model.iteration)) {}

  std::optional<Plan> make(std::string_view planner, std::uint32_t packing_steps) {
    if (!planning_.trace.host_reads.empty() || length_ <= 0) return std::nullopt;
    for (std::size_t t = 0; t < planning_.sizes.size(); ++t) list_stays(t);
    if (!pack_stays(packing_steps)) return std::nullopt;
    plan_.trace_digest = digest(planning_.trace);
    plan_.planner = planner;
    plan_.machine = planning_.machine;
    list_residents();
    write_commands();
    if (!validate(planning_.trace, plan_).empty()) return std::nullopt;
    return std::move(plan_);
  }

 private:
  /// Times that differ by less are the same: the solver's are not exact.
  [[nodiscard]] double precision() const { return length_ * 1e-5; }
  [[nodiscard]] double value(int column) const { return column < 0 ? 0.0 : values_[static_cast<std::size_t>(column)]; }
  [[nodiscard]] double units(std::chrono::nanoseconds time) const {
    return static_cast<double>(time.count()) / model_.unit_ns;
  }
  [[nodiscard]] double start_of(int operation) const {
    const int iteration = operation / n_;
    return value(model_.operation_start[static_cast<std::size_t>(operation % n_)]) + iteration * length_;
  }
  [[nodiscard]] double end_of(int operation) const {
    return start_of(operation) + units(ledger_.time[static_cast<std::size_t>(operation % n_)]);
  }
  [[nodiscard]] Moment moment(double time) const {
    const double iteration = std::floor((time + precision()) / length_);
    return {static_cast<int>(iteration), std::max(time - iteration * length_, 0.0)};
  }
  [[nodiscard]] bool is_out(std::uint32_t absence) const {
    return model_.out[absence] < 0 || value(model_.out[absence]) > 0.5;
  }

  /// What separates a use from the next one.
  struct Break {
    bool is_break = false;
    double leaves = 0;   ///< in the frame of the use
    double returns = 0;  ///< in the same frame
    bool by_copy = false;
    int lingers_until = -1;  ///< the operation at whose end a lingering value may be lost; -1: none lingers
  };

  Break break_after(std::size_t t, std::size_t u) const {
    const std::vector<Use>& uses = planning_.liveness.uses[t];
    const bool is_last = u + 1 == uses.size();
    const int at = static_cast<int>(uses[u].operation);
    const std::uint32_t absence = ledger_.absence_after[ledger_.first_use[t] + u];
    const int next = is_last ? static_cast<int>(uses.front().operation) + n_ : static_cast<int>(uses[u + 1].operation);
    if (absence != no_absence && ledger_.absences[absence].lingers) {
      const Absence& a = ledger_.absences[absence];
      if (is_out(absence)) return {true, value(model_.release[absence]), start_of(next), false};
      if (a.to_overwrite) return {};
      return {true, end_of(static_cast<int>(a.end) - 1), start_of(next), false, static_cast<int>(a.end) - 1};
    }
    if (absence != no_absence) {
      if (!is_out(absence)) return {};
      return {true, value(model_.release[absence]), value(model_.start[absence]), true};
    }
    if (is_last && ledger_.arrival[t] != no_absence) {
      return {true, end_of(at), value(model_.start[ledger_.arrival[t]]) + length_, true};
    }
    return {true, end_of(at), start_of(next), false};
  }

  void list_stays(std::size_t t) {
    const std::vector<Use>& uses = planning_.liveness.uses[t];
    if (uses.empty()) return;
    std::vector<Break> breaks;
    for (std::size_t u = 0; u < uses.size(); ++u) breaks.push_back(break_after(t, u));
    const std::size_t first_stay = stays_.size();
    for (std::size_t u = 0; u < uses.size(); ++u) {
      const Break& before = breaks[(u + uses.size() - 1) % uses.size()];
      if (before.is_break) add_stay(t, u, breaks);
    }
    if (stays_.size() == first_stay) return permanent_.push_back(t);
    for (std::size_t s = first_stay; s < stays_.size(); ++s)
      stays_[s].before = s > first_stay ? s - 1 : stays_.size() - 1;
  }

  /// The stay that begins with use `u`.
  void add_stay(std::size_t t, std::size_t u, const std::vector<Break>& breaks) {
    const std::vector<Use>& uses = planning_.liveness.uses[t];
    TimedStay stay;
    stay.tensor = t;
    const Break& before = breaks[(u + uses.size() - 1) % uses.size()];
    stay.comes_by_copy = before.by_copy;
    stay.begin = moment(before.returns - (u == 0 ? length_ : 0));
    for (std::size_t at = u;; ++at) {
      const std::size_t use = at % uses.size();
      const int iteration = at >= uses.size() ? 1 : 0;
      Use counted = uses[use];
      counted.operation = id_at<OperationId>(index(counted.operation) + static_cast<std::size_t>(iteration * n_));
      stay.uses.push_back(counted);
      if (counted.access != Access::read) note_copy(stay, t, use, iteration);
      if (!breaks[use].is_break) continue;
      stay.end = moment(breaks[use].leaves + iteration * length_);
      if (breaks[use].lingers_until >= 0) stay.lingers_until = breaks[use].lingers_until + iteration * n_;
      break;
    }
    stays_.push_back(std::move(stay));
  }

  /// If the value that this use makes is copied to the host, it is while the tensor stays.
  void note_copy(TimedStay& stay, std::size_t t, std::size_t use, int iteration) {
    const auto write = static_cast<std::uint32_t>(planning_.liveness.uses[t][use].operation);
    for (std::uint32_t v = 0; v < ledger_.versions.size(); ++v) {
      const Version& version = ledger_.versions[v];
      if (index(version.tensor) != t || version.write != write) continue;
      for (std::uint32_t a = version.first_absence; a < version.first_absence + version.absences; ++a) {
        if (!is_out(a)) continue;
        stay.is_copied = true;
        stay.copy = moment(value(model_.copy_start[v]) + iteration * length_);
      }
    }
  }

  // ---- places

  bool pack_stays(std::uint32_t packing_steps) {
    std::vector<double> times;
    for (const TimedStay& stay : stays_) times.insert(times.end(), {stay.begin.time, stay.end.time});
    std::sort(times.begin(), times.end());
    std::vector<double> bounds;
    for (const double time : times) {
      if (bounds.empty() || time > bounds.back() + 2 * precision()) bounds.push_back(time);
    }
    const auto slot_of = [&](double time) {
      const auto after = std::upper_bound(bounds.begin(), bounds.end(), time);
      return static_cast<std::uint32_t>(after - bounds.begin() - 1);
    };
    PackingProblem problem;
    problem.slots = std::max<std::uint32_t>(1, static_cast<std::uint32_t>(bounds.size()));
    problem.capacity = planning_.machine.device_budget;
    problem.alignment = planning_.machine.alignment;
    problem.max_allocation = planning_.machine.max_allocation;
    for (const TimedStay& stay : stays_) {
      const std::uint32_t begin = slot_of(stay.begin.time);
      const std::uint32_t slots = problem.slots;
      std::uint32_t length = (slot_of(stay.end.time) + slots - begin) % slots;
      const double lasts = (stay.end.iteration - stay.begin.iteration) * length_ + stay.end.time - stay.begin.time;
      if (lasts > length_ + 2 * precision()) return false;  // it would be there twice
      if (length == 0) length = lasts > length_ / 2 ? slots : 1;
      problem.items.push_back({planning_.trace.tensors[stay.tensor].bytes, begin, length});
    }
    for (const std::size_t t : permanent_)
      problem.items.push_back({planning_.trace.tensors[t].bytes, 0, problem.slots});
    Result<Packing> packing = pack(problem, {.ejection_steps = packing_steps});
    if (!packing) return false;
    for (std::size_t s = 0; s < stays_.size(); ++s) stays_[s].offset = packing->offsets[s];
    for (std::size_t p = 0; p < permanent_.size(); ++p) {
      plan_.initial.push_back({id_at<TensorId>(permanent_[p]), packing->offsets[stays_.size() + p], false});
    }
    return true;
  }

  // ---- commands

  /// Those that came with a command of an earlier iteration and go with one of this or a later one.
  void list_residents() {
    for (const TimedStay& stay : stays_) {
      if (stay.end.iteration == stay.begin.iteration) continue;
      // The stay whose beginning belongs to the iteration before.
      const int shift = -1 - stay.begin.iteration;
      bool is_valid = stay.comes_by_copy;
      for (const Use& use : stay.uses) {
        if (use.access != Access::read && static_cast<int>(use.operation) + shift * n_ < 0) {
          is_valid = stay.is_copied && stay.copy.iteration + shift < 0;
        }
      }
      plan_.initial.push_back({id_at<TensorId>(stay.tensor), stay.offset, is_valid});
    }
  }

  void write_commands() {
    // In the order of their times. At one time, what goes makes room for what comes.
    std::vector<std::tuple<double, int, std::size_t>> order;
    for (std::size_t s = 0; s < stays_.size(); ++s) {
      order.emplace_back(stays_[s].begin.time, 2, s);
      if (stays_[s].is_copied) order.emplace_back(stays_[s].copy.time, 0, s);
      order.emplace_back(stays_[s].end.time, 1, s);
    }
    std::sort(order.begin(), order.end());
    begins_.resize(stays_.size());
    copies_.resize(stays_.size());
    ends_.resize(stays_.size());
    for (std::size_t c = 0; c < order.size(); ++c) {
      const auto& [time, what, s] = order[c];
      (what == 2 ? begins_ : what == 1 ? ends_ : copies_)[s] = c;
    }
    for (const auto& [time, what, s] : order) {
      plan_.commands.push_back(what == 2 ? begin_of(s) : what == 1 ? release_of(s) : copy_of(s));
    }
  }

  /// The operation, counted from the iteration to which a command of the stay at that moment belongs.
  int counted_from(const Moment& command, OperationId operation) const {
    return static_cast<int>(operation) - command.iteration * n_;
  }
  void wait_for_operation(Command& command, int operation) {
    if (operation < -n_) return;  // long ago
    command.after.push_back({Wait::On::operation, false, operation});
  }
  /// For a command of another stay that is at or before that time in each iteration.
  void wait_for_command(Command& command, std::size_t other, bool previous) {
    command.after.push_back({Wait::On::command, previous, static_cast<std::int32_t>(other)});
  }

  Command begin_of(std::size_t s) {
    const TimedStay& stay = stays_[s];
    Command command;
    command.kind = stay.comes_by_copy ? CommandKind::swap_in : CommandKind::allocate;
    command.tensor = id_at<TensorId>(stay.tensor);
    command.offset = stay.offset;
    command.before_operation = static_cast<std::uint32_t>(counted_from(stay.begin, stay.uses.front().operation));
    if (is_arrival(stay)) {
      const auto from = static_cast<int>(planning_.trace.tensors[stay.tensor].available_from);
      wait_for_operation(command, from - 1 - stay.begin.iteration * n_);
    }
    for (std::size_t other = 0; other < stays_.size(); ++other) {
      if (other != stay.before && !share_bytes(stay, stays_[other])) continue;
      const bool is_sooner = stays_[other].end.time <= stay.begin.time + precision() && other != s;
      wait_for_command(command, ends_[other], !is_sooner);
    }
    return command;
  }
  bool is_arrival(const TimedStay& stay) const {
    return stay.comes_by_copy && planning_.trace.tensors[stay.tensor].kind == TensorKind::input &&
           stay.uses.front().operation == planning_.liveness.uses[stay.tensor].front().operation;
  }
  bool share_bytes(const TimedStay& a, const TimedStay& b) const {
    const auto end = [&](const TimedStay& stay) { return stay.offset.value + planning_.sizes[stay.tensor]; };
    return a.offset.value < end(b) && b.offset.value < end(a);
  }

  Command copy_of(std::size_t s) {
    const TimedStay& stay = stays_[s];
    Command command;
    command.kind = CommandKind::swap_out;
    command.tensor = id_at<TensorId>(stay.tensor);
    const auto written =
        std::find_if(stay.uses.rbegin(), stay.uses.rend(), [](const Use& use) { return use.access != Access::read; });
    wait_for_operation(command, counted_from(stay.copy, written->operation));
    return command;
  }

  Command release_of(std::size_t s) {
    const TimedStay& stay = stays_[s];
    Command command;
    command.kind = CommandKind::release;
    command.tensor = id_at<TensorId>(stay.tensor);
    wait_for_operation(command, counted_from(stay.end, stay.uses.back().operation));
    if (stay.lingers_until >= 0) wait_for_operation(command, stay.lingers_until - stay.end.iteration * n_);
    if (stay.is_copied) wait_for_command(command, copies_[s], stay.copy.iteration < stay.end.iteration);
    return command;
  }

  const OrdersModel& model_;
  const std::vector<double>& values_;
  const OverlapLedger& ledger_;
  const PlanningCase& planning_;
  int n_;
  double length_;
  std::vector<TimedStay> stays_;
  std::vector<std::size_t> permanent_;  ///< tensors that never leave
  std::vector<std::size_t> begins_;     ///< per stay: its command
  std::vector<std::size_t> copies_;
  std::vector<std::size_t> ends_;
  Plan plan_;
};

}  // namespace

std::optional<Plan> timed_plan(const OrdersModel& model, const std::vector<double>& values, const OverlapLedger& ledger,
                               std::string_view planner, std::uint32_t packing_steps) {
  return TimedPlan(model, values, ledger).make(planner, packing_steps);
}

}  // namespace swapmm::planning::ilp
