// SPDX-License-Identifier: Apache-2.0
#include "support/program_oracle.hpp"

#include <algorithm>
#include <random>
#include <sstream>

#include <swapmm/plan/plan_json.hpp>

#include "support/plan_mutations.hpp"

namespace swapmm::test {
namespace {

bool same_results(const TestProgram& program, const RunResult& a, const RunResult& b) {
  // A refused read is no difference in what the program computes, but gives the host other bytes to read.
  const bool may_differ = !program.steady || a.refused != 0 || b.refused != 0;
  return may_differ || a.downloads == b.downloads;
}

std::string judge_again(const ProgramRunner& run_on_device, const TestProgram& program, const RunResult& first) {
  const RunResult second = run_on_device(program, {.save_plans = true});
  if (second.trace_hash != first.trace_hash) return "the same seed gives other steps";
  if (second.downloads != first.downloads) return "the same seed gives other bytes";
  const auto same_text = [](const SavedPlan& a, const SavedPlan& b) { return a.text == b.text; };
  if (!std::equal(first.plans.begin(), first.plans.end(), second.plans.begin(), second.plans.end(), same_text)) {
    return "the same seed gives other plans";
  }
  return {};
}

std::string judge_on_demand(const ProgramRunner& run_on_device, const TestProgram& program, const RunResult& first) {
  const RunResult run = run_on_device(program, {.planning = false});
  if (!run.failure.empty()) return "without plans: " + run.failure;
  if (run.dropped != 0) return "without plans a value is dropped";
  return same_results(program, first, run) ? std::string() : "without plans the host reads other bytes";
}

/// Plans of the run itself, which suit it.
std::string judge_advice(const ProgramRunner& run_on_device, const TestProgram& program, const RunResult& first) {
  const RunResult run = run_on_device(program, {.loaded = first.plans});
  if (!run.failure.empty()) return "with its own plans: " + run.failure;
  if (!same_results(program, first, run)) return "with its own plans the host reads other bytes";
  const bool may_leave = program.scheduler.trial_iterations != 0 || first.budget_changes != 0;
  if (program.steady && !may_leave && run.refused == 0 && run.iterations_followed < first.iterations_followed) {
    return "with its own plans fewer iterations are followed: " + std::to_string(run.iterations_followed) + " of " +
           std::to_string(first.iterations_followed);
  }
  return {};
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

std::string judge_changed_advice(const ProgramRunner& run_on_device, const TestProgram& program,
                                 const RunResult& first) {
  std::mt19937_64 random(program.seed);
  std::vector<SavedPlan> changed = first.plans;
  for (SavedPlan& saved : changed) {
    std::istringstream in(saved.text);
    Result<Plan> plan = read_plan(in);
    if (!plan.has_value()) return "a saved plan cannot be read: " + plan.problem().message;
    const bool known = saved.trace && digest(*saved.trace) == plan->trace_digest;
    if (!known || random() % 4 == 0) {
      change_number(random, saved.text);
      continue;
    }
    for (std::uint64_t i = 0; i <= random() % 2; ++i) (void)mutate(random, *saved.trace, *plan);
    std::ostringstream out;
    write_plan(out, *plan);
    saved.text = out.str();
  }
  const RunResult run = run_on_device(program, {.loaded = changed});
  if (!run.failure.empty()) return "with changed plans: " + run.failure;
  return same_results(program, first, run) ? std::string() : "with changed plans the host reads other bytes";
}

}  // namespace

Verdict judge(const TestProgram& program, const Scrutiny& scrutiny, const ProgramRunner& run_on_device) {
  Verdict verdict{{}, run_on_device(program, {.save_plans = scrutiny.again || scrutiny.advised})};
  verdict.failure = verdict.run.failure;
  const auto ask = [&](bool asked, auto&& question) {
    if (asked && verdict.failure.empty()) verdict.failure = question(run_on_device, program, verdict.run);
  };
  ask(scrutiny.again, judge_again);
  ask(scrutiny.on_demand, judge_on_demand);
  ask(scrutiny.advised, judge_advice);
  ask(scrutiny.advised, judge_changed_advice);
  return verdict;
}

}  // namespace swapmm::test
