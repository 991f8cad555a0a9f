// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include <swapmm/backend/backend.hpp>
#include <swapmm/base/bytes.hpp>
#include <swapmm/ir/trace.hpp>
#include <swapmm/runtime/core/core.hpp>
#include <swapmm/runtime/core/running_operation.hpp>
#include <swapmm/tensor.hpp>

namespace swapmm {

/// Tensors that an operation accesses in the same way. Returned by reads(), writes() and updates().
template <Backend B, std::size_t N>
struct Accesses {
  static constexpr std::size_t count = N;  ///< number of tensors
  Access access;                           ///< how all of them are accessed
  std::array<TensorRef<B>, N> tensors;     ///< the tensors, in the order given
};

/// A work area of one operation. Returned by scratch().
struct Scratch {
  static constexpr std::size_t count = 0;  ///< number of tensors: none
  Bytes bytes;                             ///< size; 0 means no work area
};

/// Declares that the operation needs the values and leaves them unchanged.
template <template <class, Backend> class First, class T, Backend B, class... Rest>
[[nodiscard]] auto reads(const First<T, B>& first, const Rest&... rest) {
  return Accesses<B, 1 + sizeof...(rest)>{Access::read, {first.ref(), rest.ref()...}};
}
/// Declares that the operation gives every element a new value. A view of a part counts as an update of the tensor.
template <template <class, Backend> class First, class T, Backend B, class... Rest>
[[nodiscard]] auto writes(const First<T, B>& first, const Rest&... rest) {
  return Accesses<B, 1 + sizeof...(rest)>{Access::write, {first.ref(), rest.ref()...}};
}
/// Declares that the operation needs the values and changes them in place.
template <template <class, Backend> class First, class T, Backend B, class... Rest>
[[nodiscard]] auto updates(const First<T, B>& first, const Rest&... rest) {
  return Accesses<B, 1 + sizeof...(rest)>{Access::update, {first.ref(), rest.ref()...}};
}
/// Declares a work area: device bytes for this operation only, which op.scratch() returns. Their content is undefined.
/// They count against the budget like a tensor. Several declarations in one operation add up to one area.
[[nodiscard]] inline Scratch scratch(Bytes bytes) { return {bytes}; }
/// The same, with a plain number of bytes.
[[nodiscard]] inline Scratch scratch(std::size_t bytes) { return {Bytes{bytes}}; }

/// The type of swapmm::replayable.
struct Replayable {
  static constexpr std::size_t count = 0;  ///< number of tensors: none
};
/// Declares that the operation may run again: with the same inputs it writes the same values, bit for bit. It has
/// no effect but on the tensors that it writes or updates; what it reads besides its inputs (a seed, a file, a clock)
/// is the same each time. A plan may then drop what the operation wrote, and run it again when the values are
/// needed, instead of copying them.
///
/// The callable is copied, and the copy is kept until the iteration ends. What it refers to must live that long, and
/// the tensors of the operation, too. An operation that updates a tensor, or writes a part of one, runs again
/// together with those that gave the tensor its value before. Options::check_access runs the others twice and compares.
inline constexpr Replayable replayable{};

/// A bundle that is put together at run time. It can be reused: clear() keeps its memory. It refers to the tensors'
/// storage and does not keep it alive: use it only while the tensors exist.
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
  /// Sets the size of the work area. The last call counts.
  Bundle& scratch(Bytes bytes) {
    scratch_ = bytes;
    has_scratch_ = true;
    return *this;
  }
  /// The operation may run again: see swapmm::replayable.
  Bundle& replayable() {
    replayable_ = true;
    return *this;
  }
  /// Removes all tensors, the work area and replayable().
  void clear() {
    tensors_.clear();
    scratch_ = Bytes{};
    replayable_ = false;
    if (cores_.size() > 1) cores_.erase(cores_.begin(), cores_.end() - 1);
    has_scratch_ = false;
  }

 private:
  template <Backend>
  friend class MemoryManager;
  struct Entry {
    Access access;
    TensorRef<B> tensor;
  };
  template <class... Tensors>
  Bundle& add([[maybe_unused]] Access access, const Tensors&... tensors) {
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
  std::vector<std::shared_ptr<runtime::Core<B>>> cores_;  // kept alive, so that tensors that are gone can be recognized
  bool has_scratch_ = false;
  bool replayable_ = false;
};

/// The argument of an operation's callable. Gives access to the bundle on the device and to the queue for the
/// operation's work. Valid while the callable runs.
template <Backend B>
class Operation {
 public:
  /// The tensor on the device. Throws UsageError if the tensor is not in the bundle.
  template <class T>
  [[nodiscard]] typename B::template View<T> operator[](const Tensor<T, B>& tensor) const {
    return place<T>(tensor.ref(), tensor.size());
  }
  /// A part of a tensor on the device. The bundle must contain the tensor or any part of it. Throws UsageError if it
  /// does not, or if the part does not begin at a multiple of Capabilities::view_alignment.
  template <class T>
  [[nodiscard]] typename B::template View<T> operator[](const View<T, B>& view) const {
    return place<T>(view.ref(), view.size());
  }
  /// The tensor or view as a raw kernel launch takes it, see Argument; docs/interop.md has an example for each API.
  /// Throws as operator[] does.
  template <template <class, Backend> class TensorOrView, class T>
    requires requires(const typename B::Address& address) {
      { address.argument() } -> std::same_as<Argument>;
    }
  [[nodiscard]] Argument argument(const TensorOrView<T, B>& tensor) const { return address(tensor.ref()).argument(); }
  /// The work area. If it was declared with 0 bytes it is empty: size() is 0, and buffer() or data() is null. Throws
  /// UsageError if none was declared.
  [[nodiscard]] typename B::template View<std::byte> scratch() const {
    if (running_.request().has_scratch && running_.request().scratch.value == 0) return {};
    if (running_.scratch() == nullptr) {
      throw runtime::operation_misused(name(), " declares no scratch");
    }
    return typename B::template View<std::byte>(*running_.scratch(),
                                                static_cast<std::size_t>(running_.request().scratch.value));
  }
  /// The API's own queue or stream. All work of the operation must be queued there; later work waits for it.
  [[nodiscard]] typename B::Queue& queue() const { return running_.backend().queue(); }
  /// The same as queue(), with CUDA's name.
  [[nodiscard]] typename B::Queue& stream() const { return queue(); }
  /// The name of the operation, as given to run().
  [[nodiscard]] std::string_view name() const { return running_.request().name; }

 private:
  template <Backend>
  friend class MemoryManager;
  explicit Operation(runtime::RunningOperation<B>& running) : running_(running) {}

  template <class T>
  typename B::template View<T> place(const TensorRef<B>& tensor, std::size_t count) const {
    return typename B::template View<T>(address(tensor), count);
  }
  const typename B::Address& address(const TensorRef<B>& tensor) const {
    if (tensor.core != &running_.core() || !running_.in_bundle(tensor.key())) refuse(tensor);
    return running_.address(*tensor.record, tensor.offset, tensor.bytes);
  }
  [[noreturn]] void refuse(const TensorRef<B>& tensor) const {
    if (tensor.core == &running_.core() && !tensor.key().exists()) {
      throw runtime::view_of_no_tensor({"operation ", name()}, runtime::name_of(tensor.key()));
    }
    if (tensor.record == nullptr) {
      throw runtime::operation_misused(name(), " uses a tensor that was moved from or reset");
    }
    TensorName other = runtime::name_of(tensor.key());
    const std::string text = " uses tensor " + runtime::in_quotes(other.name) + ", which is not in its bundle";
    throw runtime::operation_misused(name(), text, {std::move(other)});
  }

  runtime::RunningOperation<B>& running_;
};

}  // namespace swapmm
