// SPDX-License-Identifier: Apache-2.0
#include <swapmm/runtime/joint/link_group.hpp>

#include <algorithm>
#include <atomic>

#include <swapmm/plan/v2/joint/devices.hpp>
#include <swapmm/runtime/timing/round_times.hpp>

namespace swapmm::runtime {
namespace {

using v2::planning::DevicesPlan;
using v2::planning::TurnWait;

std::atomic<std::uint64_t> last_answer{0};

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

}  // namespace

JointQuestion::JointQuestion(std::shared_ptr<LinkGroup> group, Offers offers,
                             std::vector<v2::planning::DeviceProgram> programs, bool with_turns)
    : group_(std::move(group)), offers_(std::move(offers)), programs_(std::move(programs)), with_turns_(with_turns) {}

JointQuestion::~JointQuestion() {
  if (!answered_) group_->give_back();
}

void JointQuestion::answer(const PlanningOptions& options) {
  // Who is alone plans as if there were no others.
  Result<DevicesPlan> plan = programs_.size() < 2
                                 ? Result<DevicesPlan>(DevicesPlan{})
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

std::uint64_t LinkGroup::last_number() { return last_answer.load(std::memory_order_relaxed); }

void LinkGroup::change() {
  has_changed_ = true;
  patience_ = 0;
}

LinkMemberId LinkGroup::join() {
  const std::lock_guard lock(mutex_);
  members_.try_emplace(++last_member_);
  patience_ = 0;  // it will be waited for
  return last_member_;
}

void LinkGroup::leave(LinkMemberId member) noexcept {
  const std::lock_guard lock(mutex_);
  const auto known = members_.find(member);
  if (known == members_.end()) return;
  if (known->second.offer != 0) change();
  members_.erase(known);
}

std::uint64_t LinkGroup::offer(LinkMemberId member, v2::planning::DeviceProgram program) {
  auto offered = std::make_shared<const v2::planning::DeviceProgram>(std::move(program));
  const std::lock_guard lock(mutex_);
  Member& known = members_.at(member);
  known.program = std::move(offered);
  known.offer = ++last_offer_;
  known.declines = false;
  change();
  return known.offer;
}

void LinkGroup::decline(LinkMemberId member) {
  const std::lock_guard lock(mutex_);
  Member& known = members_.at(member);
  if (known.declines) return;
  known.declines = true;
  known.program = nullptr;
  known.offer = 0;
  change();
}

// Managers that have not offered yet are waited for, and a question that is out is left to who has taken it; but not
// for ever.
bool LinkGroup::is_time_to_ask() {
  if (!has_changed_ && !is_asked_) return false;
  std::uint64_t ready = 0;
  bool is_missing = false;
  for (const auto& [id, member] : members_) {
    ready += member.offer != 0 ? 1 : 0;
    is_missing = is_missing || (member.offer == 0 && !member.declines);
  }
  // Who is alone has nobody to plan with, and learns that if there were others before.
  if (ready == 0 || (ready == 1 && plans_ == 0)) return false;
  if (!is_missing && !is_asked_) return true;
  return ++patience_ > (is_asked_ ? patience_for_answers : patience_for_offers) * ready;
}

std::shared_ptr<JointQuestion> LinkGroup::take_question() {
  const std::lock_guard lock(mutex_);
  if (!is_time_to_ask()) return nullptr;
  JointQuestion::Offers offers;
  std::vector<v2::planning::DeviceProgram> programs;
  bool with_turns = all_can_wait_ && all_can_wait_();
  for (const auto& [id, member] : members_) {
    if (member.offer == 0) continue;
    offers.emplace_back(id, member.offer);
    programs.push_back(*member.program);
    with_turns = with_turns && member.is_on_board;
  }
  auto question =
      std::make_shared<JointQuestion>(shared_from_this(), std::move(offers), std::move(programs), with_turns);
  is_asked_ = true;
  has_changed_ = false;
  patience_ = 0;
  return question;
}

void LinkGroup::give_back() {
  const std::lock_guard lock(mutex_);
  is_asked_ = false;
  change();
}

void LinkGroup::post(const JointQuestion::Offers& offers, Result<DevicesPlan> plan) {
  const std::uint64_t number = ++last_answer;
  std::vector<std::shared_ptr<JointAnswer>> answers;
  std::vector<LinkMemberId> ids;
  for (const auto& [id, offer] : offers) ids.push_back(id);
  const bool is_plan = plan && !plan->parts.empty();
  std::vector<std::vector<std::uint32_t>> published;
  for (std::size_t d = 0; is_plan && d < offers.size(); ++d) published.push_back(published_by(d, *plan));
  for (std::size_t d = 0; d < offers.size(); ++d) {
    auto answer = std::make_shared<JointAnswer>();
    answer->number = number;
    answer->offer = offers[d].second;
    answer->members = ids;
    if (!plan) answer->problem = plan.problem().message;
    if (is_plan) {
      DevicesPlan::Part& part = plan->parts[d];
      answer->plan = std::move(part.plan);
      answer->published = published[d];
      for (const TurnWait& turn : part.turns) {
        const auto slot = std::ranges::lower_bound(published[turn.device], turn.other) - published[turn.device].begin();
        answer->waits.push_back({turn.command, {turn.device, static_cast<std::uint32_t>(slot)}});
      }
    }
    answers.push_back(std::move(answer));
  }
  const auto trial = std::make_shared<Trial>();
  const std::lock_guard lock(mutex_);
  is_asked_ = false;
  if (is_plan) ++plans_;
  for (std::size_t d = 0; d < offers.size(); ++d) {
    const auto member = members_.find(ids[d]);
    if (member == members_.end()) continue;
    // Another question may have been answered meanwhile.
    if (member->second.answer != nullptr && member->second.answer->number > number) continue;
    member->second.answer = std::move(answers[d]);
    member->second.trial = trial;
  }
}

std::shared_ptr<const JointAnswer> LinkGroup::answer_for(LinkMemberId member) const {
  const std::lock_guard lock(mutex_);
  return members_.at(member).answer;
}

LinkGroup::Verdict LinkGroup::judge(LinkMemberId member, std::uint64_t plan, std::chrono::nanoseconds took,
                                    std::optional<std::chrono::nanoseconds> before) {
  const std::lock_guard lock(mutex_);
  const Member& own = members_.at(member);
  if (own.answer == nullptr || own.answer->number != plan) return Verdict::superseded;
  Trial& trial = *own.trial;
  if (trial.verdict != Verdict::open) return trial.verdict;
  trial.times[member] = {took, before};
  std::chrono::nanoseconds slowest{0};
  std::chrono::nanoseconds slowest_before{0};
  for (const LinkMemberId id : own.answer->members) {
    if (members_.count(id) == 0) continue;
    const auto times = trial.times.find(id);
    if (times == trial.times.end()) return Verdict::open;
    if (!times->second.before) return trial.verdict = Verdict::superseded;
    slowest = std::max(slowest, times->second.took);
    slowest_before = std::max(slowest_before, *times->second.before);
  }
  return trial.verdict = slower(slowest, slowest_before) ? Verdict::lose : Verdict::keep;
}

}  // namespace swapmm::runtime
