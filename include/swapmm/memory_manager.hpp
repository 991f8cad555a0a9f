// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include <swapmm/backend/backend.hpp>
#include <swapmm/error.hpp>
#include <swapmm/ir/profile.hpp>
#include <swapmm/operation.hpp>
#include <swapmm/options.hpp>
#include <swapmm/report.hpp>
#include <swapmm/runtime/core/capturing.hpp>
#include <swapmm/runtime/core/core.hpp>
#include <swapmm/runtime/order/around.hpp>
#include <swapmm/scheduler.hpp>
#include <swapmm/tensor.hpp>

namespace swapmm {

/// One pass of the program's repeated part; ends when destroyed.
template <Backend B>
class Iteration {
 public:
  /// The other one ends nothing then.
  Iteration(Iteration&& other) noexcept = default;
  Iteration& operator=(Iteration&&) = delete;
  ~Iteration() {
    if (core_ != nullptr) core_->end_iteration();
  }

 private:
  template <Backend>
  friend class MemoryManager;
  explicit Iteration(std::shared_ptr<runtime::Core<B>> core) : core_(std::move(core)) {}
  std::shared_ptr<runtime::Core<B>> core_;
};

/// An iteration as a graph of the API: made by MemoryManager::capture(). It may outlive its manager, and cannot be
/// launched then.
template <Backend B>
class CapturedIteration;
/// The same; only backends that can capture have it.
template <CapturingBackend B>
class CapturedIteration<B> {
 public:
  /// Queues the iteration once more: behind everything queued before, and before everything queued later. Returns at
  /// once. In between, values may be downloaded. Throws UsageError where the plan was left since (another operation or
  /// iteration ran), or where one of its tensors was uploaded or destroyed: then capture it again.
  void launch() { core_->replay(round_); }

 private:
  template <Backend>
  friend class MemoryManager;
  CapturedIteration(std::shared_ptr<runtime::Core<B>> core, runtime::CapturedRound<B> round)
      : core_(std::move(core)), round_(std::move(round)) {}
  std::shared_ptr<runtime::Core<B>> core_;
  runtime::CapturedRound<B> round_;
};

/// Runs a program whose tensors together are larger than the device: it keeps each operation's bundle on the device
/// while the operation runs, and swaps the rest to host memory, on demand at first and by a plan once the program
/// has shown what it repeats.
///
/// For one thread at a time; a second one gets ConcurrentUse. Errors leave it usable, but for DeviceLost. All
/// tensors, iterations and promises may outlive it, and be destroyed by any thread.
template <Backend B>
class MemoryManager {
 public:
  /// Takes the device budget from the device at once. Throws UsageError for options that make no sense, OutOfMemory
  /// where the device refuses the budget.
  explicit MemoryManager(B backend, Options options = {}, Scheduler scheduler = Scheduler())
      : scheduler_(std::move(scheduler)) {
    if constexpr (requires { backend.default_device_budget(); }) {
      if (options.device_budget.value == 0) options.device_budget = backend.default_device_budget();
    }
    check(options, backend.capabilities());
    try {
      core_ = std::make_shared<runtime::Core<B>>(std::move(backend), options, SchedulerAccess::book(scheduler_));
    } catch (const BackendError& error) {
      const std::string text = "making a manager with a device budget of " +
                               std::to_string(options.device_budget.value) + " bytes: " + error.what();
      if (error.kind == BackendError::Kind::device_lost) throw DeviceLost(text, {}, error.code);
      if (error.kind == BackendError::Kind::failed) throw BackendError(error, text, {});
      throw runtime::memory_refused(text, error, {});
    }
  }
  /// Tensors and iterations of the other one are this one's then. The other one is for destruction alone.
  MemoryManager(MemoryManager&&) noexcept = default;
  MemoryManager& operator=(MemoryManager&&) = delete;
  /// Waits for a call of another thread that is inside, and for all queued work, then gives back every byte.
  ~MemoryManager() {
    if (core_ != nullptr) core_->close();
  }

  /// A tensor without a value. No bytes are taken before the value needs them. The name stands in errors, traces and
  /// reports.
  template <class T>
  [[nodiscard]] Tensor<T, B> tensor(const Shape& shape, std::string_view name = "tensor",
                                    Lifetime lifetime = persistent) {
    const auto count = shape.count();
    const auto bytes = count ? checked_multiply(Bytes{*count}, sizeof(T)) : std::nullopt;
    if (!bytes || bytes->value >= std::uint64_t{1} << 62U) {
      throw UsageError(
          "tensor \"" + std::string(name) + "\" of " + shape.text() + " elements has more bytes than 62 bits can count",
          {.tensors = {TensorName{.name = std::string(name)}}});
    }
    return Tensor<T, B>(core_, core().create(name, *bytes, lifetime), shape, *count);
  }

  /// Begins an iteration; it ends when the returned object is destroyed. The name tells programs' different repeated
  /// parts apart ("train", "evaluate"). May make a plan, which takes as long as the planner does.
  [[nodiscard]] Iteration<B> iteration(std::string_view name = "iteration") {
    core().begin_iteration(name);
    return Iteration<B>(core_);
  }

  /// Runs one unit operation: run(name, reads(...), writes(...), updates(...), scratch(...), callable), any number of
  /// each, or run(name, bundle, callable).
  ///
  /// The callable is either (auto& op), which queues its work on op.queue(), or (auto& op, B::WaitList waits), which
  /// makes its work wait for the list and returns the API's event behind it: no barrier is then needed around a
  /// single kernel. Where an event may be empty, one that is makes the queue itself wait behind the callable's work, so
  /// that what comes next is in order whatever was done with the list. What the callable throws passes through, and
  /// leaves what it was to write undefined.
  template <class... Parts>
    requires(sizeof...(Parts) >= 1)
  void run(std::string_view name, Parts&&... parts) {
    run_parts(name, std::forward_as_tuple(std::forward<Parts>(parts)...),
              std::make_index_sequence<sizeof...(Parts) - 1>());
  }
  /// The same, with a bundle that was put together at run time. The bundle is as before afterwards.
  template <class Callable>
  void run(std::string_view name, Bundle<B>& bundle, Callable&& callable) {
    bundle.items_.clear();
    for (const auto& entry : bundle.tensors_) {
      bundle.items_.push_back(item(name, entry.tensor, entry.access, bundle.items_.size()));
    }
    run_request({name, bundle.items_, bundle.scratch_}, callable);
  }

  /// Captures one iteration that follows a plan, or as many as its cycle has, as a graph of the API: `body()` runs the
  /// operations of one iteration, without uploads and downloads; this call begins and ends it. A followed plan uses the
  /// same addresses in every round, so that the graph can be launched again and again: one call of the API instead of
  /// one or more per operation and copy. The capture itself is the first run. Waits for all queued work. Throws
  /// UsageError where the iteration follows no plan yet, where its plan has uploads, or where body() does something
  /// else than the plan expects; what body() throws passes through, and what it queued before still runs. From then on
  /// the plan is held: for as long as the program follows it, it is neither measured nor left for a better one.
  template <std::invocable Body>
    requires CapturingBackend<B>
  [[nodiscard]] CapturedIteration<B> capture(std::string_view name, Body&& body) {
    runtime::Core<B>& core = this->core();
    core.begin_capture(name);
    try {
      do {
        const auto running = iteration(name);
        body();
      } while (core.within_captured_round());
    } catch (...) {
      core.give_up_capture();
      throw;
    }
    return CapturedIteration<B>(core_, core.end_capture());
  }

  /// Another device budget, smaller or larger, from now on. Not inside operations and iterations. Waits for all queued
  /// work, copies to the host what the host does not have, and takes the memory anew: what lay beyond a smaller budget
  /// is the driver's again. At no time is more taken than the larger of both budgets. The next iteration brings back
  /// what it needs; plans are made for the new budget from what was observed, and found again if it was had before. A
  /// bundle beyond it throws BundleTooLarge as ever.
  ///
  /// Throws UsageError for a budget below the device's alignment and where it must not be called, OutOfMemory where the
  /// host has no room for the values or the device refuses the bytes: then the old budget is as before, and so is every
  /// value. (Should the device refuse the old bytes too, which another program may have taken meanwhile, the budget is
  /// 0 until a later call succeeds: values are safe on the host, and operations throw BundleTooLarge.) A captured
  /// iteration must be captured again.
  void set_budget(Bytes bytes) {
    if (bytes < core().backend().capabilities().alignment) {
      throw UsageError("a device budget of " + std::to_string(bytes.value) +
                       " bytes is below the device's alignment of " +
                       std::to_string(core().backend().capabilities().alignment.value));
    }
    core().set_budget(bytes);
  }

  /// Waits until everything queued so far has ended.
  void synchronize() { core().synchronize(); }

  /// Records what the device does from here on, until stop_profile(): which operation and which copy runs when, and how
  /// many bytes are taken. Waits for all queued work. Recording costs two events and a barrier per operation and per
  /// copy, so choose a few iterations; the order of the work stays as it is. Throws UsageError where one is being
  /// recorded already.
  void start_profile() { core().start_profile(); }
  /// Waits for all queued work, and returns what was recorded. Its time 0 is that of start_profile(). Work whose times
  /// the device does not know, or that failed, has no span, and bytes are placed in time by what is known. Throws
  /// UsageError where nothing is being recorded, and what failed while recording; the recording has ended then. (An
  /// error that an earlier call left behind comes first, as from every call: then nothing has happened yet.)
  [[nodiscard]] Profile stop_profile() { return core().stop_profile(); }
  /// True from start_profile() to stop_profile().
  [[nodiscard]] bool profiling() const { return core().profiling(); }

  /// The scheduler given to the constructor, or the default one. Lives as long as the manager.
  [[nodiscard]] Scheduler& scheduler() { return scheduler_; }
  /// The manager's own handle of the backend.
  [[nodiscard]] const B& backend() { return core().backend(); }
  /// What plans are made for, with the link speeds known so far.
  [[nodiscard]] Machine machine() { return core().machine(); }
  /// What was done so far. Waits for nothing; works after DeviceLost too.
  [[nodiscard]] Report report() const { return core().report(); }

 private:
  [[nodiscard]] runtime::Core<B>& core() const {
    if (core_ == nullptr) throw UsageError("a manager is used after it was moved from");
    return *core_;
  }

  static void check(const Options& options, const Capabilities& can) {
    if (options.device_budget.value == 0) {
      throw UsageError("Options::device_budget is 0: say how many bytes of the device the manager may use");
    }
    if (options.device_budget < can.alignment) {
      throw UsageError("Options::device_budget of " + std::to_string(options.device_budget.value) +
                       " bytes is below the device's alignment of " + std::to_string(can.alignment.value));
    }
    if (options.queue_depth < 8) throw UsageError("Options::queue_depth must be at least 8");
    if (options.run_ahead < 1 || options.run_ahead > 3) throw UsageError("Options::run_ahead must be 1, 2 or 3");
  }

  runtime::BundleItem<B> item(std::string_view operation, const TensorRef<B>& tensor, Access access,
                              std::size_t position) const {
    if (tensor.record == nullptr) {
      throw runtime::operation_misused(operation,
                                       ": tensor " + std::to_string(position) + " of its bundle was moved from");
    }
    if (tensor.core != &core()) {
      const std::string which = ": tensor " + std::to_string(position) + " of its bundle";
      if (tensor.core->closed()) {
        throw runtime::operation_misused(operation, which + " belongs to another manager");
      }
      TensorName foreign = runtime::name_of(*tensor.record);
      throw runtime::operation_misused(
          operation, which + " (" + runtime::in_quotes(foreign.name) + ") belongs to another manager", {foreign});
    }
    const bool part = access == Access::write && !tensor.whole();
    return {tensor.record, part ? Access::update : access};
  }

  template <class Tuple, std::size_t... I>
  void run_parts(std::string_view name, Tuple&& parts, std::index_sequence<I...>) {
    constexpr std::size_t count =
        (std::size_t{0} + ... + std::remove_cvref_t<std::tuple_element_t<I, std::remove_cvref_t<Tuple>>>::count);
    std::array<runtime::BundleItem<B>, count> items;
    std::size_t filled = 0;
    Bytes scratch_bytes;
    const auto add = [&](const auto& part) {
      if constexpr (std::is_same_v<std::remove_cvref_t<decltype(part)>, Scratch>) {
        scratch_bytes += part.bytes;
      } else {
        for (const TensorRef<B>& tensor : part.tensors) {
          items[filled] = item(name, tensor, part.access, filled);
          ++filled;
        }
      }
    };
    (add(std::get<I>(parts)), ...);
    run_request({name, items, scratch_bytes}, std::get<sizeof...(I)>(parts));
  }

  template <class Callable>
  void run_request(const runtime::Request<B>& request, Callable& callable) {
    constexpr bool gives_event = std::is_invocable_v<Callable&, Operation<B>&, typename B::WaitList>;
    runtime::Core<B>& core = this->core();
    core.begin(request, gives_event);
    Operation<B> operation(core);
    if constexpr (gives_event) {
      typename B::WaitList waits = core.wait_list();
      typename B::NativeEvent event = [&] {
        try {
          auto around = core.around_callable([&] { return runtime::around_operation(core.backend(), request.name); });
          typename B::NativeEvent made = callable(operation, std::move(waits));
          core.around_callable([&] { around.check(); });
          return made;
        } catch (...) {
          core.fail();
          throw;
        }
      }();
      bool only_teller = true;
      if constexpr (std::is_constructible_v<bool, const typename B::NativeEvent&>) {
        only_teller = static_cast<bool>(event);
        if (!event) core.wait_after_all();
      }
      core.complete([&](typename B::Event& slot) { core.backend().adopt(slot, std::move(event)); }, only_teller);
    } else {
      try {
        auto around = core.around_callable([&] { return runtime::around_operation(core.backend(), request.name); });
        callable(operation);
        core.around_callable([&] { around.check(); });
      } catch (...) {
        core.fail();
        throw;
      }
      core.complete([&](typename B::Event& slot) { core.backend().record(QueueKind::compute, slot); });
    }
  }

  Scheduler scheduler_;
  std::shared_ptr<runtime::Core<B>> core_;
};

}  // namespace swapmm
