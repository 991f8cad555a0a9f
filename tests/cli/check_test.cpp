// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <sstream>
#include <string>

#include <swapmm/formats/plan_json.hpp>

#include "program.hpp"

using namespace swapmm;
using namespace swapmm::test;
using boost::json::object;

namespace {

/// The plan with one thing changed.
template <class Change>
std::string changed(const std::string& name, Change&& change) {
  Result<Plan> plan = read_plan(contents(plan_for_two_weights("good.json")));
  REQUIRE(plan.has_value());
  change(*plan);
  std::ostringstream text;
  write_plan(text, *plan);
  write_contents(scratch_file(name), text.str());
  return scratch_file(name);
}

}  // namespace

TEST_CASE("check of a plan that is valid") {
  const Outcome outcome = run_program({"check", two_weights(), plan_for_two_weights("good.json")});
  CHECK(outcome.code == 0);
  CHECK(outcome.out.find("valid: ") == 0);
}

TEST_CASE("check names what is wrong by rule, and ends with 1") {
  const std::string file = changed("broken.json", [](Plan& plan) {
    for (Command& command : plan.commands) {
      if (command.kind == CommandKind::swap_in) command.before_operation.reset();
    }
  });
  const object answer = run_json({"check", two_weights(), file}, 1);
  CHECK(answer.at("valid") == false);
  REQUIRE(!answer.at("violations").as_array().empty());
  const object& first = answer.at("violations").at(0).as_object();
  CHECK(number(first, "rule") == 6);
  CHECK(text_at(first, "name") == "order whatever things take");
  CHECK(text_at(first, "message").find("tensor") != std::string::npos);

  const Outcome outcome = run_program({"check", two_weights(), file});
  CHECK(outcome.code == 1);
  CHECK(outcome.err.empty());
  CHECK(outcome.out.find("rule 6 (order whatever things take): ") != std::string::npos);
  CHECK(outcome.out.find(text_at(first, "message")) != std::string::npos);
}

TEST_CASE("a plan of another program breaks rule 0, and no command takes it") {
  const std::string file = plan_for_two_weights("good.json");
  const object answer = run_json({"check", lstm(), file}, 1);
  CHECK(number(answer.at("violations").at(0).as_object(), "rule") == 0);
  for (const std::string command : {"simulate", "explain"}) {
    check_refused({command, lstm(), file}, 1,
                  {file, "not a valid plan for this trace", "is for program", "swapmm check"});
  }
  check_refused({"show", file, "--trace", lstm(), "--svg", scratch_file("none.svg")}, 1, {file, "not a valid plan"});
}

TEST_CASE("a plan above its budget is refused while it is read, with the place") {
  const std::string file = changed("above.json", [](Plan& plan) { plan.machine.device_budget = Bytes{0}; });
  check_refused({"check", two_weights(), file}, 3, {file + ": machine", "device_budget_bytes"});
}
