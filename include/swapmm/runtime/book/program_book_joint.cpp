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

void ProgramBook::join(std::weak_ptr<LinkMember> member) {
  links_ = std::move(member);
  joint_ = {};
  joint_.since = LinkGroup::last_number();
}

void ProgramBook::plan_jointly(Named& programs, const std::function<KnownMachine()>& now) {
  const std::shared_ptr<LinkMember> member = links_.lock();
  if (member == nullptr) return;
  take_answer(programs, now, *member);
  std::vector<PlanCase>& cases = programs.now().cases;
  const bool is_at_rest = !cases.empty() && cases.front().choice() != nullptr && cases.front().awaited == 0 &&
                          cases.front().state == PlanState::settled;
  if (!is_at_rest || pending_ != nullptr || !takes_part(programs, cases.front())) return;
  PlanCase& latest = cases.front();
  // This one has gone back to a joint plan that the others have left.
  const bool is_old = is_joint(latest) && latest.plan->turns->number != joint_.answered;
  if (is_old && joint_.plan != nullptr) plan_alone_again(programs, latest, now());
  if ((!is_joint(latest) || is_old) && latest.plan != joint_.plan) offer(programs, latest, now(), *member);
  ask_for_all(programs, *member);
  take_answer(programs, now, *member);
}

// A manager takes part with one cycle. It takes another one, or another budget, only if the program stays there for
// long: each time is a plan for all.
bool ProgramBook::takes_part(const Named& programs, const PlanCase& plan_case) {
  const bool is_the_one =
      joint_.name == programs.name && joint_.budget == budget_ && same_cycle(joint_.members, plan_case.members);
  if (is_the_one || joint_.members.empty()) {
    joint_.elsewhere = 0;
    return true;
  }
  if (++joint_.elsewhere < joint_.patience) return false;
  joint_.elsewhere = 0;
  joint_.patience *= 2;
  joint_.plan = nullptr;
  return true;
}

void ProgramBook::offer(const Named& programs, const PlanCase& plan_case, const KnownMachine& machine,
                        LinkMember& member) {
  std::optional<Program> program = refreshed(programs, plan_case);
  if (!program) return;
  const char* why = nullptr;
  if (options_.planner.name() != "best") why = "only the planner best makes such plans";
  if (plan_case.plan->tiered) why = "its plan tells host, file and neighbours apart";
  if (encodes(*program)) why = "values are encoded on their way";
  if (plan_case.plan->without_replays != nullptr && !compares()) why = "its plan runs operations again";
  JointPart part{programs.name,   plan_case.members, budget_, plan_case.plan, {}, 0,
                 joint_.answered, joint_.since,      0,       joint_.patience};
  if (why != nullptr) {
    member.group().decline(member.id());
    note("iteration \"" + programs.name + "\" is not planned together with other devices: " + why);
  } else {
    part.program = *std::move(program);
    Machine one = as_one_memory(part.program, machine);
    if (machine.links_alone) {
      one.h2d = faster(one.h2d, machine.links_alone->first);
      one.d2h = faster(one.d2h, machine.links_alone->second);
    }
    std::optional<Plan> known;
    if (plan_case.plan->without_replays == nullptr) known = plan_case.plan->plan;
    part.number = member.group().offer(member.id(), {part.program.trace, one, std::move(known)});
  }
  joint_ = std::move(part);
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
  if (!answer->problem.empty()) {
    note("iteration \"" + programs.name + "\" is not planned together with other devices: " + answer->problem);
    known->measured_again = false;
  } else if (answer->members.size() == 1) {
    plan_alone_again(programs, *known, now());
  } else if (is_measured_beside_others(*known)) {
    adopt_part(programs, *known, *answer, now());
  } else {
    return;
  }
  joint_.answered = answer->number;
}

void ProgramBook::adopt_part(Named& programs, PlanCase& plan_case, const JointAnswer& answer,
                             const KnownMachine& machine) {
  Result<CompiledPlan> adopted = adopt_plan(joint_.program, answer.plan, as_one_memory(joint_.program, machine));
  if (!adopted) {
    plan_case.measured_again = false;
    return note("iteration \"" + programs.name + "\": the joint plan is refused: " + adopted.problem().message);
  }
  adopted->turns = turns_of(answer, *adopted);
  const Plan& old = plan_case.plan->plan;
  const bool is_same =
      is_joint(plan_case) && adopted->plan.commands == old.commands && adopted->plan.initial == old.initial;
  auto next = std::make_shared<const CompiledPlan>(*std::move(adopted));
  ++plans_made_;
  if (!is_same) return plan_case.try_out(std::move(next), compares());
  // Only the turns differ, and times are better known.
  plan_case.predicted = next->plan.predicted.iteration;
  plan_case.plan = std::move(next);
  plan_case.measured_again = false;
  plan_case.lose_patience();
}

// The other managers are gone.
void ProgramBook::plan_alone_again(Named& programs, PlanCase& plan_case, const KnownMachine& machine) {
  if (!is_joint(plan_case)) return;
  std::optional<Program> program = refreshed(programs, plan_case);
  auto without_turns = std::make_shared<CompiledPlan>(*plan_case.plan);
  without_turns->turns = nullptr;
  plan_case.plan = std::move(without_turns);
  plan_case.measured_again = false;
  joint_.plan = plan_case.plan;  // there is nobody to offer it to
  if (program && pending_ == nullptr) plan_again(programs, plan_case, *std::move(program), machine);
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

// The trial ends when all managers of the plan have measured. If they do not, each of them decides for itself.
void ProgramBook::judge_jointly(Named& programs, PlanCase& plan_case) {
  const std::shared_ptr<LinkMember> member = links_.lock();
  const nanoseconds took = *plan_case.times.median();
  const std::optional<nanoseconds> before =
      plan_case.before != nullptr ? plan_case.before_times.median() : std::nullopt;
  auto verdict = LinkGroup::Verdict::superseded;
  if (member != nullptr) verdict = member->group().judge(member->id(), plan_case.plan->turns->number, took, before);
  constexpr std::size_t most_patient = 16;
  const bool is_waiting = verdict == LinkGroup::Verdict::open;
  if (is_waiting && plan_case.rounds < most_patient * options_.trial_iterations) return;
  const bool is_slower = before && slower(took, *before);
  if (verdict == LinkGroup::Verdict::lose || (verdict != LinkGroup::Verdict::keep && is_slower)) {
    return lose(programs, plan_case, took, before.value_or(took));
  }
  plan_case.keep(took, before);
}

// If rounds take longer than was promised, the devices are planned for with the times known now.
void ProgramBook::reconsider_jointly(Named& programs, PlanCase& plan_case, const KnownMachine& machine) {
  const std::shared_ptr<LinkMember> member = links_.lock();
  const std::optional<nanoseconds> measured = plan_case.times.median();
  if (member == nullptr || !measured || !takes_part(programs, plan_case)) return;
  // The prediction is for all devices; this one alone may be quicker.
  const auto expected = static_cast<double>(plan_case.predicted.count());
  if (static_cast<double>(measured->count()) <= (1 + options_.replan_above) * expected) return;
  plan_case.samples = 0;
  ++plans_remade_;
  plan_case.lose_patience();
  offer(programs, plan_case, machine, *member);
}

}  // namespace swapmm::runtime
