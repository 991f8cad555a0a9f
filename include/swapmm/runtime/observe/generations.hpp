// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>

#include <swapmm/runtime/observe/log.hpp>
#include <swapmm/runtime/values/none.hpp>

namespace swapmm::runtime {

/// The roles of tensors that are made anew in each iteration (see Producer), while a program is made from the
/// iterations of a cycle. A tensor of the cycle before has the role of the tensor that takes its place in this one.
class Generations {
 public:
  explicit Generations(std::size_t iterations) : iterations_(iterations) {}

  struct Found {
    std::uint32_t role = none;  ///< none: the tensor gets a new role; call add()
    bool created = false;       ///< the iteration creates the tensor
    std::uint32_t carried = 0;  ///< see Role::carried
  };

  /// Looks a tensor up that iteration `member` of the cycle uses.
  [[nodiscard]] Found find(std::size_t member, Producer producer) {
    if (producer.age == 0) {
      Slot& slot = slots_[{member, producer.index}];
      slot.created = true;
      return {slot.role, true, 0};
    }
    if (producer.age <= member) {
      Slot& slot = slots_[{member - producer.age, producer.index}];
      consistent_ = consistent_ && slot.created;
      return {slot.role, false, 0};
    }
    const auto carried = static_cast<std::uint32_t>(producer.age - member);
    if (carried > iterations_) {  // the next generation exists already
      overlap_ = true;
      return {none, false, carried};
    }
    Slot& slot = slots_[{iterations_ - carried, producer.index}];
    overlap_ = overlap_ || slot.created;
    slot.carried = true;
    return {slot.role, false, carried};
  }

  /// Looks up the role of a tensor that ended in iteration `member`; `carried` as for a tensor that is used there. None
  /// if it had no role, or its place has been taken since.
  [[nodiscard]] Found find_earlier(std::size_t member, Producer producer) const {
    const bool is_carried = producer.age > member;
    if (is_carried && producer.age - member > iterations_) return {};
    const std::size_t made = member + (is_carried ? iterations_ : 0) - producer.age;
    const auto slot = slots_.find({made, producer.index});
    if (slot == slots_.end()) return {};
    return {slot->second.role, producer.age == 0, is_carried ? static_cast<std::uint32_t>(producer.age - member) : 0};
  }

  void add(std::size_t member, Producer producer, std::uint32_t role) {
    if (producer.age <= member) {
      slots_[{member - producer.age, producer.index}].role = role;
    } else if (producer.age - member <= iterations_) {
      slots_[{iterations_ + member - producer.age, producer.index}].role = role;
    }
  }

  void note_overlap() { overlap_ = true; }
  /// True if two generations of a tensor exist at the same time.
  [[nodiscard]] bool overlap() const { return overlap_; }
  /// False if a tensor is used of which no iteration of the cycle is known to create it.
  [[nodiscard]] bool consistent() const {
    for (const auto& [place, slot] : slots_) {
      if (slot.carried && !slot.created) return false;
    }
    return consistent_;
  }

 private:
  struct Slot {
    std::uint32_t role = none;
    bool created = false;  // in this cycle, so far
    bool carried = false;  // the tensor of the cycle before is used
  };

  std::size_t iterations_;
  std::map<std::pair<std::size_t, std::uint32_t>, Slot> slots_;  // by the iteration and log index that create it
  bool overlap_ = false;
  bool consistent_ = true;
};

}  // namespace swapmm::runtime
