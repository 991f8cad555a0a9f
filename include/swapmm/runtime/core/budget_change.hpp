// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <swapmm/base/error.hpp>
#include <swapmm/runtime/book/program_book.hpp>
#include <swapmm/runtime/core/plan_controller.hpp>
#include <swapmm/runtime/core/session_state.hpp>
#include <swapmm/runtime/values/messages.hpp>

namespace swapmm::runtime {

/// Replaces a manager's device memory by another amount. Meanwhile all values are on the host, so the old memory can be
/// released before the new memory is allocated: both together may be more than the device has.
template <Backend B>
class BudgetChange {
 public:
  using Rec = Record<B>;

  BudgetChange(SessionState<B>& state, PlanController<B>& controller, ProgramBook& book)
      : state_(state), store_(state.store), controller_(controller), book_(book) {}

  void to(Bytes bytes) {
    PlaceMap next = Store<B>::places_of(store_.encodings.left_of(bytes), store_.backend);
    if (bytes.value != 0 && next.budget().value == 0) {
      throw UsageError("a device budget of " + std::to_string(bytes.value) +
                       " bytes leaves nothing beside Options::codec_staging");
    }
    if (next.budget() == store_.budget()) return;
    next.reserve(store_.records.size() + 1);
    PlaceMap nothing = Store<B>::places_of(Bytes{}, store_.backend);
    const NeighbourBytes neighbours = store_.neighbours_budget();
    book_.prepare_budgets({{next.budget(), neighbours}, {nothing.budget(), neighbours}});
    // The steps that are likely to fail come first, while the plan can still continue unchanged.
    require_device_memory(next);
    require_host_memory();
    controller_.leave_for_budget();
    write_back();
    state_.demand.for_each_resident([&](Rec& record) { state_.demand.release(record); });
    exchange(std::move(next), std::move(nothing));
  }

 private:
  // Allocates the difference and releases it: with the old memory it is as much as the new budget.
  void require_device_memory(const PlaceMap& next) {
    if (next.budget() <= store_.budget()) return;
    (void)AddressBook<B>::arenas_of(store_.backend, next.budget() - store_.budget(), next.arena());
  }

  [[nodiscard]] static bool device_alone(const Rec& record) {
    return record.tensor.alive && record.device.valid && !record.host.valid;
  }

  // All of it, or nothing.
  void require_host_memory() {
    std::vector<Rec*> given;
    given.reserve(store_.records.size());
    try {
      for (Rec& record : store_.records) {
        if (!device_alone(record) || record.host.block != nullptr) continue;
        store_.ensure_block(record);
        given.push_back(&record);
      }
    } catch (...) {
      for (Rec* const record : given) store_.pool.release(std::move(record->host.block));
      throw;
    }
  }

  void write_back() {
    for (Rec& record : store_.records) {
      if (!device_alone(record)) continue;
      store_.ensure_block_for_swap_out(record);
      store_.swap_out(record, store_.before_swap_out(record));
    }
    store_.timeline.host_wait(store_.timeline.everything());
  }

  // If the device refuses, the old amount is allocated again; if it refuses that too, there is no device memory.
  void exchange(PlaceMap next, PlaceMap nothing) {
    store_.scrub_device();
    store_.backend
        .finish();  // a driver may keep memory of commands that have ended until somebody waits for their queue
    store_.addresses.give_back();
    try {
      take(std::move(next));
    } catch (...) {
      try {
        store_.addresses.take(store_.budget(), store_.places.arena());
      } catch (const BackendError& error) {
        use(std::move(nothing));
        if (error.kind == BackendError::Kind::device_lost) throw;
        throw memory_refused(std::string(error.what()) + ". The old budget was refused, too: it is 0 bytes now", error,
                             {});
      } catch (...) {
        use(std::move(nothing));
        throw;
      }
      throw;
    }
    ++state_.budget_changes;
  }
  void take(PlaceMap&& next) {
    store_.addresses.take(next.budget(), next.arena());
    use(std::move(next));
  }
  void use(PlaceMap&& next) noexcept {
    store_.places = std::move(next);
    book_.use_budget({store_.budget(), store_.neighbours_budget()});
  }

  SessionState<B>& state_;
  Store<B>& store_;
  PlanController<B>& controller_;
  ProgramBook& book_;
};

}  // namespace swapmm::runtime
