// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <swapmm/backend/backend.hpp>
#include <swapmm/base/bytes.hpp>
#include <swapmm/pages/area.hpp>
#include <swapmm/pages/fault_service.hpp>
#include <swapmm/runtime/values/record.hpp>
#include <swapmm/runtime/values/store.hpp>
#include <swapmm/runtime/views/part_copies.hpp>

namespace swapmm::runtime {

namespace detail {
template <class B>
struct PartCopiesOf {
  struct Type {};  // a backend that cannot copy parts has none
};
template <FileBackend B>
struct PartCopiesOf<B> {
  using Type = PartCopies<B>;
};
}  // namespace detail

/// Host memory in which the program sees a part of a tensor.
template <Backend B>
struct OpenView {
  OpenView(const TensorKey<B>& of, Bytes from, std::span<std::byte> memory, Bytes bytes, Bytes block,
           pages::BlockState state, std::string why_eager)
      : tensor(of),
        offset(from),
        area(memory, static_cast<std::size_t>(bytes.value), static_cast<std::size_t>(block.value), state,
             std::move(why_eager)) {}

  TensorKey<B> tensor;
  Bytes offset;  ///< of the part in the tensor
  pages::Area area;
  std::vector<std::byte> buffer;  ///< of a block on its way to the area
  std::atomic<std::uint64_t> faults{0};
  std::atomic<std::uint64_t> bytes_in{0};   ///< copied to the tensor
  std::atomic<std::uint64_t> bytes_out{0};  ///< copied to the area

  [[nodiscard]] Bytes bytes() const { return Bytes{area.bytes().size()}; }
  [[nodiscard]] bool covers_tensor() const { return bytes() == tensor.record->bytes; }
  /// True if the tensor is this one.
  [[nodiscard]] bool is_of(const TensorKey<B>& other) const {
    return tensor.record == other.record && tensor.serial == other.serial;
  }
};

/// The host views of a manager that are open. Changed by callers inside the manager.
template <Backend B>
class OpenViews {
 public:
  void add(OpenView<B>& view) {
    views_.push_back(&view);
    ++view.tensor.record->views;
  }
  void remove(OpenView<B>& view) noexcept {
    std::erase(views_, &view);
    if (view.tensor.exists()) --view.tensor.record->views;
  }
  /// The views of a tensor. The list does not change with this manager's.
  [[nodiscard]] std::vector<OpenView<B>*> of(const TensorKey<B>& tensor) const {
    std::vector<OpenView<B>*> found;
    std::copy_if(views_.begin(), views_.end(), std::back_inserter(found),
                 [&](const OpenView<B>* view) { return view->is_of(tensor); });
    return found;
  }

  /// The copies of parts of values. Takes host memory at the first call.
  [[nodiscard]] auto& copies(Store<B>& store) requires FileBackend<B> {
    if (!copies_) copies_.emplace(store, piece);
    return *copies_;
  }
  /// Gives host memory back. No copy may be in flight.
  void give_back([[maybe_unused]] Store<B>& store) noexcept {
    if constexpr (FileBackend<B>) {
      if (copies_) copies_->give_back(store);
      copies_.reset();
    }
  }

  std::shared_ptr<pages::FaultService> service;  ///< null until a view is lazy

 private:
  static constexpr Bytes piece{256U << 10U};

  std::vector<OpenView<B>*> views_;
  std::optional<typename detail::PartCopiesOf<B>::Type> copies_;
};

}  // namespace swapmm::runtime
