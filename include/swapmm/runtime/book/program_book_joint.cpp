// SPDX-License-Identifier: Apache-2.0
// How a program book takes part in plans for several managers: docs/decisions/0047-joint-plans-at-run-time.md.

#include <swapmm/runtime/book/program_book.hpp>

#include <algorithm>
#include <utility>

#include <swapmm/plan/v2/joint/devices.hpp>
#include <swapmm/runtime/book/planning_task.hpp>
#include <swapmm/runtime/book/tiered_plan.hpp>

namespace swapmm::runtime {

namespace {

using std::chrono::nanoseconds;

bool encodes(const Program& program) {
  return std::ranges::any_of(program.trace.tensors,
                             [](const TraceTensor& tensor) { return tensor.copied.has_value(); });
}

/// What the steps of the compiled plan have to do.
std::shared_ptr<const PlanTurns> turns_of(const JointAnswer& answer, const CompiledPlan& plan) {
  auto turns = std::make_shared<PlanTurns>();
  turns->number = answer.number;
  turns->members = answer.members;
  turns->slots = static_cast<std::uint32_t>(answer.published.size());
  turns->of_step.resize(plan.steps.size());
  for (std::size_t s = 0; s < plan.steps.size(); ++s) {
    const std::uint32_t command = plan.steps[s].command;
    PlanTurns::OfStep& step = turns->of_step[s];
    const auto slot = std::ranges::lower_bound(answer.published, command);
    if (slot != answer.published.end() && *slot == command) {
      step.publishes = static_cast<std::uint32_t>(slot - answer.published.begin());
    }
    step.first_wait = static_cast<std::uint32_t>(turns->waits.size());
    const auto first = std::ranges::lower_bound(answer.waits, command, {}, &JointAnswer::Wait::command);
    for (auto wait = first; wait != answer.waits.end() && wait->command == command; ++wait) {
      turns->waits.push_back(wait->turn);
      ++step.waits;
    }
  }
  return turns;
}

}  // namespace

void ProgramBook::plan_jointly(Named& programs, const std::function<KnownMachine()>& now) {
  const std::shared_ptr<LinkMember> member = links_.lock();
  if (member == nullptr) return;
  take_answer(programs, now, *member);
  const std::vector<PlanCase>& cases = programs.now().cases;
  const bool is_at_rest = !cases.empty() && cases.front().choice() != nullptr && cases.front().awaited == 0 &&
                          cases.front().state == PlanState::settled;
  if (!is_at_rest || pending_ != nullptr) return;
  const PlanCase& latest = cases.front();
  const bool is_joint = latest.plan->turns != nullptr && latest.plan->turns->number == joint_.answered;
  if (!is_joint && latest.plan != joint_.plan) offer(programs, latest, now(), *member);
  ask_for_all(programs, *member);
  take_answer(programs, now, *member);
}

void ProgramBook::offer(Named& programs, const PlanCase& plan_case, const KnownMachine& machine, LinkMember& member) {
  joint_.name = programs.name;
  joint_.members = plan_case.members;
  joint_.budget = budget_;
  joint_.plan = plan_case.plan;
  joint_.number = 0;
  const auto refuse = [&](const char* why) {
    note("iteration \"" + programs.name + "\" is not planned together with other devices: " + why);
  };
  std::optional<Program> program = refreshed(programs, plan_case);
  if (!program) return;
  if (options_.planner.name() != "best") return refuse("only the planner best makes such plans");
  if (plan_case.plan->tiered) return refuse("its plan tells host, file and neighbours apart");
  if (encodes(*program)) return refuse("values are encoded on their way");
  joint_.program = *std::move(program);
  joint_.number = member.group().offer(member.id(), {joint_.program.trace, as_one_memory(joint_.program, machine)});
}

void ProgramBook::ask_for_all(const Named& programs, LinkMember& member) {
  std::shared_ptr<JointQuestion> question = member.group().take_question();
  if (question == nullptr) return;
  auto task = std::make_shared<PlanTask>();
  task->question = std::move(question);
  task->time = time_for_planner();
  task->name = programs.name;
  if (options_.planning == Planning::deferred) return set_pending(std::move(task));
  run(*task);
}

void ProgramBook::take_answer(Named& programs, const std::function<KnownMachine()>& now, const LinkMember& member) {
  if (joint_.number == 0 || joint_.name != programs.name || joint_.budget != budget_) return;
  const std::shared_ptr<const JointAnswer> answer = member.group().answer_for(member.id());
  if (answer == nullptr || answer->offer != joint_.number || answer->number == joint_.answered) return;
  std::vector<PlanCase>& cases = programs.now().cases;
  const auto known =
      std::ranges::find_if(cases, [&](const PlanCase& each) { return same_cycle(each.members, joint_.members); });
  if (known == cases.end() || known->state != PlanState::settled || known->checking) return;
  if (answer->problem.empty() && !is_measured_beside_others(*known)) return;
  joint_.answered = answer->number;
  if (!answer->problem.empty()) {
    return note("iteration \"" + programs.name + "\" is not planned together with other devices: " + answer->problem);
  }
  Result<CompiledPlan> adopted = adopt_plan(joint_.program, answer->plan, as_one_memory(joint_.program, now()));
  if (!adopted) {
    return note("iteration \"" + programs.name + "\": the joint plan is refused: " + adopted.problem().message);
  }
  adopted->turns = turns_of(*answer, *adopted);
  known->try_out(std::make_shared<const CompiledPlan>(*std::move(adopted)), compares());
  ++plans_made_;
}

// What is known of the plan before was measured when others did something else. So its rounds are timed once more, now
// that all of them follow plans.
bool ProgramBook::is_measured_beside_others(PlanCase& plan_case) const {
  if (!compares()) return true;
  if (!plan_case.measured_again) {
    plan_case.measured_again = true;
    plan_case.times.clear();
    plan_case.rounds = 0;
  }
  return plan_case.times.count() >= rounds_counted();
}

// The trial ends when all managers of the plan have measured. If one of them never does, this one keeps the plan.
void ProgramBook::judge_jointly(Named& programs, PlanCase& plan_case) {
  const std::shared_ptr<LinkMember> member = links_.lock();
  const nanoseconds took = *plan_case.times.median();
  const std::optional<nanoseconds> before =
      plan_case.before != nullptr ? plan_case.before_times.median() : std::nullopt;
  auto verdict = LinkGroup::Verdict::keep;
  if (member != nullptr) verdict = member->group().judge(member->id(), plan_case.plan->turns->number, took, before);
  constexpr std::size_t most_patient = 16;
  if (verdict == LinkGroup::Verdict::open && plan_case.rounds < most_patient * options_.trial_iterations) return;
  if (verdict == LinkGroup::Verdict::lose) return lose(programs, plan_case, took, before.value_or(took));
  plan_case.patience = 1;
  plan_case.keep();
}

// If rounds take another time than was promised, the devices are planned for with the times known now.
void ProgramBook::reconsider_jointly(Named& programs, PlanCase& plan_case, const KnownMachine& machine) {
  const std::shared_ptr<LinkMember> member = links_.lock();
  const std::optional<nanoseconds> measured = plan_case.times.median();
  if (member == nullptr || !measured) return;
  if (!is_off(*measured, plan_case.predicted, options_.replan_above)) return;
  plan_case.samples = 0;
  ++plans_remade_;
  plan_case.lose_patience();
  offer(programs, plan_case, machine, *member);
}

}  // namespace swapmm::runtime
