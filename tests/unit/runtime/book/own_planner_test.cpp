// SPDX-License-Identifier: Apache-2.0
// Planners of the program's own: what they may be, and that nothing they do harms the program.
#include <doctest/doctest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <swapmm/backend/testing/simulated.hpp>
#include <swapmm/formats/plan_json.hpp>
#include <swapmm/plan/planners.hpp>
#include <swapmm/swapmm.hpp>

#include "support/own_planner_desk.hpp"
#include "support/small_program.hpp"

namespace {

using namespace swapmm;
using namespace swapmm::test;
using namespace swapmm::literals;
using std::chrono::nanoseconds;

void check_followed(const PlannerChoice& planner, std::string_view name) {
  OwnPlannerDesk desk({.planner = planner, .trial_iterations = 0});
  desk.iterate(5);
  const Report report = desk.manager.report();
  CHECK(report.iterations_followed == 3);
  CHECK(report.notes.empty());
  CHECK(report.on_demand.empty());
  REQUIRE(report.plans.size() == 1);
  CHECK(report.plans[0].planner == name);
}

/// What a scheduler is told, and what its report says then.
struct BadPlanner {
  std::string_view what;
  PlannerChoice planner;
  std::vector<std::string_view> reason;
};

/// A valid plan, changed.
PlannerChoice spoilt(std::function<void(Plan&, const Trace&)> spoil) {
  return {"mine", [spoil = std::move(spoil)](const Trace& trace, const Machine& machine) {
            Result<Plan> plan = plan_like_belady(trace, machine);
            if (plan) spoil(*plan, trace);
            return plan;
          }};
}

std::vector<BadPlanner> bad_planners() {
  return {
      {"an exception",
       {"mine", [](const Trace&, const Machine&) -> Plan { throw std::runtime_error("no idea today"); }},
       {"\"mine\"", "threw", "no idea today"}},
      {"an exception, without a name",
       [](const Trace&, const Machine&) -> Plan { throw std::logic_error("not now"); },
       {"the program's own planner", "threw", "not now"}},
      {"something else",
       {"mine", [](const Trace&, const Machine&) -> Plan { throw 7; }},
       {"\"mine\"", "threw", "no std::exception"}},
      {"no memory",
       {"mine", [](const Trace&, const Machine&) -> Plan { throw std::bad_alloc(); }},
       {"\"mine\"", "threw", "bad_alloc"}},
      {"a Problem",
       [](const Trace&, const Machine&) -> Result<Plan> { return Problem{"too hard for me"}; },
       {"too hard for me"}},
      {"no function", Planner(), {"threw", "bad_function_call"}},
      {"an empty plan", {"mine", [](const Trace&, const Machine&) { return Plan(); }}, {"\"mine\"", "rule 0"}},
      {"another program's plan",
       spoilt([](Plan& plan, const Trace&) { plan.trace_digest = std::string(64, 'a'); }),
       {"\"mine\"", "rule 0", "aaaa"}},
      {"a plan for a trace that it changed",
       {"mine",
        [](Trace trace, const Machine& machine) {
          trace.tensors[0].bytes += Bytes{1};
          return plan_like_belady(trace, machine);
        }},
       {"\"mine\"", "rule 0"}},
      {"no waits",
       spoilt([](Plan& plan, const Trace&) {
         for (Command& command : plan.commands) command.before_operation.reset();
       }),
       {"\"mine\"", "rule"}},
      {"nothing on the device",
       spoilt([](Plan& plan, const Trace&) { plan.initial.clear(), plan.commands.clear(); }),
       {"\"mine\"", "rule"}},
      {"a tensor that does not exist",
       spoilt([](Plan& plan, const Trace& trace) {
         plan.commands.at(0).tensor = id_at<TensorId>(trace.tensors.size() + 1000);
       }),
       {"\"mine\"", "rule 0"}},
      {"an operation that does not exist",
       spoilt([](Plan& plan, const Trace&) { plan.commands.at(0).before_operation = 1'000'000; }),
       {"\"mine\"", "rule 0"}},
      {"waits that do not exist",
       spoilt([](Plan& plan, const Trace&) {
         plan.commands.at(0).after.push_back({Wait::On::command, true, -2'000'000'000});
       }),
       {"\"mine\"", "rule 0"}},
      {"places behind the budget",
       spoilt([](Plan& plan, const Trace&) {
         for (Command& command : plan.commands) {
           if (has_place(command.kind)) command.offset = Bytes{std::uint64_t{1} << 62U};
         }
       }),
       {"\"mine\"", "rule"}},
      {"places that overlap",
       spoilt([](Plan& plan, const Trace&) {
         for (Command& command : plan.commands) command.offset = Bytes{0};
         for (Resident& resident : plan.initial) resident.offset = Bytes{0};
       }),
       {"\"mine\"", "rule"}},
  };
}

}  // namespace

TEST_CASE("a planner of the program's own may be a function, a lambda or an object, with options or without") {
  check_followed(plan_like_belady, "belady");
  check_followed([](const Trace& trace, const Machine& machine) { return plan_like_belady(trace, machine); }, "belady");
  check_followed({"mine", plan_like_belady}, "mine");
  check_followed(Planner([](const Trace& trace, const Machine& machine, const PlanningOptions& options) {
                   return make_plan("slack", trace, machine, options);
                 }),
                 "slack");
  check_followed(belady_planner(), "belady");
  check_followed(best_planner({.others = {.on = false}}), "best");
  check_followed(
      [](const Trace& trace, const Machine& machine) {
        Plan plan = *plan_like_belady(trace, machine);
        plan.planner.clear();
        return plan;
      },
      "own planner");
}

TEST_CASE("a planner object is held once, keeps what it learns, and need not be copyable") {
  struct Counting {
    std::unique_ptr<int> held = std::make_unique<int>(0);
    std::shared_ptr<int> calls;
    Result<Plan> operator()(const Trace& trace, const Machine& machine) {
      *calls = ++*held;
      return plan_like_belady(trace, machine);
    }
  };
  const auto calls = std::make_shared<int>(0);
  const PlannerChoice planner("counting", Counting{.calls = calls});
  check_followed(planner, "counting");
  check_followed(planner, "counting");
  CHECK(*calls == 2);
  CHECK(planner == PlannerChoice(planner));
  CHECK(!(planner == PlannerChoice("counting")));
  CHECK(PlannerChoice("best") == SchedulerOptions().planner);
}

TEST_CASE("what the plan of an own planner predicts is worked out, whatever it says itself") {
  OwnPlannerDesk desk({.planner = spoilt([](Plan& plan, const Trace&) {
                         plan.predicted = {nanoseconds{-5}, nanoseconds{7}, nanoseconds{1'000'000'000}, {}, {}, {}};
                         plan.machine.h2d = {1, nanoseconds{0}};
                       })});
  desk.iterate(5);
  const std::shared_ptr<const Plan> plan = desk.manager.scheduler().plan("train");
  REQUIRE(plan != nullptr);
  const Plan belady = *plan_like_belady(*desk.manager.scheduler().trace("train"), plan->machine);
  CHECK(plan->predicted.iteration == belady.predicted.iteration);
  CHECK(plan->predicted.compute == belady.predicted.compute);
  CHECK(plan->predicted.peak == belady.predicted.peak);
  CHECK(plan->predicted.lower_bound.count() == 0);  // what was claimed is impossible
  CHECK(plan->machine.h2d.bytes_per_second == 1'000'000'000);
  CHECK(desk.followed() > 0);
}

TEST_CASE("a bad planner is a note with the reason, the program goes on on demand, and every value is right") {
  for (const BadPlanner& bad : bad_planners()) {
    for (const Planning planning : {Planning::immediate, Planning::deferred}) {
      CAPTURE(bad.what);
      CAPTURE(planning == Planning::deferred);
      OwnPlannerDesk desk({.planner = bad.planner, .planning = planning});
      desk.iterate_and_plan(8);
      const Report report = desk.manager.report();
      CHECK(report.iterations_followed == 0);
      CHECK(report.iterations_on_demand == 8);
      CHECK(report.plans.empty());
      REQUIRE(report.notes.size() == 1);
      CHECK(says(report.notes[0], {"\"train\"", "stays on demand"}));
      REQUIRE(report.on_demand.size() == 1);
      CHECK(report.on_demand[0].iteration == "train");
      CHECK(report.on_demand[0].reason == OnDemandReason::no_plan);
      for (const std::string_view part : bad.reason) {
        CHECK(says(report.notes[0], {part}));
        CHECK(says(report.on_demand[0].why, {part}));
      }
      std::ostringstream text;
      text << report;
      CHECK(says(text.str(), {"on demand \"train\": ", report.on_demand[0].why}));
      CHECK(desk.manager.scheduler().plan("train") == nullptr);
      CHECK(!desk.manager.scheduler().planning_job());
    }
  }
}

TEST_CASE("after a bad planner, a plan for another budget and a loaded one are still followed") {
  int calls = 0;
  OwnPlannerDesk desk({.planner = {"moody", [&](const Trace& trace, const Machine& machine) {
                                     if (++calls == 1) throw std::runtime_error("not the first time");
                                     return *plan_like_belady(trace, machine);
                                   }}});
  desk.iterate(5);
  CHECK(desk.followed() == 0);
  REQUIRE(desk.manager.report().notes.size() == 1);
  desk.manager.set_budget(320_bytes);
  desk.iterate(4);
  CHECK(calls == 2);
  CHECK(desk.followed() > 0);
  CHECK(desk.manager.report().on_demand.empty());
  CHECK(desk.manager.scheduler().plan("train")->planner == "moody");
}

TEST_CASE("if a planner fails when it is to plan anew, the plan before it is followed on") {
  for (const Planning planning : {Planning::immediate, Planning::deferred}) {
    for (const BadPlanner& bad : bad_planners()) {
      CAPTURE(bad.what);
      CAPTURE(planning == Planning::deferred);
      int calls = 0;
      OwnPlannerDesk desk({.planner = {"moody",
                                       [&](const Trace& trace, const Machine& machine) -> Result<Plan> {
                                         if (++calls == 1) return make_plan("excess-overlap", trace, machine);
                                         return bad.planner.plan(trace, machine);
                                       }},
                           .planning = planning,
                           .sample_every = 4,
                           .trial_iterations = 2});
      desk.iterate_and_plan(10);
      REQUIRE(desk.followed() > 0);
      const std::vector<Command> commands = desk.manager.scheduler().plan("train")->commands;
      for (int i = 0; i < 24; ++i) {
        desk.iterate(1, 20 * operation_time);  // no longer what was predicted
        if (auto job = desk.manager.scheduler().planning_job()) job->run();
      }
      CHECK(calls > 1);
      const Report report = desk.manager.report();
      REQUIRE(!report.notes.empty());
      CHECK(says(report.notes[0], {"\"train\"", "not planned anew"}));
      CHECK(desk.manager.scheduler().plan("train")->commands == commands);
      const std::uint64_t before = desk.followed();
      desk.iterate(3, 20 * operation_time);
      CHECK(desk.followed() == before + 3);
    }
  }
}

TEST_CASE("a planner that calls its manager or loads a plan is refused, and the program is right") {
  std::string text;
  {
    OwnPlannerDesk other({.planner = "belady"});
    other.iterate(4);
    std::ostringstream out;
    other.manager.scheduler().save_plan("train", out);
    text = out.str();
  }
  OwnPlannerDesk* now = nullptr;
  const std::vector<std::pair<PlannerChoice, std::string_view>> intruders{
      {[&](const Trace& trace, const Machine& machine) {
         (void)now->manager.report();
         return plan_like_belady(trace, machine);
       },
       "such as a planner, calls the manager"},
      {[&](const Trace& trace, const Machine& machine) {
         now->weights[0].upload(std::vector<int>(length, 99));
         return plan_like_belady(trace, machine);
       },
       "such as a planner, calls the manager"},
      {[&](const Trace& trace, const Machine& machine) {
         std::istringstream in(text);
         for (int i = 0; i < 50; ++i) now->manager.scheduler().load_plan("other" + std::to_string(i), in);
         return plan_like_belady(trace, machine);
       },
       "a planner must not load plans"},
  };
  for (const auto& [planner, reason] : intruders) {
    OwnPlannerDesk desk({.planner = planner});
    now = &desk;
    desk.iterate(6);
    CHECK(desk.followed() == 0);
    REQUIRE(desk.manager.report().notes.size() == 1);
    CHECK(says(desk.manager.report().notes[0], {"threw", reason}));
  }
  // Looking is allowed.
  OwnPlannerDesk desk({.planner = [&](const Trace& trace, const Machine& machine) {
    CHECK(now->manager.scheduler().plan("train") == nullptr);
    CHECK(now->manager.scheduler().trace("train")->operations.size() == trace.operations.size());
    CHECK(!now->manager.scheduler().planning_job());
    return plan_like_belady(trace, machine);
  }});
  now = &desk;
  desk.iterate(5);
  CHECK(desk.followed() == 3);
}

TEST_CASE("a plan of the scheduler is valid for as long as it is held") {
  std::shared_ptr<const Plan> first;
  std::shared_ptr<const Plan> second;
  std::string first_text;
  const auto text_of_plan = [](const Plan& plan) {
    std::ostringstream out;
    write_plan(out, plan);
    return out.str();
  };
  {
    OwnPlannerDesk desk({.planner = "belady"});
    CHECK(desk.manager.scheduler().plan("train") == nullptr);
    desk.iterate(4);
    first = desk.manager.scheduler().plan("train");
    REQUIRE(first != nullptr);
    CHECK(desk.manager.scheduler().plan("train") == first);
    first_text = text_of_plan(*first);
    OwnPlannerDesk other({.planner = "per-operation"});
    other.iterate(4);
    std::stringstream file;
    other.manager.scheduler().save_plan("train", file);
    desk.manager.scheduler().load_plan("train", file);
    desk.iterate(10);
    desk.manager.set_budget(320_bytes);
    desk.iterate(10);
    second = desk.manager.scheduler().plan("train");
    REQUIRE(second != nullptr);
    CHECK(second != first);
  }
  CHECK(text_of_plan(*first) == first_text);
  CHECK(second->machine.device_budget == 320_bytes);
}

TEST_CASE("the report says why a name stays on demand") {
  const auto reasons = [](OwnPlannerDesk& desk) { return desk.manager.report().on_demand; };
  SUBCASE("nothing is said while iterations are observed, and of names that are followed") {
    OwnPlannerDesk desk({.planner = "belady"});
    desk.iterate(1);
    CHECK(reasons(desk).empty());
    desk.iterate(4);
    CHECK(reasons(desk).empty());
  }
  SUBCASE("nothing repeats") {
    OwnPlannerDesk desk({.max_period = 2});
    for (std::size_t i = 0; i < 6; ++i) {
      const auto iteration = desk.manager.iteration("growing");
      for (std::size_t k = 0; k <= i; ++k) increase(desk.manager, desk.weights[k], 0);
    }
    REQUIRE(reasons(desk).size() == 1);
    CHECK(reasons(desk)[0].reason == OnDemandReason::nothing_repeats);
    CHECK(reasons(desk)[0].iteration == "growing");
    CHECK(says(reasons(desk)[0].why, {"4 iterations", "up to 2"}));
  }
  SUBCASE("nobody has made the plan yet") {
    OwnPlannerDesk desk({.planner = "belady", .planning = Planning::deferred});
    desk.iterate(4);
    REQUIRE(reasons(desk).size() == 1);
    CHECK(reasons(desk)[0].reason == OnDemandReason::plan_is_awaited);
    desk.iterate_and_plan(3);
    CHECK(reasons(desk).empty());
  }
  SUBCASE("on demand is faster") {
    OwnPlannerDesk desk({.planner = "per-operation", .sample_every = 0});
    desk.iterate(20);
    REQUIRE(reasons(desk).size() == 1);
    CHECK(reasons(desk)[0].reason == OnDemandReason::on_demand_is_faster);
    CHECK(says(reasons(desk)[0].why, {"per-operation", "on demand"}));
  }
}
