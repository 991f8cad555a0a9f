// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <swapmm/backend/backend.hpp>
#include <swapmm/base/bytes.hpp>
#include <swapmm/runtime/core/core.hpp>
#include <swapmm/runtime/core/host_views.hpp>
#include <swapmm/runtime/core/kept_operations.hpp>
#include <swapmm/runtime/core/run_again.hpp>
#include <swapmm/runtime/core/running_operation.hpp>
#include <swapmm/runtime/run/callable.hpp>
#include <swapmm/runtime/slices/joined_slices.hpp>
#include <swapmm/runtime/slices/slice_layout.hpp>
#include <swapmm/runtime/values/bundle.hpp>
#include <swapmm/runtime/values/messages.hpp>

namespace swapmm::runtime {

/// What an operation runs: the program's callable, and the slices of its bundle.
template <Backend B>
struct Work {
  CallableRef<B> callable;
  std::shared_ptr<const SliceLayout<B>> slices;  ///< null: there are none

  /// Whether slices are joined before the callable's work, and taken apart behind it.
  [[nodiscard]] bool joins() const { return slices != nullptr && slices->joins(); }
  /// Whether the operation's work waits for a list by itself.
  [[nodiscard]] bool takes_list() const { return callable.gives_event() && !joins(); }
};

/// Joins slices, calls the program's callable, and copies what it has written to the pieces.
template <Backend B>
void queue_joined(RunningOperation<B>& running, const Work<B>& work) {
  JoinedSlices<B> joined(running, *work.slices);
  joined.gather();
  if (work.callable.gives_event()) {
    running.await(work.callable.queue_after(running, work.slices.get(), joined.wait_list()));
  } else {
    work.callable.queue(running, work.slices.get());
  }
  joined.scatter();
}

/// Queues the work of an operation and the point after it.
template <Backend B>
void complete_with_work(RunningOperation<B>& running, const Work<B>& work) {
  if (work.takes_list()) {
    typename B::WaitList waits = running.wait_list();
    typename B::NativeEvent event = running.call([&]() -> typename B::NativeEvent {
      return work.callable.queue_after(running, work.slices.get(), std::move(waits));
    });
    running.complete_after_list(std::move(event));
    return;
  }
  running.call([&] {
    if (work.joins()) return queue_joined(running, work);
    work.callable.queue(running, work.slices.get());
  });
  running.complete();
}

/// Runs an operation once.
template <Backend B>
void run_once(Core<B>& core, const Request<B>& request, const Work<B>& work) {
  RunningOperation<B> running(core, request, work.takes_list());
  complete_with_work(running, work);
}

/// The work of an operation, kept so that it can run again.
template <Backend B>
class KeptWork final : public KeptCallable<B> {
 public:
  explicit KeptWork(const Work<B>& work) { replace(work); }
  void replace(const Work<B>& work) {
    callable_.assign(work.callable);
    slices_ = work.slices;
  }
  void forget() noexcept override {
    callable_.reset();
    slices_.reset();
  }
  void run(Core<B>& core, const Request<B>& request) override {
    run_once(core, request, Work<B>{callable_.ref(), slices_});
  }

 private:
  CallableCopy<B> callable_;
  std::shared_ptr<const SliceLayout<B>> slices_;
};

/// Runs one operation of the program. `items` are those of the request.
template <Backend B>
void run_operation(Core<B>& core, std::span<BundleItem<B>> items, const Request<B>& request, const Work<B>& work) {
  run_beside_views<B>(core, items, [&] {
    if (request.replayable && work.callable.type->copy == nullptr) {
      throw operation_misused(request.name, " is replayable, and its callable cannot be copied");
    }
    run_again_before(core, request);
    if (!request.replayable) return run_once(core, request, work);
    bool check_again = false;
    {
      RunningOperation<B> running(core, request, work.takes_list());
      try {
        running.template prepare_to_keep<KeptWork<B>>(work);
      } catch (...) {  // of the callable's copy
        running.cancel();
        throw;
      }
      complete_with_work(running, work);
      running.keep();
      check_again = running.is_checked_again();
    }
    if (!check_again) return;
    Request<B> again = request;
    again.again = true;
    run_once(core, again, work);
  });
}

/// The same with slices of divided tensors beside the tensors in `items`, to which their pieces are added. `declared`
/// is the operation without slices.
template <Backend B>
void run_with_slices(Core<B>& core, std::vector<BundleItem<B>>& items, const std::vector<BundledSlice<B>>& slices,
                     const Request<B>& declared, const CallableRef<B>& callable) {
  require_apart(declared.name, slices);
  add_pieces(slices, items);
  const auto layout =
      std::make_shared<const SliceLayout<B>>(lay_out(slices, declared.scratch, core.backend().capabilities()));
  if (layout->joins() && !DeviceCopyBackend<B>) {
    throw operation_misused(declared.name,
                            " has a slice of a divided tensor that does not lie in one piece, and the backend copies "
                            "nothing on the device: declare it in_pieces()");
  }
  Request<B> request = declared;
  request.items = items;
  request.scratch = layout->scratch;
  run_operation(core, std::span<BundleItem<B>>(items), request, Work<B>{callable, layout});
}

}  // namespace swapmm::runtime
