// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include <swapmm/plan/v2/transition.hpp>
#include <swapmm/plan/v2/transition/boundary.hpp>

namespace swapmm::v2 {
namespace {

using transition::Boundary;
using transition::Holding;
using transition::ValueId;
using validation::Parts;

constexpr std::size_t most_violations = 100;
constexpr int of_places = 3;
constexpr int of_values = 4;

/// Replays the steps on a list of places. It has its own bookkeeping, and knows nothing of how steps are chosen.
class TransitionCheck {
 public:
  TransitionCheck(const Trace& trace, const Plan& from, const Plan& to, std::size_t iterations)
      : trace_(trace),
        from_(from),
        to_(to),
        parts_(trace, from),
        boundary_(transition::boundary_after(trace, from, iterations)) {
    for (const Holding& holding : boundary_.holdings) held_[{holding.memory, holding.unit}] = holding;
  }

  std::vector<Violation> run(const std::vector<Command>& commands) {
    for (step_ = 0; step_ < commands.size() && violations_.size() < most_violations; ++step_) step(commands[step_]);
    check_end();
    return std::move(violations_);
  }

 private:
  using Held = std::map<std::pair<MemoryId, std::uint32_t>, Holding>;

  void fail(int rule, const std::string& what) {
    if (violations_.size() < most_violations)
      violations_.push_back({rule, "step " + std::to_string(step_) + ": " + what});
  }
  [[nodiscard]] const Memory& memory(MemoryId id) const { return from_.machine.memories[index(id)]; }
  /// What the memory may hold while the transition runs.
  [[nodiscard]] std::uint64_t size_of(MemoryId id) const {
    std::uint64_t bytes = memory(id).bytes->value;
    for (const Memory& next : to_.machine.memories) {
      if (next.name == memory(id).name && next.bytes) bytes = std::max(bytes, next.bytes->value);
    }
    return bytes;
  }

  void step(const Command& command) {
    if (command.kind == CommandKind::run || command.kind == CommandKind::encode ||
        command.kind == CommandKind::decode) {
      return fail(0, "only places and copies change in a transition");
    }
    const bool is_known = index(command.tensor) < trace_.tensors.size() && index(command.form) <= from_.forms.size() &&
                          index(command.memory) < from_.machine.memories.size() &&
                          (command.kind != CommandKind::copy || index(command.link) < from_.machine.links.size());
    if (!is_known) return fail(0, "something does not exist");
    const std::size_t part = parts_.part(command.tensor, command.piece);
    const auto unit = static_cast<std::uint32_t>(*parts_.unit(part, command.form));
    switch (command.kind) {
      case CommandKind::allocate: return take(command.memory, unit, command.offset);
      case CommandKind::release:
        if (held_.erase({command.memory, unit}) == 0) fail(of_places, "there is no place to give back");
        return;
      case CommandKind::copy: break;
      case CommandKind::run:
      case CommandKind::encode:
      case CommandKind::decode: return;
    }
    const Link& link = from_.machine.links[index(command.link)];
    const auto source = held_.find({link.from, unit});
    if (source == held_.end() || source->second.value == 0) return fail(of_values, "there is no value to copy");
    const ValueId value = source->second.value;
    if (memory(link.to).bytes) {
      if (command.offset) take(link.to, unit, command.offset);
    } else {
      held_.insert({{link.to, unit}, {unit, link.to, Bytes{0}, 0}});
    }
    const auto filled = held_.find({link.to, unit});
    if (filled == held_.end()) return fail(of_places, "there is no place to fill");
    filled->second.value = value;
  }

  void take(MemoryId id, std::uint32_t unit, const std::optional<Bytes>& offset) {
    if (!memory(id).bytes || !offset) return fail(of_places, "a place needs a memory with a limit and an offset");
    const std::uint64_t begin = offset->value;
    const std::uint64_t end = begin + parts_.place_bytes(unit).value;
    if (end > size_of(id) || begin % memory(id).alignment.value != 0)
      fail(of_places, "the place is not within its memory");
    if (memory(id).max_allocation && end > begin) {
      const std::uint64_t arena = memory(id).max_allocation->value;
      if (begin / arena != (end - 1) / arena) fail(of_places, "the place crosses a border");
    }
    for (auto at = held_.lower_bound({id, 0}); at != held_.end() && at->first.first == id; ++at) {
      const std::uint64_t other = at->second.offset.value;
      if (at->first.second == unit) fail(of_places, "the part has a place already");
      if (begin < other + parts_.place_bytes(at->first.second).value && other < end) {
        fail(of_places, "the place overlaps another one");
      }
    }
    held_[{id, unit}] = {unit, id, *offset, 0};
  }

  void check_end() {
    std::vector<bool> is_kept(parts_.parts(), false);
    Held wanted;
    for (const Holding& holding : transition::beginning_of(trace_, to_, boundary_.newest)) {
      const std::string& name = to_.machine.memories[index(holding.memory)].name;
      const auto old = std::ranges::find(from_.machine.memories, name, &Memory::name);
      if (old == from_.machine.memories.end()) {
        fail(0, "memory " + name + " is new");
        continue;
      }
      const auto id = id_at<MemoryId>(static_cast<std::size_t>(old - from_.machine.memories.begin()));
      wanted[{id, holding.unit}] = {holding.unit, id, holding.offset, holding.value};
    }
    for (const auto& [key, holding] : wanted) {
      const std::size_t part = parts_.part_of(holding.unit);
      const auto at = held_.find(key);
      const bool is_needed = holding.value != 0 && boundary_.is_needed[part];
      const std::string where =
          " of tensor " + std::to_string(parts_.tensor_of(part)) + " in memory " + memory(key.first).name;
      if (memory(key.first).bytes && (at == held_.end() || at->second.offset != holding.offset)) {
        fail(of_places, "in the end, the place" + where + " is missing");
      } else if (is_needed && (at == held_.end() || at->second.value != holding.value)) {
        fail(of_values, "in the end, the newest value" + where + " is missing");
      } else if (is_needed) {
        is_kept[part] = true;
      }
    }
    for (const auto& [key, holding] : held_) {
      if (memory(key.first).bytes && !wanted.contains(key)) {
        fail(of_places, "in the end, a place is left in memory " + memory(key.first).name);
      }
    }
    for (std::size_t part = 0; part < is_kept.size(); ++part) {
      if (boundary_.is_needed[part] && !is_kept[part]) {
        fail(of_values, "the value of tensor " + std::to_string(parts_.tensor_of(part)) + " is lost");
      }
    }
  }

  const Trace& trace_;
  const Plan& from_;
  const Plan& to_;
  const Parts parts_;
  const Boundary boundary_;
  Held held_;
  std::size_t step_ = 0;
  std::vector<Violation> violations_;
};

}  // namespace

std::vector<Violation> check_transition(const Trace& trace, const Plan& from, const Plan& to,
                                        const Transition& transition, std::size_t iterations) {
  return TransitionCheck(trace, from, to, iterations).run(transition.commands);
}

}  // namespace swapmm::v2
