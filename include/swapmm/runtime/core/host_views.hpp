// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <swapmm/base/bytes.hpp>
#include <swapmm/base/error.hpp>
#include <swapmm/pages/area.hpp>
#include <swapmm/pages/fault_service.hpp>
#include <swapmm/pages/fault_table.hpp>
#include <swapmm/pages/page_access.hpp>
#include <swapmm/runtime/core/core.hpp>
#include <swapmm/runtime/core/running_operation.hpp>
#include <swapmm/runtime/views/open_views.hpp>

namespace swapmm::runtime {

/// One host view: the area of memory, and the copies between it and the tensor. States of blocks change only inside the
/// manager, so one thread at a time changes them. docs/decisions/0035-lazy-host-views.md has the design.
template <Backend B>
class HostViewState final : public OpenView<B>, public pages::FaultTarget {
 public:
  using Entry = typename Core<B>::Entry;
  using OpenView<B>::area;
  using OpenView<B>::buffer;
  using OpenView<B>::bytes_in;
  using OpenView<B>::bytes_out;
  using OpenView<B>::covers_tensor;
  using OpenView<B>::faults;
  using OpenView<B>::offset;
  using OpenView<B>::tensor;

  /// Opens the view; the caller is inside as `session`. See View::host_view() for what it throws. The core must outlive
  /// this.
  HostViewState(Core<B>& core, Session<B>& session, const TensorKey<B>& of, Bytes from, std::span<std::byte> memory,
                Bytes size, Bytes block, pages::BlockState state, std::string why_eager)
      : OpenView<B>(of, from, memory, size, block, state, std::move(why_eager)),
        core_(core),
        session_(session),
        name_(of.record->name) {
    if (area.why_eager().empty()) {
      service_ = service_of();
      watched_.emplace(area, *this, *service_, name_);
    }
    session.state.views.add(*this);
    core_.gate().host_views.fetch_add(1, std::memory_order_release);
  }
  HostViewState(const HostViewState&) = delete;
  HostViewState& operator=(const HostViewState&) = delete;
  /// Copies what the program has modified to the tensor, if both still exist. If that fails, the next call to the
  /// manager throws.
  ~HostViewState() override;

  // ---- faults

  [[nodiscard]] bool is_held_by_caller() const noexcept override { return core_.gate().has_caller(); }
  void serve(std::size_t at, pages::Want want) override {
    faults.fetch_add(1, std::memory_order_relaxed);
    const std::size_t block = area.at(at);
    // A block that is there needs no manager, and stays usable after the manager's end.
    if (core_.closed() && area.state(block) != pages::BlockState::absent) return make_usable(block, want);
    const Entry entry(core_, false);
    make_usable(block, want);
  }
  /// Makes the blocks with bytes [begin, end) usable, as faults would.
  void prepare(std::size_t begin, std::size_t end, pages::Want want) {
    if (begin == end) return;
    const Entry entry(core_);
    const std::size_t last = area.at(end - 1);
    for (std::size_t i = area.at(begin); i <= last; ++i) make_usable(i, want);
  }

  // ---- the tensor's value changes; called inside the manager

  /// Fetches the eager blocks, which no fault fetches.
  void fill_eager_blocks() {
    for (std::size_t i = 0; i < area.count(); ++i) {
      if (area.is_eager(i) && area.state(i) == pages::BlockState::absent) {
        make_usable(i, pages::Want::read);
      }
    }
  }

  // ---- what the program has modified; called outside the manager

  [[nodiscard]] bool any_modified() const {
    for (std::size_t i = 0; i < area.count(); ++i) {
      if (area.is_modified(i)) return true;
    }
    return false;
  }
  /// Copies the modified blocks to the tensor. `before_operation`: an operation is about to use the tensor, so its
  /// value comes to the device anyway.
  void copy_in(bool before_operation);

 private:
  std::shared_ptr<pages::FaultService> service_of() {
    std::shared_ptr<pages::FaultService>& service = session_.state.views.service;
    if (service == nullptr) {
      Gate& gate = core_.gate();
      service = std::make_shared<pages::FaultService>([&gate] { gate.serve_from(this_thread()); },
                                                      [&gate] { gate.serve_from(nullptr); });
    }
    return service;
  }

  void make_usable(std::size_t i, pages::Want want) {
    if (area.state(i) == pages::BlockState::absent) {
      fetch(i);
      if (!area.fill(i, buffer, want == pages::Want::write)) open_all();
    } else if (area.state(i) == pages::BlockState::clean && want != pages::Want::read) {
      if (!area.open(i)) open_all();
    }
  }
  // The value of a block, in the buffer.
  void fetch(std::size_t i) {
    if (core_.closed()) throw UsageError("the manager of this tensor no longer exists");
    Record<B>& record = TensorRegistry<B>::existing(tensor, "host view");
    const Who who = about_tensor("host view of tensor ", record);
    buffer.resize(area.bytes_of(i).size());
    session_.translate(who,
                       [&] { session_.host.read_for_view(record, offset + Bytes{area.block(i).begin}, buffer, who); });
    bytes_out.fetch_add(buffer.size(), std::memory_order_relaxed);
  }
  // The process may have no more ranges of pages: all blocks become one.
  void open_all() {
    for (std::size_t i = 0; i < area.count(); ++i) {
      if (area.is_eager(i) || area.state(i) != pages::BlockState::absent) continue;
      fetch(i);
      if (!area.poke(i, buffer)) throw UsageError("a block of a host view could not be filled");
    }
    if (!area.open_all()) throw UsageError("the system refuses to change the permission of a host view's pages");
  }

  [[nodiscard]] bool all_modified() const {
    for (std::size_t i = 0; i < area.count(); ++i) {
      if (!area.is_modified(i)) return false;
    }
    return true;
  }
  void upload_all();
  void upload_parts();
  void update_on_device();
  void queue_copies();

  Core<B>& core_;
  Session<B>& session_;  // exists until the core is closed
  std::string name_;
  const int process_ = pages::process_number();
  std::shared_ptr<pages::FaultService> service_;  // null if the view is eager
  std::optional<pages::WatchedArea> watched_;     // none if the view is eager
};

/// Throws UsageError if views cannot have blocks of this size.
inline void require_block(Bytes block) {
  constexpr Bytes least{64U << 10U};
  constexpr Bytes most{2U << 20U};
  if (block >= least && block <= most && block.value % pages::page_bytes() == 0) return;
  throw UsageError("HostViewOptions::block is " + std::to_string(block.value) +
                   " bytes: from 64 KiB to 2 MiB, in whole pages");
}

/// Opens a host view of a part of a tensor. `memory` is the program's, or empty. Throws as View::host_view() does.
template <Backend B>
std::unique_ptr<HostViewState<B>> open_host_view(Core<B>& core, const TensorKey<B>& tensor, Bytes offset,
                                                 std::span<std::byte> memory, Bytes bytes, Bytes block, bool lazy) {
  require_block(block);
  pages::require_unwatched(memory);  // before anything reads it
  run_again_before_read(core, tensor);
  const typename Core<B>::Entry entry(core);
  Session<B>& session = *entry.session();
  Record<B>& record = TensorRegistry<B>::existing(tensor, "host view");
  const Who who = about_tensor("host view of tensor ", record);
  session.host.require_not_capturing(who);
  if (record.tensor.constant) throw UsageError(who.text() + ": a constant stays in its file", who.details());
  if (record.tensor.lifetime == Lifetime::transient) {
    throw UsageError(who.text() + ": its value is dead at the end of each iteration", who.details());
  }
  for (const OpenView<B>* const other : session.state.views.of(tensor)) {
    if (offset < other->offset + other->bytes() && other->offset < offset + bytes) {
      throw UsageError(who.text() + ": another host view has the same elements", who.details());
    }
  }
  const bool is_first_value =
      !record.has_value() && bytes == record.bytes && record.value.missing_reason == MissingReason::never_written;
  if (!is_first_value) session.translate(who, [&] { session.host.require_value(record, who); });
  if constexpr (FileBackend<B>) {  // here, where it may throw
    session.translate(who, [&] { (void)session.state.views.copies(session.state.store); });
  }
  session.controller.leave_for_view(record);
  auto view =
      std::make_unique<HostViewState<B>>(core, session, tensor, offset, memory, bytes, block,
                                         is_first_value ? pages::BlockState::modified : pages::BlockState::absent,
                                         lazy ? pages::install_handler() : "HostViewOptions::lazy is false");
  view->fill_eager_blocks();
  return view;
}

/// The open views of a tensor. The caller is inside.
template <Backend B>
[[nodiscard]] std::vector<HostViewState<B>*> views_of(const Core<B>& core, const TensorKey<B>& tensor) {
  std::vector<HostViewState<B>*> views;
  const auto* const state = core.session_state();
  if (state == nullptr) return views;
  for (OpenView<B>* const view : state->views.of(tensor)) views.push_back(static_cast<HostViewState<B>*>(view));
  return views;
}

/// Copies what the program has modified in views of the tensor, before the host or an operation uses the tensor.
template <Backend B>
void copy_in_views(Core<B>& core, const TensorKey<B>& tensor, bool before_operation) {
  std::vector<HostViewState<B>*> views;
  {
    const typename Core<B>::Entry entry(core);
    views = views_of(core, tensor);
  }
  for (HostViewState<B>* const view : views) view->copy_in(before_operation);
}

/// True if the manager has host views. Cheap.
template <Backend B>
[[nodiscard]] bool has_host_views(Core<B>& core) {
  return core.gate().host_views.load(std::memory_order_acquire) != 0 && !core.closed();
}

/// Throws UsageError if the manager has host views: a graph runs without a call that could keep them right.
template <Backend B>
void require_no_host_views(Core<B>& core) {
  if (has_host_views(core)) throw UsageError("captured iterations and host views exclude each other: end the views");
}

/// Called after an operation with these items. If it did not succeed, values may be as before or new, or be lost; a
/// tensor that still has no value takes what the program has modified as its first one.
template <Backend B>
void forget_in_views(Core<B>& core, std::span<const BundleItem<B>> items, bool succeeded) {
  const Gate::Stay stay = core.gate().enter_waiting();  // the operation is queued: this may not be refused
  for (const BundleItem<B>& item : items) {
    const TensorKey<B> tensor{item.record, item.serial};
    // A view that outlives its tensor keeps what it has.
    if (item.access == Access::read || !tensor.exists()) continue;
    const bool is_lost = !item.record->has_value() && item.record->value.missing_reason != MissingReason::never_written;
    for (HostViewState<B>* const view : views_of(core, tensor)) {
      if (succeeded || is_lost) {
        view->area.forget();
      } else {
        view->area.forget_clean();
      }
      if (item.record->has_value()) view->fill_eager_blocks();
    }
  }
}

/// Runs an operation with these items, and keeps the host views of its tensors right: what the program has modified is
/// copied in before, and what the operation writes is absent afterwards. The host may read the old value until then, so
/// an operation that writes a tensor with a view counts as one that updates it.
template <Backend B, class Run>
void run_beside_views(Core<B>& core, std::span<BundleItem<B>> items, Run&& run) {
  if (!has_host_views(core)) [[likely]]
    return run();
  for (BundleItem<B>& item : items) {
    const TensorKey<B> tensor{item.record, item.serial};
    if (!tensor.exists() || item.record->views == 0) continue;
    if (item.access != Access::write) {
      copy_in_views(core, tensor, true);
    } else if (item.record->has_value()) {
      item.access = Access::update;
    }
  }
  try {
    run();
  } catch (...) {
    forget_in_views<B>(core, items, false);
    throw;
  }
  forget_in_views<B>(core, items, true);
}

/// Core::upload(), with views of the tensor, or with data in a host view.
template <Backend B>
void upload_beside_views(Core<B>& core, const TensorKey<B>& tensor, Bytes offset, std::span<const std::byte> data) {
  pages::make_usable(data, pages::Want::read);
  if (!has_host_views(core)) [[likely]]
    return core.upload(tensor, offset, data);
  const bool whole = tensor.exists() && data.size() == tensor.record->bytes.value;
  if (!whole) copy_in_views(core, tensor, false);
  core.upload(tensor, offset, data);
  const Gate::Stay stay = core.gate().enter_waiting();  // the upload is done: this may not be refused
  for (HostViewState<B>* const view : views_of(core, tensor)) {
    const Bytes begin = std::max(offset, view->offset);
    const Bytes end = std::min(offset + Bytes{data.size()}, view->offset + view->bytes());
    if (begin >= end) continue;
    view->area.forget(static_cast<std::size_t>((begin - view->offset).value),
                      static_cast<std::size_t>((end - view->offset).value));
    view->fill_eager_blocks();
  }
}

/// Core::download(), with views of the tensor, or to memory in a host view.
template <Backend B>
void download_beside_views(Core<B>& core, const TensorKey<B>& tensor, Bytes offset, std::span<std::byte> data) {
  if (has_host_views(core)) copy_in_views(core, tensor, false);
  pages::make_usable(data, pages::Want::write);  // last: what is copied in may be in a view of this tensor
  core.download(tensor, offset, data);
}

/// Core::promise(), with views of the tensor. The target is written by any later call, so it must not be in a view.
template <Backend B>
[[nodiscard]] PendingRead& promise_beside_views(Core<B>& core, const TensorKey<B>& tensor, Bytes offset,
                                                std::span<std::byte> data) {
  if (pages::is_watched(data)) {
    throw UsageError("an asynchronous download to memory of a lazy host view: use download(), or other memory");
  }
  if (has_host_views(core)) copy_in_views(core, tensor, false);
  return core.promise(tensor, offset, data);
}

template <Backend B>
HostViewState<B>::~HostViewState() {
  if (pages::process_number() != process_) return;  // a child of fork() has no device
  std::exception_ptr error;
  try {
    if (!core_.closed() && tensor.exists()) copy_in(false);
  } catch (...) {
    error = std::current_exception();
  }
  const Gate::Stay stay = core_.gate().enter_waiting();
  core_.gate().host_views.fetch_sub(1, std::memory_order_release);
  if (core_.closed()) return;
  session_.state.views.remove(*this);
  if (error != nullptr) session_.postpone(error, {"ending the host view of tensor ", name_});
}

template <Backend B>
void HostViewState<B>::copy_in(bool before_operation) {
  if (!any_modified()) return;
  if (covers_tensor() && all_modified()) return upload_all();
  if constexpr (FileBackend<B>) {
    if (before_operation) return update_on_device();
    bool on_device = false;
    {
      const Entry entry(core_);
      on_device = TensorRegistry<B>::existing(tensor, "host view").device.valid;
    }
    if (on_device) return update_on_device();
  }
  upload_parts();
}

// The whole value is new: no block of the old one is needed.
template <Backend B>
void HostViewState<B>::upload_all() {
  {
    const Entry entry(core_);
    for (std::size_t i = 0; i < area.count(); ++i) area.close(i);
  }
  try {
    core_.upload(tensor, Bytes{}, area.bytes());
  } catch (...) {
    const Gate::Stay stay = core_.gate().enter_waiting();
    for (std::size_t i = 0; i < area.count(); ++i) area.reopen(i);
    throw;
  }
  bytes_in.fetch_add(area.bytes().size(), std::memory_order_relaxed);
}

template <Backend B>
void HostViewState<B>::upload_parts() {
  for (std::size_t i = 0; i < area.count(); ++i) {
    {
      const Entry entry(core_);
      if (!area.is_modified(i)) continue;
      area.close(i);
    }
    try {
      core_.upload(tensor, offset + Bytes{area.block(i).begin}, area.bytes_of(i));
    } catch (...) {
      const Gate::Stay stay = core_.gate().enter_waiting();
      area.reopen(i);
      throw;
    }
    bytes_in.fetch_add(area.bytes_of(i).size(), std::memory_order_relaxed);
  }
}

// An operation that updates the tensor: plans know it, and bring the tensor in for it.
template <Backend B>
void HostViewState<B>::update_on_device() {
  const BundleItem<B> item{tensor.record, Access::update, tensor.serial};
  const std::string name = "host view of " + name_;
  const Request<B> request{name, {&item, 1}, Bytes{}};
  run_again_before(core_, request);
  RunningOperation<B> running(core_, request, false);
  running.call([&] { session_.translate({"operation ", name}, [&] { queue_copies(); }); });
  running.complete();
}

template <Backend B>
void HostViewState<B>::queue_copies() {
  if constexpr (FileBackend<B>) {
    Store<B>& store = session_.state.store;
    PartCopies<B>& copies = session_.state.views.copies(store);
    std::vector<std::size_t> copied;
    try {
      copies.begin_writing(store);
      for (std::size_t i = 0; i < area.count(); ++i) {
        if (!area.is_modified(i)) continue;
        copied.push_back(i);
        area.close(i);
        copies.write(store, *tensor.record->device.address, offset + Bytes{area.block(i).begin}, area.bytes_of(i));
        bytes_in.fetch_add(area.bytes_of(i).size(), std::memory_order_relaxed);
      }
      copies.end_writing(store);
    } catch (...) {
      for (const std::size_t i : copied) area.reopen(i);
      copies.give_up_writing(store);
      throw;
    }
  }
}

}  // namespace swapmm::runtime
