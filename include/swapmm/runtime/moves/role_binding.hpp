// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <swapmm/backend/backend.hpp>
#include <swapmm/base/bytes.hpp>
#include <swapmm/runtime/moves/drops.hpp>
#include <swapmm/runtime/observe/plan_match.hpp>
#include <swapmm/runtime/observe/program.hpp>
#include <swapmm/runtime/order/clock.hpp>
#include <swapmm/runtime/values/store.hpp>

namespace swapmm::runtime {

/// A place on the device that a role of the plan has before a tensor is bound to it. The place of a work area never
/// gets a tensor.
template <Backend B>
struct RolePlace {
  bool resident = false;
  Bytes offset;
  const typename B::Address* address = nullptr;
  Clock after;  ///< the bytes may be used after this
};

/// The tensors and places of all roles of a plan.
template <Backend B>
struct BoundRoles {
  explicit BoundRoles(std::size_t roles) : records(roles, nullptr), rounds(roles, 0), places(roles) {}
  std::vector<Record<B>*> records;
  std::vector<std::uint64_t> rounds;  ///< the round in which the tensor was bound
  std::vector<RolePlace<B>> places;
};

/// Binds the roles of the followed plan to tensors. Handles stay bound; a local is another tensor in each round, and
/// gets the place that the plan has for it.
template <Backend B>
class RoleBinding {
 public:
  using Rec = Record<B>;

  RoleBinding(Store<B>& store, Drops<B>& drops) : store_(store), drops_(drops) {}

  void start(const Program& program, BoundRoles<B>&& roles) noexcept {
    program_ = &program;
    roles_ = std::move(roles);
  }
  /// Frees places without a tensor and unbinds all tensors. Passes tensors without a handle to `reclaim`. In between,
  /// `rebuild` rebuilds the list of tensors on the device.
  template <class Rebuild, class Reclaim>
  void stop(Rebuild&& rebuild, Reclaim&& reclaim) {
    for (std::size_t role = 0; role < roles_.places.size(); ++role) {
      if (place(role).resident) store_.unbook(program_->roles[role].bytes, place(role).after);
    }
    rebuild();
    for (Rec* const record : roles_.records) {
      if (record == nullptr || !record->tensor.in_use) continue;
      record->plan.role = none;
      if (!record->tensor.alive) reclaim(*record);
    }
    roles_ = BoundRoles<B>{0};
  }

  /// The tensor of the role; null if there is none yet.
  [[nodiscard]] Rec* record(std::size_t role) const { return roles_.records[role]; }
  [[nodiscard]] RolePlace<B>& place(std::size_t role) { return roles_.places[role]; }
  /// Returns whether the tensor is the one of that round. A local may still be the tensor of the previous round.
  [[nodiscard]] bool bound_in(std::size_t role, std::uint64_t round) const {
    const Role& expected = program_->roles[role];
    return expected.kind == Role::Kind::handle || expected.carried != 0 || roles_.rounds[role] == round;
  }
  /// Calls visit(role, record) for each tensor that is bound to a role.
  template <class Visit>
  void for_each(Visit&& visit) {
    for (std::size_t role = 0; role < roles_.records.size(); ++role) {
      Rec* const bound = record(role);
      if (bound != nullptr) visit(program_->roles[role], *bound);
    }
  }

  /// Returns whether the tensor is bound, or can be bound, to the role in that round. `new_value`: no part of an older
  /// value is needed.
  [[nodiscard]] bool fits(std::uint32_t role, const Rec& tensor, bool new_value, std::uint64_t round) const {
    // A local of the previous round that still exists is not the new tensor that the plan expects.
    if (record(role) == &tensor) return bound_in(role, round);
    return new_value && tensor.plan.role == none && can_be(program_->roles[role], tensor, store_.iteration) &&
           roles_.rounds[role] != round;
  }

  /// Binds the tensor to the role in that round. If it throws, nothing has changed, but the value of the tensor that
  /// was bound may be on the host, too.
  void bind(std::uint32_t role, Rec& tensor, std::uint64_t round) {
    Rec* const before = record(role);
    if (before == &tensor) return;
    if (before != nullptr) {
      if (before->device.resident) {  // the plan keeps the place from one tensor to the next
        drops_.settle(*before);
        take_place(tensor, before->device.offset, before->device.address, before->device.busy);
        before->device.resident = false;
        if (std::exchange(before->device.valid, false) && !before->host.valid) {
          before->value.missing_reason = MissingReason::dropped;
        }
      }
      before->plan.role = none;
      if (!before->tensor.alive) {
        const bool goes_on = tensor.host.block == nullptr && !before->tensor.constant;
        if (goes_on) tensor.host.block = std::move(before->host.block);
        store_.free_host(*before);
        store_.records.remove(*before);
      }
    }
    if (RolePlace<B>& early = place(role); early.resident) {
      take_place(tensor, early.offset, early.address, early.after);
      early.resident = false;
    }
    roles_.records[role] = &tensor;
    roles_.rounds[role] = round;
    tensor.plan.role = role;
    tensor.use.fresh = false;
    tensor.tensor.appeared = program_->roles[role].appeared;
  }

 private:
  static void take_place(Rec& record, Bytes offset, const typename B::Address* address, const Clock& after) {
    record.device.resident = true;
    record.device.offset = offset;
    record.device.address = address;
    record.device.ready = after;
    record.device.busy = after;
  }

  Store<B>& store_;
  Drops<B>& drops_;
  const Program* program_ = nullptr;
  BoundRoles<B> roles_{0};
};

}  // namespace swapmm::runtime
