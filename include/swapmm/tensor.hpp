// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <swapmm/backend/backend.hpp>
#include <swapmm/base/bytes.hpp>
#include <swapmm/error.hpp>
#include <swapmm/host_view.hpp>
#include <swapmm/options.hpp>
#include <swapmm/runtime/core/core.hpp>
#include <swapmm/runtime/core/host_views.hpp>

namespace swapmm {

/// The extents of a tensor, slowest dimension first; the last dimension is contiguous. 1 to 8 extents, each above 0.
class Shape {
 public:
  static constexpr std::size_t max_rank = 8;  ///< largest number of extents

  /// Throws UsageError if there are no extents or more than max_rank, or if an extent is 0.
  Shape(std::initializer_list<std::size_t> extents) : Shape(std::span(extents.begin(), extents.size())) {}
  /// The same, for a number of extents known at run time.
  explicit Shape(std::span<const std::size_t> extents) {
    if (extents.empty() || extents.size() > max_rank) throw UsageError("a shape has 1 to 8 extents");
    for (const std::size_t extent : extents) {
      if (extent == 0) throw UsageError("an extent of a shape is 0");
      extents_[rank_++] = extent;
    }
  }

  /// The number of extents.
  [[nodiscard]] std::size_t rank() const { return rank_; }
  /// The extent of a dimension. `dimension` must be below rank(); this is not checked.
  [[nodiscard]] std::size_t operator[](std::size_t dimension) const { return extents_[dimension]; }
  /// The number of elements, or nothing if it does not fit 64 bits.
  [[nodiscard]] std::optional<std::size_t> count() const {
    std::optional<Bytes> product = Bytes{1};
    for (std::size_t i = 0; i < rank_ && product; ++i) product = checked_multiply(*product, extents_[i]);
    return product ? std::optional(static_cast<std::size_t>(product->value)) : std::nullopt;
  }
  /// The same with another first extent. Throws UsageError if it is 0.
  [[nodiscard]] Shape with_first(std::size_t extent) const {
    std::array<std::size_t, max_rank> extents = extents_;
    extents[0] = extent;
    return Shape(std::span<const std::size_t>(extents.data(), rank_));
  }
  /// The extents as text: "64 x 1024".
  [[nodiscard]] std::string text() const {
    std::string text;
    for (std::size_t i = 0; i < rank_; ++i) text += (i == 0 ? "" : " x ") + std::to_string(extents_[i]);
    return text;
  }
  friend bool operator==(const Shape& a, const Shape& b) {
    return a.rank_ == b.rank_ && std::equal(a.extents_.begin(), a.extents_.begin() + a.rank_, b.extents_.begin());
  }

 private:
  std::array<std::size_t, max_rank> extents_{};
  std::size_t rank_ = 0;
};

/// A reference to all or a part of a tensor's storage, as bundles hold it. Keeps nothing alive.
template <Backend B>
struct TensorRef {
  runtime::Core<B>* core = nullptr;      ///< null if the tensor is empty
  runtime::Record<B>* record = nullptr;  ///< the storage; null if the tensor is empty
  Bytes offset;                          ///< offset of the part from the storage's beginning
  Bytes bytes;                           ///< size of the part
  std::uint64_t serial = 0;              ///< number of the tensor: another tensor may reuse its storage later
  /// True if the part is the whole storage.
  [[nodiscard]] bool whole() const { return record != nullptr && bytes == record->bytes; }
  /// The key of the whole tensor. The tensor must not be empty.
  [[nodiscard]] runtime::TensorKey<B> key() const { return {record, serial}; }
};

/// A download that was started by download_async(). The target must exist until wait() has returned or this object is
/// destroyed. Destroying it before wait() abandons the download. Move-only.
template <Backend B>
class PendingDownload {
 public:
  /// Takes over the download. Using the moved-from object throws UsageError.
  PendingDownload(PendingDownload&& other) noexcept
      : core_(std::move(other.core_)), read_(std::exchange(other.read_, nullptr)) {}
  /// Takes over the download, and abandons the one that this object had.
  PendingDownload& operator=(PendingDownload&& other) noexcept {
    if (this == &other) return *this;
    end();
    core_ = std::move(other.core_);
    read_ = std::exchange(other.read_, nullptr);
    return *this;
  }
  ~PendingDownload() { end(); }

  /// True if wait() would return without waiting.
  [[nodiscard]] bool ready() const { return inside().collectable(*read_); }
  /// Waits until the target holds the value that the tensor had when download_async() was called. Throws WorkFailed if
  /// that value was lost.
  void wait() { inside().collect(*read_); }
  /// Promises that which operations the program runs does not depend on the value: it only passes it on. Then wait() is
  /// no evidence that the program branches: see DropRule::by_evidence.
  void decides_nothing() {
    static_cast<void>(inside());
    read_->decides = false;
  }

 private:
  template <class T, Backend>
  friend class View;
  PendingDownload(std::shared_ptr<runtime::Core<B>> core, runtime::PendingRead& read)
      : core_(std::move(core)), read_(&read) {}
  [[nodiscard]] runtime::Core<B>& inside() const {
    if (read_ == nullptr) throw UsageError("an asynchronous download is used after it was moved from");
    return *core_;
  }
  void end() noexcept {
    if (core_ != nullptr && read_ != nullptr) core_->end_promise(*read_);
    read_ = nullptr;
  }

  std::shared_ptr<runtime::Core<B>> core_;
  runtime::PendingRead* read_;
};

/// A part of a tensor, or the whole tensor in another shape. A view shares the tensor's storage and does not keep it
/// alive: use it only while the tensor exists.
template <class T, Backend B>
class View {
 public:
  using value_type = T;    ///< the type of an element
  using backend_type = B;  ///< the backend that holds its values

  /// The shape of the view.
  [[nodiscard]] const Shape& shape() const { return shape_; }
  /// The number of elements.
  [[nodiscard]] std::size_t size() const { return count_; }
  /// The size of the elements, without padding.
  [[nodiscard]] Bytes bytes() const { return Bytes{count_ * sizeof(T)}; }

  /// A view of `count` entries of the first dimension, from entry `first` on. An operation can use a slice only if it
  /// begins at a multiple of Capabilities::view_alignment bytes (128 or more with OpenCL, 1 with CUDA); uploads and
  /// downloads have no such limit. Throws UsageError if the first dimension does not have these entries.
  [[nodiscard]] View slice(std::size_t first, std::size_t count) const {
    if (count == 0 || first > shape_[0] || count > shape_[0] - first) {
      throw UsageError("slice of " + std::to_string(count) + " entries from " + std::to_string(first) +
                       " of a tensor of " + shape_.text());
    }
    const std::size_t stride = count_ / shape_[0];
    return View(core_, tensor_, first_ + first * stride, shape_.with_first(count), count * stride);
  }

  /// A view of the same elements in another shape. Throws UsageError if the numbers of elements differ.
  [[nodiscard]] View reshape(const Shape& shape) const {
    if (shape.count() != count_) {
      throw UsageError("reshape of " + shape_.text() + " to " + shape.text() + ": the numbers of elements differ");
    }
    return View(core_, tensor_, first_, shape, count_);
  }

  /// Sets the elements to the values in `data`, which is copied before the call returns. An upload to a whole tensor
  /// waits at most for a host slot. An upload to a part needs the tensor's value, and waits until it is on the host. If
  /// an operation of the same iteration has used the tensor's old value, the iteration stays on demand. Throws
  /// UsageError if the numbers of elements differ, and OutOfMemory if the host has no room.
  void upload(std::span<const T> data) {
    check(data.size(), "upload");
    runtime::upload_beside_views(*core_, tensor_, offset(), std::as_bytes(data));
  }
  /// Waits for the value, and copies it to `data`. Throws UsageError if the numbers of elements differ, and
  /// UndefinedValue, DroppedValue or WorkFailed if there is no value.
  void download(std::span<T> data) const {
    check(data.size(), "download");
    runtime::download_beside_views(*core_, tensor_, offset(), std::as_writable_bytes(data));
  }
  /// The same, into a new vector.
  [[nodiscard]] std::vector<T> download() const {
    std::vector<T> data(count_);
    download(std::span<T>(data));
    return data;
  }
  /// Starts to download the value that the elements have now, without waiting for it. `data` must exist until
  /// PendingDownload::wait() has returned or the PendingDownload is destroyed. A tensor has two host slots. If two
  /// downloads of earlier values have not been collected, a third one waits for the first: in this call, or in the call
  /// that brings the value to the host. Throws the same as download().
  [[nodiscard]] PendingDownload<B> download_async(std::span<T> data) const {
    check(data.size(), "download");
    runtime::PendingRead& read = runtime::promise_beside_views(*core_, tensor_, offset(), std::as_writable_bytes(data));
    return PendingDownload<B>(core_, read);
  }

  /// Opens a host view of the elements: memory in which the program reads and writes them like any array. Blocks move
  /// when they are touched, or never. See HostView. The memory is the view's own. If the tensor has no value yet, its
  /// first value is what the view holds: zeros, and what the program writes.
  ///
  /// Throws UsageError if HostViewOptions::block is not allowed, if another host view has some of the elements, in a
  /// captured iteration, and for a constant or a tensor with Lifetime::transient. Throws UndefinedValue for a part of
  /// a tensor without a value, what download() throws if the value is lost, OutOfMemory,
  /// std::bad_alloc, and std::system_error if there can be no thread.
  [[nodiscard]] HostView<T, B> host_view(const HostViewOptions& options = {}) {
    return HostView<T, B>(core_, tensor_, offset(), {}, count_, options);
  }
  /// The same in the program's own array, which must exist as long as the view. If the tensor has no value yet, its
  /// first value is what the array holds. Pages that the array shares with other data are not protected: these edges,
  /// less than two pages in all, are copied eagerly, and an operation that writes the tensor is waited for. Also throws
  /// UsageError if the numbers of elements differ, or if another host view has some of the memory.
  [[nodiscard]] HostView<T, B> host_view(std::span<T> array, const HostViewOptions& options = {}) {
    check(array.size(), "host view");
    return HostView<T, B>(core_, tensor_, offset(), array, count_, options);
  }

  /// The reference that bundles hold.
  [[nodiscard]] TensorRef<B> ref() const { return {core_.get(), tensor_.record, offset(), bytes(), tensor_.serial}; }

 private:
  template <class, Backend>
  friend class Tensor;
  View(std::shared_ptr<runtime::Core<B>> core, const runtime::TensorKey<B>& tensor, std::size_t first,
       const Shape& shape, std::size_t count)
      : core_(std::move(core)), tensor_(tensor), first_(first), shape_(shape), count_(count) {}

  [[nodiscard]] Bytes offset() const { return Bytes{first_ * sizeof(T)}; }
  void check(std::size_t given, std::string_view what) const {
    if (given == count_) return;
    TensorName tensor = core_->tensor_name(tensor_, what);
    const std::string text = std::string(what) + " of " + std::to_string(given) + " elements, tensor \"" + tensor.name +
                             "\" has " + std::to_string(count_) + " (" + shape_.text() + ")";
    throw UsageError(text, {.tensors = {std::move(tensor)}});
  }

  std::shared_ptr<runtime::Core<B>> core_;  // of a manager that may be closed
  runtime::TensorKey<B> tensor_;
  std::size_t first_;  // element
  Shape shape_;
  std::size_t count_;
};

/// A handle that owns a tensor's storage. The scheduler decides whether the value is on the device or on the host, so
/// the tensor has a device address only inside an operation (`op[tensor]`). Move-only. Destroying it does not wait; its
/// memory is freed when the work that uses it has ended. A tensor may outlive its manager, and has no value after that.
template <class T, Backend B>
class Tensor {
  static_assert(std::is_trivially_copyable_v<T>, "tensors move as bytes");

 public:
  using value_type = T;    ///< the type of an element
  using backend_type = B;  ///< the backend that holds its values

  /// Takes over the storage. Views of it stay valid. Calls on the moved-from tensor that need the storage throw
  /// UsageError.
  Tensor(Tensor&& other) noexcept
      : core_(std::move(other.core_)),
        record_(std::exchange(other.record_, nullptr)),
        serial_(other.serial_),
        shape_(other.shape_),
        count_(other.count_) {}
  /// Takes over the storage, and releases the storage that this tensor had.
  Tensor& operator=(Tensor&& other) noexcept {
    if (this != &other) {
      destroy();
      core_ = std::move(other.core_);
      record_ = std::exchange(other.record_, nullptr);
      serial_ = other.serial_;
      shape_ = other.shape_;
      count_ = other.count_;
    }
    return *this;
  }
  Tensor(const Tensor&) = delete;
  Tensor& operator=(const Tensor&) = delete;
  ~Tensor() { destroy(); }

  /// The shape that was given to MemoryManager::tensor().
  [[nodiscard]] const Shape& shape() const { return shape_; }
  /// The number of elements.
  [[nodiscard]] std::size_t size() const { return count_; }
  /// The size of the elements, without padding.
  [[nodiscard]] Bytes bytes() const { return Bytes{count_ * sizeof(T)}; }
  /// The name that was given to MemoryManager::tensor(); empty after the manager is destroyed.
  [[nodiscard]] std::string name() const { return core_ == nullptr || core_->closed() ? std::string() : record_->name; }

  /// A number that no other tensor of this manager ever has. 0 if the tensor is empty, and after the manager is
  /// destroyed. Exceptions name tensors by it, too.
  [[nodiscard]] std::uint64_t id() const {
    return core_ == nullptr || record_ == nullptr || core_->closed() ? 0 : serial_;
  }

  /// Gives the storage back before the tensor's scope ends, as the destructor does. Does not wait: the bytes are free
  /// once the work that uses them has ended. The tensor is empty afterwards, as after a move. Using its views throws
  /// UsageError. Does nothing on an empty tensor. May be called inside an operation and after the manager is gone.
  void reset() noexcept {
    destroy();
    core_.reset();
  }

  /// A view of the whole tensor. Throws UsageError if the tensor is empty.
  [[nodiscard]] View<T, B> view() const {
    require();
    return View<T, B>(core_, {record_, serial_}, 0, shape_, count_);
  }

  /// @{
  /// The same function of view(); see View. Also throws UsageError if the tensor was moved from.
  [[nodiscard]] View<T, B> slice(std::size_t first, std::size_t count) const { return view().slice(first, count); }
  [[nodiscard]] View<T, B> reshape(const Shape& shape) const { return view().reshape(shape); }

  void upload(std::span<const T> data) { view().upload(data); }
  void download(std::span<T> data) const { view().download(data); }
  [[nodiscard]] std::vector<T> download() const { return view().download(); }
  [[nodiscard]] PendingDownload<B> download_async(std::span<T> data) const { return view().download_async(data); }
  [[nodiscard]] HostView<T, B> host_view(const HostViewOptions& options = {}) { return view().host_view(options); }
  [[nodiscard]] HostView<T, B> host_view(std::span<T> array, const HostViewOptions& options = {}) {
    return view().host_view(array, options);
  }
  /// @}

  /// The reference that bundles hold; empty if the tensor is empty.
  [[nodiscard]] TensorRef<B> ref() const { return {core_.get(), record_, Bytes{}, bytes(), serial_}; }

 private:
  template <Backend>
  friend class MemoryManager;
  Tensor(std::shared_ptr<runtime::Core<B>> core, runtime::Record<B>& record, const Shape& shape, std::size_t count)
      : core_(std::move(core)), record_(&record), serial_(record.tensor.serial), shape_(shape), count_(count) {}

  void require() const {
    if (record_ == nullptr) throw UsageError("a tensor is used after it was moved from or reset");
  }
  void destroy() noexcept {
    if (core_ != nullptr && record_ != nullptr) core_->destroy(*record_);
    record_ = nullptr;
  }

  std::shared_ptr<runtime::Core<B>> core_;
  runtime::Record<B>* record_;
  std::uint64_t serial_;
  Shape shape_;
  std::size_t count_;
};

}  // namespace swapmm
