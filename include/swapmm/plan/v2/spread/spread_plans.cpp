// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/v2/spread/spread_plans.hpp>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include <swapmm/plan/problem/slower_links.hpp>
#include <swapmm/plan/v2/relaxation/merged_host.hpp>
#include <swapmm/plan/v2/schedule/waits.hpp>
#include <swapmm/plan/v2/spread/hand_over.hpp>
#include <swapmm/plan/v2/spread/serial_order.hpp>

namespace swapmm::v2::planning {
namespace {

/// A command of a device's plan in the serial plan of all.
struct PlacedCommand {
  std::uint32_t before = 0;  // the operation of the whole trace before which it runs
  std::size_t part = 0;
  std::uint32_t index = 0;  // in the device's plan, or in the list of values that leave
  bool is_leaving = false;
  std::optional<LinkId> direct{};  // it copies from another device
};

/// Which values of a part's tensors are copied to the host at once, whatever the part's plan does.
class LeavingVersions {
 public:
  LeavingVersions(const EnginePart& part, std::size_t number, const std::vector<LeavingValue>& leaving)
      : writes_(part.tensors.size()) {
    std::vector<std::vector<std::uint32_t>> left(part.tensors.size());
    for (const LeavingValue& value : leaving) {
      if (value.part == number) left[index(value.tensor)].push_back(value.after);
    }
    for (std::uint32_t i = 0; i < part.trace.operations.size(); ++i) {
      for_each_access(part.trace.operations[i], [&](TensorId tensor, Access access) {
        const std::vector<std::uint32_t>& all = left[index(tensor)];
        if (access == Access::read || all.empty()) return;
        writes_[index(tensor)].push_back({i, std::ranges::find(all, i) != all.end()});
      });
    }
  }

  /// Whether the value that the tensor has before this operation of the part is one of them.
  [[nodiscard]] bool leaves(TensorId tensor, std::uint32_t before) const {
    const std::vector<Write>& writes = writes_[index(tensor)];
    if (writes.empty()) return false;
    const auto next = std::ranges::lower_bound(writes, before, {}, &Write::operation);
    return next == writes.begin() ? writes.back().leaves : std::prev(next)->leaves;
  }

 private:
  struct Write {
    std::uint32_t operation = 0;
    bool leaves = false;
  };
  std::vector<std::vector<Write>> writes_;  // of each tensor of which a value leaves
};

class Spreader {
 public:
  Spreader(const SpreadCase& all, const std::vector<const swapmm::Plan*>& plans)
      : trace_(all.trace),
        machine_(all.machine),
        parts_(all.parts),
        stores_(all.stores),
        leaving_(all.leaving),
        always_in_host_(all.in_host),
        plans_(plans) {
    for (const LeavingValue& value : leaving_) {
      swapmm::Command& copy = copies_out_.emplace_back();
      copy.kind = swapmm::CommandKind::swap_out;
      copy.tensor = value.tensor;
    }
  }

  Result<SpreadPlan> run() {
    put_in_order();
    if (!leaving_.empty()) hand_over();
    find_stored();
    Result<std::vector<StoredPlace>> places =
        assign_stores(machine_, stores_, stored_, static_cast<std::uint32_t>(order_.size()) + 1);
    if (!places) return places.problem();
    places_ = *std::move(places);
    if (!has_links()) return Problem{"the host is not linked to a device directly"};
    write_initial();
    for (std::uint32_t step = 0; step < order_.size(); ++step) write(step);
    write_waits(trace_, machine_, result_);
    spread_.plan.trace_digest = digest(trace_);
    spread_.plan.machine = machine_;
    spread_.plan.initial = std::move(result_.initial);
    spread_.plan.commands = std::move(result_.commands);
    return std::move(spread_);
  }

 private:
  [[nodiscard]] const swapmm::Command& command(const PlacedCommand& at) const {
    return at.is_leaving ? copies_out_[at.index] : plans_[at.part]->commands[at.index];
  }
  [[nodiscard]] TensorId whole(std::size_t part, TensorId tensor) const { return parts_[part].tensors[index(tensor)]; }

  void put_in_order() {
    const auto n = static_cast<std::uint32_t>(trace_.operations.size());
    for (std::size_t part = 0; part < parts_.size(); ++part) {
      const SerialOrder order = serial_order(*plans_[part], parts_[part].operations.size());
      const LeavingVersions& leaves = leaves_.emplace_back(parts_[part], part, leaving_);
      const std::size_t first = order_.size();
      for (std::size_t c = 0; c < order.commands.size(); ++c) {
        const std::uint32_t before = order.before[c];
        const swapmm::Command& moved = plans_[part]->commands[order.commands[c]];
        if (moved.kind == swapmm::CommandKind::swap_out && leaves.leaves(moved.tensor, before)) continue;
        const bool behind = before == parts_[part].operations.size();
        const std::uint32_t at = behind ? n : static_cast<std::uint32_t>(parts_[part].operations[before]);
        order_.push_back({at, part, order.commands[c]});
      }
      release_in_time(part, first);
    }
    for (std::uint32_t v = 0; v < leaving_.size(); ++v) {
      const LeavingValue& value = leaving_[v];
      const auto made = static_cast<std::uint32_t>(parts_[value.part].operations[value.after]);
      order_.push_back({made + 1, value.part, v, true});
    }
    // What leaves comes first: others may wait for it.
    std::ranges::stable_sort(order_, {}, [](const PlacedCommand& at) { return std::pair(at.before, !at.is_leaving); });
  }

  /// Tensors of a part that stand for the same one have no places at the same time: what is not used any more is
  /// released before the next one takes a place.
  void release_in_time(std::size_t part, std::size_t first) {
    std::map<TensorId, TensorId> holder;  // the tensor of the part that has a place, of each of the whole trace
    for (const Resident& resident : plans_[part]->initial)
      holder.emplace(whole(part, resident.tensor), resident.tensor);
    for (std::size_t i = first; i < order_.size(); ++i) {
      const TensorId tensor = command(order_[i]).tensor;
      if (command(order_[i]).kind == swapmm::CommandKind::release) {
        holder.erase(whole(part, tensor));
        continue;
      }
      if (!has_place(command(order_[i]).kind)) continue;
      const auto [known, is_free] = holder.try_emplace(whole(part, tensor), tensor);
      if (is_free) continue;
      const TensorId other = std::exchange(known->second, tensor);
      const auto release =
          std::find_if(order_.begin() + static_cast<std::ptrdiff_t>(i), order_.end(), [&](const auto& at) {
            return command(at).kind == swapmm::CommandKind::release && command(at).tensor == other;
          });
      if (release == order_.end()) continue;
      release->before = order_[i].before;
      std::rotate(order_.begin() + static_cast<std::ptrdiff_t>(i), release, release + 1);
      ++i;
    }
  }

  /// Decides which values come from other devices directly, and leaves out copies to the host that nobody needs then.
  void hand_over() {
    SerialPlan plan;
    for (std::size_t part = 0; part < parts_.size(); ++part) {
      for (const Resident& resident : plans_[part]->initial) {
        plan.initial.push_back({whole(part, resident.tensor), {}, FormId::plain, parts_[part].memory, {}, true});
      }
    }
    std::vector<PlacedCommand> order;  // without those that have no way over the host
    for (const PlacedCommand& at : order_) {
      const std::vector<Store>& stores = stores_[at.part];
      const auto host = std::ranges::find(stores, machine_.host, &Store::memory);
      if (host == stores.end()) return;
      Command& command = plan.commands.emplace_back(command_for(at, *host));
      command.offset = command.kind == CommandKind::copy && command.link == host->out ? std::nullopt : command.offset;
      plan.before.push_back(at.before);
    }
    for (const std::uint32_t kept : hand_over_directly(trace_, machine_, plan)) order.push_back(order_[kept]);
    for (std::size_t i = 0; i < order.size(); ++i) {
      const Command& command = plan.commands[i];
      if (command.kind != CommandKind::copy) continue;
      const Link& link = machine_.links[index(command.link)];
      if (link.from != machine_.host && link.to != machine_.host) order[i].direct = command.link;
    }
    order_ = std::move(order);
  }

  // Which tensors leave their device or come from the host, and when they take and give back their places there.
  void find_stored() {
    stored_of_.assign(trace_.tensors.size(), none);
    last_in_.assign(trace_.tensors.size(), none);
    is_handed_over_.assign(trace_.tensors.size(), false);
    for (const LeavingValue& value : leaving_) is_handed_over_[index(whole(value.part, value.tensor))] = true;
    std::vector<bool> is_used(trace_.tensors.size(), false);
    for (const EnginePart& part : parts_) {
      for (const TensorId tensor : part.tensors) {
        if (is_used[index(tensor)]) is_handed_over_[index(tensor)] = true;
        is_used[index(tensor)] = true;
      }
    }
    std::vector<bool> first_is_out(trace_.tensors.size(), false);
    const auto steps = static_cast<std::uint32_t>(order_.size()) + 1;
    const auto stored = [&](std::size_t part, TensorId tensor, std::uint32_t step) -> StoredTensor& {
      std::size_t& known = stored_of_[index(tensor)];
      if (known == none) {
        known = stored_.size();
        stored_.push_back({part, tensor, trace_.tensors[index(tensor)].bytes, Bytes{0}, step, 1, false});
      }
      return stored_[known];
    };
    for (std::uint32_t step = 0; step < order_.size(); ++step) {
      const PlacedCommand& at = order_[step];
      const swapmm::Command& moved = command(at);
      const bool out = moved.kind == swapmm::CommandKind::swap_out;
      if ((!out && moved.kind != swapmm::CommandKind::swap_in) || at.direct) continue;
      const TensorId tensor = whole(at.part, moved.tensor);
      if (stored_of_[index(tensor)] == none) first_is_out[index(tensor)] = out;
      StoredTensor& it = stored(at.part, tensor, step);
      it.traffic += it.bytes;
      it.length = step - it.start + 1;
      if (!out) last_in_[index(tensor)] = step;
    }
    std::vector<bool> concerns_host(trace_.tensors.size(), false);
    for (std::size_t t = 0; t < trace_.tensors.size(); ++t) {
      concerns_host[t] = trace_.tensors[t].kind == TensorKind::input;
    }
    for (const HostRead& read : trace_.host_reads) concerns_host[index(read.tensor)] = true;
    std::vector<bool> keeps_place(trace_.tensors.size(), false);
    for (std::size_t part = 0; part < parts_.size(); ++part) {
      for (const TensorId tensor : parts_[part].tensors) {
        const bool is_known = stored_of_[index(tensor)] != none;
        if (concerns_host[index(tensor)] || (is_known && is_handed_over_[index(tensor)])) {
          stored(part, tensor, 0).in_host = true;
          keeps_place[index(tensor)] = concerns_host[index(tensor)];
        }
      }
    }
    for (const TensorId tensor : always_in_host_) {
      stored(0, tensor, 0).in_host = true;
      keeps_place[index(tensor)] = true;
    }
    for (StoredTensor& it : stored_) {
      const std::size_t tensor = index(it.tensor);
      // A value that goes and comes back within the iteration has its place for that time only.
      const bool passing = trace_.tensors[tensor].kind == TensorKind::transient && !keeps_place[tensor] &&
                           first_is_out[tensor] && last_in_[tensor] != none;
      if (passing) {
        it.length = static_cast<std::uint32_t>(last_in_[tensor]) - it.start + 1;
        continue;
      }
      it.start = 0;
      it.length = steps;
      last_in_[tensor] = none;  // it keeps its place
    }
  }

  void write_initial() {
    std::vector<bool> clean(trace_.tensors.size(), true);
    for (std::size_t part = 0; part < parts_.size(); ++part) {
      for (const Resident& resident : plans_[part]->initial) {
        const TensorId tensor = whole(part, resident.tensor);
        if (!resident.host_valid && !leaves_[part].leaves(resident.tensor, 0)) clean[index(tensor)] = false;
        result_.initial.push_back({tensor, std::nullopt, FormId::plain, parts_[part].memory, resident.offset, true});
      }
    }
    for (std::size_t s = 0; s < stored_.size(); ++s) {
      const TensorId tensor = stored_[s].tensor;
      if (last_in_[index(tensor)] != none) continue;
      const MemoryId memory = store(s).memory;
      const bool valid = clean[index(tensor)];
      const bool limited = machine_.memories[index(memory)].bytes.has_value();
      // Without limit, only what differs from the rule needs an entry.
      if (!limited && valid == (memory == machine_.host)) continue;
      result_.initial.push_back({tensor, std::nullopt, FormId::plain, memory, places_[s].offset, valid});
    }
  }

  [[nodiscard]] const Store& store(std::size_t stored) const {
    return stores_[stored_[stored].part][places_[stored].store];
  }

  /// The links of another part to the same store; null if there are none.
  [[nodiscard]] const Store* store_for(std::size_t part, TensorId tensor) const {
    const std::vector<Store>& of_part = stores_[part];
    const auto found = std::ranges::find(of_part, store(stored_of_[index(tensor)]).memory, &Store::memory);
    return found == of_part.end() ? nullptr : &*found;
  }
  [[nodiscard]] bool has_links() const {
    return std::ranges::all_of(order_, [this](const PlacedCommand& at) {
      const swapmm::Command& moved = command(at);
      const bool copies = moved.kind == swapmm::CommandKind::swap_in || moved.kind == swapmm::CommandKind::swap_out;
      return !copies || at.direct || store_for(at.part, whole(at.part, moved.tensor)) != nullptr;
    });
  }

  void add(const PlacedCommand& at, Command command) {
    result_.commands.push_back(std::move(command));
    result_.before.push_back(at.before);
    spread_.origins.push_back({at.part, at.index});
  }

  /// A command of a part's plan for the whole trace, if what leaves is in this store.
  [[nodiscard]] Command command_for(const PlacedCommand& at, const Store& store) const {
    const swapmm::Command& old = command(at);
    Command result;
    result.tensor = whole(at.part, old.tensor);
    if (has_place(old.kind)) result.offset = old.offset;
    switch (old.kind) {
      case swapmm::CommandKind::allocate: result.kind = CommandKind::allocate; break;
      case swapmm::CommandKind::release: result.kind = CommandKind::release; break;
      case swapmm::CommandKind::swap_in: result.kind = CommandKind::copy; break;
      case swapmm::CommandKind::swap_out: result.kind = CommandKind::copy; break;
    }
    if (result.kind == CommandKind::copy) {
      const LinkId in = at.direct.value_or(store.in);
      result.link = old.kind == swapmm::CommandKind::swap_in ? in : store.out;
    } else {
      result.memory = parts_[at.part].memory;
    }
    return result;
  }

  void write(std::uint32_t step) {
    const PlacedCommand& at = order_[step];
    const swapmm::Command& old = command(at);
    const std::size_t tensor = index(whole(at.part, old.tensor));
    const bool is_copied = old.kind == swapmm::CommandKind::swap_in || old.kind == swapmm::CommandKind::swap_out;
    if (!is_copied || at.direct) return add(at, command_for(at, {}));
    const StoredTensor& stored = stored_[stored_of_[tensor]];
    const MemoryId memory = store(stored_of_[tensor]).memory;
    const bool passes_limited = last_in_[tensor] != none && machine_.memories[index(memory)].bytes.has_value();
    Command copy = command_for(at, *store_for(at.part, id_at<TensorId>(tensor)));
    const bool out = old.kind == swapmm::CommandKind::swap_out;
    if (out && passes_limited && stored.start == step) copy.offset = places_[stored_of_[tensor]].offset;
    add(at, std::move(copy));
    if (out || !passes_limited || last_in_[tensor] != step) return;
    Command release;
    release.kind = CommandKind::release;
    release.tensor = id_at<TensorId>(tensor);
    release.memory = memory;
    add(at, std::move(release));
  }

  static constexpr std::size_t none = ~std::size_t{0};

  const Trace& trace_;
  const Machine& machine_;
  const std::vector<EnginePart>& parts_;
  const std::vector<std::vector<Store>>& stores_;
  const std::vector<LeavingValue>& leaving_;
  const std::vector<TensorId>& always_in_host_;
  const std::vector<const swapmm::Plan*>& plans_;  // of each part
  std::vector<swapmm::Command> copies_out_;        // of leaving_
  std::vector<LeavingVersions> leaves_;            // of each part
  std::vector<PlacedCommand> order_;
  std::vector<bool> is_handed_over_;  // of each tensor: several tensors of parts stand for it, or the host gets it
  std::vector<StoredTensor> stored_;
  std::vector<std::size_t> stored_of_;  // of each tensor: its position in stored_
  std::vector<std::size_t>
      last_in_;  // of each tensor: the step that brings it back for the last time, if it then gives back its place
  std::vector<StoredPlace> places_;
  SerialPlan result_;
  SpreadPlan spread_;
};

}  // namespace

Result<SpreadCase> make_spread_case(const Trace& trace, const Machine& machine) {
  Result<std::vector<EnginePart>> parts = engine_parts(trace, machine);
  if (!parts) return parts.problem();
  return make_spread_case(trace, machine, *std::move(parts));
}

SpreadCase make_spread_case(const Trace& trace, const Machine& machine, std::vector<EnginePart> parts) {
  return make_spread_case(trace, machine, SharedParts{std::move(parts), {}, {}});
}

SpreadCase make_spread_case(const Trace& trace, const Machine& machine, SharedParts parts) {
  std::vector<MemoryId> devices;
  for (const EnginePart& part : parts.parts) devices.push_back(part.memory);
  return {trace,
          machine,
          std::move(parts.parts),
          find_stores(machine, devices),
          std::move(parts.leaving),
          std::move(parts.in_host)};
}

swapmm::Machine machine_of_part(const SpreadCase& all, std::size_t part, double speed) {
  const MemoryId memory = all.parts[part].memory;
  if (all.leaving.empty()) return swapmm::planning::with_slower_links(*with_one_host(all.machine, memory), speed);
  // What other devices compute does not come from the host over links between devices.
  Machine with_stores = all.machine;
  std::erase_if(with_stores.links, [&](const Link& link) {
    return std::ranges::any_of(all.parts, [&](const EnginePart& other) {
      return other.memory != memory && (other.memory == link.from || other.memory == link.to);
    });
  });
  return swapmm::planning::with_slower_links(*with_one_host(with_stores, memory), speed);
}

Result<SpreadPlan> spread_plans(const SpreadCase& all, const std::vector<const swapmm::Plan*>& plans) {
  return Spreader(all, plans).run();
}

}  // namespace swapmm::v2::planning
