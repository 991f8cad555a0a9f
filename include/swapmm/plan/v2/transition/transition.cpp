// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/v2/transition.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include <swapmm/plan/v2/baselines/paths.hpp>
#include <swapmm/plan/v2/transition/boundary.hpp>
#include <swapmm/plan/v2/transition/places.hpp>

namespace swapmm::v2 {
namespace transition {

std::vector<std::optional<MemoryId>> same_memories(const Machine& machine, const Machine& other) {
  std::vector<std::optional<MemoryId>> same;
  for (const Memory& memory : machine.memories) {
    const auto at = std::ranges::find(other.memories, memory.name, &Memory::name);
    same.push_back(at == other.memories.end()
                       ? std::nullopt
                       : std::optional{id_at<MemoryId>(static_cast<std::size_t>(at - other.memories.begin()))});
  }
  return same;
}

namespace {

using validation::Parts;

/// The size that decides which way is the fastest.
constexpr Bytes typical{std::uint64_t{16} << 20U};

/// The machine during the transition: that of the plan that ends, with the larger size of each memory.
Machine machine_between(const Machine& from, const Machine& to) {
  Machine between = from;
  const auto same = same_memories(from, to);
  for (std::size_t m = 0; m < from.memories.size(); ++m) {
    if (!same[m]) continue;
    std::optional<Bytes>& bytes = between.memories[m].bytes;
    const std::optional<Bytes>& other = to.memories[index(*same[m])].bytes;
    if (bytes) bytes = other ? std::max(*bytes, *other) : *bytes;
  }
  return between;
}

/// A place that the next plan begins with.
struct Target {
  std::uint32_t unit = 0;
  MemoryId memory{};
  Bytes offset;
  bool needs_value = false;
};

class Mover {
 public:
  Mover(const Trace& trace, const Plan& from, const Machine& machine, const Boundary& boundary)
      : trace_(trace),
        from_(from),
        machine_(machine),
        parts_(trace, from),
        sizes_(sizes_of(parts_)),
        boundary_(boundary),
        places_(machine, sizes_, boundary.holdings),
        paths_(machine, typical),
        is_clearing_(machine.memories.size(), false) {}

  Result<Transition> run(std::vector<Target> targets) {
    targets_ = std::move(targets);
    for (const Target& target : targets_) target_of_[{target.unit, target.memory}] = target.offset;
    moves_left_ = 8 * (targets_.size() + boundary_.holdings.size()) + 64;
    for (;;) {
      bool moved = false;
      bool is_done = true;
      for (const Target& target : targets_) {
        if (is_reached(target)) continue;
        is_done = false;
        moved = reach(target) || moved;
      }
      if (is_done) break;
      if (!moved && !make_room()) return *problem_;
    }
    release_the_rest();
    return std::move(result_);
  }

 private:
  [[nodiscard]] ValueId newest(std::uint32_t unit) const { return boundary_.newest[parts_.part_of(unit)]; }
  [[nodiscard]] bool is_needed(std::uint32_t unit) const { return boundary_.is_needed[parts_.part_of(unit)]; }

  [[nodiscard]] bool is_reached(const Target& target) const {
    const Places::Place* const place = places_.find(target.unit, target.memory);
    if (target.needs_value && (place == nullptr || place->value != newest(target.unit))) return false;
    return !places_.is_limited(target.memory) || (place != nullptr && place->offset == target.offset);
  }

  /// The places that must go before the target has its own.
  [[nodiscard]] std::vector<std::uint32_t> blockers(const Target& target) const {
    if (!places_.is_limited(target.memory)) return {};
    const Places::Place* const own = places_.find(target.unit, target.memory);
    if (own != nullptr && own->offset == target.offset) return {};
    std::vector<std::uint32_t> units = places_.within(target.memory, target.offset, places_.size(target.unit));
    if (own != nullptr && std::ranges::count(units, target.unit) == 0) units.push_back(target.unit);
    return units;
  }

  bool reach(const Target& target) {
    if (!blockers(target).empty()) return false;
    if (target.needs_value) return bring(target.unit, target.memory, target.offset);
    allocate(target.unit, target.memory, target.offset);
    return true;
  }

  /// Copies the newest value to a memory, by the fastest way from where it is. If it has no place there, it gets this
  /// one. False if there is no way or no room on it.
  bool bring(std::uint32_t unit, MemoryId to, Bytes offset) {
    std::optional<MemoryId> best;
    for (const MemoryId holder : places_.holders(unit, newest(unit))) {
      if (!paths_.reach(holder, to)) continue;
      if (!best || paths_.seconds(holder, to) < paths_.seconds(*best, to)) best = holder;
    }
    if (!best) {
      problem_ = Problem{"nothing has the newest value of " + name_of(unit) + " with links to memory " +
                         machine_.memories[index(to)].name};
      return false;
    }
    return copy_along(unit, paths_.links(*best, to), offset);
  }

  /// False if there is no room on the way; what has been copied by then does no harm.
  bool copy_along(std::uint32_t unit, const std::vector<LinkId>& way, Bytes offset) {
    for (std::size_t i = 0; i < way.size(); ++i) {
      const MemoryId to = machine_.links[index(way[i])].to;
      std::optional<Bytes> at = offset;
      if (!places_.is_limited(to) || places_.find(unit, to) != nullptr) {
        at = Bytes{0};  // it has a place
      } else if (i + 1 < way.size()) {
        at = room_for(unit, to);
      } else if (!places_.within(to, offset, places_.size(unit)).empty()) {
        at.reset();  // what made room on the way has gone there
      }
      if (!at) {
        problem_ = no_room(unit, to);
        return false;
      }
      copy(unit, way[i], *at);
    }
    return true;
  }

  /// Room for a unit that passes through a memory. If nothing else helps, what is there goes elsewhere for a while.
  std::optional<Bytes> room_for(std::uint32_t unit, MemoryId memory) {
    std::optional<Bytes> room = hole(unit, memory);
    if (room || !may_clear_ || is_clearing_[index(memory)]) return room;
    is_clearing_[index(memory)] = true;
    std::vector<std::uint32_t> others;
    for (const auto& [other, place] : places_.in(memory)) others.push_back(other);
    for (const std::uint32_t other : others) {
      if (room || moves_left_ == 0) break;
      --moves_left_;
      if (places_.find(other, memory) != nullptr && take_away(other, memory)) room = hole(unit, memory);
    }
    is_clearing_[index(memory)] = false;
    return room;
  }

  /// The lowest room for a unit; where targets are not to be, if there is such room.
  [[nodiscard]] std::optional<Bytes> hole(std::uint32_t unit, MemoryId memory) const {
    for (const bool spare_targets : {true, false}) {
      const Bytes size = places_.size(unit);
      const std::uint64_t alignment = machine_.memories[index(memory)].alignment.value;
      std::vector<std::pair<std::uint64_t, std::uint64_t>> taken;
      for (const auto& [other, place] : places_.in(memory)) {
        taken.emplace_back(place.offset.value, place.offset.value + places_.size(other).value);
      }
      for (const Target& target : targets_) {
        if (!spare_targets || target.memory != memory) continue;
        taken.emplace_back(target.offset.value, target.offset.value + places_.size(target.unit).value);
      }
      std::ranges::sort(taken);
      std::uint64_t offset = 0;
      const auto next = [&](std::uint64_t from) { return (from + alignment - 1) / alignment * alignment; };
      const std::optional<Bytes>& arena = machine_.memories[index(memory)].max_allocation;
      const auto past_arena = [&](std::uint64_t from) {
        if (!arena || size.value == 0 || from / arena->value == (from + size.value - 1) / arena->value) return from;
        return next((from / arena->value + 1) * arena->value);
      };
      for (const auto& [begin, end] : taken) {
        offset = past_arena(offset);
        if (offset + size.value <= begin || end <= offset) continue;
        offset = next(end);
      }
      offset = past_arena(offset);
      if (places_.is_within(memory, Bytes{offset}, size)) return Bytes{offset};
    }
    return std::nullopt;
  }

  /// Takes away something that blocks a target; or clears the way for one, and goes it. False if neither is possible.
  bool make_room() {
    if (!problem_) problem_ = Problem{"there is no room"};
    for (const bool may_clear : {false, true}) {
      may_clear_ = may_clear;
      for (const Target& target : targets_) {
        if (is_reached(target)) continue;
        const std::vector<std::uint32_t> units = blockers(target);
        if (units.empty() && may_clear && bring(target.unit, target.memory, target.offset)) {
          may_clear_ = false;
          return true;
        }
        for (const std::uint32_t unit : units) {
          if (moves_left_ == 0) return false;
          --moves_left_;
          if (!take_away(unit, target.memory)) continue;
          may_clear_ = false;
          return true;
        }
      }
    }
    return false;
  }

  bool take_away(std::uint32_t unit, MemoryId memory) {
    const bool is_newest = places_.holds(unit, memory, newest(unit));
    if (!is_newest || !is_needed(unit) || places_.holders(unit, newest(unit)).size() > 1 || save(unit, memory)) {
      release(unit, memory);
      return true;
    }
    problem_ = no_room(unit, memory);
    return false;
  }

  /// Copies a value to another memory: to one without limit, or to its target, or to any room.
  bool save(std::uint32_t unit, MemoryId from) {
    std::vector<MemoryId> others;
    for (std::size_t m = 0; m < machine_.memories.size(); ++m) {
      const auto other = id_at<MemoryId>(m);
      if (other != from && paths_.reach(from, other) && paths_.reach(other, from)) others.push_back(other);
    }
    const auto turn = [&](MemoryId other) {
      return std::pair(places_.is_limited(other) && places_.find(unit, other) == nullptr, paths_.seconds(from, other));
    };
    std::ranges::stable_sort(others, {}, turn);
    for (const MemoryId other : others) {
      Bytes offset;
      if (places_.is_limited(other) && places_.find(unit, other) == nullptr) {
        const std::optional<Bytes> room = hole(unit, other);
        if (!room) continue;
        offset = *room;
      }
      if (copy_along(unit, paths_.links(from, other), offset)) return true;
    }
    return false;
  }

  void release_the_rest() {
    for (std::size_t m = 0; m < machine_.memories.size(); ++m) {
      const auto memory = id_at<MemoryId>(m);
      if (!places_.is_limited(memory)) continue;
      std::vector<std::uint32_t> units;
      for (const auto& [unit, place] : places_.in(memory)) {
        if (!target_of_.contains({unit, memory})) units.push_back(unit);
      }
      for (const std::uint32_t unit : units) release(unit, memory);
    }
  }

  Command& add(CommandKind kind, std::uint32_t unit) {
    Command& command = result_.commands.emplace_back();
    const std::size_t part = parts_.part_of(unit);
    const std::size_t tensor = parts_.tensor_of(part);
    command.kind = kind;
    command.tensor = id_at<TensorId>(tensor);
    if (parts_.divided(tensor)) command.piece = static_cast<std::uint32_t>(part - parts_.first_part(tensor));
    if (unit >= parts_.parts()) {
      const std::string& form = trace_.forms[unit - parts_.parts()].name;
      const auto at = std::ranges::find(from_.forms, form);
      command.form = id_at<FormId>(static_cast<std::size_t>(at - from_.forms.begin()) + 1);
    }
    return command;
  }
  void allocate(std::uint32_t unit, MemoryId memory, Bytes offset) {
    Command& command = add(CommandKind::allocate, unit);
    command.memory = memory;
    command.offset = offset;
    places_.take(unit, memory, offset, 0);
  }
  void release(std::uint32_t unit, MemoryId memory) {
    add(CommandKind::release, unit).memory = memory;
    places_.give_back(unit, memory);
  }
  void copy(std::uint32_t unit, LinkId id, Bytes offset) {
    const Link& link = machine_.links[index(id)];
    Command& command = add(CommandKind::copy, unit);
    command.link = id;
    if (places_.is_limited(link.to) && places_.find(unit, link.to) == nullptr) {
      command.offset = offset;
      places_.take(unit, link.to, offset, newest(unit));
    } else {
      places_.fill(unit, link.to, newest(unit));
    }
    const Bytes size = places_.size(unit);
    result_.moved += size;
    const double flow =
        static_cast<double>(size.value) * 1e9 / static_cast<double>(planning::rate_alone(machine_, link));
    result_.time += link.latency + std::chrono::nanoseconds{static_cast<std::int64_t>(std::ceil(flow))};
  }

  [[nodiscard]] std::string name_of(std::uint32_t unit) const {
    return "tensor " + std::to_string(parts_.tensor_of(parts_.part_of(unit)));
  }
  [[nodiscard]] Problem no_room(std::uint32_t unit, MemoryId memory) const {
    return {"on the way to the next plan, there is no room for " + name_of(unit) + " of " +
            std::to_string(places_.size(unit).value) + " bytes, which must be moved in memory " +
            machine_.memories[index(memory)].name};
  }

  const Trace& trace_;
  const Plan& from_;
  const Machine& machine_;
  const Parts parts_;
  const std::vector<Bytes> sizes_;
  const Boundary& boundary_;
  Places places_;
  const planning::Paths paths_;
  std::vector<Target> targets_;
  std::map<std::pair<std::uint32_t, MemoryId>, Bytes> target_of_;
  std::size_t moves_left_ = 0;     // places that may still be emptied
  bool may_clear_ = false;         // other values may leave a memory for one that passes through it
  std::vector<bool> is_clearing_;  // of each memory
  std::optional<Problem> problem_;
  Transition result_;
};

/// Whether both plans make the same parts of the tensors.
bool divide_alike(const Plan& a, const Plan& b) { return std::ranges::is_permutation(a.pieces, b.pieces); }

}  // namespace
}  // namespace transition

Result<Transition> make_transition(const Trace& trace, const Plan& from, const Plan& to, std::size_t iterations) {
  using transition::Boundary;
  using transition::Holding;
  using transition::Target;
  if (!transition::divide_alike(from, to)) return Problem{"the plans divide tensors in different ways"};
  const std::vector<std::optional<MemoryId>> old_of = transition::same_memories(to.machine, from.machine);
  for (std::size_t m = 0; m < old_of.size(); ++m) {
    if (!old_of[m]) return Problem{"memory " + to.machine.memories[m].name + " is new"};
    const Memory& old = from.machine.memories[index(*old_of[m])];
    if (old.bytes.has_value() != to.machine.memories[m].bytes.has_value()) {
      return Problem{"memory " + old.name + " has a limit in one of the plans only"};
    }
  }
  const Boundary boundary = transition::boundary_after(trace, from, iterations);
  const validation::Parts parts(trace, from);
  if (boundary.owed_to_host) {
    return Problem{"the host still waits for a value of tensor " +
                   std::to_string(parts.tensor_of(*boundary.owed_to_host))};
  }
  std::vector<Target> targets;
  for (const Holding& holding : transition::beginning_of(trace, to, boundary.newest)) {
    const MemoryId memory = *old_of[index(holding.memory)];
    const std::size_t part = parts.part_of(holding.unit);
    const bool needs_value = holding.value != 0 && boundary.is_needed[part];
    const bool is_limited = to.machine.memories[index(holding.memory)].bytes.has_value();
    if (needs_value || is_limited) targets.push_back({holding.unit, memory, holding.offset, needs_value});
  }
  const Machine machine = transition::machine_between(from.machine, to.machine);
  return transition::Mover(trace, from, machine, boundary).run(std::move(targets));
}

}  // namespace swapmm::v2
