// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <swapmm/backend/backend.hpp>
#include <swapmm/base/bytes.hpp>
#include <swapmm/error.hpp>
#include <swapmm/ir/trace.hpp>
#include <swapmm/runtime/slices/slice_layout.hpp>
#include <swapmm/tensor.hpp>

namespace swapmm {

/// How MemoryManager::divided() divides a tensor.
struct Division {
  /// Entries of the first dimension in each piece; the last piece may have fewer. 0: as many as a 24th of the device
  /// budget holds, and one at least. So many pieces leave plans enough freedom, and cost little.
  std::size_t entries = 0;
  Lifetime lifetime = persistent;  ///< of the values, see Lifetime
};

/// A part of a slice that lies in one piece. Returned by DividedView::parts().
template <class T, Backend B>
struct SlicePart {
  View<T, B> view;    ///< the elements, as a view of the piece
  std::size_t first;  ///< position of its first entry in the divided tensor
};

namespace detail {

template <class T, Backend B>
struct Pieces {
  Shape shape;                     // of the divided tensor
  std::size_t entries;             // in a piece
  std::size_t stride;              // elements in an entry
  std::vector<View<T, B>> pieces;  // whole

  [[nodiscard]] std::size_t first_of(std::size_t piece) const { return piece * entries; }
};

}  // namespace detail

/// A slice of a divided tensor: entries of its first dimension. It does not keep the values alive: use it only while
/// the tensor exists. Cheap to copy.
///
/// In an operation's bundle, a slice makes the operation need the pieces that it touches, and no others. In the
/// operation, `op[slice]` is one contiguous view of it: of the piece itself if the slice lies in one piece and begins
/// where a view can, else of a copy in the operation's work area. What the operation writes there goes back to the
/// pieces behind its own work. Such copies stay on the device; their bytes count against the budget.
template <class T, Backend B>
class DividedView {
 public:
  using value_type = T;    ///< the type of an element
  using backend_type = B;  ///< the backend that holds its values

  /// The shape of the slice.
  [[nodiscard]] const Shape& shape() const { return shape_; }
  /// The number of elements.
  [[nodiscard]] std::size_t size() const { return count() * of_->stride; }
  /// The size of the elements, without padding.
  [[nodiscard]] Bytes bytes() const { return Bytes{size() * sizeof(T)}; }
  /// The position of its first entry in the divided tensor.
  [[nodiscard]] std::size_t first() const { return first_; }
  /// The number of its entries.
  [[nodiscard]] std::size_t count() const { return shape_[0]; }

  /// `count` entries of this slice, from its entry `first` on. Throws UsageError if it does not have these entries.
  [[nodiscard]] DividedView slice(std::size_t first, std::size_t count) const {
    if (count == 0 || first > this->count() || count > this->count() - first) {
      throw UsageError("slice of " + std::to_string(count) + " entries from " + std::to_string(first) +
                       " of a slice of " + shape_.text());
    }
    return DividedView(of_, first_ + first, count, in_pieces_);
  }
  /// This slice with up to `before` entries more in front of it and `after` behind it, as far as the tensor has them:
  /// what a stencil reads.
  [[nodiscard]] DividedView widened(std::size_t before, std::size_t after) const {
    const std::size_t begin = first_ - std::min(before, first_);
    const std::size_t end = first_ + count();
    return DividedView(of_, begin, end + std::min(after, of_->shape[0] - end) - begin, in_pieces_);
  }

  /// The same slice for an operation that takes the pieces as they lie: nothing is copied, and `op[part.view]` for each
  /// of parts() takes the place of `op[slice]`. As with any view, the device must be able to address where the first
  /// part begins in its piece: at a multiple of Capabilities::view_alignment.
  [[nodiscard]] DividedView in_pieces() const { return DividedView(of_, first_, count(), true); }
  /// The parts of the slice that lie in one piece each, in the order of the entries.
  [[nodiscard]] std::vector<SlicePart<T, B>> parts() const {
    std::vector<SlicePart<T, B>> parts;
    for_each_part([&](const View<T, B>& piece, std::size_t in_piece, std::size_t first, std::size_t count) {
      parts.push_back({piece.slice(in_piece, count), first});
    });
    return parts;
  }

  /// Sets the elements to the values in `data`, which is copied before the call returns; piece by piece, as
  /// View::upload() does. Throws UsageError if the numbers of elements differ.
  void upload(std::span<const T> data) {
    check(data.size(), "upload");
    for (SlicePart<T, B>& part : parts()) {
      part.view.upload(data.subspan((part.first - first_) * of_->stride, part.view.size()));
    }
  }
  /// Waits for the values, and copies them to `data`; piece by piece, as View::download() does.
  void download(std::span<T> data) const {
    check(data.size(), "download");
    for (const SlicePart<T, B>& part : parts()) {
      part.view.download(data.subspan((part.first - first_) * of_->stride, part.view.size()));
    }
  }
  /// The same, into a new vector.
  [[nodiscard]] std::vector<T> download() const {
    std::vector<T> data(size());
    download(std::span<T>(data));
    return data;
  }

  /// What bundles hold.
  [[nodiscard]] runtime::SliceRef<B> slice_ref() const {
    const std::size_t entry = of_->stride * sizeof(T);
    runtime::SliceRef<B> slice{.divided = of_.get(),
                               .core = of_->pieces.front().ref().core,
                               .begin = Bytes{first_ * entry},
                               .bytes = bytes(),
                               .in_pieces = in_pieces_,
                               .parts = {}};
    for_each_part([&](const View<T, B>& piece, std::size_t in_piece, std::size_t /*first*/, std::size_t count) {
      slice.parts.push_back({piece.ref().key(), Bytes{in_piece * entry}, Bytes{count * entry}});
    });
    return slice;
  }

 private:
  template <class, Backend>
  friend class DividedTensor;
  using Pieces = detail::Pieces<T, B>;

  DividedView(std::shared_ptr<const Pieces> of, std::size_t first, std::size_t count, bool in_pieces)
      : of_(std::move(of)), first_(first), shape_(of_->shape.with_first(count)), in_pieces_(in_pieces) {}

  // Calls visit(piece, its first entry, the position of that entry in the tensor, number of entries).
  template <class Visit>
  void for_each_part(Visit&& visit) const {
    const std::size_t end = first_ + count();
    for (std::size_t at = first_; at < end;) {
      const std::size_t piece = at / of_->entries;
      const std::size_t next = std::min(end, of_->first_of(piece + 1));
      visit(of_->pieces[piece], at - of_->first_of(piece), at, next - at);
      at = next;
    }
  }

  void check(std::size_t given, std::string_view what) const {
    if (given == size()) return;
    throw UsageError(std::string(what) + " of " + std::to_string(given) +
                     " elements, the slice of a divided tensor has " + std::to_string(size()) + " (" + shape_.text() +
                     ")");
  }

  std::shared_ptr<const Pieces> of_;
  std::size_t first_;
  Shape shape_;
  bool in_pieces_;
};

/// A handle that owns a tensor whose values lie in pieces, each on the device or away by itself. So the tensor may be
/// larger than the device budget: operations need the pieces that their slices touch, and no others. Made by
/// MemoryManager::divided(). Move-only. Each piece is a tensor: in traces, plans and errors it has the tensor's name
/// with its number, as in "field[3]".
template <class T, Backend B>
class DividedTensor {
 public:
  using value_type = T;    ///< the type of an element
  using backend_type = B;  ///< the backend that holds its values

  /// Takes over the values. Slices of it stay valid. The moved-from tensor is empty.
  DividedTensor(DividedTensor&&) noexcept = default;
  /// Takes over the values, and releases those that this tensor had.
  DividedTensor& operator=(DividedTensor&& other) noexcept {
    if (this == &other) return *this;
    owned_ = std::move(other.owned_);
    of_ = std::move(other.of_);
    return *this;
  }
  ~DividedTensor() = default;

  /// The shape that was given to MemoryManager::divided(). This and the following functions throw UsageError if the
  /// tensor is empty.
  [[nodiscard]] const Shape& shape() const { return inside().shape; }
  /// The number of elements.
  [[nodiscard]] std::size_t size() const { return shape()[0] * inside().stride; }
  /// The size of the elements, without padding.
  [[nodiscard]] Bytes bytes() const { return Bytes{size() * sizeof(T)}; }
  /// The number of pieces.
  [[nodiscard]] std::size_t pieces() const { return inside().pieces.size(); }
  /// The number of entries in each piece but the last.
  [[nodiscard]] std::size_t entries_per_piece() const { return inside().entries; }

  /// A piece as a view of its own: for host views, asynchronous downloads, and names in errors. Throws UsageError if
  /// there is no such piece.
  [[nodiscard]] View<T, B> piece(std::size_t number) const {
    check_piece(number);
    return inside().pieces[number];
  }
  /// The entries of a piece, as a slice: operations on these never copy on the device. Throws UsageError if there is no
  /// such piece.
  [[nodiscard]] DividedView<T, B> slice_of_piece(std::size_t number) const {
    check_piece(number);
    const std::size_t first = inside().first_of(number);
    return slice(first, std::min(inside().entries, shape()[0] - first));
  }
  /// All entries.
  [[nodiscard]] DividedView<T, B> view() const { return DividedView<T, B>(of_, 0, inside().shape[0], false); }

  /// @{
  /// The same function of view(); see DividedView.
  [[nodiscard]] DividedView<T, B> slice(std::size_t first, std::size_t count) const {
    return view().slice(first, count);
  }
  [[nodiscard]] runtime::SliceRef<B> slice_ref() const { return view().slice_ref(); }
  void upload(std::span<const T> data) { view().upload(data); }
  void download(std::span<T> data) const { view().download(data); }
  [[nodiscard]] std::vector<T> download() const { return view().download(); }
  /// @}

  /// Gives the storage back, as Tensor::reset() does.
  void reset() noexcept {
    owned_.clear();
    of_.reset();
  }

 private:
  template <Backend>
  friend class MemoryManager;
  DividedTensor(std::vector<Tensor<T, B>> pieces, const Shape& shape, std::size_t entries) : owned_(std::move(pieces)) {
    std::size_t stride = 1;
    for (std::size_t i = 1; i < shape.rank(); ++i) stride *= shape[i];
    std::vector<View<T, B>> views;
    views.reserve(owned_.size());
    for (const Tensor<T, B>& piece : owned_) views.push_back(piece.view());
    of_ = std::make_shared<const detail::Pieces<T, B>>(detail::Pieces<T, B>{shape, entries, stride, std::move(views)});
  }

  [[nodiscard]] const detail::Pieces<T, B>& inside() const {
    if (of_ == nullptr) throw UsageError("a divided tensor is used after it was moved from or reset");
    return *of_;
  }
  void check_piece(std::size_t number) const {
    if (number < pieces()) return;
    throw UsageError("piece " + std::to_string(number) + " of a divided tensor that has " + std::to_string(pieces()));
  }

  std::vector<Tensor<T, B>> owned_;
  std::shared_ptr<const detail::Pieces<T, B>> of_;  // null: empty
};

}  // namespace swapmm
