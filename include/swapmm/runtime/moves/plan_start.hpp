// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <swapmm/backend/backend.hpp>
#include <swapmm/base/bytes.hpp>
#include <swapmm/runtime/blocks/home.hpp>
#include <swapmm/runtime/book/compiled_plan.hpp>
#include <swapmm/runtime/moves/demand.hpp>
#include <swapmm/runtime/moves/faults.hpp>
#include <swapmm/runtime/moves/role_binding.hpp>
#include <swapmm/runtime/observe/plan_match.hpp>
#include <swapmm/runtime/values/homes.hpp>
#include <swapmm/runtime/values/messages.hpp>
#include <swapmm/runtime/values/store.hpp>
#include <swapmm/runtime/values/traffic.hpp>

namespace swapmm::runtime {

/// The tensor of an earlier iteration that a role begins with (see Role::carried); null if there is none.
template <Backend B>
[[nodiscard]] Record<B>* carried_tensor(const Role& role, Store<B>& store) {
  for (Record<B>& record : store.records) {
    if (record.tensor.alive && can_begin_as(role, record, store.iteration)) return &record;
  }
  return nullptr;
}

/// The reason why a plan for `program` cannot be followed from here (its tensors are gone, or have no value yet), or an
/// empty text.
template <Backend B>
[[nodiscard]] std::string obstacle_to(const Program& program, Store<B>& store) {
  for (std::size_t role = 0; role < program.roles.size(); ++role) {
    const Role& expected = program.roles[role];
    if (expected.carried != 0) {
      const Record<B>* const record = carried_tensor(expected, store);
      if (record == nullptr || !record->has_value()) {
        return "no tensor has the place of \"" + program.trace.tensors[role].name + "\"";
      }
    }
    if (expected.kind != Role::Kind::handle) continue;
    const Record<B>& record = store.records[expected.record];
    if (record.tensor.serial != expected.serial || !record.tensor.alive) {
      return "tensor \"" + program.trace.tensors[role].name + "\" no longer exists";
    }
    if (program.trace.tensors[role].kind == TensorKind::persistent && !record.has_value()) {
      return "tensor \"" + record.name + "\" has no value";
    }
  }
  return {};
}

/// Bytes copied at the start of a plan.
struct StartCopies {
  Bytes in;
  Bytes out;
  Bytes needless_in;   ///< of `in`: values that were on the device, in other places
  Bytes needless_out;  ///< of `out`: more than the device was too full for
};

/// Moves tensors until the residency is the one that a plan starts from, and allocates everything that following the
/// plan needs.
template <Backend B>
class PlanStart {
 public:
  using Rec = Record<B>;

  PlanStart(Store<B>& store, Demand<B>& demand, const CompiledPlan& plan)
      : store_(store), demand_(demand), plan_(plan), roles_(plan.program.roles.size()) {}

  /// The objects with which the executor follows the plan.
  struct Start {
    BoundRoles<B> roles;
    std::vector<const typename B::Address*> addresses;  ///< per step
    StartCopies copies;
  };

  /// Slow: makes addresses and events, may queue copies, may wait. If it throws, the state is correct for swapping on
  /// demand.
  [[nodiscard]] Start run(std::size_t run_ahead) {
    const std::size_t roles = plan_.program.roles.size();
    for (std::size_t role = 0; role < roles; ++role) {
      const Role& expected = plan_.program.roles[role];
      if (expected.kind == Role::Kind::handle) roles_.records[role] = &store_.records[expected.record];
      if (expected.carried != 0) roles_.records[role] = carried_tensor(expected, store_);
    }
    std::vector<const typename B::Address*> addresses = make_addresses();
    for (const QueueKind queue : device_queues) {
      if (!store_.timeline.has(queue)) continue;
      store_.timeline.reserve(queue, plan_.points[index(queue)] * (run_ahead + 2) + 16);
    }
    take_host_blocks();
    const StartCopies copies = arrange_and_count();
    for (std::uint32_t role = 0; role < roles; ++role) {
      if (roles_.records[role] != nullptr) roles_.records[role]->plan.role = role;
    }
    return {std::move(roles_), std::move(addresses), copies};
  }

 private:
  static constexpr Bytes unwanted{~std::uint64_t{0}};

  // Where values may be encoded, the plan says which are.
  [[nodiscard]] bool decides_homes() const { return plan_.tells_homes || store_.encodings.history().is_on(); }

  std::vector<const typename B::Address*> make_addresses() {
    std::vector<const typename B::Address*> addresses;
    addresses.reserve(plan_.steps.size());
    for (const Step& step : plan_.steps) {
      const bool placed = step.kind == CommandKind::allocate || step.kind == CommandKind::swap_in;
      addresses.push_back(placed ? store_.addresses.at(step.offset, plan_.program.roles[step.role].bytes) : nullptr);
    }
    return addresses;
  }

  void take_host_blocks() {
    for (std::size_t role = 0; role < roles_.records.size(); ++role) {
      if (plan_.tiered || !plan_.swapped_out[role] || roles_.records[role] == nullptr) continue;
      Rec& record = *roles_.records[role];
      if (decides_homes()) {
        ensure_block_in(plan_.home_of(role), record, store_);
      } else {
        store_.ensure_block(record);
      }
    }
    // Tensors that the host fills in each round use two slots alternately. The slots are made here, not while
    // following.
    for (const Event& event : plan_.program.events) {
      if (event.what != Event::What::upload || roles_.records[event.index] == nullptr) continue;
      store_.ensure_spare(*roles_.records[event.index]);
    }
  }

  // On demand, values that are on the device stay there as long as the others find room.
  StartCopies arrange_and_count() {
    Bytes missing;
    for (const Resident& resident : plan_.plan.initial) {
      const Rec* const record = roles_.records[index(resident.tensor)];
      if (record == nullptr || !record->device.valid) missing += plan_.program.roles[index(resident.tensor)].bytes;
    }
    const Bytes room = store_.budget() - store_.used();
    const Traffic before = store_.traffic;
    arrange();
    const Bytes in = store_.traffic.h2d - before.h2d;
    const Bytes out = store_.traffic.d2h - before.d2h;
    const Bytes makes_room = missing - std::min(missing, room);
    return {in, out, in - std::min(in, missing), out - std::min(out, makes_room)};
  }

  // Moves the tensors that are not where the plan starts. After each move the state is correct for swapping on demand,
  // in case the next one fails.
  void arrange() {
    evict_others();
    move_values();
    for (const Resident& resident : plan_.plan.initial) {
      const std::size_t role = index(resident.tensor);
      if (roles_.records[role] == nullptr) {
        reserve_place(role, resident.offset);
      } else {
        bring(*roles_.records[role], resident);
      }
    }
    for (std::size_t role = 0; role < roles_.places.size(); ++role) {
      if (roles_.places[role].resident) store_.book(plan_.program.roles[role].bytes, roles_.places[role].after);
    }
  }

  void evict_others() {
    std::vector<Bytes> wanted(store_.records.size(), unwanted);
    for (const Resident& resident : plan_.plan.initial) {
      if (const Rec* const record = roles_.records[index(resident.tensor)]) wanted[record->id] = resident.offset;
    }
    std::vector<bool> in_plan(store_.records.size(), false);
    for (const Rec* const record : roles_.records) {
      if (record != nullptr) in_plan[record->id] = true;
    }
    demand_.for_each_resident([&](Rec& record) {
      if (wanted[record.id] == record.device.offset && record.device.valid) return;
      if (in_plan[record.id] || record.device.offset < plan_.footprint) demand_.evict(record);
    });
  }

  // Values move to the memory that the plan expects them in: first to the file, so that others have room. What found
  // none is tried once more, when others have left.
  void move_values() {
    for (const Home home : {Home::file, Home::host, Home::neighbour, Home::neighbour_2, Home::neighbour_3, Home::host,
                            Home::neighbour, Home::neighbour_2, Home::neighbour_3}) {
      for (std::size_t role = 0; role < plan_.begins_in.size(); ++role) {
        Rec* const record = roles_.records[role];
        if (record == nullptr || plan_.begins_in[role] != home || !record->host.valid) continue;
        if (record->host.block->home() != home) move_value(*record, home, store_);
      }
    }
  }

  void reserve_place(std::size_t role, Bytes offset) {
    const Bytes size = plan_.program.roles[role].bytes;
    const typename B::Address* const address = store_.addresses.at(offset, size);
    const auto place = store_.places.take_at(offset, size);
    if (!place) throw place_not_free({{}, plan_.program.trace.tensors[role].name, size});
    store_.places.give_back(offset, size, place->after);  // booked at the end, when nothing can fail any more
    roles_.places[role] = {true, offset, address, place->after};
  }

  void bring(Rec& record, const Resident& resident) {
    if (!record.device.resident && !demand_.bring_to(record, resident.offset, record.has_value())) {
      throw place_not_free(name_of(record));
    }
    if (resident.host_valid && !record.host.valid && record.device.valid) {
      const std::size_t role = index(resident.tensor);
      if (plan_.tiered && plan_.begins_in[role]) {
        ensure_block_in(*plan_.begins_in[role], record, store_);
      } else if (!plan_.tiered && decides_homes()) {
        ensure_block_in(plan_.home_of(role), record, store_);
      }
      store_.ensure_block_for_swap_out(record, decides_homes());
      store_.swap_out(record, store_.before_swap_out(record));
    }
  }

  Store<B>& store_;
  Demand<B>& demand_;
  const CompiledPlan& plan_;
  BoundRoles<B> roles_;
};

}  // namespace swapmm::runtime
