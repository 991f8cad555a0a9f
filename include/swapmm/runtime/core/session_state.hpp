// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <utility>

#include <swapmm/interface/options.hpp>
#include <swapmm/plan/machine.hpp>
#include <swapmm/runtime/book/program_book.hpp>
#include <swapmm/runtime/core/entrance_options.hpp>
#include <swapmm/runtime/core/failures.hpp>
#include <swapmm/runtime/moves/demand.hpp>
#include <swapmm/runtime/moves/plan_executor.hpp>
#include <swapmm/runtime/observe/recorder.hpp>
#include <swapmm/runtime/values/promises.hpp>
#include <swapmm/runtime/values/store.hpp>

namespace swapmm::runtime {

/// The state of an open manager: the values, the two ways to move them, and known failures.
template <Backend B>
struct SessionState {
  SessionState(B backend, const Options& options, const EntranceOptions& entrance = {})
      : store(std::move(backend), options, entrance.shared_host),
        demand(store, entrance.undefined_reads),
        executor(store, demand, options.run_ahead, entrance.certainly_dead),
        recorder(store, entrance.identify_by_producer),
        failures(store) {}

  Store<B> store;
  Demand<B> demand;
  PlanExecutor<B> executor;
  Recorder<B> recorder;
  Failures<B> failures;
  Promises<B> promises;
  std::uint64_t budget_changes = 0;
  bool in_capture = false;  ///< queued work is captured and does not run yet: see IterationCapture

  /// The speed that plans are made for if nothing is known, not even after LinkProbe: so slow that a plan moves as
  /// little as it can and begins to move as soon as it can, which is right for any speed.
  static constexpr Link unknown_link{100'000'000, std::chrono::nanoseconds{0}};

  /// False if the machine's links are not given, and no copy was timed in either direction.
  [[nodiscard]] bool knows_links(const ProgramBook& book) const {
    return book.options().machine || store.h2d_link.link() || store.d2h_link.link();
  }

  /// The machine that plans are made for: the manager's device, with links as given or as observed.
  [[nodiscard]] Machine machine(const ProgramBook& book) const {
    const Capabilities& can = store.backend.capabilities();
    Machine machine = book.options().machine.value_or(Machine{});
    if (!book.options().machine) {
      const std::optional<Link> in = store.h2d_link.link();
      const std::optional<Link> out = store.d2h_link.link();
      // If copies ran in one direction only, the other is assumed to be alike.
      machine.h2d = in ? *in : out.value_or(unknown_link);
      machine.d2h = out ? *out : machine.h2d;
      machine.duplex = can.copy_engines == 1 ? Duplex::half : Duplex::full;
      machine.name = can.device_name;
    }
    machine.device_budget = store.budget();
    machine.alignment = can.alignment;
    machine.max_allocation.reset();
    if (store.places.arena() != store.budget()) machine.max_allocation = store.places.arena();
    return machine;
  }

  /// Called when nothing refers to the tensor any more. Frees its bytes for use once the work that uses them has ended.
  void free_storage(Record<B>& record) noexcept {
    if (record.host.block != nullptr) promises.settle(store, *record.host.block);
    if (record.host.spare != nullptr) promises.settle(store, *record.host.spare);
    if (record.device.resident) demand.release(record);
    store.free_host(record);
    store.records.remove(record);
  }
};

}  // namespace swapmm::runtime
