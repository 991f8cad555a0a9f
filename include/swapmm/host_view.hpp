// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include <swapmm/backend/backend.hpp>
#include <swapmm/base/bytes.hpp>
#include <swapmm/error.hpp>
#include <swapmm/runtime/core/core.hpp>
#include <swapmm/runtime/core/host_views.hpp>

namespace swapmm {

/// Options of a host view.
struct HostViewOptions {
  /// What moves at a touch: from 64 KiB to 2 MiB, a multiple of the page size. A larger block means fewer faults and
  /// more bytes that are moved for nothing.
  Bytes block{256U << 10U};
  /// False: everything moves as an eager program would move it. The same happens where pages cannot be protected.
  bool lazy = true;
};

/// What a host view has moved so far.
struct HostViewTraffic {
  std::uint64_t faults = 0;  ///< touches that waited for the library
  Bytes to_tensor;           ///< copied from the view
  Bytes to_view;             ///< copied from the tensor
};

/// The elements of a tensor in host memory, which the program reads and writes like any array. Move-only. See
/// docs/host_views.md.
///
/// After an operation has written the tensor, no block is there: the first touch of a block waits for the operation,
/// and copies this block from the device. The first write to a block marks it as modified: modified blocks are copied
/// to the tensor before the next operation that uses it, and before the next download. Operations that write the whole
/// tensor overwrite what the program has modified. Several threads may touch a view. Accesses and operations must be
/// ordered by the program, as accesses of several threads to one array are.
///
/// A touch cannot throw. If a block has no value, because work failed or the tensor or its manager is gone, the library
/// says so on the standard error stream, and the touch is an ordinary invalid access. prepare_read() throws instead.
/// The kernel does not wait for a block: a system call on a block that was not touched fails with EFAULT, and
/// prepare_read() or prepare_write() makes it usable. An operation's callable must not touch a block that is not there.
///
/// While a view is open, an operation that writes its tensor counts as one that updates it, because the host may still
/// read the old value: the old value comes to the device.
template <class T, Backend B>
class HostView {
 public:
  using value_type = T;  ///< the type of an element

  /// Takes over the view. The moved-from view has no elements, and may only be destroyed or assigned to.
  HostView(HostView&& other) noexcept = default;
  /// Takes over the view, and ends the view that this had.
  HostView& operator=(HostView&& other) noexcept {
    if (this == &other) return *this;
    state_.reset();
    core_ = std::move(other.core_);
    state_ = std::move(other.state_);
    return *this;
  }
  /// Ends the view: copies modified blocks to the tensor, if the tensor still exists. If that fails, the next call to
  /// the manager throws; it fails while another thread is inside the manager. Elements of the program's own array that
  /// were not there then have older values.
  ~HostView() = default;

  /// The elements. Valid as long as the view.
  [[nodiscard]] std::span<T> span() const {
    if (state_ == nullptr) return {};
    const std::span<std::byte> bytes = state_->area.bytes();
    return {reinterpret_cast<T*>(bytes.data()), bytes.size() / sizeof(T)};
  }
  /// @{
  /// The same function of span().
  [[nodiscard]] T* data() const { return span().data(); }
  [[nodiscard]] std::size_t size() const { return span().size(); }
  [[nodiscard]] T& operator[](std::size_t i) const { return span()[i]; }
  [[nodiscard]] T* begin() const { return data(); }
  [[nodiscard]] T* end() const { return data() + size(); }
  /// @}

  /// True if blocks move when they are touched.
  [[nodiscard]] bool lazy() const { return state().area.why_eager().empty(); }
  /// Why they do not; empty if they do.
  [[nodiscard]] std::string why_eager() const { return state().area.why_eager(); }

  /// Makes `count` elements from `first` on readable, for system calls, operations' callables and devices. Waits for
  /// the value. Throws UsageError if there are no such elements, and what download() throws. They stay readable until
  /// an operation writes the tensor.
  void prepare_read(std::size_t first, std::size_t count) const { prepare(first, count, pages::Want::read); }
  /// The same for all elements.
  void prepare_read() const { prepare_read(0, size()); }
  /// The same, and makes them writable. Their blocks count as modified. They stay writable until an operation uses the
  /// tensor.
  void prepare_write(std::size_t first, std::size_t count) const { prepare(first, count, pages::Want::write); }
  /// The same for all elements.
  void prepare_write() const { prepare_write(0, size()); }
  /// Copies modified blocks to the tensor now. Throws what an operation throws.
  void write_back() const { state().copy_in(false); }

  /// What has moved so far.
  [[nodiscard]] HostViewTraffic traffic() const {
    return {state().faults.load(), Bytes{state().bytes_in.load()}, Bytes{state().bytes_out.load()}};
  }

 private:
  template <class, Backend>
  friend class View;
  HostView(std::shared_ptr<runtime::Core<B>> core, const runtime::TensorKey<B>& tensor, Bytes offset,
           std::span<T> array, std::size_t count, const HostViewOptions& options)
      : core_(std::move(core)),
        state_(runtime::open_host_view(*core_, tensor, offset, std::as_writable_bytes(array), Bytes{count * sizeof(T)},
                                       options.block, options.lazy)) {}

  [[nodiscard]] runtime::HostViewState<B>& state() const {
    if (state_ == nullptr) throw UsageError("a host view is used after it was moved from");
    return *state_;
  }
  void prepare(std::size_t first, std::size_t count, pages::Want want) const {
    if (first > size() || count > size() - first) {
      throw UsageError(std::to_string(count) + " elements from " + std::to_string(first) + " of a host view of " +
                       std::to_string(size()));
    }
    state().prepare(first * sizeof(T), (first + count) * sizeof(T), want);
  }

  std::shared_ptr<runtime::Core<B>> core_;  // of a manager that may be closed
  std::unique_ptr<runtime::HostViewState<B>> state_;
};

}  // namespace swapmm
