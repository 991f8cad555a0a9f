// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/validation/place_check.hpp>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>
#include <map>
#include <string>
#include <utility>

namespace swapmm::validation {
namespace {

std::string range(Bytes offset, Bytes bytes) {
  return '[' + std::to_string(offset.value) + ", " + std::to_string(offset.value + bytes.value) + ')';
}

/// `who()` names the placed tensor; called only if there is a violation.
template <class Who>
void check_place(const Machine& machine, Bytes offset, Bytes bytes, Who&& who, Findings& findings) {
  const Bytes budget = machine.device_budget;
  const auto at = [&] {
    return who() + " at offset " + std::to_string(offset.value) + " with " + std::to_string(bytes.value) + " bytes ";
  };
  if (offset > budget || bytes > budget - offset) {
    findings.add(3, at() + "leaves the device budget of " + std::to_string(budget.value) + " bytes");
    return;
  }
  if (offset.value % machine.alignment.value != 0) {
    findings.add(3, at() + "is not aligned to " + std::to_string(machine.alignment.value));
  }
  if (!machine.max_allocation || bytes == Bytes{0}) return;
  const std::uint64_t arena = machine.max_allocation->value;
  if (offset.value / arena != (offset.value + bytes.value - 1) / arena) {
    findings.add(3, at() + "crosses a multiple of max_allocation_bytes, " + std::to_string(arena));
  }
}

constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();

/// Takes the occupations in an order that the plan enforces. Each stretch of bytes records its last occupation.
class Sweep {
 public:
  Sweep(const Trace& trace, const Plan& plan, const HappensBefore& order, Findings& findings)
      : trace_(trace),
        plan_(plan),
        order_(order),
        findings_(findings),
        open_(trace.tensors.size(), none),
        any_release_(trace.tensors.size(), none) {
    for (std::uint32_t j = 0; j < plan.commands.size(); ++j) {
      if (plan.commands[j].kind == CommandKind::release) any_release_[index(plan.commands[j].tensor)] = j;
    }
  }

  /// `command` brings the tensor to the place; none if the tensor is there in `initial`.
  void take(std::size_t tensor, Bytes offset, std::uint32_t command);
  void release(std::uint32_t command) {
    Occupation& occupation = occupations_[open_[index(plan_.commands[command].tensor)]];
    occupation.release = command;
    occupation.release_iteration = iteration_;
  }
  void next_iteration() { ++iteration_; }

 private:
  struct Occupation {
    std::uint32_t tensor = 0;
    std::uint32_t release = none;
    std::int64_t release_iteration = 0;
  };
  struct Stretch {
    std::uint64_t end = 0;
    std::uint32_t occupation = none;
  };

  void compare(const Occupation& before, std::size_t tensor, Bytes offset, std::uint32_t command);

  const Trace& trace_;
  const Plan& plan_;
  const HappensBefore& order_;
  Findings& findings_;
  std::int64_t iteration_ = 0;
  std::map<std::uint64_t, Stretch> stretches_;  // by their first byte
  std::vector<Occupation> occupations_;
  std::vector<std::uint32_t> open_;         // per tensor, the occupation that began last
  std::vector<std::uint32_t> any_release_;  // per tensor, for messages
};

void Sweep::take(std::size_t tensor, Bytes offset, std::uint32_t command) {
  const auto occupation = static_cast<std::uint32_t>(occupations_.size());
  occupations_.push_back({static_cast<std::uint32_t>(tensor), none, 0});
  open_[tensor] = occupation;
  const std::uint64_t begin = offset.value;
  const std::uint64_t end = begin + trace_.tensors[tensor].bytes.value;
  if (begin == end) return;

  auto at = stretches_.lower_bound(begin);
  if (at != stretches_.begin() && std::prev(at)->second.end > begin) --at;
  while (at != stretches_.end() && at->first < end) {
    const auto [first, stretch] = *at;
    compare(occupations_[stretch.occupation], tensor, offset, command);
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

void Sweep::compare(const Occupation& before, std::size_t tensor, Bytes offset, std::uint32_t command) {
  if (before.release != none && command != none &&
      order_.command_before_command(before.release, command, iteration_ - before.release_iteration)) {
    return;
  }
  const std::string place = range(offset, trace_.tensors[tensor].bytes);
  const std::string other = findings_.tensor(before.tensor);
  if (command == none) {
    findings_.add(3, "initial has " + findings_.tensor(tensor) + " at " + place + ", where it also has " + other);
  } else if (any_release_[before.tensor] == none) {
    findings_.add(3, findings_.command(command) + " takes " + place + ", which " + other + " never leaves");
  } else {
    const std::uint32_t release = before.release != none ? before.release : any_release_[before.tensor];
    findings_.add(6, findings_.command(command) + " takes " + place + " and does not wait for " +
                         findings_.command(release) +
                         (before.release_iteration < iteration_ ? " of the iteration before" : "") +
                         ", which leaves these bytes");
  }
}

bool occupies(CommandKind kind) { return kind == CommandKind::allocate || kind == CommandKind::swap_in; }

/// The starts and ends of occupations in one iteration, in an order that agrees with every execution.
std::vector<std::uint32_t> changes(const Trace& trace, const Plan& plan, const HappensBefore& order,
                                   const TensorEvents& events, const std::vector<bool>& sound) {
  struct Change {
    std::int64_t ended;
    bool occupies;  // in one instant, releases come first: occupations are half-open
    std::uint32_t command;
    auto operator<=>(const Change&) const = default;
  };
  std::vector<Change> sorted;
  sorted.reserve(plan.commands.size());
  for (std::size_t t = 0; t < trace.tensors.size(); ++t) {
    if (!sound[t]) continue;
    for (const std::uint32_t command : events.commands(t)) {
      const CommandKind kind = plan.commands[command].kind;
      if (kind == CommandKind::swap_out) continue;
      // A place that is released in the instant in which it is taken is never occupied.
      if (kind == CommandKind::release && !sorted.empty() && sorted.back().occupies &&
          plan.commands[sorted.back().command].tensor == plan.commands[command].tensor &&
          order.same_instant(sorted.back().command, command)) {
        sorted.pop_back();
        continue;
      }
      sorted.push_back({order.rank(command).ended, occupies(kind), command});
    }
  }
  std::sort(sorted.begin(), sorted.end());
  std::vector<std::uint32_t> commands;
  commands.reserve(sorted.size());
  for (const Change& change : sorted) commands.push_back(change.command);
  return commands;
}

}  // namespace

void check_places(const Trace& trace, const Plan& plan, Findings& findings) {
  for (const Resident& resident : plan.initial) {
    const std::size_t tensor = index(resident.tensor);
    check_place(
        plan.machine, resident.offset, trace.tensors[tensor].bytes,
        [&] { return "initial: " + findings.tensor(tensor); }, findings);
  }
  for (std::size_t j = 0; j < plan.commands.size(); ++j) {
    const Command& command = plan.commands[j];
    if (!occupies(command.kind)) continue;
    check_place(
        plan.machine, command.offset, trace.tensors[index(command.tensor)].bytes, [&] { return findings.command(j); },
        findings);
  }
}

void check_overlaps(const Trace& trace, const Plan& plan, const HappensBefore& order, const TensorEvents& events,
                    const std::vector<bool>& sound, Findings& findings) {
  const std::vector<std::uint32_t> commands = changes(trace, plan, order, events, sound);
  const std::size_t before = findings.count();
  Sweep sweep(trace, plan, order, findings);
  for (const Resident& resident : plan.initial) {
    if (sound[index(resident.tensor)]) sweep.take(index(resident.tensor), resident.offset, none);
  }
  // In the second iteration, the first one represents all earlier ones.
  for (int iteration = 0; iteration < 2 && findings.count() == before; ++iteration) {
    for (const std::uint32_t command : commands) {
      const Command& at = plan.commands[command];
      if (at.kind == CommandKind::release) {
        sweep.release(command);
      } else {
        sweep.take(index(at.tensor), at.offset, command);
      }
      if (findings.full()) return;
    }
    sweep.next_iteration();
  }
}

}  // namespace swapmm::validation
