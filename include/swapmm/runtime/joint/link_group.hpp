// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <typeinfo>
#include <utility>
#include <vector>

#include <swapmm/base/export.hpp>
#include <swapmm/plan/machine.hpp>
#include <swapmm/plan/plan.hpp>
#include <swapmm/plan/planner.hpp>
#include <swapmm/runtime/joint/plan_turns.hpp>
#include <swapmm/runtime/joint/turn_board.hpp>

namespace swapmm::v2::planning {
struct DeviceProgram;
struct DevicesPlan;
}  // namespace swapmm::v2::planning

namespace swapmm::runtime {

class LinkGroup;

/// A manager's part of a joint plan.
struct JointAnswer {
  std::uint64_t number = 0;  ///< of the answer, and of its joint plan: above 0, ascending in the whole process
  std::uint64_t offer = 0;   ///< what the manager had offered
  std::string problem{};     ///< why there is no plan
  Plan plan{};
  std::vector<LinkMemberId> members{};     ///< of all managers. If there is one, it is alone, and has no plan
  std::vector<std::uint32_t> published{};  ///< commands of the plan that others wait for: slot by slot, ascending
  struct Wait {
    std::uint32_t command = 0;
    PlanTurns::Wait turn{};
  };
  std::vector<Wait> waits{};  ///< ascending by command
};

/// The task of making a joint plan of what managers have offered. Any thread may run it.
class JointQuestion {
 public:
  using Offers = std::vector<std::pair<LinkMemberId, std::uint64_t>>;

  JointQuestion(std::shared_ptr<LinkGroup> group, Offers offers, std::vector<v2::planning::DeviceProgram> programs,
                bool with_turns);
  JointQuestion(const JointQuestion&) = delete;
  JointQuestion& operator=(const JointQuestion&) = delete;
  /// Without an answer, the group asks again.
  ~JointQuestion();

  /// Makes the plan, and gives each manager its part.
  void answer(const PlanningOptions& options);

 private:
  std::shared_ptr<LinkGroup> group_;
  Offers offers_;
  std::vector<v2::planning::DeviceProgram> programs_;
  bool with_turns_;
  bool answered_ = false;
};

/// Managers whose devices share the way to the host: what each of them does, joint plans for all of them, and whether
/// these are faster than the plans before. For any thread.
class LinkGroup : public std::enable_shared_from_this<LinkGroup> {
 public:
  /// Calls of take_question(), for each manager that has offered something, after which managers that have offered
  /// nothing are not waited for any more.
  static constexpr std::uint64_t patience_for_offers = 64;
  /// The same after which a question that nobody answers is asked again.
  static constexpr std::uint64_t patience_for_answers = 4096;

  explicit LinkGroup(const LinkCapacities& capacities) : capacities_(capacities) {}

  [[nodiscard]] const LinkCapacities& capacities() const { return capacities_; }
  [[nodiscard]] std::size_t members() const;
  /// How many joint plans were made.
  [[nodiscard]] std::uint64_t plans() const;
  /// The number of the last answer in the process.
  [[nodiscard]] static std::uint64_t last_number();

  [[nodiscard]] SWAPMM_TEMPLATE_EXPORT LinkMemberId join();
  SWAPMM_TEMPLATE_EXPORT void leave(LinkMemberId member) noexcept;
  /// The board on which the manager's copies take turns; null if the first manager's backend is of another type.
  template <Backend B>
  [[nodiscard]] std::shared_ptr<TurnBoard<B>> board(LinkMemberId member) {
    const std::lock_guard lock(mutex_);
    if (board_ == nullptr) {
      const auto made = std::make_shared<TurnBoard<B>>();
      all_can_wait_ = [made] { return made->all_can_wait(); };
      board_ = made;
      backend_ = &typeid(B);
    }
    if (*backend_ != typeid(B)) return nullptr;
    members_.at(member).is_on_board = true;
    return std::static_pointer_cast<TurnBoard<B>>(board_);
  }

  /// What the manager's iterations are from now on. Returns the number of the offer.
  std::uint64_t offer(LinkMemberId member, v2::planning::DeviceProgram program);
  /// The manager does not take part in joint plans, until it offers something.
  void decline(LinkMemberId member);
  /// The question that somebody has to answer now; null if there is none. Managers call it again and again.
  [[nodiscard]] std::shared_ptr<JointQuestion> take_question();
  /// The last answer for a manager; null if there is none.
  [[nodiscard]] std::shared_ptr<const JointAnswer> answer_for(LinkMemberId member) const;

  enum class Verdict : std::uint8_t {
    open,        ///< not all managers have measured
    keep,        ///< the slowest of them got no slower
    lose,        ///< it did
    superseded,  ///< there is another plan, or nobody can tell: each manager decides for itself
  };
  /// The manager's rounds took so long with the joint plan, and so long before it. Once there is a verdict for a plan,
  /// it stays.
  Verdict judge(LinkMemberId member, std::uint64_t plan, std::chrono::nanoseconds took,
                std::optional<std::chrono::nanoseconds> before);

 private:
  friend class JointQuestion;
  struct Times {
    std::chrono::nanoseconds took{0};
    std::optional<std::chrono::nanoseconds> before;
  };
  /// Of one joint plan.
  struct Trial {
    std::map<LinkMemberId, Times> times;
    Verdict verdict = Verdict::open;
  };
  struct Member {
    std::uint64_t offer = 0;  // 0: none
    bool declines = false;
    bool is_on_board = false;
    std::shared_ptr<const v2::planning::DeviceProgram> program;
    std::shared_ptr<const JointAnswer> answer;
    std::shared_ptr<Trial> trial;  // of the answer
  };

  void change();
  [[nodiscard]] bool is_time_to_ask();
  void give_back();
  void post(const JointQuestion::Offers& offers, Result<v2::planning::DevicesPlan> plan);

  const LinkCapacities capacities_;
  mutable std::mutex mutex_;
  std::map<LinkMemberId, Member> members_;  // in the order in which they came
  std::shared_ptr<void> board_;
  std::function<bool()> all_can_wait_;
  const std::type_info* backend_ = nullptr;
  bool is_asked_ = false;       // a question is out
  bool has_changed_ = false;    // since the last question
  std::uint64_t patience_ = 0;  // calls of take_question() since it was asked, or since something changed
  LinkMemberId last_member_ = 0;
  std::uint64_t last_offer_ = 0;
  std::uint64_t plans_ = 0;
};

/// A manager's membership.
class LinkMember {
 public:
  explicit LinkMember(std::shared_ptr<LinkGroup> group) : group_(std::move(group)), id_(group_->join()) {}
  LinkMember(const LinkMember&) = delete;
  LinkMember& operator=(const LinkMember&) = delete;
  ~LinkMember() { group_->leave(id_); }

  [[nodiscard]] LinkMemberId id() const { return id_; }
  [[nodiscard]] LinkGroup& group() const { return *group_; }

 private:
  std::shared_ptr<LinkGroup> group_;
  LinkMemberId id_;
};

}  // namespace swapmm::runtime
