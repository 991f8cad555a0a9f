// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <string>

#include "program.hpp"

using namespace swapmm::test;
using boost::json::object;

TEST_CASE("explain says what waits for what, and what is away when") {
  const std::string plan = plan_for_two_weights("plan.json");
  const object answer = run_json({"explain", two_weights(), plan});
  CHECK(number(answer, "predicted.iteration_ns") == 121'000);
  CHECK(number(answer, "host_bytes") == 8000);
  REQUIRE(number(answer, "stalls_found") == 2);
  CHECK(number(answer.at("stalls").at(0).as_object(), "time_ns") == 8000);
  REQUIRE(number(answer, "absences_found") == 2);

  // a is away while b comes in (5 us) and is read (100 us).
  const object& a = answer.at("absences").at(0).as_object();
  CHECK(text_at(a, "tensor_name") == "a");
  CHECK(number(a, "time_ns") == 105'000);
  CHECK(number(a, "last_use") == 0);
  CHECK(number(a, "next_use") == 0);
  // b while a comes in (3 us), is updated (10 us) and goes out (3 us).
  const object& b = answer.at("absences").at(1).as_object();
  CHECK(text_at(b, "tensor_name") == "b");
  CHECK(number(b, "tensor_bytes") == 5000);
  CHECK(number(b, "time_ns") == 16'000);
  CHECK(number(b, "last_use") == 1);
  CHECK(number(b, "next_use") == 1);
}

TEST_CASE("explain works out the bound for the durations of the trace, whatever the plan says") {
  const std::string plan = plan_for_two_weights("plan.json");
  const double bound = number(run_json({"explain", two_weights(), plan}), "predicted.lower_bound_ns");
  CHECK(bound >= 110'000);
  CHECK(bound <= 121'000);
  std::string other = contents(plan);
  const std::string field = "\"lower_bound_ns\": ";
  const std::size_t at = other.find(field);
  REQUIRE(at != std::string::npos);
  other.insert(at + field.size(), "9");
  write_contents(scratch_file("boast.json"), other);
  CHECK(number(run_json({"explain", two_weights(), scratch_file("boast.json")}), "predicted.lower_bound_ns") == bound);
}

TEST_CASE("explain for persons") {
  const Outcome outcome = run_program({"explain", two_weights(), plan_for_two_weights("plan.json"), "--top", "1"});
  CHECK(outcome.code == 0);
  for (const std::string text : {"2 operations wait, 11.000 us in all; the longest:",
                                 "8.000 us  operation 1 \"read b\" waits for tensor 1 \"b\" (5.00 KB) to come in",
                                 "2 times a tensor is on the host alone between two uses; the longest:",
                                 "105.000 us  tensor 0 \"a\" (3.00 KB), after operation 0 \"update a\", until "
                                 "operation 0 \"update a\" of the next "
                                 "iteration"}) {
    CAPTURE(text);
    CHECK(outcome.out.find(text) != std::string::npos);
  }
  CHECK(outcome.out.find("3.000 us  operation") == std::string::npos);  // the second stall
}
