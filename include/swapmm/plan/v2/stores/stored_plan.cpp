// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/v2/stores/stored_plan.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include <swapmm/plan/v2/baselines/paths.hpp>
#include <swapmm/plan/v2/schedule/waits.hpp>
#include <swapmm/plan/v2/spread/serial_order.hpp>
#include <swapmm/plan/v2/stores/passing.hpp>

namespace swapmm::v2::planning {
namespace {

constexpr std::uint32_t none = ~std::uint32_t{0};

/// A value in a store. Steps count the commands of the plan of version 1 in their serial order.
struct StoredValue {
  TensorId tensor{};
  std::uint32_t write = none;  ///< the operation that wrote it; none: no operation writes the tensor
  std::uint32_t start = none;  ///< the step of its copy to the store; none: it is always there
  std::uint32_t length = 0;    ///< the number of steps until its last return, from `start` on
  std::size_t store = 0;
  Bytes offset;
};

class StoredPlanWriter {
 public:
  StoredPlanWriter(const DeviceCase& device, const swapmm::Plan& plan)
      : device_(device),
        plan_(plan),
        order_(serial_order(plan, device.trace.operations.size())),
        steps_(static_cast<std::uint32_t>(order_.commands.size())),
        writes_(device.trace.tensors.size()),
        values_of_(device.trace.tensors.size()),
        value_of_step_(steps_, none),
        passing_of_step_(steps_, none) {
    for (std::uint32_t i = 0; i < device.trace.operations.size(); ++i) {
      for_each_access(device.trace.operations[i], [&](TensorId tensor, Access access) {
        if (access != Access::read) writes_[index(tensor)].push_back(i);
      });
    }
  }

  Result<Plan> write(const WantedStore& wanted, const PackingEffort& packing) {
    find_values();
    for (StoredValue& value : values_) {
      value.store = device_.in_host[index(value.tensor)]
                        ? device_.host_store
                        : wanted(value.tensor, value.write == none ? std::nullopt : std::optional{value.write});
    }
    if (std::optional<Problem> problem = find_places(packing)) return *std::move(problem);
    find_passing(packing);
    write_initial();
    for (std::uint32_t step = 0; step < steps_; ++step) write_step(step);
    write_waits(device_.trace, device_.machine, result_);
    Plan plan;
    plan.trace_digest = plan_.trace_digest;
    plan.machine = device_.machine;
    plan.initial = std::move(result_.initial);
    plan.commands = std::move(result_.commands);
    return plan;
  }

 private:
  [[nodiscard]] const swapmm::Command& command(std::uint32_t step) const {
    return plan_.commands[order_.commands[step]];
  }
  [[nodiscard]] const RoutedStore& store_at(std::size_t store) const { return device_.stores()[store]; }
  [[nodiscard]] const std::vector<LinkId>& way_of(const StoreCopy& copy) const {
    return copy.is_in ? store_at(copy.store).in : store_at(copy.store).out;
  }
  /// The memory of a store, as large as values may fill it.
  [[nodiscard]] const Memory& memory_of(std::size_t store) const {
    return device_.routes.direct.memories[index(store_at(store).memory)];
  }
  [[nodiscard]] bool is_limited(std::size_t store) const { return memory_of(store).bytes.has_value(); }

  /// The operation that wrote the value which the tensor has before operation `before`.
  [[nodiscard]] std::uint32_t last_write(TensorId tensor, std::uint32_t before) const {
    const std::vector<std::uint32_t>& writes = writes_[index(tensor)];
    if (writes.empty()) return none;
    const auto next = std::ranges::lower_bound(writes, before);
    return next == writes.begin() ? writes.back() : *std::prev(next);
  }

  std::uint32_t value_of(TensorId tensor, std::uint32_t write) {
    // The host's values of a tensor share one place.
    if (device_.in_host[index(tensor)]) write = none;
    for (const std::uint32_t v : values_of_[index(tensor)]) {
      if (values_[v].write == write) return v;
    }
    values_of_[index(tensor)].push_back(static_cast<std::uint32_t>(values_.size()));
    StoredValue& added = values_.emplace_back();
    added.tensor = tensor;
    added.write = write;
    return static_cast<std::uint32_t>(values_.size() - 1);
  }

  void find_values() {
    std::vector<std::uint32_t> last_in;  // of each value
    for (const bool returns : {false, true}) {
      last_in.resize(values_.size(), none);
      for (std::uint32_t step = 0; step < steps_; ++step) {
        const swapmm::Command& moved = command(step);
        if (moved.kind != (returns ? swapmm::CommandKind::swap_in : swapmm::CommandKind::swap_out)) continue;
        const std::uint32_t v = value_of(moved.tensor, last_write(moved.tensor, order_.before[step]));
        last_in.resize(values_.size(), none);
        value_of_step_[step] = v;
        StoredValue& value = values_[v];
        if (!returns) {
          if (value.write != none && value.start == none) value.start = step;
          continue;
        }
        if (value.start == none) continue;
        value.length = std::max(value.length, (step + steps_ - value.start) % steps_ + 1);
      }
    }
    for (std::size_t t = 0; t < device_.in_host.size(); ++t) {
      if (device_.in_host[t]) (void)value_of(id_at<TensorId>(t), none);
    }
    for (StoredValue& value : values_) {
      // A copy that nothing reads still needs a place while it runs.
      if (value.start != none && value.length == 0) value.length = 1;
    }
  }

  std::optional<Problem> find_places(const PackingEffort& effort) {
    std::vector<std::vector<std::size_t>> full(values_.size());  // the stores without a place for it
    // What finds no place in a store goes on to one that comes later in this order.
    std::vector<std::size_t> turns;
    for (std::size_t s = 0; s < device_.stores().size(); ++s) turns.push_back(s);
    std::ranges::stable_sort(turns, {}, [&](std::size_t s) { return is_limited(s) ? 0 : 1; });
    for (std::size_t turn = 0; turn < turns.size(); ++turn) {
      const std::size_t store = turns[turn];
      const std::optional<Bytes> largest = largest_to_pass(device_.routes, device_.machine, store_at(store));
      const auto goes_on = [&](std::uint32_t v) -> bool {
        if (device_.in_host[index(values_[v].tensor)] || turn + 1 == turns.size()) return false;
        values_[v].store = turns[turn + 1];
        values_[v].offset = Bytes{0};
        return true;
      };
      for (std::uint32_t v = 0; largest && v < values_.size(); ++v) {
        const TensorId tensor = values_[v].tensor;
        if (values_[v].store != store || device_.trace.tensors[index(tensor)].bytes <= *largest) continue;
        if (!goes_on(v)) return no_room(tensor);
      }
      if (!is_limited(store)) continue;
      const Memory& memory = memory_of(store);
      PackingProblem problem;
      problem.slots = std::max<std::uint32_t>(steps_, 1);
      problem.capacity = *memory.bytes;
      problem.alignment = memory.alignment;
      problem.max_allocation = memory.max_allocation;
      std::vector<std::uint32_t> members;
      for (std::uint32_t v = 0; v < values_.size(); ++v) {
        const StoredValue& value = values_[v];
        if (value.store != store) continue;
        const Bytes bytes = device_.trace.tensors[index(value.tensor)].bytes;
        if (bytes > (memory.max_allocation ? std::min(*memory.max_allocation, *memory.bytes) : *memory.bytes)) {
          if (!goes_on(v)) return no_room(value.tensor);
          continue;
        }
        members.push_back(v);
        const bool always = value.start == none;
        problem.items.push_back({bytes, always ? 0 : value.start, always ? problem.slots : value.length});
      }
      for (;;) {
        const Result<Packing> packing = pack_towards(problem, effort);
        if (!packing) return packing.problem();
        for (std::size_t i = 0; i < members.size(); ++i) values_[members[i]].offset = packing->offsets[i];
        std::vector<bool> leaves(members.size(), false);
        bool any = false;
        for (std::size_t i = 0; i < members.size(); ++i) {
          const Bytes end = packing->offsets[i] + problem.items[i].size;
          if (end <= problem.capacity) continue;
          // What the host gives or reads must be here; then something else leaves.
          std::size_t leaving = i;
          if (device_.in_host[index(values_[members[i]].tensor)]) {
            for (std::size_t j = 0; j < members.size(); ++j) {
              const bool must_stay = device_.in_host[index(values_[members[j]].tensor)] || leaves[j];
              if (!must_stay && (leaving == i || problem.items[j].size > problem.items[leaving].size)) leaving = j;
            }
            any = true;
          }
          if (!goes_on(members[leaving])) return no_room(values_[members[leaving]].tensor);
          leaves[leaving] = true;
        }
        if (!any) break;
        std::vector<std::uint32_t> left;
        std::vector<PackingItem> items;
        for (std::size_t i = 0; i < members.size(); ++i) {
          if (leaves[i]) continue;
          left.push_back(members[i]);
          items.push_back(problem.items[i]);
        }
        members = std::move(left);
        problem.items = std::move(items);
      }
    }
    return std::nullopt;
  }

  /// Places on the way to far stores.
  void find_passing(const PackingEffort& packing) {
    if (std::ranges::none_of(device_.stores(), &RoutedStore::is_far)) return;
    for (std::uint32_t step = 0; step < steps_; ++step) {
      if (value_of_step_[step] == none) continue;
      const StoredValue& value = values_[value_of_step_[step]];
      const bool is_given = device_.trace.tensors[index(value.tensor)].kind == TensorKind::input;
      const bool is_in = command(step).kind == swapmm::CommandKind::swap_in;
      passing_of_step_[step] = static_cast<std::uint32_t>(copies_.size());
      copies_.push_back({step, value.tensor, is_in, value.store, is_given});
    }
    passing_ = place_passing(device_, copies_, steps_, packing);
    begins_at_.resize(steps_);
    ends_at_.resize(steps_);
    for (std::uint32_t c = 0; c < copies_.size(); ++c) {
      if (passing_[c].offsets.empty()) continue;
      if (copies_[c].is_in && passing_[c].first < copies_[c].step) begins_at_[passing_[c].first].push_back(c);
      ends_at_[passing_[c].last].push_back(c);
    }
  }

  [[nodiscard]] Problem no_room(TensorId tensor) const {
    return {"no memory that can be reached from its device has room for tensor " + std::to_string(index(tensor)) +
            " of " + std::to_string(device_.trace.tensors[index(tensor)].bytes.value) + " bytes"};
  }

  void write_initial() {
    std::vector<bool> clean(device_.trace.tensors.size(), true);
    for (const Resident& resident : plan_.initial) {
      clean[index(resident.tensor)] = resident.host_valid;
      result_.initial.push_back({resident.tensor, std::nullopt, FormId::plain, device_.device, resident.offset, true});
    }
    std::vector<bool> in_host(clean.size(), false);
    for (const StoredValue& value : values_) {
      const bool always = value.start == none;
      if (!always && value.start + value.length <= steps_) continue;  // not there between two iterations
      const MemoryId memory = store_at(value.store).memory;
      const bool valid = !always || clean[index(value.tensor)];
      if (memory == device_.machine.host) in_host[index(value.tensor)] = true;
      if (!is_limited(value.store) && valid == (memory == device_.machine.host)) continue;
      result_.initial.push_back({value.tensor, std::nullopt, FormId::plain, memory, value.offset, valid});
    }
    if (device_.machine.memories[index(device_.machine.host)].bytes) return;
    // A host without limit holds the newest values of all others.
    for (std::size_t t = 0; t < clean.size(); ++t) {
      if (clean[t] || in_host[t]) continue;
      result_.initial.push_back(
          {id_at<TensorId>(t), std::nullopt, FormId::plain, device_.machine.host, Bytes{0}, false});
    }
  }

  void add(std::uint32_t before, Command command) {
    result_.commands.push_back(std::move(command));
    result_.before.push_back(before);
  }

  void write_step(std::uint32_t step) {
    write_command(step);
    if (passing_.empty()) return;
    for (const std::uint32_t c : begins_at_[step]) write_way(step, c);
    for (const std::uint32_t c : ends_at_[step]) {
      for_each_passed(device_.machine, way_of(copies_[c]), [&](std::size_t, MemoryId memory) {
        if (device_.routes.passing[index(memory)]) write_release(step, copies_[c].tensor, memory);
      });
    }
  }

  /// The copies between the store and the last memory before the device, or behind it.
  void write_way(std::uint32_t step, std::uint32_t copy) {
    const std::vector<LinkId>& way = way_of(copies_[copy]);
    for_each_passed(device_.machine, way, [&](std::size_t i, MemoryId passed) {
      Command command;
      command.kind = CommandKind::copy;
      command.tensor = copies_[copy].tensor;
      command.link = way[i];
      if (device_.routes.passing[index(passed)]) command.offset = passing_[copy].offsets[i];
      add(order_.before[step], std::move(command));
    });
  }

  void write_release(std::uint32_t step, TensorId tensor, MemoryId memory) {
    Command release;
    release.kind = CommandKind::release;
    release.tensor = tensor;
    release.memory = memory;
    add(order_.before[step], std::move(release));
  }

  void write_command(std::uint32_t step) {
    const swapmm::Command& old = command(step);
    const std::uint32_t before = order_.before[step];
    Command command;
    command.tensor = old.tensor;
    switch (old.kind) {
      case swapmm::CommandKind::allocate:
        command.kind = CommandKind::allocate;
        command.memory = device_.device;
        command.offset = old.offset;
        return add(before, std::move(command));
      case swapmm::CommandKind::release:
        command.kind = CommandKind::release;
        command.memory = device_.device;
        return add(before, std::move(command));
      case swapmm::CommandKind::swap_in:
      case swapmm::CommandKind::swap_out: break;
    }
    const bool out = old.kind == swapmm::CommandKind::swap_out;
    const StoredValue& value = values_[value_of_step_[step]];
    const RoutedStore& store = store_at(value.store);
    const std::uint32_t passing = passing_of_step_[step];
    // On its way in, a value may have come to the last memory before.
    if (passing != none && (out || passing_[passing].first == step)) write_way(step, passing);
    command.kind = CommandKind::copy;
    command.link = out ? store.out.back() : store.in.back();
    if (!out) command.offset = old.offset;
    const bool has_place = is_limited(value.store) && value.start != none;
    if (out && has_place && step == value.start) command.offset = value.offset;
    add(before, std::move(command));
    if (has_place && step == (value.start + value.length - 1) % steps_) write_release(step, old.tensor, store.memory);
  }

  const DeviceCase& device_;
  const swapmm::Plan& plan_;
  const SerialOrder order_;
  const std::uint32_t steps_;
  std::vector<std::vector<std::uint32_t>> writes_;  // of each tensor: the operations that write it, ascending
  std::vector<StoredValue> values_;
  std::vector<std::vector<std::uint32_t>> values_of_;  // of each tensor
  std::vector<std::uint32_t> value_of_step_;           // of each step that copies
  std::vector<StoreCopy> copies_;                      // if there are far stores
  std::vector<PassingPlaces> passing_;                 // of each of these
  std::vector<std::uint32_t> passing_of_step_;         // of each step that copies: its position there
  std::vector<std::vector<std::uint32_t>> begins_at_;  // of each step: copies that leave a far store early
  std::vector<std::vector<std::uint32_t>> ends_at_;    // of each step: copies whose places on the way end
  SerialPlan result_;
};

}  // namespace

Result<Plan> stored_plan(const DeviceCase& device, const swapmm::Plan& plan, const WantedStore& wanted,
                         const PackingEffort& packing) {
  return StoredPlanWriter(device, plan).write(wanted, packing);
}

}  // namespace swapmm::v2::planning
