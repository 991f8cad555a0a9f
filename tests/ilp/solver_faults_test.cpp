// SPDX-License-Identifier: Apache-2.0
// What `ilp` does if its solver fails, is stopped, or gives a wrong answer.
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <limits>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <swapmm/plan/ilp.hpp>
#include <swapmm/plan/ilp/search.hpp>
#include <swapmm/plan/ilp/solver/checked.hpp>
#include <swapmm/plan/ilp/solver/solver.hpp>
#include <swapmm/plan/validate.hpp>

#include "support/effort.hpp"
#include "support/exact_search.hpp"
#include "support/plain_traces.hpp"
#include "support/tiny_instance.hpp"

using namespace swapmm;
using namespace swapmm::planning;
using test::machine_of;
using test::operation;
using test::tensor;

namespace {

/// Three tensors that take turns in two places. The plans that are tried first are slower than the bound that they
/// prove, so each program is solved.
Trace three_turns() {
  Trace trace;
  trace.tensors = {tensor(40), tensor(40), tensor(40)};
  for (std::uint32_t i = 0; i < 3; ++i) trace.operations.push_back(operation(1, {}, {}, {TensorId{i}}));
  return trace;
}

using Answer = std::function<ilp::Solution(const ilp::Program&, const ilp::Limits&)>;

/// Gives Cbc's answers up to a call, and then others.
ilp::Solver wrong_after(int calls, const Answer& wrong) {
  const auto left = std::make_shared<int>(calls);
  const auto either = [left, wrong](const Answer& right) {
    return [left, wrong, right](const ilp::Program& program, const ilp::Limits& limits) {
      return (*left)-- > 0 ? right(program, limits) : wrong(program, limits);
    };
  };
  return {either(ilp::solve_relaxation), either(ilp::solve)};
}

/// The plan that the programs start from.
IlpResult start_of(const Trace& trace, const Machine& machine) {
  IlpOptions none;
  none.slot_program = false;
  none.order_program = false;
  return plan_by_ilp(trace, machine, none).value();
}

ilp::Solution with_values(const ilp::Program& program, double value) {
  ilp::Solution solution;
  solution.outcome = ilp::Outcome::optimal;
  solution.values.assign(program.columns.size(), value);
  solution.objective = 0;
  solution.bound = 0;
  return solution;
}

struct Fault {
  std::string name;
  std::string told;  ///< part of the note
  Answer answer;
};

std::vector<Fault> faults() {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  return {
      {"fails", "(no licence)", [](const auto&, const auto&) { return ilp::failed("no licence"); }},
      {"infeasible", "(it found the program infeasible, which it is not)",
       [](const auto&, const auto&) {
         ilp::Solution solution;
         solution.outcome = ilp::Outcome::none_below;
         return solution;
       }},
      {"optimum without values", "(it found an optimum without values)",
       [](const auto&, const auto&) {
         ilp::Solution solution;
         solution.outcome = ilp::Outcome::optimal;
         return solution;
       }},
      {"too few values", "(its solution breaks the program's rows)",
       [](const auto& program, const auto&) {
         ilp::Solution solution = with_values(program, 0);
         solution.values.pop_back();
         return solution;
       }},
      {"all values 0", "(its solution breaks the program's rows)",
       [](const auto& program, const auto&) { return with_values(program, 0); }},
      {"halves", "(its solution breaks the program's rows)",
       [](const auto& program, const auto&) { return with_values(program, 0.5); }},
      {"values that are no numbers", "(its solution breaks the program's rows)",
       [](const auto& program, const auto&) { return with_values(program, nan); }},
      {"a bound that is no number", "(its bound is no number)",
       [](const auto&, const auto&) {
         ilp::Solution solution;
         solution.bound = nan;
         return solution;
       }},
      {"a bound above a plan", "(its bound is above the time of a plan)",
       [](const auto&, const auto&) {
         ilp::Solution solution;
         solution.bound = 1e9;
         return solution;
       }},
  };
}

}  // namespace

TEST_CASE("whatever the solver does wrong, the plan is the best one so far, and a note says so") {
  const Trace trace = three_turns();
  const Machine machine = machine_of(80);
  const IlpResult start = start_of(trace, machine);
  for (const Fault& fault : faults()) {
    for (int calls = 0; calls < 3; ++calls) {
      CAPTURE(fault.name);
      CAPTURE(calls);
      const Result<IlpResult> result = ilp::plan_by(wrong_after(calls, fault.answer), trace, machine, {}, {});
      REQUIRE(result);
      CHECK(validate(trace, result->plan).empty());
      CHECK(result->plan.predicted.iteration <= start.plan.predicted.iteration);
      CHECK(result->lower_bound <= std::chrono::nanoseconds{121});  // the optimum if bytes need no place
      CHECK(result->status == IlpStatus::feasible);
      REQUIRE(!result->notes.empty());
      CHECK_MESSAGE(std::any_of(result->notes.begin(), result->notes.end(),
                                [&](const std::string& note) { return note.find(fault.told) != std::string::npos; }),
                    result->notes.front());
      CHECK(result->notes.front().starts_with("the solver failed on the program over "));
    }
  }
}

TEST_CASE("a note names the program, once") {
  const Answer fails = [](const auto&, const auto&) { return ilp::failed("no licence"); };
  const auto notes_with = [&](const IlpOptions& options) {
    return ilp::plan_by(wrong_after(0, fails), three_turns(), machine_of(80), options, {}).value().notes;
  };
  const auto text = [](const std::string& program) {
    return "the solver failed on the program over " + program +
           " (no licence): this is the best plan found without its answer";
  };
  CHECK(notes_with({}) == std::vector<std::string>{text("slots"), text("orders")});
  CHECK(notes_with({.order_program = false}) == std::vector<std::string>{text("slots")});
  CHECK(notes_with({.slot_program = false}) == std::vector<std::string>{text("orders")});
  CHECK(notes_with({.slot_program = false, .tiny = 2, .windows = {.most = 0}}) ==
        std::vector<std::string>{"the program over orders was not solved: it is for up to 2 operations and absences, "
                                 "and here are 3 and 3"});
  // As a planner, it tells them to whoever listens.
  std::vector<std::string> heard;
  PlanningOptions limits;
  limits.note = [&](const std::string& note) { heard.push_back(note); };
  REQUIRE(ilp_planner({.slot_program = false, .tiny = 2, .windows = {.most = 0}})
              .make(three_turns(), machine_of(80), limits));
  CHECK(heard.size() == 1);
}

TEST_CASE("on random tiny instances no fault makes a plan invalid, worse than the start, or a proof false") {
  std::mt19937_64 random(11);
  const std::vector<Fault> all = faults();
  for (int round = 0; round < test::effort(40, 5); ++round) {
    const test::TinyInstance tiny = test::random_tiny_instance(random);
    const auto exact = test::least_iteration(tiny.trace, tiny.machine, 100'000);
    if (!exact) continue;
    const Fault& fault = all[random() % all.size()];
    CAPTURE(round);
    CAPTURE(fault.name);
    const IlpResult start = start_of(tiny.trace, tiny.machine);
    const Result<IlpResult> result =
        ilp::plan_by(wrong_after(static_cast<int>(random() % 4), fault.answer), tiny.trace, tiny.machine, {}, {});
    REQUIRE(result);
    CHECK(validate(tiny.trace, result->plan).empty());
    CHECK(result->plan.predicted.iteration <= start.plan.predicted.iteration);
    CHECK(result->lower_bound <= exact->iteration);
    if (result->status == IlpStatus::optimal) CHECK(result->plan.predicted.iteration == exact->iteration);
  }
}

TEST_CASE("without faults there are no notes") {
  std::mt19937_64 random(12);
  for (int round = 0; round < test::effort(60, 5); ++round) {
    const test::TinyInstance tiny = test::random_tiny_instance(random);
    CAPTURE(round);
    const Result<IlpResult> result = plan_by_ilp(tiny.trace, tiny.machine);
    REQUIRE(result);
    CHECK_MESSAGE(result->notes.empty(), result->notes.front());
  }
}

TEST_CASE("a search that is stopped at any moment proves nothing false, and needs no note") {
  const Trace trace = three_turns();
  const Machine machine = machine_of(80);
  const IlpResult start = start_of(trace, machine);
  bool is_stopped = true;
  int most = 0;
  for (; is_stopped && most < 400; most += 1 + most / 20) {
    CAPTURE(most);
    int calls = 0;
    is_stopped = false;
    PlanningOptions limits;
    limits.go_on = [&](const PlanningProgress&) {
      is_stopped = is_stopped || calls >= most;
      return calls++ < most;
    };
    const Result<IlpResult> result = plan_by_ilp(trace, machine, {.best_first = false}, limits);
    REQUIRE(result);
    CHECK(validate(trace, result->plan).empty());
    CHECK(result->plan.predicted.iteration <= start.plan.predicted.iteration);
    CHECK(result->lower_bound <= std::chrono::nanoseconds{121});
    CHECK_MESSAGE(result->notes.empty(), result->notes.front());
  }
  CHECK(most > 100);
}

TEST_CASE("Cbc's own failures are outcomes") {
  const std::vector<std::pair<int, std::string>> columns = {{5, "CoinPackedMatrix::setDimensions"},  // a CoinError
                                                            {-7, "it ran out of memory"}};
  for (const auto& [column, told] : columns) {
    ilp::Program unknown_column;
    unknown_column.add_column({0, 1, 1, true});
    unknown_column.at_least(1, {{column, 1}});
    for (const Answer& run : {Answer(ilp::solve), Answer(ilp::solve_relaxation)}) {
      const ilp::Solution solution = run(unknown_column, {});
      CHECK(solution.outcome == ilp::Outcome::failed);
      CHECK_MESSAGE(solution.problem.find(told) != std::string::npos, solution.problem);
      CHECK(solution.values.empty());
      CHECK(solution.bound < 0);
    }
  }
  ilp::Program endless;
  endless.add_column({0, ilp::infinity, -1, false});
  endless.at_least(1, {{0, 1}});
  CHECK(ilp::solve_relaxation(endless, {}).outcome == ilp::Outcome::failed);
  CHECK(checked(endless, ilp::solve(endless, {}), true).values.empty());

  ilp::Program infeasible;
  infeasible.add_column({0, 1, 1, true});
  infeasible.at_least(2, {{0, 1}});
  CHECK(ilp::solve(infeasible, {}).outcome == ilp::Outcome::none_below);
  CHECK(ilp::solve_relaxation(infeasible, {}).outcome == ilp::Outcome::none_below);
}

TEST_CASE("what go_on throws stops the solver, and reaches the caller") {
  const Trace trace = three_turns();
  int calls = 0;
  PlanningOptions limits;
  limits.go_on = [&](const PlanningProgress&) -> bool {
    if (++calls == 12) throw std::runtime_error("the button was pressed");
    return true;
  };
  CHECK_THROWS_WITH(static_cast<void>(plan_by_ilp(trace, machine_of(80), {.best_first = false}, limits)),
                    "the button was pressed");
  CHECK(calls == 12);  // it is not asked again
}
