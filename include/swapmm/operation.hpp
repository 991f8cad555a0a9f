// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <swapmm/backend/backend.hpp>
#include <swapmm/base/bytes.hpp>
#include <swapmm/divided.hpp>
#include <swapmm/ir/trace.hpp>
#include <swapmm/runtime/core/core.hpp>
#include <swapmm/runtime/core/running_operation.hpp>
#include <swapmm/runtime/run/callable.hpp>
#include <swapmm/runtime/slices/joined_slices.hpp>
#include <swapmm/tensor.hpp>

namespace swapmm {

/// Tensors that an operation accesses in the same way. Returned by reads(), writes() and updates().
template <Backend B, std::size_t N>
struct Accesses {
  static constexpr std::size_t count = N;  ///< number of tensors
  Access access;                           ///< how all of them are accessed
  std::array<TensorRef<B>, N> tensors;     ///< the tensors, in the order given
};

/// The same where slices of divided tensors are among them. Their number is not known at compile time.
template <Backend B>
struct AccessesWithSlices {
  static constexpr std::size_t count = 0;    ///< not known
  Access access;                             ///< how all of them are accessed
  std::vector<TensorRef<B>> tensors;         ///< the tensors and views
  std::vector<runtime::SliceRef<B>> slices;  ///< the slices
};

/// A work area of one operation. Returned by scratch().
struct Scratch {
  static constexpr std::size_t count = 0;  ///< number of tensors: none
  Bytes bytes;                             ///< size; 0 means no work area
};

namespace detail {

/// One work area for two declarations. A sum that 64 bits cannot count becomes the most they can, which is too large
/// for any budget.
[[nodiscard]] inline Bytes with_scratch(Bytes before, const Scratch& area) {
  return checked_add(before, area.bytes).value_or(Bytes{~std::uint64_t{0}});
}

/// True for tensors and views, which lie in one place; false for divided tensors and their slices.
template <class TensorOrSlice>
inline constexpr bool lies_in_one_place = requires(const TensorOrSlice& tensor) {
  tensor.ref();
};
/// True for divided tensors and their slices.
template <class TensorOrSlice>
inline constexpr bool lies_in_pieces = requires(const TensorOrSlice& tensor) {
  tensor.slice_ref();
};

template <Backend B, class... Tensors>
[[nodiscard]] auto accesses(Access access, const Tensors&... tensors) {
  if constexpr ((lies_in_one_place<Tensors> && ...)) {
    return Accesses<B, sizeof...(Tensors)>{access, {tensors.ref()...}};
  } else {
    AccessesWithSlices<B> all{.access = access, .tensors = {}, .slices = {}};
    const auto add = [&](const auto& tensor) {
      if constexpr (lies_in_one_place<std::remove_cvref_t<decltype(tensor)>>) {
        all.tensors.push_back(tensor.ref());
      } else {
        all.slices.push_back(tensor.slice_ref());
      }
    };
    (add(tensors), ...);
    return all;
  }
}

}  // namespace detail

/// What bundles take: tensors, views, divided tensors and their slices.
template <class T>
concept OfBundle = Backend<typename T::backend_type> &&(detail::lies_in_one_place<T> || detail::lies_in_pieces<T>);

/// Declares that the operation needs the values and leaves them unchanged. Takes tensors, views, divided tensors and
/// their slices.
template <OfBundle First, class... Rest>
[[nodiscard]] auto reads(const First& first, const Rest&... rest) {
  return detail::accesses<typename First::backend_type>(Access::read, first, rest...);
}
/// Declares that the operation gives every element a new value. A view of a part counts as an update of the tensor, a
/// slice of a part of a piece as an update of that piece.
template <OfBundle First, class... Rest>
[[nodiscard]] auto writes(const First& first, const Rest&... rest) {
  return detail::accesses<typename First::backend_type>(Access::write, first, rest...);
}
/// Declares that the operation needs the values and changes them in place.
template <OfBundle First, class... Rest>
[[nodiscard]] auto updates(const First& first, const Rest&... rest) {
  return detail::accesses<typename First::backend_type>(Access::update, first, rest...);
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
  /// Adds tensors, views or slices, as swapmm::reads() does.
  template <class... Tensors>
  Bundle& reads(const Tensors&... tensors) {
    return add(Access::read, tensors...);
  }
  /// Adds tensors, views or slices, as swapmm::writes() does.
  template <class... Tensors>
  Bundle& writes(const Tensors&... tensors) {
    return add(Access::write, tensors...);
  }
  /// Adds tensors, views or slices, as swapmm::updates() does.
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
    slices_.clear();
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
    (add_one(access, tensors), ...);
    return *this;
  }
  void add_part(const Scratch& area) { scratch(detail::with_scratch(scratch_, area)); }
  void add_part(const Replayable& /*declared*/) { replayable_ = true; }
  template <std::size_t N>
  void add_part(const Accesses<B, N>& part) {
    for (const TensorRef<B>& tensor : part.tensors) add_tensor(part.access, tensor);
  }
  void add_part(const AccessesWithSlices<B>& part) {
    for (const TensorRef<B>& tensor : part.tensors) add_tensor(part.access, tensor);
    for (const runtime::SliceRef<B>& slice : part.slices) add_slice(part.access, slice);
  }
  template <class TensorOrSlice>
  void add_one(Access access, const TensorOrSlice& tensor) {
    if constexpr (detail::lies_in_one_place<TensorOrSlice>) {
      add_tensor(access, tensor.ref());
    } else {
      add_slice(access, tensor.slice_ref());
    }
  }
  void add_tensor(Access access, const TensorRef<B>& tensor) {
    tensors_.push_back({access, tensor});
    if (tensor.core != nullptr) keep(*tensor.core);
  }
  void add_slice(Access access, runtime::SliceRef<B> slice) {
    keep(*slice.core);
    slices_.push_back({.slice = std::move(slice), .access = access, .joined_at = {}});
  }
  void keep(runtime::Core<B>& core) {
    if (!cores_.empty() && cores_.back().get() == &core) return;
    std::erase_if(cores_, [&](const auto& known) { return known.get() == &core; });
    cores_.push_back(core.shared_from_this());
  }

  std::vector<Entry> tensors_;
  std::vector<runtime::BundledSlice<B>> slices_;
  std::vector<runtime::BundleItem<B>> items_;
  Bytes scratch_;
  std::vector<std::shared_ptr<runtime::Core<B>>> cores_;  // kept alive, so that tensors that are gone can be recognized
  bool has_scratch_ = false;
  bool replayable_ = false;
};

namespace detail {
template <Backend B, class Callable>
struct CallableCalls;
}  // namespace detail

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
  /// A slice of a divided tensor on the device, in one piece: see DividedView. The bundle must contain the slice or a
  /// larger one. Throws UsageError if it does not, if the bundle has it in_pieces() and it lies in several, or if it is
  /// a part of the bundle's and does not begin at a multiple of Capabilities::view_alignment.
  template <class T>
  [[nodiscard]] typename B::template View<T> operator[](const DividedView<T, B>& slice) const {
    return typename B::template View<T>(address(slice.slice_ref()), slice.size());
  }
  /// The same for all of a divided tensor.
  template <class T>
  [[nodiscard]] typename B::template View<T> operator[](const DividedTensor<T, B>& tensor) const {
    return (*this)[tensor.view()];
  }
  /// The tensor, view or slice as a raw kernel launch takes it, see Argument; docs/interop.md has an example for each
  /// API. Throws as operator[] does.
  template <OfBundle TensorOrView>
    requires requires(const typename B::Address& address) {
      { address.argument() } -> std::same_as<Argument>;
    }
  [[nodiscard]] Argument argument(const TensorOrView& tensor) const {
    if constexpr (detail::lies_in_one_place<TensorOrView>) {
      return address(tensor.ref()).argument();
    } else {
      return address(tensor.slice_ref()).argument();
    }
  }
  /// The work area. If it was declared with 0 bytes it is empty: size() is 0, and buffer() or data() is null. Throws
  /// UsageError if none was declared.
  [[nodiscard]] typename B::template View<std::byte> scratch() const {
    const Bytes bytes = slices_ == nullptr ? running_.request().scratch : slices_->own_scratch;
    if (running_.request().has_scratch && bytes.value == 0) return {};
    if (running_.scratch() == nullptr || bytes.value == 0) {
      throw runtime::operation_misused(name(), " declares no scratch");
    }
    return typename B::template View<std::byte>(*running_.scratch(), static_cast<std::size_t>(bytes.value));
  }
  /// The API's own queue or stream. All work of the operation must be queued there; later work waits for it.
  [[nodiscard]] typename B::Queue& queue() const { return running_.backend().queue(); }
  /// The same as queue(), with CUDA's name.
  [[nodiscard]] typename B::Queue& stream() const { return queue(); }
  /// The name of the operation, as given to run().
  [[nodiscard]] std::string_view name() const { return running_.request().name; }

 private:
  template <Backend, class>
  friend struct detail::CallableCalls;
  Operation(runtime::RunningOperation<B>& running, const runtime::SliceLayout<B>* slices)
      : running_(running), slices_(slices) {}

  template <class T>
  typename B::template View<T> place(const TensorRef<B>& tensor, std::size_t count) const {
    return typename B::template View<T>(address(tensor), count);
  }
  const typename B::Address& address(const TensorRef<B>& tensor) const {
    if (tensor.core != &running_.core() || !running_.in_bundle(tensor.key())) refuse(tensor);
    if (slices_ != nullptr) {
      runtime::JoinedSlices<B>(running_, *slices_).require_not_joined(tensor.key(), tensor.offset, tensor.bytes);
    }
    return running_.address(*tensor.record, tensor.offset, tensor.bytes);
  }
  const typename B::Address& address(const runtime::SliceRef<B>& slice) const {
    static const runtime::SliceLayout<B> none{};
    return runtime::JoinedSlices<B>(running_, slices_ == nullptr ? none : *slices_).address(slice);
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
  const runtime::SliceLayout<B>* slices_;  // of the bundle; null: none
};

namespace detail {

/// Whether a callable has the second form of MemoryManager::run().
template <Backend B, class Callable>
inline constexpr bool gives_event = std::is_invocable_v<Callable&, Operation<B>&, typename B::WaitList>;

/// Calls a program's callable for the runtime, and copies it. `Callable` may be const.
template <Backend B, class Callable>
struct CallableCalls {
  using Slices = const runtime::SliceLayout<B>*;

  static void queue(void* callable, runtime::RunningOperation<B>& running, Slices slices) {
    Operation<B> operation(running, slices);
    (*static_cast<Callable*>(callable))(operation);
  }
  static typename B::NativeEvent queue_after(void* callable, runtime::RunningOperation<B>& running, Slices slices,
                                             typename B::WaitList waits) {
    Operation<B> operation(running, slices);
    return (*static_cast<Callable*>(callable))(operation, std::move(waits));
  }
  static void copy(void* to, const void* callable) {
    ::new (to) std::remove_const_t<Callable>(*static_cast<const Callable*>(callable));
  }
  static void destroy(void* copy) noexcept { std::destroy_at(static_cast<Callable*>(copy)); }

  /// With `keeps`, it can be copied if the callable can.
  template <bool keeps>
  [[nodiscard]] static constexpr runtime::CallableType<B> type() {
    runtime::CallableType<B> type{.bytes = sizeof(Callable), .alignment = alignof(Callable)};
    if constexpr (gives_event<B, Callable>) {
      type.queue_after = queue_after;
    } else {
      type.queue = queue;
    }
    if constexpr (keeps && std::is_copy_constructible_v<Callable>) {
      type.copy = copy;
      type.destroy = destroy;
    }
    return type;
  }
};

/// One for each type of callable. With `keeps`, the operation may be replayable.
template <Backend B, class Callable, bool keeps>
inline constexpr runtime::CallableType<B> callable_type = CallableCalls<B, Callable>::template type<keeps>();

/// Refers to the callable.
template <Backend B, bool keeps, class Callable>
[[nodiscard]] runtime::CallableRef<B> callable_ref(Callable& callable) {
  return {const_cast<void*>(static_cast<const void*>(std::addressof(callable))), &callable_type<B, Callable, keeps>};
}
/// The callable as an object: a function's address.
template <class Callable>
[[nodiscard]] decltype(auto) as_object(Callable& callable) {
  if constexpr (std::is_function_v<Callable>) {
    return &callable;
  } else {
    return (callable);
  }
}

/// Whether a parameter of MemoryManager::run() declares a part of the bundle.
template <class T>
inline constexpr bool is_part = false;
template <>
inline constexpr bool is_part<Scratch> = true;
template <>
inline constexpr bool is_part<Replayable> = true;
template <Backend B, std::size_t N>
inline constexpr bool is_part<Accesses<B, N>> = true;
template <Backend B>
inline constexpr bool is_part<AccessesWithSlices<B>> = true;
/// How many tensors a parameter of MemoryManager::run() declares, as far as that is known at compile time.
template <class T>
[[nodiscard]] consteval std::size_t tensors_of() {
  if constexpr (is_part<T>) {
    return T::count;
  } else {
    return 0;
  }
}

}  // namespace detail

}  // namespace swapmm
