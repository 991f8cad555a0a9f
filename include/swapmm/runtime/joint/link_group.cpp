// SPDX-License-Identifier: Apache-2.0
#include <swapmm/runtime/joint/link_group.hpp>

#include <algorithm>

#include <swapmm/plan/planners.hpp>
#include <swapmm/plan/v2/joint/devices.hpp>

namespace swapmm::runtime {
namespace {

using v2::planning::DevicesPlan;
using v2::planning::TurnWait;

/// The commands of a device's plan that others wait for, ascending.
std::vector<std::uint32_t> published_by(std::size_t position, const DevicesPlan& plan) {
  std::vector<std::uint32_t> commands;
  for (const DevicesPlan::Part& part : plan.parts) {
    for (const TurnWait& turn : part.turns) {
      if (turn.device == position) commands.push_back(turn.other);
    }
  }
  std::ranges::sort(commands);
  commands.erase(std::unique(commands.begin(), commands.end()), commands.end());
  return commands;
}

/// A plan for one device that has no others beside it any more.
Result<DevicesPlan> plan_alone(const v2::planning::DeviceProgram& program, const PlanningOptions& options) {
  Result<Plan> plan = make_plan("best", program.trace, program.machine, options);
  if (!plan) return plan.problem();
  DevicesPlan result;
  result.iteration = plan->predicted.iteration;
  result.parts.push_back({*std::move(plan), {}});
  return result;
}

}  // namespace

JointQuestion::JointQuestion(std::shared_ptr<LinkGroup> group, Offers offers,
                             std::vector<v2::planning::DeviceProgram> programs, bool with_turns)
    : group_(std::move(group)), offers_(std::move(offers)), programs_(std::move(programs)), with_turns_(with_turns) {}

JointQuestion::~JointQuestion() {
  if (!answered_) group_->give_back();
}

void JointQuestion::answer(const PlanningOptions& options) {
  Result<DevicesPlan> plan = programs_.size() == 1
                                 ? plan_alone(programs_.front(), options)
                                 : v2::planning::plan_devices(programs_, group_->capacities(), options, with_turns_);
  group_->post(offers_, std::move(plan));
  answered_ = true;
}

std::size_t LinkGroup::members() const {
  const std::lock_guard lock(mutex_);
  return members_.size();
}

std::uint64_t LinkGroup::plans() const {
  const std::lock_guard lock(mutex_);
  return plans_;
}

LinkMemberId LinkGroup::join() {
  const std::lock_guard lock(mutex_);
  members_.try_emplace(++last_member_);
  return last_member_;
}

void LinkGroup::leave(LinkMemberId member) noexcept {
  const std::lock_guard lock(mutex_);
  members_.erase(member);
  has_changed_ = true;
}

void LinkGroup::without_turns() {
  const std::lock_guard lock(mutex_);
  with_turns_ = false;
}

std::uint64_t LinkGroup::offer(LinkMemberId member, v2::planning::DeviceProgram program) {
  auto offered = std::make_shared<const v2::planning::DeviceProgram>(std::move(program));
  const std::lock_guard lock(mutex_);
  Member& known = members_.at(member);
  known.program = std::move(offered);
  known.offer = ++last_offer_;
  has_changed_ = true;
  return known.offer;
}

std::shared_ptr<JointQuestion> LinkGroup::take_question() {
  const std::lock_guard lock(mutex_);
  if (is_asked_ || !has_changed_) return nullptr;
  const bool is_first = plans_ == 0;
  if (members_.size() < 2 && is_first) return nullptr;  // nobody is there whom a plan could be made with
  if (std::ranges::any_of(members_, [](const auto& member) { return member.second.offer == 0; })) return nullptr;
  JointQuestion::Offers offers;
  std::vector<v2::planning::DeviceProgram> programs;
  for (const auto& [id, member] : members_) {
    offers.emplace_back(id, member.offer);
    programs.push_back(*member.program);
  }
  auto question =
      std::make_shared<JointQuestion>(shared_from_this(), std::move(offers), std::move(programs), with_turns_);
  is_asked_ = true;
  has_changed_ = false;
  return question;
}

void LinkGroup::give_back() {
  const std::lock_guard lock(mutex_);
  is_asked_ = false;
  has_changed_ = true;
}

void LinkGroup::post(const JointQuestion::Offers& offers, Result<DevicesPlan> plan) {
  std::vector<std::shared_ptr<JointAnswer>> answers;
  std::vector<LinkMemberId> ids;
  for (const auto& [id, offer] : offers) ids.push_back(id);
  std::vector<std::vector<std::uint32_t>> published;
  for (std::size_t d = 0; plan && d < offers.size(); ++d) published.push_back(published_by(d, *plan));
  for (std::size_t d = 0; d < offers.size(); ++d) {
    auto answer = std::make_shared<JointAnswer>();
    answer->offer = offers[d].second;
    if (!plan) {
      answer->problem = plan.problem().message;
    } else {
      DevicesPlan::Part& part = plan->parts[d];
      answer->plan = std::move(part.plan);
      answer->members = ids;
      answer->published = published[d];
      for (const TurnWait& turn : part.turns) {
        const auto slot = std::ranges::lower_bound(published[turn.device], turn.other) - published[turn.device].begin();
        answer->waits.push_back({turn.command, {turn.device, static_cast<std::uint32_t>(slot)}});
      }
    }
    answers.push_back(std::move(answer));
  }
  const std::lock_guard lock(mutex_);
  if (plan) ++plans_;
  ++answers_;
  for (std::size_t d = 0; d < offers.size(); ++d) {
    answers[d]->number = answers_;
    const auto member = members_.find(ids[d]);
    if (member == members_.end()) continue;
    member->second.answer = std::move(answers[d]);
    member->second.trial.reset();
  }
  is_asked_ = false;
}

std::shared_ptr<const JointAnswer> LinkGroup::answer_for(LinkMemberId member) const {
  const std::lock_guard lock(mutex_);
  return members_.at(member).answer;
}

LinkGroup::Verdict LinkGroup::judge(LinkMemberId member, std::uint64_t plan, std::chrono::nanoseconds took,
                                    std::optional<std::chrono::nanoseconds> before) {
  const std::lock_guard lock(mutex_);
  Member& own = members_.at(member);
  if (own.answer == nullptr || own.answer->number != plan) return Verdict::keep;  // there is a newer one
  own.trial = Trial{took, before};
  std::chrono::nanoseconds slowest{0};
  std::chrono::nanoseconds slowest_before{0};
  for (const LinkMemberId id : own.answer->members) {
    const auto other = members_.find(id);
    if (other == members_.end()) continue;
    const Member& known = other->second;
    if (known.answer == nullptr || known.answer->number != plan || !known.trial) return Verdict::open;
    if (!known.trial->before) return Verdict::keep;
    slowest = std::max(slowest, known.trial->took);
    slowest_before = std::max(slowest_before, *known.trial->before);
  }
  return static_cast<double>(slowest.count()) > 1.01 * static_cast<double>(slowest_before.count()) ? Verdict::lose
                                                                                                   : Verdict::keep;
}

}  // namespace swapmm::runtime
