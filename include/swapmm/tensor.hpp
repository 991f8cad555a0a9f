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
#include <swapmm/options.hpp>
#include <swapmm/runtime/core/core.hpp>

namespace swapmm {

/// Extents, the slowest first; the last one is contiguous. At most 8, each above 0.
class Shape {
 public:
  static constexpr std::size_t max_rank = 8;  ///< most extents

  /// Throws UsageError for none, for more than max_rank, and for an extent of 0.
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
  /// One extent. `dimension` is below rank(); not checked.
  [[nodiscard]] std::size_t operator[](std::size_t dimension) const { return extents_[dimension]; }
  /// The number of elements; nothing if it does not fit 64 bits.
  [[nodiscard]] std::optional<std::size_t> count() const {
    std::optional<Bytes> product = Bytes{1};
    for (std::size_t i = 0; i < rank_ && product; ++i) product = checked_multiply(*product, extents_[i]);
    return product ? std::optional(static_cast<std::size_t>(product->value)) : std::nullopt;
  }
  /// "64 x 1024"
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

/// Bytes of a tensor's storage, as a bundle refers to them.
template <Backend B>
struct TensorRef {
  runtime::Core<B>* core = nullptr;      ///< null: moved from
  runtime::Record<B>* record = nullptr;  ///< the storage; null: moved from
  Bytes offset;                          ///< from the storage's beginning
  Bytes bytes;                           ///< of the part
  /// The part is all of it.
  [[nodiscard]] bool whole() const { return record != nullptr && bytes == record->bytes; }
};

/// A value on its way to the host. Destroying it before wait() gives the value up. The target must live until then.
template <Backend B>
class PendingDownload {
 public:
  /// Using the other one throws UsageError then.
  PendingDownload(PendingDownload&& other) noexcept
      : core_(std::move(other.core_)), read_(std::exchange(other.read_, nullptr)) {}
  /// Gives up what it had, as destruction does.
  PendingDownload& operator=(PendingDownload&& other) noexcept {
    if (this == &other) return *this;
    end();
    core_ = std::move(other.core_);
    read_ = std::exchange(other.read_, nullptr);
    return *this;
  }
  ~PendingDownload() { end(); }

  /// True once wait() would not wait.
  [[nodiscard]] bool ready() const { return inside().collectable(*read_); }
  /// Returns when the target holds the value that the tensor had when the download was asked for. Throws WorkFailed
  /// where that value was lost on its way.
  void wait() { inside().collect(*read_); }

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

/// A part of a tensor, or all of it in another shape. Shares the tensor's storage and keeps nothing alive: it is
/// for use while the tensor exists.
template <class T, Backend B>
class View {
 public:
  using value_type = T;  ///< of an element

  /// Its own: that of the part, or the other one.
  [[nodiscard]] const Shape& shape() const { return shape_; }
  /// The number of elements.
  [[nodiscard]] std::size_t size() const { return count_; }
  /// Their size, without padding.
  [[nodiscard]] Bytes bytes() const { return Bytes{count_ * sizeof(T)}; }

  /// `count` entries of the first dimension, from `first` on. An operation can address a slice only where it begins at
  /// a multiple of Capabilities::view_alignment bytes (128 and more with OpenCL, 1 elsewhere); uploads and downloads
  /// can always. Throws UsageError for entries that the first dimension does not have.
  [[nodiscard]] View slice(std::size_t first, std::size_t count) const {
    if (count == 0 || first > shape_[0] || count > shape_[0] - first) {
      throw UsageError("slice of " + std::to_string(count) + " entries from " + std::to_string(first) +
                       " of a tensor of " + shape_.text());
    }
    std::array<std::size_t, Shape::max_rank> extents{};
    for (std::size_t i = 0; i < shape_.rank(); ++i) extents[i] = shape_[i];
    extents[0] = count;
    const std::size_t stride = count_ / shape_[0];
    return View(core_, record_, first_ + first * stride, Shape(std::span(extents.data(), shape_.rank())),
                count * stride);
  }

  /// The same elements in another shape. Throws UsageError where their numbers differ.
  [[nodiscard]] View reshape(const Shape& shape) const {
    if (shape.count() != count_) {
      throw UsageError("reshape of " + shape_.text() + " to " + shape.text() + ": the numbers of elements differ");
    }
    return View(core_, record_, first_, shape, count_);
  }

  /// Gives the elements these values. Copies `data` before it returns. A whole tensor's upload waits at most for a
  /// host slot; a part's needs the tensor's value, and waits for it. An iteration in which an operation used the
  /// tensor's value before stays on demand. Throws UsageError where the number of elements differs, OutOfMemory where
  /// the host has no room.
  void upload(std::span<const T> data) {
    check(data.size(), "upload");
    core_->upload(*record_, offset(), std::as_bytes(data));
  }
  /// Waits for the value, and copies it to `data`. Throws UsageError where the number of elements differs, and
  /// UndefinedValue, DroppedValue or WorkFailed where there is no value.
  void download(std::span<T> data) const {
    check(data.size(), "download");
    core_->download(*record_, offset(), std::as_writable_bytes(data));
  }
  /// The same, to a new vector.
  [[nodiscard]] std::vector<T> download() const {
    std::vector<T> data(count_);
    download(std::span<T>(data));
    return data;
  }
  /// Asks for the value that the elements have now, and does not wait for it. The tensor has two host slots; for a
  /// third value of which nobody has collected the first, this, or whatever brings the value to the host, waits for the
  /// first. `data` must exist until PendingDownload::wait() has returned, or the PendingDownload is gone. Throws as
  /// download().
  [[nodiscard]] PendingDownload<B> download_async(std::span<T> data) const {
    check(data.size(), "download");
    runtime::PendingRead& read = core_->promise(*record_, offset(), std::as_writable_bytes(data));
    return PendingDownload<B>(core_->shared_from_this(), read);
  }

  /// For bundles.
  [[nodiscard]] TensorRef<B> ref() const { return {core_, record_, offset(), bytes()}; }

 private:
  template <class, Backend>
  friend class Tensor;
  View(runtime::Core<B>* core, runtime::Record<B>* record, std::size_t first, const Shape& shape, std::size_t count)
      : core_(core), record_(record), first_(first), shape_(shape), count_(count) {}

  [[nodiscard]] Bytes offset() const { return Bytes{first_ * sizeof(T)}; }
  void check(std::size_t given, std::string_view what) const {
    if (given == count_) return;
    if (core_->closed()) throw UsageError("the manager of this tensor no longer exists");
    throw UsageError(std::string(what) + " of " + std::to_string(given) + " elements, tensor \"" + record_->name +
                         "\" has " + std::to_string(count_) + " (" + shape_.text() + ")",
                     {.tensors = {runtime::name_of(*record_)}});
  }

  runtime::Core<B>* core_;
  runtime::Record<B>* record_;
  std::size_t first_;  // element
  Shape shape_;
  std::size_t count_;
};

/// A tensor whose value is on the device or on the host, as the scheduler decides: the owner of its storage. Move
/// only. Its device address exists only inside an operation (`op[tensor]`). Destroying it needs no wait and frees
/// its bytes once the work that uses them has ended. It may outlive its manager, and is empty from then on.
template <class T, Backend B>
class Tensor {
  static_assert(std::is_trivially_copyable_v<T>, "tensors move as bytes");

 public:
  using value_type = T;  ///< of an element

  /// The other one has no storage then: what needs it throws UsageError. Views of it stay good.
  Tensor(Tensor&& other) noexcept
      : core_(std::move(other.core_)),
        record_(std::exchange(other.record_, nullptr)),
        shape_(other.shape_),
        count_(other.count_) {}
  /// Ends the storage it had, as destruction does.
  Tensor& operator=(Tensor&& other) noexcept {
    if (this != &other) {
      destroy();
      core_ = std::move(other.core_);
      record_ = std::exchange(other.record_, nullptr);
      shape_ = other.shape_;
      count_ = other.count_;
    }
    return *this;
  }
  Tensor(const Tensor&) = delete;
  Tensor& operator=(const Tensor&) = delete;
  ~Tensor() { destroy(); }

  /// As made.
  [[nodiscard]] const Shape& shape() const { return shape_; }
  /// The number of elements.
  [[nodiscard]] std::size_t size() const { return count_; }
  /// Their size, without padding.
  [[nodiscard]] Bytes bytes() const { return Bytes{count_ * sizeof(T)}; }
  /// As made; empty once the manager is gone.
  [[nodiscard]] std::string name() const { return core_ == nullptr || core_->closed() ? std::string() : record_->name; }

  /// A number that no other tensor of this manager ever has; 0 once the manager is gone, or after a move. Exceptions
  /// name tensors by it, too.
  [[nodiscard]] std::uint64_t id() const {
    return core_ == nullptr || record_ == nullptr || core_->closed() ? 0 : record_->serial;
  }

  /// All of it, as a view.
  [[nodiscard]] View<T, B> view() const {
    require();
    return View<T, B>(core_.get(), record_, 0, shape_, count_);
  }

  /// @{
  /// As that of view(), see View. Throws UsageError after a move, and what that one throws.
  [[nodiscard]] View<T, B> slice(std::size_t first, std::size_t count) const { return view().slice(first, count); }
  [[nodiscard]] View<T, B> reshape(const Shape& shape) const { return view().reshape(shape); }

  void upload(std::span<const T> data) { view().upload(data); }
  void download(std::span<T> data) const { view().download(data); }
  [[nodiscard]] std::vector<T> download() const { return view().download(); }
  [[nodiscard]] PendingDownload<B> download_async(std::span<T> data) const { return view().download_async(data); }
  /// @}

  /// For bundles; empty after a move.
  [[nodiscard]] TensorRef<B> ref() const { return {core_.get(), record_, Bytes{}, bytes()}; }

 private:
  template <Backend>
  friend class MemoryManager;
  Tensor(std::shared_ptr<runtime::Core<B>> core, runtime::Record<B>& record, const Shape& shape, std::size_t count)
      : core_(std::move(core)), record_(&record), shape_(shape), count_(count) {}

  void require() const {
    if (record_ == nullptr) throw UsageError("a tensor is used after it was moved from");
  }
  void destroy() noexcept {
    if (core_ != nullptr && record_ != nullptr) core_->destroy(*record_);
    record_ = nullptr;
  }

  std::shared_ptr<runtime::Core<B>> core_;
  runtime::Record<B>* record_;
  Shape shape_;
  std::size_t count_;
};

}  // namespace swapmm
