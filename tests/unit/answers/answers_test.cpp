// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include <swapmm/answers/comparison.hpp>
#include <swapmm/answers/explanation.hpp>
#include <swapmm/answers/fit.hpp>
#include <swapmm/answers/machine.hpp>
#include <swapmm/answers/planning.hpp>
#include <swapmm/answers/simulation.hpp>
#include <swapmm/answers/stall_search.hpp>
#include <swapmm/ir/liveness.hpp>
#include <swapmm/plan/planners.hpp>
#include <swapmm/plan/simulate.hpp>
#include <swapmm/plan/stalls.hpp>

#include "support/plain_traces.hpp"
#include "support/plan_text.hpp"

using namespace swapmm;
using namespace swapmm::test;
using std::chrono::nanoseconds;

namespace {

/// Two weights that are read in turn. Each copy takes 1000 ns, each operation 500 ns.
Trace turns() {
  Trace trace;
  trace.name = "turns";
  trace.tensors = {tensor(1000), tensor(1000)};
  trace.tensors[0].name = "a";
  trace.tensors[1].name = "b";
  trace.operations = {operation(500, {TensorId{0}}), operation(500, {TensorId{1}})};
  return trace;
}

Machine small(std::uint64_t budget = 1000) {
  Machine machine = machine_of(budget);
  machine.alignment = Bytes{1};
  return machine;
}

/// Remembers what it was told, and ends searches after a number of questions.
class Watched final : public answers::Watcher {
 public:
  explicit Watched(int most = 1'000'000) : left_(most) {}
  void begin(const std::string& what) override { begun.push_back(what); }
  bool reached(const PlanningProgress& progress) override {
    last = progress;
    return left_-- > 0;
  }
  std::vector<std::string> begun;
  PlanningProgress last;

 private:
  int left_;
};

std::int64_t number(const boost::json::object& object, std::string_view name) {
  return object.at(name).to_number<std::int64_t>();
}

}  // namespace

TEST_CASE("what a trace needs is the peak, its largest bundle, and what no single allocation holds") {
  const Trace trace = turns();
  Machine machine = small(900);
  machine.max_allocation = Bytes{800};
  const answers::Need need = answers::find_need(trace, machine);
  CHECK(need.liveness.peak == Bytes{2000});
  CHECK(need.liveness.largest_bundle == Bytes{1000});
  CHECK(need.largest == std::vector{TensorId{0}});
  CHECK(need.above_allocation == std::vector{TensorId{0}, TensorId{1}});
  CHECK(answers::shortfall_of(need, machine) == Bytes{100});
  CHECK(answers::shortfall_of(need, small()) == Bytes{0});
  const boost::json::object answer = answers::misfit_as_json(trace, machine, need, "too small", 1);
  CHECK(!answer.at("fits").as_bool());
  CHECK(answer.at("problem") == "too small");
  CHECK(number(answer, "shortfall_bytes") == 100);
  CHECK(answer.at("above_max_allocation").as_array().size() == 1);
  CHECK(number(answer.at("machine").as_object(), "max_allocation_bytes") == 800);
  const boost::json::object& bundle = answer.at("needs").at("largest_bundle").as_object();
  CHECK(bundle.at("operation_name") == "step");
  CHECK(bundle.at("largest_tensors").as_array().at(0).at("name") == "a");
}

TEST_CASE("stalls end at the budget that holds everything, if nothing hides a copy") {
  const Trace trace = turns();
  const Plan plan = plan_of("on-demand", trace, small());
  CHECK(plan.predicted.iteration == nanoseconds{3000});
  Watched watcher;
  const answers::PlanOn plan_on = [&](const Machine& machine) {
    return answers::run_planner(planners()[1], trace, machine, {});
  };
  const answers::Need need = answers::find_need(trace, plan.machine);
  const answers::StallEnd end = answers::find_stall_end(trace, plan, need.liveness, plan_on, watcher);
  REQUIRE(end.budget);
  CHECK(end.budget->value > 2000 - 2000 / 50 - 1);
  CHECK(end.budget->value <= 2000);
  CHECK(end.always == nanoseconds{0});
  CHECK(!end.first_that_fits);
  CHECK(static_cast<std::size_t>(end.plans) == watcher.begun.size());
  const std::vector<Stall> stalls = find_stalls(trace, plan);
  const boost::json::object answer = answers::fit_as_json(trace, plan, need, "on-demand", end, stalls, 1);
  CHECK(answer.at("fits").as_bool());
  CHECK(number(answer.at("predicted").as_object(), "iteration_ns") == 3000);
  CHECK(number(answer.at("predicted").as_object(), "h2d_bytes") == 2000);
  CHECK(number(answer.at("stalls_end").as_object(), "budget_bytes") == static_cast<std::int64_t>(end.budget->value));
  CHECK(number(answer, "stalls_found") == 2);
  CHECK(answer.at("stalls").as_array().size() == 1);
  CHECK(answer.at("stalls").as_array().at(0).at("waits_for") == "swap_in");
  CHECK(answers::fit_as_json(trace, plan, need, "on-demand", {}, {}, 1).at("stalls_end").is_null());
}

TEST_CASE("a watcher ends searches, and one that lets them go on changes no plan") {
  const Trace trace = turns();
  CHECK(!answers::planner_called("magic"));
  CHECK(
      answers::planner_called("magic").problem().message.starts_with("no planner is called \"magic\"; there are per-"));
  for (const NamedPlanner& planner : planners()) {
    const Result<NamedPlanner> in_steps = answers::planner_called(planner.name);
    REQUIRE(in_steps);
    CHECK(in_steps->name == planner.name);
    Watched watcher;
    const answers::Planned planned =
        answers::run_planner(*in_steps, trace, small(1500), answers::options_watched({}, watcher));
    REQUIRE(planned.plan);
    CHECK_MESSAGE(*planned.plan == plan_of(planner.name, trace, small(1500)), planner.name);
  }
  Watched never(0);
  CHECK(!answers::options_within({}, never).go_on);
  CHECK(!answers::options_within(nanoseconds{1'000'000'000}, never).go_on({nanoseconds{7}, nanoseconds{3}}));
  CHECK(never.last.iteration == nanoseconds{7});
  Watched always;
  CHECK(!answers::options_within(nanoseconds{0}, always).go_on({}));
  const PlanningOptions hours = answers::options_within(std::chrono::hours{10'000}, always);
  CHECK(hours.go_on({}));
  CHECK(hours.go_on({.part = 0.1}));
  CHECK(!hours.go_on({.part = 0}));
  CHECK(answers::options_watched({}, always).go_on({}));
  CHECK(answers::progress_text({}) == "no plan yet");
  CHECK(answers::progress_text({nanoseconds{2'000'000}, nanoseconds{1'000'000}}) == "2.000 ms, at least 1.000 ms");
}

TEST_CASE("a link of half its speed makes copies twice as long, and noise is the same for the same seed") {
  const Trace trace = turns();
  const Plan plan = plan_of("on-demand", trace, small());
  const Simulation calm = simulate(trace, plan);
  Watched watcher;
  answers::Disturbance disturbance;
  CHECK(answers::disturbed(disturbance, trace, plan, calm, watcher).empty());
  CHECK(watcher.begun.empty());
  CHECK(!answers::simulation_as_json(trace, plan, calm, disturbance, {}).contains("disturbed"));

  disturbance.slow_link = answers::SlowLink{0.5, 1};
  disturbance.draws = 3;
  const std::vector<answers::Draw> slow = answers::disturbed(disturbance, trace, plan, calm, watcher);
  REQUIRE(slow.size() == 3);
  CHECK(slow[2].iteration == nanoseconds{5000});
  CHECK(watcher.begun == std::vector<std::string>{"draw 1 of 3", "draw 2 of 3", "draw 3 of 3"});
  const answers::Summary summary = answers::summarize(slow, calm);
  CHECK(summary.mean == nanoseconds{5000});
  CHECK(summary.worst == nanoseconds{5000});
  CHECK(summary.mean_lost.value_or(0) == doctest::Approx(1.0 / 3 - 0.2));
  CHECK(summary.worst_lost.value_or(0) == doctest::Approx(1.0 / 3 - 0.2));
  const boost::json::object told = answers::simulation_as_json(trace, plan, calm, disturbance, slow);
  CHECK(number(told, "iteration_ns") == 3000);
  CHECK(number(told.at("disturbed").as_object(), "worst_ns") == 5000);
  CHECK(told.at("disturbed").at("slow_link").at("speed") == 0.5);

  disturbance = {.noise = 0.25, .slow_link = {}, .seed = 7, .draws = 5};
  const std::vector<answers::Draw> noisy = answers::disturbed(disturbance, trace, plan, calm, watcher);
  const std::vector<answers::Draw> again = answers::disturbed(disturbance, trace, plan, calm, watcher);
  for (std::size_t i = 0; i < noisy.size(); ++i) {
    CHECK(noisy[i].iteration == again[i].iteration);
    CHECK(noisy[i].iteration.count() >= 2250);
    CHECK(noisy[i].iteration.count() <= 3750);
  }
}

TEST_CASE("planners are compared by the best bound of all, and those without a plan say why") {
  const Trace trace = turns();
  Watched watcher;
  const answers::PredictBy predict_by = [](const std::string& name, const Trace& of, const Machine& machine) {
    return answers::predicted(answers::run_planner(*answers::planner_called(name), of, machine, {}));
  };
  std::vector<answers::Comparison> rows;
  answers::compare_planners({"on-demand", "best"}, predict_by, trace,
                            answers::setting_for(trace, 1, small(), Bytes{2000}), watcher, rows);
  answers::compare_planners({"best"}, predict_by, trace, answers::setting_for(trace, 1, small(10), Bytes{2000}),
                            watcher, rows);
  REQUIRE(rows.size() == 3);
  CHECK(watcher.begun[0] == "turns, 1.00 KB, 1.00 GB/s each way, on-demand");
  CHECK(rows[0].bound == rows[1].bound);
  CHECK(rows[0].bound == rows[1].predicted->lower_bound);
  CHECK(answers::of_ideal(rows[0]).value_or(0) == doctest::Approx(1.0 / 3));
  CHECK(answers::gap_of(rows[0]).value_or(0) ==
        doctest::Approx(3000.0 / static_cast<double>(rows[0].bound.count()) - 1));
  CHECK(!rows[2].predicted);
  const boost::json::object told = answers::comparison_as_json(rows);
  CHECK(told.at("rows").as_array().size() == 3);
  CHECK(told.at("rows").as_array().at(0).at("planner") == "on-demand");
  CHECK(told.at("rows").as_array().at(2).at("problem").as_string().starts_with("operation 0"));
  CHECK(!told.at("rows").as_array().at(2).as_object().contains("gap"));

  CHECK(answers::with_scaled_compute(trace, 0.2)->operations[1].duration == nanoseconds{100});
  Trace long_one = trace;
  long_one.operations[0].duration = nanoseconds{std::int64_t{1} << 60U};
  CHECK(!answers::with_scaled_compute(long_one, 16));
}

TEST_CASE("a machine is made of figures, or of another one and figures") {
  const Trace trace = turns();
  CHECK(answers::machine_with({}, {}, trace).problem().message == "a budget or a machine is missing");
  answers::MachineFigures figures;
  CHECK(!answers::has_figures(figures));
  figures.alignment = Bytes{1};
  figures.budget = *answers::parse_budget("75%");
  figures.bandwidth = 2'000'000'000;
  figures.bandwidth_out = 1'000'000'000;
  figures.latency = nanoseconds{10};
  figures.half_duplex = true;
  figures.max_allocation = Bytes{1200};
  CHECK(answers::has_figures(figures));
  const Result<Machine> made = answers::machine_with(figures, {}, trace);
  REQUIRE(made);
  CHECK(made->device_budget == Bytes{1500});
  CHECK(made->h2d.bytes_per_second == 2'000'000'000);
  CHECK(made->d2h.bytes_per_second == 1'000'000'000);
  CHECK(made->duplex == Duplex::half);
  CHECK(made->name == "1.50 KB, 2.00 GB/s in, 1.00 GB/s out, latency 10 ns, one at a time");
  figures = {};
  figures.bandwidth_in = 3'000'000'000;
  Machine other = small();
  other.name = "mine";
  const Result<Machine> changed = answers::machine_with(figures, other, trace);
  REQUIRE(changed);
  CHECK(changed->device_budget == Bytes{1000});
  CHECK(changed->h2d.bytes_per_second == 3'000'000'000);
  CHECK(changed->name == "mine");
  figures.alignment = Bytes{0};
  CHECK(answers::machine_with(figures, other, trace).problem().message.starts_with("this machine cannot be: "));
  CHECK(!answers::links_with(figures));
}

TEST_CASE("what a plan does is told anew, whatever it predicts") {
  const Trace trace = turns();
  Plan plan = plan_of("on-demand", trace, small());
  const Prediction told_before = plan.predicted;
  plan.predicted = {};
  const Prediction prediction = answers::prediction_of(trace, plan);
  CHECK(prediction.iteration == told_before.iteration);
  CHECK(prediction.h2d == told_before.h2d);
  CHECK(prediction.lower_bound >= nanoseconds{1000});
  const std::vector<PlannedAbsence> absences = find_absences(trace, plan);
  const boost::json::object told =
      answers::explanation_as_json(trace, plan, prediction, find_stalls(trace, plan), absences, 1);
  CHECK(number(told, "absences_found") == 2);
  CHECK(told.at("absences").as_array().size() == 1);
  CHECK(told.at("absences").as_array().at(0).at("tensor_bytes") == 1000);
  CHECK(told.at("absences").as_array().at(0).as_object().contains("last_use"));
  const boost::json::object made =
      answers::plan_as_json(trace, {.plan = plan, .took = nanoseconds{5}, .notes = {"a note"}}, "by hand");
  CHECK(made.at("planner") == "by hand");
  CHECK(number(made, "planning_ns") == 5);
  CHECK(made.at("notes").as_array().at(0) == "a note");
  CHECK(number(made, "commands") == static_cast<std::int64_t>(plan.commands.size()));

  CHECK(answers::violations_as_json({}).at("valid").as_bool());
  const boost::json::object broken = answers::violations_as_json({{3, "two in one place"}});
  CHECK(!broken.at("valid").as_bool());
  CHECK(broken.at("violations").as_array().at(0).at("name") == "places");
  std::vector<std::string_view> names;
  for (int rule = 0; rule < 9; ++rule) names.push_back(answers::name_of_rule(rule));
  CHECK(names.front() == "structure");
  CHECK(names.back() == "unknown");
  CHECK(answers::fraction_of_ideal(nanoseconds{0}, nanoseconds{5}) == std::nullopt);
  CHECK(answers::json_number(std::nullopt).is_null());
  CHECK(answers::json_name("a\xff") == "a\xEF\xBF\xBD");
}

TEST_CASE("the figures of a question replace those of a machine, the largest allocation too") {
  const Trace trace = unused_constants(1);
  Machine machine = test::machine(1000);
  machine.max_allocation = Bytes{500};
  answers::MachineFigures figures;
  figures.max_allocation = Bytes{100};
  const Result<Machine> made = answers::machine_with(figures, machine, trace);
  REQUIRE(made);
  CHECK(made->max_allocation == Bytes{100});
  CHECK(made->device_budget == Bytes{1000});
  CHECK(answers::has_figures(figures));
}

TEST_CASE("if disturbances make every iteration faster, what is lost is below zero, the worst included") {
  using std::chrono::nanoseconds;
  Simulation calm;
  calm.compute = nanoseconds{50};
  calm.iteration = nanoseconds{100};
  const std::vector<answers::Draw> draws = {{nanoseconds{80}, nanoseconds{50}}, {nanoseconds{64}, nanoseconds{48}}};
  const answers::Summary summary = answers::summarize(draws, calm);
  CHECK(summary.mean == nanoseconds{72});
  CHECK(summary.worst == nanoseconds{80});
  CHECK(summary.worst_lost == -0.125);
  CHECK(summary.mean_lost == (-0.125 - 0.25) / 2);
}

TEST_CASE("the bound of a comparison is the largest one, whichever planner in the list has it") {
  Watched watcher;
  const Trace trace = unused_constants(1);
  const Machine one = machine(100);
  for (const auto& bounds : {std::vector<int>{1, 2, 3}, {3, 2, 1}, {2, 3, 1}}) {
    std::size_t next = 0;
    const answers::PredictBy predict = [&](const std::string&, const Trace&, const Machine&) {
      Prediction prediction;
      prediction.iteration = std::chrono::nanoseconds{6};
      prediction.lower_bound = std::chrono::nanoseconds{bounds[next++]};
      return answers::Predicted{prediction};
    };
    std::vector<answers::Comparison> rows;
    answers::compare_planners({"a", "b", "c"}, predict, trace, answers::setting_for(trace, 1, one, Bytes{10}), watcher,
                              rows);
    REQUIRE(rows.size() == 3);
    for (const answers::Comparison& row : rows) {
      CHECK(row.bound == std::chrono::nanoseconds{3});
      CHECK(answers::gap_of(row) == 1.0);
    }
  }
}

TEST_CASE("stalls end where an iteration takes at most a thousandth more than with all memory") {
  Watched watcher;
  Trace trace = unused_constants(10);
  for (std::uint32_t t = 0; t < 10; ++t) trace.operations.push_back(operation("o", 10, {t}));
  Plan plan = test::plan(trace, machine(20), {}, {});
  plan.predicted.iteration = std::chrono::nanoseconds{20'000};
  plan.predicted.compute = std::chrono::nanoseconds{10'000};
  const Liveness liveness = analyze_liveness(trace, Bytes{1});
  REQUIRE(liveness.peak == Bytes{100});
  for (const auto& each : {std::pair(10'010, 50), std::pair(10'011, 80)}) {
    const auto little_more = each.first;
    const auto from = each.second;
    CAPTURE(little_more);
    // 10,000 ns from 80 bytes on, a little more from 50 bytes on.
    const answers::PlanOn plan_on = [&, more = little_more](const Machine& on) {
      Plan made = plan;
      made.machine = on;
      made.predicted.iteration = std::chrono::nanoseconds{on.device_budget >= Bytes{80}   ? 10'000
                                                          : on.device_budget >= Bytes{50} ? more
                                                                                          : 20'000};
      return answers::Planned{made, {}, {}};
    };
    const answers::StallEnd end = answers::find_stall_end(trace, plan, liveness, plan_on, watcher);
    REQUIRE(end.budget);
    CHECK(*end.budget >= Bytes{static_cast<std::uint64_t>(from)});
    CHECK(*end.budget <= Bytes{static_cast<std::uint64_t>(from) + 2});
    CHECK(end.always == std::chrono::nanoseconds{0});
    CHECK_FALSE(end.first_that_fits);
  }
}
