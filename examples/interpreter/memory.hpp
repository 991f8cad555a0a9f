// SPDX-License-Identifier: Apache-2.0
#pragma once

// The two memories that the networks run in. The networks are written once, for a `Memory`: so both do the same, and
// only one of them must swap.

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <swapmm/backend/testing/simulated.hpp>
#include <swapmm/swapmm.hpp>

namespace interpreter {

/// Arrays that an operation accesses in the same way.
template <class... Arrays>
struct Accessed {
  std::tuple<const Arrays&...> arrays;
};
/// @{
/// What an operation reads, gives new values, and changes.
template <class... Arrays>
struct From : Accessed<Arrays...> {};
template <class... Arrays>
struct To : Accessed<Arrays...> {};
template <class... Arrays>
struct InPlace : Accessed<Arrays...> {};
/// @}
template <class... Arrays>
[[nodiscard]] From<Arrays...> from(const Arrays&... arrays) {
  return {{{arrays...}}};
}
template <class... Arrays>
[[nodiscard]] To<Arrays...> to(const Arrays&... arrays) {
  return {{{arrays...}}};
}
template <class... Arrays>
[[nodiscard]] InPlace<Arrays...> in_place(const Arrays&... arrays) {
  return {{{arrays...}}};
}

/// How long an array's values are needed.
enum class Needed { always, within_iteration };

/// Ordinary memory, without a limit: an operation is a call of its loops.
class OrdinaryMemory {
 public:
  /// Refers to its elements, as a tensor does.
  using Array = std::unique_ptr<std::vector<float>>;
  struct Iteration {};

  [[nodiscard]] Array array(std::size_t size, const std::string& /*name*/, Needed /*needed*/) {
    return std::make_unique<std::vector<float>>(size);
  }
  [[nodiscard]] Iteration iteration(std::string_view /*name*/) { return {}; }
  void upload(const Array& array, std::span<const float> values) { array->assign(values.begin(), values.end()); }
  [[nodiscard]] std::vector<float> download(const Array& array) const { return *array; }

  /// Calls the kernel with spans: of what it reads, what it writes, and what it changes, in this order.
  template <class Kernel, class... R, class... W, class... U>
  void run(std::string_view /*name*/, std::size_t /*products*/, const From<R...>& read, const To<W...>& written,
           const InPlace<U...>& changed, const Kernel& kernel) {
    const auto call = [&](const auto&... arrays) { std::invoke(kernel, std::span(*arrays)...); };
    std::apply(call, std::tuple_cat(read.arrays, written.arrays, changed.arrays));
  }
};

/// The memory of a simulated device, which is limited: an operation is a kernel on tensors that swapmm brings there.
class SwappedMemory {
 public:
  using Device = swapmm::simulated::Backend;
  using Manager = swapmm::MemoryManager<Device>;
  using Array = swapmm::Tensor<float, Device>;

  explicit SwappedMemory(Manager& manager) : manager_(manager) {}

  [[nodiscard]] Array array(std::size_t size, const std::string& name, Needed needed) {
    bytes_ += size * sizeof(float);
    if (needed == Needed::within_iteration) return manager_.tensor<float>({size}, name, swapmm::transient);
    return manager_.tensor<float>({size}, name);
  }
  /// The bytes of all arrays.
  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  [[nodiscard]] auto iteration(std::string_view name) { return manager_.iteration(name); }
  void upload(Array& array, std::span<const float> values) { array.upload(values); }
  [[nodiscard]] std::vector<float> download(const Array& array) const { return array.download(); }

  /// Queues the kernel: the host does not wait for it. It takes longer the more products of two numbers it has.
  template <class Kernel, class... R, class... W, class... U>
  void run(std::string_view name, std::size_t products, const From<R...>& read, const To<W...>& written,
           const InPlace<U...>& changed, const Kernel& kernel) {
    swapmm::Bundle<Device> bundle;
    std::apply([&](const auto&... arrays) { bundle.reads(arrays...); }, read.arrays);
    std::apply([&](const auto&... arrays) { bundle.writes(arrays...); }, written.arrays);
    std::apply([&](const auto&... arrays) { bundle.updates(arrays...); }, changed.arrays);
    manager_.run(name, bundle, [&](auto& operation) {
      std::vector<Touch> touches;
      add_touches<true, false>(operation, read.arrays, touches);
      add_touches<false, true>(operation, written.arrays, touches);
      add_touches<true, true>(operation, changed.arrays, touches);
      const auto views = std::apply([&](const auto&... arrays) { return std::tuple(operation[arrays]...); },
                                    std::tuple_cat(read.arrays, written.arrays, changed.arrays));
      operation.queue().launch(name, std::chrono::nanoseconds{1000 + products / 10}, touches,
                               [kernel, views] { std::apply(kernel, views); });
    });
  }

 private:
  using Touch = swapmm::simulated::Touch;

  template <bool is_read, bool is_written, class Operation, class Arrays>
  static void add_touches(Operation& operation, const Arrays& arrays, std::vector<Touch>& touches) {
    const auto add = [&](const auto& array) {
      if (is_read) touches.push_back(Touch::read(operation[array]));
      if (is_written) touches.push_back(Touch::write(operation[array]));
    };
    std::apply([&](const auto&... each) { (add(each), ...); }, arrays);
  }

  Manager& manager_;
  std::size_t bytes_ = 0;
};

}  // namespace interpreter
