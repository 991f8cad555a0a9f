// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/v2/validation/place_check.hpp>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

namespace swapmm::v2::validation {
namespace {

constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();

/// `who()` names the place; called only if there is a violation.
template <class Who>
void check_place(const Memory& memory, Bytes offset, Bytes bytes, Who&& who, Findings& findings) {
  const auto at = [&] {
    return who() + " at offset " + std::to_string(offset.value) + " of " + memory.name + " with " +
           std::to_string(bytes.value) + " bytes ";
  };
  if (offset > *memory.bytes || bytes > *memory.bytes - offset) {
    findings.add(3, at() + "leaves the memory, which has " + std::to_string(memory.bytes->value) + " bytes");
    return;
  }
  if (offset.value % memory.alignment.value != 0) {
    findings.add(3, at() + "is not aligned to " + std::to_string(memory.alignment.value));
  }
  if (!memory.max_allocation || bytes == Bytes{0}) return;
  const std::uint64_t arena = memory.max_allocation->value;
  if (offset.value / arena != (offset.value + bytes.value - 1) / arena) {
    findings.add(3, at() + "crosses a multiple of max_allocation_bytes, " + std::to_string(arena));
  }
}

/// A place that a command takes or gives back.
struct Changed {
  std::size_t unit;
  MemoryId memory;
};

std::optional<Changed> changed_by(const Plan& plan, const Parts& parts, const Command& command) {
  if (command.kind == CommandKind::run) return std::nullopt;
  const std::size_t part = parts.part(command.tensor, command.piece);
  const std::size_t unit = *parts.unit(part, command.form);
  if (command.kind == CommandKind::release || command.kind == CommandKind::allocate)
    return Changed{unit, command.memory};
  if (!command.offset) return std::nullopt;
  if (command.kind == CommandKind::copy) return Changed{unit, plan.machine.links[index(command.link)].to};
  const MemoryId memory = *plan.machine.engines[index(command.engine)].memory;
  return Changed{command.kind == CommandKind::encode ? unit : part, memory};
}

/// Takes the occupations of one memory in an order that the plan enforces. Each stretch of bytes records its last
/// occupation.
class Sweep {
 public:
  Sweep(const Plan& plan, const Parts& parts, const Order& order, Findings& findings)
      : plan_(plan), parts_(parts), order_(order), findings_(findings), open_(parts.units(), none) {}

  /// `command` takes the place; none if it is in `initial`.
  void take(std::size_t unit, Bytes offset, std::uint32_t command);
  void release(std::size_t unit, std::uint32_t command) {
    Occupation& occupation = occupations_[open_[unit]];
    occupation.release = command;
    occupation.iteration = iteration_;
  }
  void next_iteration() { ++iteration_; }

 private:
  struct Occupation {
    std::size_t unit = 0;
    std::uint32_t release = none;
    std::int64_t iteration = 0;  // of the release
  };
  struct Stretch {
    std::uint64_t end = 0;
    std::uint32_t occupation = none;
  };

  void compare(const Occupation& before, std::size_t unit, std::uint32_t command);

  const Plan& plan_;
  const Parts& parts_;
  const Order& order_;
  Findings& findings_;
  std::int64_t iteration_ = 0;
  std::map<std::uint64_t, Stretch> stretches_;  // by their first byte
  std::vector<Occupation> occupations_;
  std::vector<std::uint32_t> open_;  // per unit, the occupation that began last
};

void Sweep::take(std::size_t unit, Bytes offset, std::uint32_t command) {
  const auto occupation = static_cast<std::uint32_t>(occupations_.size());
  occupations_.push_back({unit, none, 0});
  open_[unit] = occupation;
  const std::uint64_t begin = offset.value;
  const std::uint64_t end = begin + parts_.place_bytes(unit).value;
  if (begin == end) return;

  auto at = stretches_.lower_bound(begin);
  if (at != stretches_.begin() && std::prev(at)->second.end > begin) --at;
  while (at != stretches_.end() && at->first < end) {
    const auto [first, stretch] = *at;
    compare(occupations_[stretch.occupation], unit, command);
    // Removes the parts of stretches under the new occupation, and keeps the rest.
    if (first < begin) {
      at->second.end = begin;
      ++at;
    } else {
      at = stretches_.erase(at);
    }
    if (stretch.end > end) at = stretches_.insert_or_assign(at, end, Stretch{stretch.end, stretch.occupation});
  }
  stretches_.insert_or_assign(at, begin, Stretch{end, occupation});
}

void Sweep::compare(const Occupation& before, std::size_t unit, std::uint32_t command) {
  if (before.release != none && command != none) {
    const std::uint32_t left = order_.command_node(before.release);
    const std::uint32_t taken = order_.command_node(command);
    const bool in_turn = order_.before(left, taken, iteration_ - before.iteration);
    if (in_turn && !(before.iteration == iteration_ && order_.chained(taken, left))) return;
  }
  const std::string other = findings_.unit(parts_, before.unit);
  if (command == none) {
    findings_.add(3, "initial has " + findings_.unit(parts_, unit) + " and " + other + " in the same bytes");
  } else if (before.release == none) {
    findings_.add(6, findings_.command(command) + " takes bytes that " + other + " need not have left");
  } else {
    findings_.add(6, findings_.command(command) + " takes bytes and does not wait for " +
                         findings_.command(before.release) +
                         (before.iteration < iteration_ ? " of the iteration before" : "") + ", which leaves them");
  }
}

/// A command that takes or gives back a place.
struct Step {
  std::int64_t ended;
  bool occupies;  // in one instant, releases come first: occupations are half-open
  std::uint32_t command;
  std::size_t unit;
  auto operator<=>(const Step&) const = default;
};

/// The steps of each memory, in an order that agrees with every execution.
std::vector<std::vector<Step>> collect_steps(const Plan& plan, const Parts& parts, const Order& order,
                                             const std::vector<bool>& sound) {
  std::vector<std::vector<Step>> steps(plan.machine.memories.size());
  for (std::uint32_t j = 0; j < plan.commands.size(); ++j) {
    const auto changed = changed_by(plan, parts, plan.commands[j]);
    if (!changed || !sound[parts.part_of(changed->unit)]) continue;
    const bool occupies = plan.commands[j].kind != CommandKind::release;
    steps[index(changed->memory)].push_back({order.rank(order.command_node(j)).ended, occupies, j, changed->unit});
  }
  // A place that is given back in the instant in which it is taken is never occupied.
  for (std::vector<Step>& of_memory : steps) {
    const auto key = [&](const Step& step) {
      return std::tuple(step.unit, order.rank(order.command_node(step.command)), step.command);
    };
    std::ranges::sort(of_memory, {}, key);
    std::vector<Step> kept;
    for (const Step& step : of_memory) {
      if (!kept.empty() && !step.occupies && kept.back().occupies && kept.back().unit == step.unit &&
          order.same_instant(order.command_node(kept.back().command), order.command_node(step.command))) {
        kept.pop_back();
      } else {
        kept.push_back(step);
      }
    }
    std::ranges::sort(kept);
    of_memory = std::move(kept);
  }
  return steps;
}

}  // namespace

void check_places(const Plan& plan, const Parts& parts, Findings& findings) {
  for (const Place& place : plan.initial) {
    const Memory& memory = plan.machine.memories[index(place.memory)];
    if (!memory.bytes) continue;
    const std::size_t unit = *parts.unit(parts.part(place.tensor, place.piece), place.form);
    check_place(
        memory, place.offset, parts.place_bytes(unit), [&] { return "initial: " + findings.unit(parts, unit); },
        findings);
  }
  for (std::size_t j = 0; j < plan.commands.size(); ++j) {
    const auto changed = changed_by(plan, parts, plan.commands[j]);
    if (!changed || !plan.commands[j].offset) continue;
    check_place(
        plan.machine.memories[index(changed->memory)], *plan.commands[j].offset, parts.place_bytes(changed->unit),
        [&] { return findings.command(j); }, findings);
  }
}

void check_overlaps(const Plan& plan, const Parts& parts, const Order& order, const std::vector<bool>& sound,
                    Findings& findings) {
  const std::vector<std::vector<Step>> steps = collect_steps(plan, parts, order, sound);
  for (std::size_t memory = 0; memory < steps.size(); ++memory) {
    if (!plan.machine.memories[memory].bytes) continue;
    const std::size_t before = findings.count();
    Sweep sweep(plan, parts, order, findings);
    for (const Place& place : plan.initial) {
      const std::size_t part = parts.part(place.tensor, place.piece);
      if (index(place.memory) == memory && sound[part]) sweep.take(*parts.unit(part, place.form), place.offset, none);
    }
    // In the second iteration, the first one represents all earlier ones.
    for (int iteration = 0; iteration < 2 && findings.count() == before; ++iteration) {
      for (const Step& step : steps[memory]) {
        if (step.occupies) {
          sweep.take(step.unit, *plan.commands[step.command].offset, step.command);
        } else {
          sweep.release(step.unit, step.command);
        }
        if (findings.full()) return;
      }
      sweep.next_iteration();
    }
  }
}

}  // namespace swapmm::v2::validation
