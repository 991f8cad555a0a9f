// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <swapmm/backend/backend.hpp>
#include <swapmm/backend/file_memory.hpp>
#include <swapmm/divided.hpp>
#include <swapmm/error.hpp>
#include <swapmm/ir/profile.hpp>
#include <swapmm/operation.hpp>
#include <swapmm/options.hpp>
#include <swapmm/report.hpp>
#include <swapmm/runtime/core/core.hpp>
#include <swapmm/runtime/core/host_views.hpp>
#include <swapmm/runtime/core/iteration_capture.hpp>
#include <swapmm/runtime/core/make_core.hpp>
#include <swapmm/runtime/run/callable.hpp>
#include <swapmm/runtime/run/run_operation.hpp>
#include <swapmm/runtime/slices/slice_layout.hpp>
#include <swapmm/scheduler.hpp>
#include <swapmm/tensor.hpp>

namespace swapmm {

/// An iteration that is running: one pass of the part that the program repeats. The iteration ends when this object is
/// destroyed. Move-only.
template <Backend B>
class Iteration {
 public:
  /// Takes over the iteration. The moved-from object no longer ends it.
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

/// An iteration captured as a graph of the API by MemoryManager::capture(). It may outlive its manager, but cannot be
/// launched after that.
template <Backend B>
class CapturedIteration;
/// The same. Only backends that can capture have it.
template <CapturingBackend B>
class CapturedIteration<B> {
 public:
  /// Queues the iteration once more: after everything queued before, and before everything queued later. Returns at
  /// once. Values may be downloaded between launches. Throws UsageError if the plan was left since the capture (another
  /// operation or iteration ran), or if one of its tensors was uploaded or destroyed. Capture the iteration again then.
  /// Throws UsageError while the manager has host views.
  void launch() {
    runtime::require_no_host_views(*core_);
    core_->replay(round_);
  }

 private:
  template <Backend>
  friend class MemoryManager;
  CapturedIteration(std::shared_ptr<runtime::Core<B>> core, runtime::CapturedRound<B> round)
      : core_(std::move(core)), round_(std::move(round)) {}
  std::shared_ptr<runtime::Core<B>> core_;
  runtime::CapturedRound<B> round_;
};

/// Runs a program whose tensors together are larger than the device. It keeps each operation's bundle on the device
/// while the operation runs, and swaps the other tensors to host memory: on demand at first, and by a plan once the
/// program has repeated an iteration.
///
/// A manager is for one thread at a time; a second thread gets ConcurrentUse. It stays usable after every error except
/// DeviceLost. Tensors, iterations and pending downloads may outlive it, and may be destroyed by any thread.
template <Backend B>
class MemoryManager {
 public:
  /// Allocates the device budget at once. Throws UsageError for invalid options, and OutOfMemory if the device refuses
  /// the budget.
  explicit MemoryManager(B backend, Options options = {}, Scheduler scheduler = Scheduler())
      : scheduler_(std::move(scheduler)),
        core_(runtime::make_core(std::move(backend), std::move(options), SchedulerAccess::book(scheduler_))) {}
  /// Takes over all tensors and iterations. The moved-from manager may only be destroyed.
  MemoryManager(MemoryManager&&) noexcept = default;
  MemoryManager& operator=(MemoryManager&&) = delete;
  /// Waits for a running call of another thread and for all queued work. Then frees all memory.
  ~MemoryManager() {
    if (core_ != nullptr) core_->close();
  }

  /// Creates a tensor without a value. No memory is taken before the value needs it. The name appears in errors, traces
  /// and reports.
  template <class T>
  [[nodiscard]] Tensor<T, B> tensor(const Shape& shape, std::string_view name = "tensor",
                                    Lifetime lifetime = persistent) {
    const Bytes bytes = bytes_of<T>(shape, name);
    return Tensor<T, B>(core_, core().create(name, bytes, lifetime, sizeof(T)), shape, *shape.count());
  }

  /// Creates a tensor whose value is in a file and stays there: weights that are only read. `source` has it from byte
  /// `offset` on; swapmm::file::open_weights() opens such files. The value is never written back, and takes no host
  /// memory but Options::file_staging. The manager needs an Options::file, for which `source` will do. Operations may
  /// only read the tensor. Throws UsageError, also if the file is too short. A read that fails later is a WorkFailed of
  /// the operation that needs the value; nothing else is lost.
  template <class T>
    requires FileBackend<B>
  [[nodiscard]] Tensor<T, B> constant(const Shape& shape, const std::shared_ptr<FileMemory>& source, Bytes offset,
                                      std::string_view name = "constant") {
    const Bytes bytes = bytes_of<T>(shape, name);
    return Tensor<T, B>(core_, core().create_constant(name, bytes, source, offset), shape, *shape.count());
  }

  /// Creates a tensor whose values lie in pieces, so that it may be larger than the device budget: see DividedTensor.
  /// It is divided along its first dimension. Throws UsageError as tensor() does.
  template <class T>
  [[nodiscard]] DividedTensor<T, B> divided(const Shape& shape, std::string_view name = "tensor",
                                            const Division& division = {}) {
    const Bytes bytes = bytes_of<T>(shape, name);
    const std::size_t entries = entries_per_piece(shape[0], Bytes{bytes.value / shape[0]}, division);
    constexpr std::size_t most_pieces = std::size_t{1} << 22U;
    if ((shape[0] - 1) / entries >= most_pieces) {
      throw UsageError("tensor \"" + std::string(name) + "\" of " + shape.text() +
                       " elements would be divided into more than 2^22 pieces: Division::entries makes larger ones");
    }
    std::vector<Tensor<T, B>> pieces;
    for (std::size_t first = 0; first < shape[0]; first += entries) {
      const std::string piece = std::string(name) + "[" + std::to_string(pieces.size()) + "]";
      pieces.push_back(tensor<T>(shape.with_first(std::min(entries, shape[0] - first)), piece, division.lifetime));
    }
    return DividedTensor<T, B>(std::move(pieces), shape, entries);
  }

  /// Begins an iteration. It ends when the returned object is destroyed. The name distinguishes the repeated parts of a
  /// program ("train", "evaluate"). The call may make a plan, which takes as long as the planner does.
  [[nodiscard]] Iteration<B> iteration(std::string_view name = "iteration") {
    core().begin_iteration(name);
    return Iteration<B>(core_);
  }

  /// Runs one unit operation: run(name, reads(...), writes(...), updates(...), scratch(...), callable), with any number
  /// of each but one callable, or run(name, bundle, callable).
  ///
  /// The callable has one of two forms. (auto& op) queues its work on op.queue(). (auto& op, B::WaitList waits) makes
  /// its work wait for the list and returns the API's event for the end of the work; a single kernel then needs no
  /// barrier. If it returns an empty event, and the backend has empty events, the queue itself waits for the list after
  /// the callable's work, so later work is in order whatever the callable did with the list.
  ///
  /// An exception of the callable passes through. The tensors that the operation was to write are undefined then.
  template <class... Parts>
    requires(sizeof...(Parts) >= 1)
  void run(std::string_view name, Parts&&... parts) {
    constexpr bool is_replayable = (std::is_same_v<std::remove_cvref_t<Parts>, Replayable> || ...);
    constexpr bool has_slices = (std::is_same_v<std::remove_cvref_t<Parts>, AccessesWithSlices<B>> || ...);
    static_assert(((detail::is_part<std::remove_cvref_t<Parts>> ? 0 : 1) + ...) == 1,
                  "run() takes reads(), writes(), updates(), scratch() and replayable, and one callable");
    if constexpr ((std::is_function_v<std::remove_reference_t<Parts>> || ...)) {
      run(name, detail::as_object(parts)...);
    } else if constexpr (has_slices) {
      Bundle<B> bundle;
      runtime::CallableRef<B> callable;
      (declare<is_replayable>(bundle, callable, parts), ...);
      run_bundle(name, bundle, callable);
    } else {
      // A bundle whose size is known at compile time.
      std::array<runtime::BundleItem<B>, (detail::tensors_of<std::remove_cvref_t<Parts>>() + ...)> items;
      Declared declared{{name, items, Bytes{}}, items.data()};
      (declare<is_replayable>(declared, parts), ...);
      runtime::run_operation<B>(core(), items, declared.request, declared.work);
    }
  }
  /// The same, with a bundle that was put together at run time. The bundle is left unchanged and may be used again.
  template <class Callable>
  void run(std::string_view name, Bundle<B>& bundle, Callable&& callable) {
    auto&& object = detail::as_object(callable);
    run_bundle(name, bundle, detail::callable_ref<B, true>(object));
  }

  /// Captures one iteration that follows a plan, or as many iterations as the plan's cycle has, as a graph of the API.
  /// `body()` runs the operations of one iteration, without uploads and downloads; this call begins and ends the
  /// iteration. A followed plan uses the same addresses in every round, so the graph can be launched repeatedly: one
  /// call of the API instead of one or more per operation and copy. The capture itself runs the iteration once. Waits
  /// for all queued work.
  ///
  /// Throws UsageError if the iteration follows no plan yet, if its plan has uploads, if the manager has host views, or
  /// if body() does not do what the plan expects. An exception of body() passes through, and the work that it queued
  /// before still runs. After the capture the plan is kept: as long as the program follows it, swapmm neither measures
  /// it nor replaces it.
  template <std::invocable Body>
    requires CapturingBackend<B>
  [[nodiscard]] CapturedIteration<B> capture(std::string_view name, Body&& body) {
    runtime::Core<B>& core = this->core();
    runtime::require_no_host_views(core);
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

  /// Changes the device budget, to a smaller or larger one. Must not be called inside an operation or iteration. Waits
  /// for all queued work, copies values that only the device has to the host, frees the device memory and allocates the
  /// new budget. It never takes more than the larger of both budgets. The next iteration brings back what it needs.
  /// Plans for the new budget are made from what was observed; plans for a budget that was used before are found again.
  /// Captured iterations must be captured again.
  ///
  /// Throws UsageError if the budget is below the device's alignment, or if called inside an operation or iteration.
  /// Throws OutOfMemory if the host has no room for the values, or if the device refuses the bytes. The old budget and
  /// all values are then as before, with one exception: if the device also refuses the old bytes, because another
  /// program has taken them in the meantime, the budget is 0 until a later call succeeds. Values are then safe on the
  /// host, and operations throw BundleTooLarge.
  void set_budget(Bytes bytes) { runtime::set_budget(core(), bytes); }

  /// Changes the memory that the manager has on one of Options::neighbours, from 0 to the neighbour's capacity. For
  /// less, values there move to other memories first, and the neighbour has its memory back when this returns; for
  /// more, memory is allocated there. Must not be called inside an operation or iteration. Waits for all queued work.
  /// Plans for the new amount are made from what was observed; plans for an amount that was used before are found
  /// again.
  ///
  /// Throws UsageError if the neighbour is none of the manager's or the bytes are more than its capacity. Throws
  /// OutOfMemory if other memories have no room for the values; all is then as before. Throws OutOfMemory if the
  /// neighbour refuses the bytes: it then has what it had, or nothing if it was to have less. Throws WorkFailed with
  /// the names of values that could not be read from the neighbour, because it is lost; they are undefined, and its
  /// memory is given back.
  void set_neighbour_budget(const Neighbour& neighbour, Bytes bytes) { core().set_neighbour_budget(neighbour, bytes); }

  /// Waits until everything queued so far has ended.
  void synchronize() { core().synchronize(); }

  /// Starts to record a profile, until stop_profile(): which operation and which copy runs when, and how many bytes are
  /// taken. Waits for all queued work. Recording costs two events and a barrier per operation and per copy, so record
  /// only a few iterations. It does not change the order of the work. Throws UsageError if a profile is being recorded
  /// already.
  void start_profile() { core().start_profile(); }
  /// Waits for all queued work, and returns the recorded profile. Its time 0 is the time of start_profile(). Work that
  /// failed, or whose times the device does not know, has no span; its bytes are placed in time by the known spans.
  /// Throws UsageError if no profile is being recorded. Throws what failed while recording; the recording has then
  /// ended. (Like every call, it first throws a pending error of an earlier call; the recording then goes on.)
  [[nodiscard]] Profile stop_profile() { return core().stop_profile(); }
  /// True from start_profile() to stop_profile().
  [[nodiscard]] bool profiling() const { return core().profiling(); }

  /// Whether a tensor, or a view, is one of this manager. False if it is empty. A tensor that was moved keeps its
  /// manager.
  [[nodiscard]] bool owns(const TensorRef<B>& tensor) const {
    return tensor.record != nullptr && core_ != nullptr && tensor.core == core_.get();
  }
  /// The scheduler that was given to the constructor, or the default one. Lives as long as the manager.
  [[nodiscard]] Scheduler& scheduler() { return scheduler_; }
  /// The manager's own handle to the backend.
  [[nodiscard]] const B& backend() { return core().backend(); }
  /// The machine that plans are made for, with the link speeds known so far.
  [[nodiscard]] Machine machine() { return core().machine(); }
  /// What the manager has done so far. Waits for nothing, and also works after DeviceLost.
  [[nodiscard]] Report report() const { return core().report(); }

 private:
  [[nodiscard]] runtime::Core<B>& core() const {
    if (core_ == nullptr) throw UsageError("a manager is used after it was moved from");
    return *core_;
  }

  template <class T>
  [[nodiscard]] static Bytes bytes_of(const Shape& shape, std::string_view name) {
    const auto count = shape.count();
    const auto bytes = count ? checked_multiply(Bytes{*count}, sizeof(T)) : std::nullopt;
    if (bytes && bytes->value < std::uint64_t{1} << 62U) return *bytes;
    throw UsageError(
        "tensor \"" + std::string(name) + "\" of " + shape.text() + " elements has more bytes than 62 bits can count",
        {.tensors = {TensorName{.name = std::string(name)}}});
  }

  void require_usable(std::string_view operation, const TensorRef<B>& tensor, std::size_t position) const {
    if (tensor.record != nullptr && tensor.core == &core()) return;
    refuse(operation, tensor, position);
  }
  [[noreturn]] static void refuse(std::string_view operation, const TensorRef<B>& tensor, std::size_t position) {
    const std::string which = ": tensor " + std::to_string(position) + " of its bundle";
    if (tensor.record == nullptr) {
      throw runtime::operation_misused(operation, which + " is empty: it was moved from or reset");
    }
    if (tensor.core->closed()) throw runtime::operation_misused(operation, which + " belongs to another manager");
    TensorName foreign = runtime::name_of(tensor.key());
    const std::string name = tensor.key().exists() ? " (" + runtime::in_quotes(foreign.name) + ")" : std::string();
    throw runtime::operation_misused(operation, which + name + " belongs to another manager", {std::move(foreign)});
  }
  // A write of a part changes the tensor in place.
  static Access access_to(const TensorRef<B>& tensor, Access declared) {
    return declared == Access::write && !tensor.whole() ? Access::update : declared;
  }

  // As many as fit a 24th of the budget and one allocation, but in pieces of nearly equal size.
  [[nodiscard]] std::size_t entries_per_piece(std::size_t entries, Bytes entry, const Division& division) {
    if (division.entries != 0) return std::min(division.entries, entries);
    constexpr std::uint64_t pieces_in_budget = 24;
    const Report report = core().report();
    Bytes most{(report.device_budget - report.codec_staging).value / pieces_in_budget};
    if (const auto largest = core().backend().capabilities().max_allocation) most = std::min(most, *largest);
    const std::uint64_t fit =
        std::clamp<std::uint64_t>(most.value / std::max<std::uint64_t>(entry.value, 1), 1, entries);
    const std::uint64_t pieces = (entries + fit - 1) / fit;
    return static_cast<std::size_t>((entries + pieces - 1) / pieces);
  }

  void run_bundle(std::string_view name, Bundle<B>& bundle, const runtime::CallableRef<B>& callable) {
    bundle.items_.clear();
    for (const auto& entry : bundle.tensors_) {
      require_usable(name, entry.tensor, bundle.items_.size());
      bundle.items_.push_back({entry.tensor.record, access_to(entry.tensor, entry.access), entry.tensor.serial});
    }
    const runtime::Request<B> request{name, bundle.items_, bundle.scratch_, bundle.has_scratch_, bundle.replayable_};
    if (bundle.slices_.empty()) {
      return runtime::run_operation<B>(core(), bundle.items_, request, runtime::Work<B>{callable, nullptr});
    }
    for (const runtime::BundledSlice<B>& entry : bundle.slices_) {
      const runtime::SlicePart<B>& first = entry.slice.parts.front();
      require_usable(name, {entry.slice.core, first.piece.record, {}, first.bytes, first.piece.serial},
                     bundle.items_.size());
    }
    runtime::run_with_slices<B>(core(), bundle.items_, bundle.slices_, request, callable);
  }

  template <bool is_replayable, class Callable>
  static runtime::CallableRef<B> callable_of(Callable& callable) {
    static_assert(!is_replayable || std::is_copy_constructible_v<Callable>,
                  "a replayable operation's callable is copied");
    return detail::callable_ref<B, is_replayable>(callable);
  }
  template <bool is_replayable, class Part>
  static void declare(Bundle<B>& bundle, runtime::CallableRef<B>& callable, Part& part) {
    if constexpr (detail::is_part<std::remove_const_t<Part>>) {
      bundle.add_part(part);
    } else {
      callable = callable_of<is_replayable>(part);
    }
  }

  // What an operation's parameters have declared so far.
  struct Declared {
    runtime::Request<B> request;
    runtime::BundleItem<B>* next;
    runtime::Work<B> work{};
  };
  void add(Declared& declared, Access access, std::span<const TensorRef<B>> tensors) {
    for (const TensorRef<B>& tensor : tensors) {
      require_usable(declared.request.name, tensor,
                     static_cast<std::size_t>(declared.next - declared.request.items.data()));
      *declared.next++ = {tensor.record, access_to(tensor, access), tensor.serial};
    }
  }
  template <bool is_replayable, class Part>
  void declare(Declared& declared, Part& part) {
    using Plain = std::remove_const_t<Part>;
    if constexpr (std::is_same_v<Plain, Scratch>) {
      declared.request.scratch = detail::with_scratch(declared.request.scratch, part);
      declared.request.has_scratch = true;
    } else if constexpr (std::is_same_v<Plain, Replayable>) {
      declared.request.replayable = true;
    } else if constexpr (detail::is_part<Plain>) {
      add(declared, part.access, part.tensors);
    } else {
      declared.work.callable = callable_of<is_replayable>(part);
    }
  }
  Scheduler scheduler_;
  std::shared_ptr<runtime::Core<B>> core_;
};

}  // namespace swapmm
