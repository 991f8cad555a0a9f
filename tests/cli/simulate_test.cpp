// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include <boost/json/parse.hpp>

#include <swapmm/answers/disturbances.hpp>
#include <swapmm/formats/plan_json.hpp>
#include <swapmm/formats/trace_json.hpp>

#include "program.hpp"

using namespace swapmm;
using namespace swapmm::test;
using boost::json::object;

TEST_CASE("without disturbance the time is the one that the plan predicts") {
  const std::string plan = plan_for_two_weights("plan.json");
  const object answer = run_json({"simulate", two_weights(), plan});
  CHECK(number(answer, "iteration_ns") == 121'000);
  CHECK(number(answer, "compute_ns") == 110'000);
  CHECK(number(answer, "h2d_bytes") == 8000);
  CHECK(number(answer, "d2h_bytes") == 3000);
  CHECK(number(answer, "peak_bytes") == 5000);
  CHECK(!answer.contains("disturbed"));
}

TEST_CASE("noise: the same seed gives the same times, another seed others, none further off than asked for") {
  const std::string plan = plan_for_two_weights("plan.json");
  const std::vector<std::string> arguments{"simulate", two_weights(), plan, "--noise", "25%", "--draws", "50"};
  const object answer = run_json(arguments);
  CHECK(answer == run_json(arguments));
  const boost::json::array& draws = answer.at("disturbed").at("draws").as_array();
  REQUIRE(draws.size() == 50);
  double sum = 0;
  double worst = 0;
  double least = 1e9;
  for (const boost::json::value& draw : draws) {
    const double time = number(draw.as_object(), "iteration_ns");
    // All of this plan is one after the other: its time is the sum of all durations.
    CHECK(time >= 121'000 * 0.75 - 5);
    CHECK(time <= 121'000 * 1.25 + 5);
    sum += time;
    worst = std::max(worst, time);
    least = std::min(least, time);
  }
  CHECK(worst > 121'000 * 1.1);
  CHECK(least < 121'000 * 0.9);
  CHECK(number(answer, "disturbed.mean_ns") == std::round(sum / 50));
  CHECK(number(answer, "disturbed.worst_ns") == worst);
  std::vector<std::string> other = arguments;
  other.insert(other.end(), {"--seed", "2"});
  CHECK(number(run_json(other), "disturbed.mean_ns") != number(answer, "disturbed.mean_ns"));
}

TEST_CASE("a link at half its speed all the time doubles the copies") {
  const std::string plan = plan_for_two_weights("plan.json");
  const object answer = run_json({"simulate", two_weights(), plan, "--slow-link", "50%@100%", "--draws", "3"});
  CHECK(number(answer, "disturbed.slow_link.speed") == 0.5);
  CHECK(number(answer, "disturbed.mean_ns") == 132'000);
  CHECK(number(answer, "disturbed.worst_ns") == 132'000);
  CHECK(number(answer, "disturbed.worst_lost") == doctest::Approx(110.0 / 121 - 110.0 / 132));
}

TEST_CASE("a link that is slow for a while slows what runs then") {
  const Result<Trace> trace = read_trace(contents(two_weights()));
  const Result<Plan> plan = read_plan(contents(plan_for_two_weights("plan.json")));
  REQUIRE(trace.has_value());
  REQUIRE(plan.has_value());
  const Simulation calm = simulate(*trace, *plan);
  const double iteration = 121'000;
  const auto time = [&](double start, double length) {
    StepTimes times = step_times(*trace, *plan);
    answers::slow_down(times, {0.5, length / iteration}, start / iteration, *plan, calm);
    return simulate(*trace, *plan, times).iteration.count();
  };
  // a comes in from 0 to 3 us, goes out from 13 to 16 us, b comes in from 16 to 21 us.
  CHECK(time(30'000, 50'000) == 121'000);
  CHECK(time(0, 3'000) == 124'000);
  CHECK(time(1'000, 1'000) == 122'000);
  CHECK(time(15'000, 4'000) == 125'000);
  CHECK(time(120'000, 2'000) == 122'000);  // reaches into the next iteration
  CHECK(time(0, iteration) == 132'000);
}

TEST_CASE("noise moves operations and copies, and nothing that takes no time") {
  StepTimes times;
  times.operations.assign(1000, std::chrono::nanoseconds{1'000'000});
  times.commands.assign(1000, std::chrono::nanoseconds{0});
  times.commands[7] = std::chrono::nanoseconds{1'000'000};
  std::mt19937_64 random(1);
  answers::add_noise(times, 0.1, random);
  double sum = 0;
  for (const auto operation : times.operations) {
    CHECK(operation.count() >= 900'000);
    CHECK(operation.count() <= 1'100'000);
    sum += static_cast<double>(operation.count());
  }
  CHECK(sum / 1000 == doctest::Approx(1'000'000).epsilon(0.01));
  CHECK(times.commands[7].count() != 1'000'000);
  CHECK(times.commands[8].count() == 0);
}

TEST_CASE("the iteration as trace events") {
  const std::string file = scratch_file("events.json");
  const object answer = run_json({"simulate", two_weights(), plan_for_two_weights("plan.json"), "--trace-out", file});
  CHECK(text_at(answer, "trace_out") == file);
  const boost::json::value events = boost::json::parse(contents(file));
  std::size_t operations = 0;
  for (const boost::json::value& event : events.at("traceEvents").as_array()) {
    const object& fields = event.as_object();
    if (fields.contains("name") && fields.at("name") == "read b") ++operations;
  }
  CHECK(operations == 1);
}

TEST_CASE("simulate for persons") {
  const Outcome outcome = run_program(
      {"simulate", two_weights(), plan_for_two_weights("plan.json"), "--slow-link", "50%@100%", "--draws", "2"});
  CHECK(outcome.code == 0);
  for (const std::string text : {"iteration           121.000 us, 90.9 % of ideal",
                                 "the link at 50.0 % of its speed for 100.0 % of the iteration; 2 draws",
                                 "worst               132.000 us, 7.58 points lost"}) {
    CAPTURE(text);
    CHECK(outcome.out.find(text) != std::string::npos);
  }
}
