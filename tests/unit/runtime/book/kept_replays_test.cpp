// SPDX-License-Identifier: Apache-2.0
// Plans that run operations again outlive their manager: saved and loaded, found in a store, made elsewhere.
#include <doctest/doctest.h>

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <swapmm/backend/testing/simulated.hpp>
#include <swapmm/formats/v2/plan_json.hpp>
#include <swapmm/plan/v2/machine.hpp>
#include <swapmm/plan/v2/planners.hpp>
#include <swapmm/swapmm.hpp>

#include "support/replayed_chain.hpp"
#include "support/small_program.hpp"

namespace swapmm::test::kept_replays_test {

constexpr std::size_t layers = ReplayedDesk::layers;

struct Desk : ReplayedDesk {
  explicit Desk(SchedulerOptions scheduler = {}) : ReplayedDesk({.device_budget = budget}, std::move(scheduler)) {}

  void iterate_times(Number times) {
    for (Number seed = 1; seed <= times; ++seed) iterate(seed);
  }
  [[nodiscard]] std::string saved() {
    std::ostringstream out;
    manager.scheduler().save_plan("train", out);
    return out.str();
  }
  void load(const std::string& text) {
    std::istringstream in(text);
    manager.scheduler().load_plan("train", in);
  }
};

/// A planner that must not be asked.
SchedulerOptions no_planner() {
  SchedulerOptions options;
  options.planner = {"nobody", [](const Trace&, const Machine&) -> Result<Plan> {
                       FAIL_CHECK("a plan is made");
                       return Problem{"nobody plans"};
                     }};
  return options;
}

std::string plan_with_replays() {
  Desk desk;
  desk.iterate_times(6);
  REQUIRE(desk.replays() > 0);
  return desk.saved();
}

TEST_CASE("a saved plan that runs operations again is followed by another manager from the second iteration on") {
  Desk first;
  first.iterate_times(6);
  REQUIRE(first.replays() > 0);
  const std::string text = first.saved();
  const Result<v2::Plan> plan = v2::read_plan(std::string_view(text));
  REQUIRE(plan);
  Desk second(no_planner());
  second.load(text);
  second.iterate_times(6);
  const Report report = second.manager.report();
  // The first iteration is another one: the weights' values come from uploads.
  CHECK(report.iterations_followed == 4);
  CHECK(first.manager.report().iterations_followed == 3);
  CHECK(report.divergences == 0);
  CHECK(second.replays() == first.replays());
  CHECK(*second.manager.scheduler().plan("train") == *first.manager.scheduler().plan("train"));
  CHECK(second.saved() == text);
  second.check_right();
}

TEST_CASE("a plan that runs operations again is loaded while another one is followed") {
  const std::string text = plan_with_replays();
  Desk desk({.planner = "belady"});
  desk.iterate_times(6);
  REQUIRE(desk.manager.report().iterations_followed > 0);
  REQUIRE(desk.replays() == 0);
  desk.load(text);
  desk.iterate_times(4);
  CHECK(desk.replays() > 0);
  CHECK(desk.manager.report().divergences == 0);
  desk.check_right();
}

TEST_CASE("a plan that was made elsewhere, for the trace and machine of the program, is followed") {
  Desk first;
  first.iterate_times(4);
  const std::optional<Trace> trace = first.manager.scheduler().trace("train");
  REQUIRE(trace);
  CHECK(needs_version_2(*trace));
  const v2::Machine machine = v2::from_version_1(first.manager.scheduler().plan("train")->machine);
  Result<v2::Plan> made = v2::make_plan("best", *trace, machine);
  REQUIRE(made);
  made->planner = "elsewhere";
  std::ostringstream out;
  v2::write_plan(out, *made);
  Desk second(no_planner());
  second.load(out.str());
  second.iterate_times(6);
  CHECK(second.manager.report().iterations_followed == 4);
  CHECK(second.manager.report().plans.front().planner == "elsewhere");
  CHECK(second.replays() > 0);
  second.check_right();
}

TEST_CASE("what no manager can follow is refused with the reason, whether the program is known or not") {
  const std::string text = plan_with_replays();
  Result<v2::Plan> plan = v2::read_plan(std::string_view(text));
  REQUIRE(plan);
  plan->machine.memories.push_back({"disk", std::nullopt, Bytes{1}, std::nullopt});
  std::ostringstream out;
  v2::write_plan(out, *plan);
  Desk known;
  known.iterate_times(6);
  CHECK(says(text_of<PlanRefused>([&] { known.load(out.str()); }), {"machine", "3 memories"}));
  CHECK(known.replays() > 0);
  Desk unknown;
  unknown.load(out.str());
  unknown.iterate_times(6);
  const Report report = unknown.manager.report();
  REQUIRE(report.notes.size() == 1);
  CHECK(says(report.notes[0], {"loaded plan refused", "3 memories"}));
  CHECK(report.iterations_followed > 0);
  unknown.check_right();
}

TEST_CASE("where only what is proven dead may be dropped, a plan that runs operations again is refused") {
  const std::string text = plan_with_replays();
  Desk early({.drops = DropRule::proven});
  early.load(text);
  early.iterate_times(6);
  REQUIRE(early.manager.report().notes.size() == 1);
  CHECK(says(early.manager.report().notes[0], {"given plan refused", "proven dead"}));
  CHECK(early.manager.report().iterations_followed > 0);
  CHECK(early.replays() == 0);
  early.check_right();
  Desk late({.drops = DropRule::proven});
  late.iterate_times(6);
  CHECK(says(text_of<PlanRefused>([&] { late.load(text); }), {"proven dead"}));
  late.iterate_times(2);
  late.check_right();
}

TEST_CASE("a store keeps plans that run operations again: the next manager has them after one iteration") {
  std::map<std::string, std::string> texts;
  SchedulerOptions options;
  options.plan_store.find = [&](const std::string& key) -> std::optional<std::string> {
    const auto found = texts.find(key);
    return found == texts.end() ? std::nullopt : std::optional(found->second);
  };
  options.plan_store.keep = [&](const std::string& key, const std::string& text) { texts[key] = text; };
  std::size_t replays = 0;
  {
    Desk first(options);
    first.iterate_times(6);
    replays = first.replays();
    REQUIRE(replays > 0);
    REQUIRE(texts.size() == 1);
    CHECK(first.manager.report().plans_found == 0);
  }
  Desk second(options);
  second.iterate_times(4);
  const Report report = second.manager.report();
  CHECK(report.plans_found == 1);
  CHECK(report.iterations_followed == 2);
  CHECK(second.replays() == replays);
  CHECK(report.plans.front().predicted.iteration.count() > 0);
  second.check_right();
  // The same program, of which nothing may run again, has a plan of its own.
  Desk other(options);
  other.chain.declares = false;
  other.iterate_times(4);
  CHECK(other.manager.report().plans_found == 0);
  CHECK(other.replays() == 0);
  other.check_right();
}

TEST_CASE("the same program on other handles takes over the plan that runs operations again") {
  Desk desk({.planning = Planning::deferred});
  desk.iterate_times(4);
  std::optional<PlanningJob> job = desk.manager.scheduler().planning_job();
  REQUIRE(job);
  job->run();
  desk.iterate_times(3);
  REQUIRE(desk.replays() > 0);
  const std::size_t replays = desk.replays();
  const std::uint64_t followed = desk.manager.report().iterations_followed;
  ReplayedChain again(desk.manager, layers);
  ChainModel model(layers);
  for (Number seed = 1; seed <= 6; ++seed) {
    again.iterate(seed);
    model.iterate(seed);
    CHECK(!desk.manager.scheduler().planning_job());
  }
  CHECK(again.same_weights(model));
  CHECK(desk.manager.report().iterations_followed >= followed + 3);
  CHECK(desk.replays() == replays);
  desk.check_right();
}

}  // namespace swapmm::test::kept_replays_test
