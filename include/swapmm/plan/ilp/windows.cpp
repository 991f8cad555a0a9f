// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/ilp/windows.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <limits>
#include <optional>
#include <random>
#include <utility>

#include <swapmm/plan/ilp/order_decisions.hpp>
#include <swapmm/plan/ilp/polish.hpp>
#include <swapmm/plan/ilp/solver/checked.hpp>
#include <swapmm/plan/ilp/timed_plan.hpp>
#include <swapmm/plan/schedule/absence_stays.hpp>

namespace swapmm::planning::ilp {
namespace {

using std::chrono::nanoseconds;

/// Part of the iteration that counts as a gain.
constexpr double least_gain = 1e-4;

class PlanTimes {
 public:
  PlanTimes(const OrdersModel& model, const OverlapLedger& ledger, const Plan& plan, const Simulation& simulation)
      : model_(model),
        ledger_(ledger),
        plan_(plan),
        simulation_(simulation),
        program_(model.program),
        n_(static_cast<std::int64_t>(ledger.planning.operations)),
        length_(units(simulation.iteration)) {}

  Program fixed() {
    fix(model_.iteration, length_);
    for (std::size_t i = 1; i < model_.operation_start.size(); ++i) {
      fix(model_.operation_start[i], time(simulation_.operations[i].start));
    }
    for (const int out : model_.out) fix(out, 0);
    for (std::size_t c = 0; c < plan_.commands.size(); ++c) {
      const double start = time(simulation_.commands[c].start);
      if (plan_.commands[c].kind == CommandKind::swap_in) fix_arrival(plan_.commands[c], start);
      if (plan_.commands[c].kind == CommandKind::swap_out) fix_copy(plan_.commands[c].tensor, start);
      if (plan_.commands[c].kind == CommandKind::release) fix_loss(plan_.commands[c].tensor, start);
    }
    return std::move(program_);
  }

 private:
  [[nodiscard]] double units(nanoseconds time) const { return static_cast<double>(time.count()) / model_.unit_ns; }
  /// Counted from the start of operation 0.
  [[nodiscard]] double time(nanoseconds time) const { return units(time - simulation_.operations[0].start); }
  /// How much later something is if it is in another iteration.
  [[nodiscard]] double after(std::int64_t iterations) const { return static_cast<double>(iterations) * length_; }
  // Operations from n on are in the next iteration.
  [[nodiscard]] const Span& span_of(std::int64_t operation) const {
    return simulation_.operations[static_cast<std::size_t>(operation % n_)];
  }
  [[nodiscard]] double start_of(std::int64_t operation) const {
    return time(span_of(operation).start) + after(operation / n_);
  }
  [[nodiscard]] double end_of(std::int64_t operation) const {
    return time(span_of(operation).end) + after(operation / n_);
  }

  void fix(int column, double value) {
    if (column < 0) return;
    Program::Column& fixed = program_.columns[static_cast<std::size_t>(column)];
    const double slack = fixed.is_integer ? 0 : 1e-4;
    fixed.lower = value - slack;
    fixed.upper = value + slack;
  }

  void fix_arrival(const Command& command, double start) {
    const auto before = static_cast<std::int64_t>(command.before_operation.value_or(0));
    for (std::size_t id = 0; id < ledger_.absences.size(); ++id) {
      const Absence& a = ledger_.absences[id];
      const std::int64_t later = static_cast<std::int64_t>(a.end) - before;
      if (a.tensor != command.tensor || a.lingers || later % n_ != 0) continue;
      fix(model_.out[id], 1);
      fix(model_.start[id], start + after(later / n_));
    }
  }

  /// A time that is the same in each iteration, as the first one that is not before `earliest`.
  [[nodiscard]] double first_from(double earliest, double time) const {
    const double iterations = (time - earliest) / length_;
    return time - std::floor(iterations + 1e-6) * length_;
  }

  /// It is a copy of the value that was written last.
  void fix_copy(TensorId tensor, double start) {
    int column = -1;
    double value = 0;
    double least = std::numeric_limits<double>::max();
    for (std::size_t v = 0; v < ledger_.versions.size(); ++v) {
      if (ledger_.versions[v].tensor != tensor) continue;
      const double written = end_of(ledger_.versions[v].write);
      const double copied = first_from(written, start);
      if (copied - written >= least) continue;
      least = copied - written;
      column = model_.copy_start[v];
      value = copied;
    }
    fix(column, value);
  }

  /// A value that lingers goes out if its tensor is released before it may be lost.
  void fix_loss(TensorId tensor, double released) {
    for (std::size_t id = 0; id < ledger_.absences.size(); ++id) {
      const Absence& a = ledger_.absences[id];
      if (a.tensor != tensor || !a.lingers) continue;
      const double used = end_of(a.first - 1 + n_) - length_;
      const double until = a.to_overwrite ? start_of(a.end) : end_of(std::int64_t{a.end} - 1);
      const double nothing = length_ * 1e-7;
      const double at = first_from(used, released);
      if (a.to_overwrite ? at <= until + nothing : at < until - nothing) fix(model_.out[id], 1);
    }
  }

  const OrdersModel& model_;
  const OverlapLedger& ledger_;
  const Plan& plan_;
  const Simulation& simulation_;
  Program program_;
  std::int64_t n_;
  double length_;
};

class Deciding {
 public:
  Deciding(const WindowSearch& search, BestPlan& best)
      : search_(search),
        ledger_(search.ledger),
        windows_(search.options.windows),
        best_(best),
        model_(make_orders_model(ledger_, best.simulation().iteration)) {
    limits_.nodes = windows_.nodes;
    limits_.go_on = [this](double, double) { return !search_.is_over(); };
  }

  void run() {
    const std::vector<std::vector<std::uint32_t>> windows = windows_of(ledger_, windows_.absences);
    if (!follow_best()) return;
    std::size_t without_gain = 0;
    for (std::size_t turn = 0; without_gain < windows.size() && !is_over(); ++turn) {
      without_gain = decide(windows[turn % windows.size()]) ? 0 : without_gain + 1;
    }
  }

 private:
  [[nodiscard]] bool is_over() const { return solved_ >= windows_.programs || search_.is_over(); }

  /// Takes the decisions of the best plan.
  bool follow_best() {
    Solution solution = search_.solver.solve(fixed_to_plan(model_, ledger_, best_.plan(), best_.simulation()), limits_);
    if (solution.values.empty()) return false;
    values_ = std::move(solution.values);
    return true;
  }

  [[nodiscard]] double least() const {
    return static_cast<double>(best_.simulation().iteration.count()) / model_.unit_ns;
  }
  [[nodiscard]] Program::Column& iteration(Program& program) const {
    return program.columns[static_cast<std::size_t>(model_.iteration)];
  }

  /// Nothing if there is no solution, none was found in time, or the solver failed.
  std::optional<Solution> solved(const Program& program) {
    ++solved_;
    Solution solution = search_.solver.solve(program, limits_);
    if (solution.outcome == Outcome::none_below) return std::nullopt;  // so the window is as good as can be
    solution = checked(program, std::move(solution), true);
    if (solution.outcome == Outcome::failed) search_.on_failure(solution.problem);
    if (solution.values.empty()) return std::nullopt;
    return solution;
  }

  /// Returns true if the plan became faster.
  bool decide(const std::vector<std::uint32_t>& window) {
    Program program = opened_at(model_, ledger_, window, values_);
    const double most = least() * (1 - least_gain);
    iteration(program).upper = most;
    std::optional<Solution> solution = solved(program);
    if (!solution) return false;
    if (offer(*solution) || change_a_little(*solution)) return true;
    return try_others(program, solution->values[static_cast<std::size_t>(model_.iteration)], most);
  }

  bool offer(Solution& solution) {
    std::optional<Plan> timed =
        timed_plan(model_, solution.values, ledger_, search_.planner, search_.options.timed_packing_steps);
    if (!timed || !best_.offer(*std::move(timed))) return false;
    values_ = std::move(solution.values);
    return true;
  }

  /// The decisions as stays between operations, and small random changes of them.
  bool change_a_little(const Solution& solution) {
    const nanoseconds before = best_.simulation().iteration;
    for (const bool leaves_early : {true, false}) {
      decide_by(solution, leaves_early);
      Result<BuiltPlan> built = build_plan(ledger_.planning, {Pace::overlapped, stays_of(ledger_)}, search_.planner);
      if (built && built->plan) best_.offer(*std::move(built->plan));
    }
    polish(ledger_, search_.planner, {windows_.polish_tries, search_.options.polish_steps}, search_.is_over, best_);
    return best_.simulation().iteration < before && follow_best();
  }
  void decide_by(const Solution& solution, bool leaves_early) {
    planning::ilp::decide(model_, solution.values, leaves_early, ledger_);
  }

  /// Solutions for random prices of going out that take no longer than the best one, and then longer ones.
  bool try_others(Program& program, double best, double most) {
    constexpr std::array parts = {1e-5, 1e-5, 0.3, 0.7};
    iteration(program).cost = 0;
    for (const double part : parts) {
      if (is_over()) return false;
      iteration(program).upper = best + (most - best) * part;
      for (const int out : model_.out) {
        if (out < 0) continue;
        program.columns[static_cast<std::size_t>(out)].cost = static_cast<double>(random_() >> 11U) * 0x1p-53 - 0.5;
      }
      std::optional<Solution> other = solved(program);
      if (other && offer(*other)) return true;
    }
    return false;
  }

  const WindowSearch& search_;
  OverlapLedger& ledger_;
  const IlpWindowOptions& windows_;
  BestPlan& best_;
  OrdersModel model_;
  Limits limits_;
  std::vector<double> values_;  ///< of the columns, for the best plan
  std::size_t solved_ = 0;      ///< programs
  std::mt19937_64 random_{1};
};

/// Whether the absence overlaps with the operations, or touches them.
bool is_near(const Absence& a, std::uint32_t begin, std::uint32_t length, std::uint32_t operations) {
  for (std::uint32_t i = begin; i < begin + length; ++i) {
    for (const std::uint32_t at : {i % operations, i % operations + operations}) {
      if (at + 1 >= a.first && at <= a.end) return true;
    }
  }
  return false;
}

}  // namespace

Program fixed_to_plan(const OrdersModel& model, const OverlapLedger& ledger, const Plan& plan,
                      const Simulation& simulation) {
  return PlanTimes(model, ledger, plan, simulation).fixed();
}

std::vector<std::vector<std::uint32_t>> windows_of(const OverlapLedger& ledger, std::size_t most) {
  const std::uint32_t n = ledger.planning.operations;
  const std::vector<bool> counted = may_save(ledger);
  std::vector<std::vector<std::uint32_t>> windows;
  for (std::uint32_t begin = 0; begin < n; ++begin) {
    std::vector<std::uint32_t> window;
    for (std::uint32_t length = 1; length <= n; ++length) {
      std::vector<std::uint32_t> larger;
      for (std::uint32_t id = 0; id < ledger.absences.size(); ++id) {
        if (counted[id] && is_near(ledger.absences[id], begin, length, n)) larger.push_back(id);
      }
      if (larger.size() > most) break;
      window = std::move(larger);
    }
    if (!window.empty() && (windows.empty() || windows.back() != window)) windows.push_back(std::move(window));
  }
  return windows;
}

Program opened_at(const OrdersModel& model, const OverlapLedger& ledger, const std::vector<std::uint32_t>& window,
                  const std::vector<double>& values) {
  Program program = model.program;
  std::vector<bool> is_open(ledger.absences.size() + ledger.versions.size());
  for (const std::uint32_t id : window) {
    is_open[id] = true;
    const std::uint32_t version = ledger.absences[id].version;
    if (version != no_version) is_open[ledger.absences.size() + version] = true;
  }
  const auto is_about_open = [&](std::uint32_t subject) { return subject != no_absence && is_open[subject]; };
  for (const OrdersModel::Choice& choice : model.choices) {
    if (is_about_open(choice.one) || is_about_open(choice.other)) continue;
    Program::Column& column = program.columns[static_cast<std::size_t>(choice.column)];
    column.lower = std::round(values[static_cast<std::size_t>(choice.column)]);
    column.upper = column.lower;
  }
  return program;
}

void decide_windows(const WindowSearch& search, BestPlan& best) { Deciding(search, best).run(); }

}  // namespace swapmm::planning::ilp
