// SPDX-License-Identifier: Apache-2.0
#include "support/program/oracle.hpp"

#include <algorithm>
#include <random>
#include <sstream>
#include <string_view>
#include <utility>

#include <swapmm/formats/plan_json.hpp>
#include <swapmm/formats/v2/plan_json.hpp>

#include "support/plan_mutations.hpp"

namespace swapmm::test {
namespace {

bool same_results(const TestProgram& program, const RunResult& a, const RunResult& b) {
  // A refused read is no difference in what the program computes, but gives the host other bytes to read.
  const bool may_differ = !all_steady(program) || a.refused != 0 || b.refused != 0;
  return may_differ || a.downloads == b.downloads;
}

/// One number changed.
void change_number(std::mt19937_64& random, std::string& text) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  const std::size_t from = text.find("\"initial\"");
  if (from == std::string::npos) return;
  const std::size_t start = from + random() % (text.size() - from);
  const auto at = std::find_if(text.begin() + static_cast<std::ptrdiff_t>(start), text.end(), is_digit);
  if (at != text.end()) *at = static_cast<char>('0' + random() % 10);
}

/// One thing about one command.
void change_command(std::mt19937_64& random, v2::Plan& plan) {
  if (plan.commands.empty()) return;
  v2::Command& command = plan.commands[random() % plan.commands.size()];
  const v2::Command& other = plan.commands[random() % plan.commands.size()];
  switch (random() % 5) {
    case 0: command.after.clear(); break;
    case 1: command.before_operations.clear(); break;
    case 2:
      if (command.position && other.position) command.position = other.position;
      break;
    case 3: command.operation = other.operation; break;
    default:
      if (command.offset && other.offset) command.offset = other.offset;
  }
}

/// The same for a plan that runs operations again. Says why the text is no such plan, if it is none.
std::string change_version_2(std::mt19937_64& random, SavedPlan& saved) {
  Result<v2::Plan> plan = v2::read_plan(std::string_view(saved.text));
  if (!plan.has_value()) return "a saved plan cannot be read: " + plan.problem().message;
  change_command(random, *plan);
  if (random() % 4 == 0 || !v2::check_plan(*plan)) {
    change_number(random, saved.text);
    return {};
  }
  std::ostringstream out;
  v2::write_plan(out, *plan);
  saved.text = out.str();
  return {};
}

/// Says why the text is no plan, if it is none.
std::string change(std::mt19937_64& random, SavedPlan& saved) {
  if (saved.text.find("\"version\": 2") != std::string::npos) return change_version_2(random, saved);
  std::istringstream in(saved.text);
  Result<Plan> plan = read_plan(in);
  if (!plan.has_value()) return "a saved plan cannot be read: " + plan.problem().message;
  const bool known = saved.trace && digest(*saved.trace) == plan->trace_digest;
  if (!known || random() % 4 == 0) {
    change_number(random, saved.text);
    return {};
  }
  for (std::uint64_t i = 0; i <= random() % 2; ++i) (void)mutate(random, *saved.trace, *plan);
  std::ostringstream out;
  write_plan(out, *plan);
  saved.text = out.str();
  return {};
}

/// Asks one question after another of a program, until one is answered wrongly.
class Judge {
 public:
  Judge(const TestProgram& program, const ProgramRunner& run_on_device) : program_(program), run_(run_on_device) {}

  Verdict ask(const Scrutiny& scrutiny) {
    verdict_.settings.save_plans = scrutiny.again || scrutiny.advised;
    verdict_.run = run_(program_, verdict_.settings);
    verdict_.failure = verdict_.run.failure;
    if (scrutiny.again && held()) again();
    if (scrutiny.on_demand && held()) on_demand();
    if (scrutiny.advised && held()) advised();
    if (scrutiny.advised && held()) advised_wrongly();
    return std::move(verdict_);
  }

 private:
  [[nodiscard]] bool held() const { return verdict_.failure.empty(); }
  [[nodiscard]] const RunResult& first() const { return verdict_.run; }
  void fail(const std::string& text) {
    if (held()) verdict_.failure = text;
  }

  /// Another run, in which everything holds too, and the host reads the same.
  const RunResult& run(RunSettings settings, const std::string& how) {
    verdict_.settings = std::move(settings);
    verdict_.last = run_(program_, verdict_.settings);
    if (!verdict_.last.failure.empty()) fail(how + ": " + verdict_.last.failure);
    if (!same_results(program_, first(), verdict_.last)) fail(how + " the host reads other bytes");
    return verdict_.last;
  }

  void again() {
    const RunResult& second = run({.save_plans = true}, "for the same seed");
    if (second.trace_hash != first().trace_hash) fail("the same seed gives other steps");
    if (second.downloads != first().downloads) fail("the same seed gives other bytes");
    const auto same_text = [](const SavedPlan& a, const SavedPlan& b) { return a.text == b.text; };
    if (!std::equal(first().plans.begin(), first().plans.end(), second.plans.begin(), second.plans.end(), same_text)) {
      fail("the same seed gives other plans");
    }
  }

  void on_demand() {
    const RunResult& result = run({.planning = false}, "without plans");
    if (result.dropped != 0) fail("without plans a value is dropped");
    if (program_.beside.empty()) return;
    verdict_.last = run_one_by_one(program_);
    if (!verdict_.last.failure.empty()) fail("each alone: " + verdict_.last.failure);
    if (!same_results(program_, first(), verdict_.last)) fail("each alone, the host reads other bytes");
  }

  /// With plans of the run itself, which suit it.
  void advised() {
    verdict_.plans_advised = first().plans.size();
    const RunResult& result = run({.loaded = first().plans}, "with its own plans");
    const bool may_leave = program_.scheduler.trial_iterations != 0 || first().budget_changes != 0;
    if (program_.steady && !may_leave && result.refused == 0 &&
        result.iterations_followed < first().iterations_followed) {
      fail("with its own plans fewer iterations are followed: " + std::to_string(result.iterations_followed) + " of " +
           std::to_string(first().iterations_followed));
    }
  }

  /// With those plans, after something in them was changed: refused, or followed without harm.
  void advised_wrongly() {
    std::mt19937_64 random(program_.seed);
    std::vector<SavedPlan> changed = first().plans;
    for (SavedPlan& saved : changed) {
      if (const std::string problem = change(random, saved); !problem.empty()) return fail(problem);
    }
    verdict_.plans_mutated = changed.size();
    const RunResult& result = run({.loaded = std::move(changed)}, "with changed plans");
    verdict_.mutated_refused = result.loads_refused;
    verdict_.iterations_changed = result.iterations_followed;
  }

  const TestProgram& program_;
  const ProgramRunner& run_;
  Verdict verdict_{};
};

}  // namespace

Verdict judge(const TestProgram& program, const Scrutiny& scrutiny, const ProgramRunner& run_on_device) {
  return Judge(program, run_on_device).ask(scrutiny);
}

}  // namespace swapmm::test
