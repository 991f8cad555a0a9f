// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include <swapmm/backend/backend.hpp>
#include <swapmm/base/bytes.hpp>
#include <swapmm/ir/trace.hpp>
#include <swapmm/runtime/core/core.hpp>
#include <swapmm/tensor.hpp>

namespace swapmm {

/// Tensors of a bundle that an operation accesses in one way: made by reads(), writes(), updates().
template <Backend B, std::size_t N>
struct Accesses {
  static constexpr std::size_t count = N;  ///< of tensors
  Access access;                           ///< of all of them
  std::array<TensorRef<B>, N> tensors;     ///< in the order given
};

/// A work area of one operation: made by scratch().
struct Scratch {
  static constexpr std::size_t count = 0;  ///< of tensors: it is none
  Bytes bytes;                             ///< its size; 0: none
};

/// The operation needs the values and leaves them.
template <template <class, Backend> class First, class T, Backend B, class... Rest>
[[nodiscard]] auto reads(const First<T, B>& first, const Rest&... rest) {
  return Accesses<B, 1 + sizeof...(rest)>{Access::read, {first.ref(), rest.ref()...}};
}
/// The operation gives each tensor a whole new value. A view of a part counts as an update of the tensor.
template <template <class, Backend> class First, class T, Backend B, class... Rest>
[[nodiscard]] auto writes(const First<T, B>& first, const Rest&... rest) {
  return Accesses<B, 1 + sizeof...(rest)>{Access::write, {first.ref(), rest.ref()...}};
}
/// The operation needs the values and changes them in place.
template <template <class, Backend> class First, class T, Backend B, class... Rest>
[[nodiscard]] auto updates(const First<T, B>& first, const Rest&... rest) {
  return Accesses<B, 1 + sizeof...(rest)>{Access::update, {first.ref(), rest.ref()...}};
}
/// Device bytes for the operation alone: op.scratch(). Undefined content; under the budget like any tensor. Several in
/// one operation add up to one area.
[[nodiscard]] inline Scratch scratch(Bytes bytes) { return {bytes}; }
/// The same, in bytes.
[[nodiscard]] inline Scratch scratch(std::size_t bytes) { return {Bytes{bytes}}; }

/// A bundle whose size is known only at run time. Reusable: clear() keeps its memory. It refers to the tensors' storage
/// and keeps none alive: it is for use while they exist.
template <Backend B>
class Bundle {
 public:
  /// Adds tensors or views, as swapmm::reads() does.
  template <class... Tensors>
  Bundle& reads(const Tensors&... tensors) {
    return add(Access::read, tensors...);
  }
  /// Adds tensors or views, as swapmm::writes() does.
  template <class... Tensors>
  Bundle& writes(const Tensors&... tensors) {
    return add(Access::write, tensors...);
  }
  /// Adds tensors or views, as swapmm::updates() does.
  template <class... Tensors>
  Bundle& updates(const Tensors&... tensors) {
    return add(Access::update, tensors...);
  }
  /// The work area; the last call counts.
  Bundle& scratch(Bytes bytes) {
    scratch_ = bytes;
    return *this;
  }
  /// Empty again, work area included.
  void clear() {
    tensors_.clear();
    scratch_ = Bytes{};
  }

 private:
  template <Backend>
  friend class MemoryManager;
  struct Entry {
    Access access;
    TensorRef<B> tensor;
  };
  template <class... Tensors>
  Bundle& add(Access access, const Tensors&... tensors) {
    (tensors_.push_back({access, tensors.ref()}), ...);
    return *this;
  }

  std::vector<Entry> tensors_;
  std::vector<runtime::BundleItem<B>> items_;
  Bytes scratch_;
};

/// What an operation's callable gets: the device's side of its bundle, and the queue to put its work on. Valid
/// while the callable runs.
template <Backend B>
class Operation {
 public:
  /// The tensor on the device. Throws UsageError for one that is not in the bundle.
  template <class T>
  [[nodiscard]] typename B::template View<T> operator[](const Tensor<T, B>& tensor) const {
    return place<T>(tensor.ref(), tensor.size());
  }
  /// The part of a tensor on the device; the tensor itself or any part of it is in the bundle. Throws UsageError where
  /// neither is, and for a part that does not begin at a multiple of Capabilities::view_alignment.
  template <class T>
  [[nodiscard]] typename B::template View<T> operator[](const View<T, B>& view) const {
    return place<T>(view.ref(), view.size());
  }
  /// The work area. Throws UsageError where none was declared.
  [[nodiscard]] typename B::template View<std::byte> scratch() const {
    const auto& current = core_.current();
    if (current.grant.scratch == nullptr) {
      throw runtime::operation_misused(current.request.name, " declares no scratch");
    }
    return typename B::template View<std::byte>(*current.grant.scratch,
                                                static_cast<std::size_t>(current.request.scratch.value));
  }
  /// The API's own queue or stream; all work of the operation goes there, and what it starts is waited for.
  [[nodiscard]] typename B::Queue& queue() const { return core_.backend().queue(); }
  /// queue(), by the name that CUDA has for it.
  [[nodiscard]] typename B::Queue& stream() const { return queue(); }
  /// The operation's, as given to run().
  [[nodiscard]] std::string_view name() const { return core_.current().request.name; }

 private:
  template <Backend>
  friend class MemoryManager;
  explicit Operation(runtime::Core<B>& core) : core_(core) {}

  template <class T>
  typename B::template View<T> place(const TensorRef<B>& tensor, std::size_t count) const {
    if (tensor.core != &core_ || !core_.in_bundle(*tensor.record)) {
      if (tensor.record == nullptr) throw runtime::operation_misused(name(), " uses a tensor that was moved from");
      TensorName other = runtime::name_of(*tensor.record);
      throw runtime::operation_misused(
          name(), " uses tensor " + runtime::in_quotes(other.name) + ", which is not in its bundle", {other});
    }
    return typename B::template View<T>(core_.address(*tensor.record, tensor.offset, tensor.bytes), count);
  }

  runtime::Core<B>& core_;
};

}  // namespace swapmm
