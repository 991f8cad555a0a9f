// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/v2/validation/value_check.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>

#include <swapmm/plan/v2/validation/part_events.hpp>

namespace swapmm::v2::validation {
namespace {

constexpr ValueNumber nothing = std::numeric_limits<ValueNumber>::min();
/// The limit of iterations until they repeat. Each iteration can only lose what `initial` says, place after place.
constexpr std::int64_t most_iterations = 64;

/// A node of some iteration; iterations count from 0.
struct Moment {
  std::uint32_t node;
  std::int64_t iteration;
};

/// A place of the part that is followed.
struct PlaceState {
  std::size_t unit;
  MemoryId memory;
  bool unlimited = false;
  bool exists = false;
  std::optional<Bytes> offset;    // none in memories without limit
  ValueNumber holds = nothing;    // counted from the start of the first iteration
  std::optional<Moment> changed;  // what put the value there, or took or gave back the place
  std::vector<Moment> uses;       // since then
};

/// The operation that a node runs, maybe again.
std::size_t operation_of(const Plan& plan, std::size_t operations, std::uint32_t node) {
  return node < operations ? node : index(plan.commands[node - operations].operation);
}

/// The offsets of divided tensors' places that an operation used.
struct UsedPiece {
  std::int64_t iteration;
  std::uint32_t node;
  std::size_t part;
  MemoryId memory;
  Bytes offset;
};

/// Follows one part. Its events are processed one by one, in an order that agrees with every execution; what has no
/// order but should have one is a violation.
class PartFollower {
 public:
  PartFollower(const Trace& trace, const Plan& plan, const Parts& parts, const detail::Engines& engines,
               const Order& order, const PartEvents& events, Findings& findings, std::size_t part,
               std::span<const Place* const> initial, std::vector<UsedPiece>* used)
      : trace_(trace),
        plan_(plan),
        parts_(parts),
        engines_(engines),
        order_(order),
        findings_(findings),
        part_(part),
        events_(events.events(part)),
        values_(events.values(part)),
        initial_(initial),
        used_(used) {
    for (const Place* const place : initial_) {
      PlaceState& state = place_at(*parts_.unit(part_, place->form), place->memory);
      state.exists = true;
      state.holds = place->valid ? 0 : nothing;
      if (!state.unlimited) state.offset = place->offset;
    }
    const TraceTensor& tensor = trace_.tensors[parts_.tensor_of(part_)];
    if (tensor.kind == TensorKind::input && tensor.available_from == 0) {
      PlaceState& host = place_at(part_, plan_.machine.host);
      if (host.exists) host.holds = 0;  // the host has just given it
    }
  }

  /// Processes iterations until they repeat, or until the first violation.
  void follow() {
    const std::size_t before = findings_.count();
    std::vector<ValueNumber> state;
    for (iteration_ = 0; iteration_ < most_iterations; ++iteration_) {
      for (const PartEvent& event : events_) happen(event);
      check_late_host_reads();
      if (iteration_ == 0) check_closure();
      if (findings_.count() != before) return;
      std::vector<ValueNumber> next = state_at_end();
      if (iteration_ > 0 && next == state) return;
      state = std::move(next);
    }
    findings_.add(5, name() + ": what its places hold does not repeat from iteration to iteration");
  }

 private:
  [[nodiscard]] std::string name() const { return findings_.part(parts_, part_); }
  [[nodiscard]] std::string name(const PlaceState& place) const {
    return findings_.unit(parts_, place.unit) + " in " + findings_.memory(place.memory);
  }
  [[nodiscard]] std::string at(const Moment& moment) const {
    return findings_.node(moment.node) + (moment.iteration < iteration_ ? " of an iteration before" : "");
  }
  /// The number of a value of this iteration, counted from the start of the first one.
  [[nodiscard]] ValueNumber from_start(ValueNumber number) const { return iteration_ * values_ + number; }

  PlaceState& place_at(std::size_t unit, MemoryId memory) {
    const auto [known, is_new] = place_of_.try_emplace({unit, memory}, places_.size());
    if (!is_new) return places_[known->second];
    PlaceState place{unit, memory, !plan_.machine.memories[index(memory)].bytes.has_value(), false, {}, nothing,
                     {},   {}};
    if (place.unlimited) {
      place.exists = true;
      if (memory == plan_.machine.host && unit == part_) place.holds = 0;
    }
    places_.push_back(std::move(place));
    return places_.back();
  }

  void happen(const PartEvent& event) {
    switch (event.what) {
      case PartEvent::What::access: run(event, event.node); break;
      case PartEvent::What::host_read: host_read(event); break;
      case PartEvent::What::given: give(event); break;
      case PartEvent::What::command: command(event);
    }
  }

  /// Whether `earlier` has ended when the node of this iteration starts.
  [[nodiscard]] bool ended(const Moment& earlier, std::uint32_t node) const {
    return order_.before(earlier.node, node, iteration_ - earlier.iteration);
  }

  /// The node uses what the place holds, or the place itself.
  void use(PlaceState& place, std::uint32_t node) {
    if (place.changed && !ended(*place.changed, node)) {
      findings_.add(6, findings_.node(node) + " uses " + name(place) + " and does not wait for " + at(*place.changed));
    }
    place.uses.push_back({node, iteration_});
  }

  /// The node changes what the place holds, or takes it or gives it back.
  void change(PlaceState& place, std::uint32_t node) {
    if (place.changed && !ended(*place.changed, node)) {
      findings_.add(6,
                    findings_.node(node) + " changes " + name(place) + " and does not wait for " + at(*place.changed));
    }
    for (const Moment& use : place.uses) {
      if (ended(use, node) || (use.node == node && use.iteration == iteration_)) continue;
      findings_.add(6, findings_.node(node) + " changes " + name(place) + " and does not wait for " + at(use) +
                           ", which uses it");
    }
    place.uses.clear();
    place.changed = Moment{node, iteration_};
  }

  /// The node puts a value into the place. Host reads that wait for it get it.
  void put(PlaceState& place, ValueNumber number) {
    place.holds = number;
    if (place.unit != part_ || place.memory != plan_.machine.host) return;
    const auto [first, last] = wanted_.equal_range(number);
    // Whatever comes next in this place waits for these operations.
    for (auto read = first; read != last; ++read) place.uses.push_back(read->second);
    wanted_.erase(first, last);
  }

  /// An operation runs, maybe again.
  void run(const PartEvent& event, std::uint32_t node) {
    PlaceState& place =
        place_at(part_, engines_.memory(id_at<OperationId>(operation_of(plan_, order_.operations(), node))));
    if (!place.exists) {
      findings_.add(4, findings_.node(node) + " needs " + name(place) + ", which has no place there");
      place.exists = true;
      place.holds = from_start(event.number);
      return;
    }
    if (used_ != nullptr && iteration_ < 2 && place.offset) {
      used_->push_back({iteration_, node, part_, place.memory, *place.offset});
    }
    const ValueNumber needed = from_start(event.number);
    if (event.access != Access::write && place.holds != needed) {
      findings_.add(4, findings_.node(node) + " needs the current value of " + name(place) + ", but the place holds " +
                           described(place.holds, needed));
    }
    if (event.access == Access::read) {
      use(place, node);
    } else {
      change(place, node);
      put(place, needed + 1);
    }
  }

  static std::string described(ValueNumber held, ValueNumber needed) {
    if (held == nothing) return "nothing";
    return held < needed ? "an older one" : "a newer one";
  }

  void host_read(const PartEvent& event) {
    const ValueNumber needed = from_start(event.number);
    PlaceState& place = place_at(part_, plan_.machine.host);
    if (place.exists && place.holds == needed) {
      place.uses.push_back({event.node, iteration_});  // whatever comes next in this place waits for the operation
    } else {
      wanted_.emplace(needed, Moment{event.node, iteration_});
    }
  }

  // At the very end of an operation: what ends together with it does not count as ended.
  void give(const PartEvent& event) {
    PlaceState& place = place_at(part_, plan_.machine.host);
    if (!place.exists) {
      findings_.add(4, "the host gives " + name() + " a value at the end of " + findings_.operation(event.node) +
                           ", but it has no place in " + findings_.memory(place.memory));
      return;
    }
    const auto unordered = [&](const Moment& moment) {
      return !(moment.node == event.node && moment.iteration == iteration_) && !ended(moment, event.node);
    };
    if (place.changed && unordered(*place.changed)) {
      findings_.add(6, "the host gives " + name() + " a value at the end of " + findings_.operation(event.node) +
                           ", which does not wait for " + at(*place.changed));
    }
    for (const Moment& use : place.uses) {
      if (!unordered(use)) continue;
      findings_.add(6, "the host gives " + name() + " a value at the end of " + findings_.operation(event.node) +
                           ", which does not wait for " + at(use) + ", which uses the value before");
    }
    place.uses.clear();
    place.changed = Moment{event.node, iteration_};
    put(place, from_start(event.number + 1));
  }

  void command(const PartEvent& event) {
    const Command& command = plan_.commands[event.node - order_.operations()];
    const auto unit = command.kind == CommandKind::run ? part_ : *parts_.unit(part_, command.form);
    switch (command.kind) {
      case CommandKind::allocate: take(unit, command.memory, *command.offset, event.node); break;
      case CommandKind::release: release(place_at(unit, command.memory), event.node); break;
      case CommandKind::copy: {
        const Link& link = plan_.machine.links[index(command.link)];
        fill({unit, link.from}, {unit, link.to}, command.offset, event.node);
        break;
      }
      case CommandKind::encode:
      case CommandKind::decode: {
        const MemoryId memory = *plan_.machine.engines[index(command.engine)].memory;
        const bool encodes = command.kind == CommandKind::encode;
        fill({encodes ? part_ : unit, memory}, {encodes ? unit : part_, memory}, command.offset, event.node);
        break;
      }
      case CommandKind::run: run(event, event.node);
    }
  }

  void take(std::size_t unit, MemoryId memory, Bytes offset, std::uint32_t node) {
    PlaceState& place = place_at(unit, memory);
    if (place.exists) findings_.add(3, findings_.node(node) + " takes a place for " + name(place) + ", which has one");
    change(place, node);
    place.exists = true;
    place.offset = offset;
    place.holds = nothing;
  }

  void release(PlaceState& place, std::uint32_t node) {
    if (!place.exists)
      findings_.add(3, findings_.node(node) + " gives back a place of " + name(place) + ", which has none");
    change(place, node);
    place.exists = false;
    place.offset.reset();
    place.holds = nothing;
  }

  /// Copies, encodes or decodes.
  void fill(std::pair<std::size_t, MemoryId> from, std::pair<std::size_t, MemoryId> to, std::optional<Bytes> offset,
            std::uint32_t node) {
    ValueNumber value = nothing;
    {
      PlaceState& source = place_at(from.first, from.second);
      value = source.holds;
      if (!source.exists || value == nothing) {
        findings_.add(4, findings_.node(node) + " reads " + name(source) + ", which " +
                             (source.exists ? "holds nothing" : "has no place there"));
      }
      use(source, node);
    }  // place_at() below may move the places
    if (offset) {
      take(to.first, to.second, *offset, node);
      put(place_at(to.first, to.second), value);
      return;
    }
    PlaceState& target = place_at(to.first, to.second);
    if (!target.exists)
      findings_.add(4, findings_.node(node) + " fills " + name(target) + ", which has no place there");
    change(target, node);
    put(target, value);
  }

  void check_late_host_reads() {
    std::erase_if(wanted_, [&](const auto& read) {
      if (read.second.iteration == iteration_) return false;
      findings_.add(
          4, "the host reads " + name() + ", but that value never comes to " + findings_.memory(plan_.machine.host));
      return true;
    });
  }

  void check_closure() {
    for (const PlaceState& place : places_) {
      if (place.unlimited) continue;
      const auto is_it = [&](const Place* p) {
        return p->memory == place.memory && *parts_.unit(part_, p->form) == place.unit;
      };
      const auto found = std::ranges::find_if(initial_, is_it);
      const bool was_there = found != initial_.end();
      if (place.exists != was_there) {
        findings_.add(5, name(place) + (place.exists ? " has a place at the end of an iteration, but not in initial"
                                                     : " has a place in initial, but not at the end of an iteration"));
      } else if (was_there && place.offset && place.offset != (*found)->offset) {
        findings_.add(5, name(place) + " is at offset " + std::to_string((*found)->offset.value) +
                             " in initial, but ends an iteration at " + std::to_string(place.offset->value));
      }
    }
  }

  /// What the next iteration depends on, counted from its start. Values that nothing can need any more are one.
  [[nodiscard]] std::vector<ValueNumber> state_at_end() const {
    std::vector<std::tuple<std::size_t, MemoryId, ValueNumber>> sorted;
    const ValueNumber start = (iteration_ + 1) * values_;
    const ValueNumber oldest = -3 * values_;
    for (const PlaceState& place : places_) {
      const ValueNumber relative = place.holds == nothing ? nothing : std::max(place.holds - start, oldest);
      sorted.emplace_back(place.unit, place.memory, place.exists ? relative : nothing);
    }
    std::ranges::sort(sorted);
    std::vector<ValueNumber> state;
    for (const auto& [unit, memory, value] : sorted) {
      state.insert(state.end(), {static_cast<ValueNumber>(unit), static_cast<ValueNumber>(memory), value});
    }
    for (const auto& [number, after] : wanted_) state.push_back(number - start);
    return state;
  }

  const Trace& trace_;
  const Plan& plan_;
  const Parts& parts_;
  const detail::Engines& engines_;
  const Order& order_;
  Findings& findings_;
  const std::size_t part_;
  const std::span<const PartEvent> events_;
  const ValueNumber values_;
  const std::span<const Place* const> initial_;
  std::vector<UsedPiece>* const used_;
  std::int64_t iteration_ = 0;
  std::map<std::pair<std::size_t, MemoryId>, std::size_t> place_of_;  // positions in places_
  std::vector<PlaceState> places_;
  std::multimap<ValueNumber, Moment> wanted_;  // host reads whose value is not in the host yet
};

/// Rule 3: while an operation runs, the pieces of a tensor that it accesses are next to each other.
void check_neighbours(const Trace& trace, const Parts& parts, const Plan& plan, std::vector<UsedPiece>& used,
                      Findings& findings) {
  const auto key = [](const UsedPiece& piece) { return std::tuple(piece.iteration, piece.node, piece.part); };
  std::ranges::sort(used, {}, key);
  for (std::size_t i = 1; i < used.size(); ++i) {
    const UsedPiece& before = used[i - 1];
    const UsedPiece& piece = used[i];
    if (before.iteration != piece.iteration || before.node != piece.node || before.part + 1 != piece.part) continue;
    if (parts.tensor_of(before.part) != parts.tensor_of(piece.part)) continue;
    if (trace.operations[operation_of(plan, trace.operations.size(), piece.node)].in_pieces) continue;
    const auto& arena = plan.machine.memories[index(piece.memory)].max_allocation;
    const std::uint64_t last = (piece.offset + parts.place_bytes(piece.part)).value - 1;
    const bool one_arena = !arena || before.offset.value / arena->value == last / arena->value;
    if (one_arena && before.offset + parts.place_bytes(before.part) == piece.offset) continue;
    findings.add(3, findings.node(piece.node) + " needs the pieces of " + findings.tensor(parts.tensor_of(piece.part)) +
                        " next to each other, but " + findings.part(parts, piece.part) +
                        " is not behind the piece before it, or in another arena");
  }
}

}  // namespace

std::vector<bool> check_values(const Trace& trace, const Plan& plan, const Parts& parts, const detail::Engines& engines,
                               const Order& order, Findings& findings) {
  const PartEvents events(trace, plan, parts, order);
  std::vector<std::size_t> first(parts.parts() + 1);
  for (const Place& place : plan.initial) ++first[parts.part(place.tensor, place.piece) + 1];
  for (std::size_t part = 0; part < parts.parts(); ++part) first[part + 1] += first[part];
  std::vector<const Place*> initial(plan.initial.size());
  std::vector<std::size_t> next = first;
  for (const Place& place : plan.initial) initial[next[parts.part(place.tensor, place.piece)]++] = &place;

  std::vector<bool> sound(parts.parts(), false);
  std::vector<UsedPiece> used;
  for (std::size_t part = 0; part < parts.parts() && !findings.full(); ++part) {
    const std::size_t before = findings.count();
    const bool divided = parts.divided(parts.tensor_of(part));
    PartFollower(trace, plan, parts, engines, order, events, findings, part,
                 std::span(initial).subspan(first[part], first[part + 1] - first[part]), divided ? &used : nullptr)
        .follow();
    sound[part] = findings.count() == before;
  }
  check_neighbours(trace, parts, plan, used, findings);
  return sound;
}

}  // namespace swapmm::v2::validation
