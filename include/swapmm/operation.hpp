// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
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

/// A bundle whose size is known only at run time. Reusable: clear() keeps its memory. It refers to the tensors and
/// keeps none alive: an operation with a bundle one of whose tensors no longer exists throws UsageError.
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
    if (cores_.size() > 1) cores_.erase(cores_.begin(), cores_.end() - 1);
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
    (add(access, tensors.ref()), ...);
    return *this;
  }
  void add(Access access, const TensorRef<B>& tensor) {
    tensors_.push_back({access, tensor});
    if (tensor.core == nullptr || (!cores_.empty() && cores_.back().get() == tensor.core)) return;
    std::erase_if(cores_, [&](const auto& core) { return core.get() == tensor.core; });
    cores_.push_back(tensor.core->shared_from_this());
  }

  std::vector<Entry> tensors_;
  std::vector<runtime::BundleItem<B>> items_;
  Bytes scratch_;
  std::vector<std::shared_ptr<runtime::Core<B>>> cores_;  // what the tensors refer to, so that it can tell what is gone
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
      throw UsageError("operation " + runtime::in_quotes(current.request.name) + " declares no scratch");
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
    if (tensor.core != &core_ || !core_.in_bundle(tensor.key())) {
      if (tensor.core == &core_ && !tensor.key().exists()) {
        throw UsageError(runtime::view_of_no_tensor("operation " + runtime::in_quotes(name()), tensor.key().name()));
      }
      throw UsageError(
          "operation " + runtime::in_quotes(name()) + " uses tensor " +
          (tensor.record == nullptr ? std::string("(moved from)") : runtime::in_quotes(tensor.record->name)) +
          ", which is not in its bundle");
    }
    return typename B::template View<T>(core_.address(*tensor.record, tensor.offset, tensor.bytes), count);
  }

  runtime::Core<B>& core_;
};

}  // namespace swapmm
