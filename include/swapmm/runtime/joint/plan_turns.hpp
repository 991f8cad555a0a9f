// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace swapmm::runtime {

/// A manager among those that share links. Numbers are not used again.
using LinkMemberId = std::uint64_t;

/// How the copies of a plan take turns with those of other devices: each manager publishes the ends of the copies that
/// others wait for, in numbered slots.
struct PlanTurns {
  static constexpr std::uint32_t none = 0xffffffffU;

  /// A wait for a copy of another manager in the same round.
  struct Wait {
    std::uint32_t member = 0;  ///< position in `members`
    std::uint32_t slot = 0;    ///< of that manager
  };
  /// What a step of the compiled plan has to do.
  struct OfStep {
    std::uint32_t publishes = none;  ///< its slot
    std::uint32_t first_wait = 0;
    std::uint32_t waits = 0;
  };

  std::uint64_t number = 0;           ///< of the joint plan
  std::vector<LinkMemberId> members;  ///< whose plans belong together
  std::uint32_t slots = 0;            ///< that this manager publishes in
  std::vector<OfStep> of_step;
  std::vector<Wait> waits;
};

}  // namespace swapmm::runtime
