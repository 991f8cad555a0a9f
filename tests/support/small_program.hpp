// SPDX-License-Identifier: Apache-2.0
#pragma once

// Small operations on tensors of int, and what tests ask of a manager that ran them. For the simulated backend, with or
// without the fault adaptor around it.

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <typeinfo>
#include <utility>
#include <vector>

#include <swapmm/backend/testing/simulated.hpp>
#include <swapmm/swapmm.hpp>

namespace swapmm::test {

using Simulated = simulated::Backend;
using simulated::Touch;

inline constexpr std::chrono::nanoseconds operation_time{1000};

/// Elements of a tensor of 64 bytes: four of them fill a budget of 256.
inline constexpr std::size_t length = 16;
inline constexpr Bytes tensor_bytes{64};

/// Every element of `to` is `value`.
template <Backend B, class To>
void set(MemoryManager<B>& manager, const To& to, int value, std::string_view name = "set") {
  manager.run(name, writes(to), [&](auto& op) {
    const auto out = op[to];
    op.queue().launch(name, operation_time, {Touch::write(out)},
                      [out, value] { std::fill(out.begin(), out.end(), value); });
  });
}

/// to[i] = from[i] + value
template <Backend B, class From, class To>
void add(MemoryManager<B>& manager, const From& from, const To& to, int value, std::string_view name = "add") {
  manager.run(name, reads(from), writes(to), [&](auto& op) {
    const auto in = op[from];
    const auto out = op[to];
    op.queue().launch(name, operation_time, {Touch::read(in), Touch::write(out)}, [in, out, value] {
      for (std::size_t i = 0; i < out.size(); ++i) out[i] = in[i] + value;
    });
  });
}

/// to[i] += value
template <Backend B, class To>
void increase(MemoryManager<B>& manager, const To& to, int value, std::string_view name = "increase") {
  manager.run(name, updates(to), [&](auto& op) {
    const auto out = op[to];
    op.queue().launch(name, operation_time, {Touch::read(out), Touch::write(out)}, [out, value] {
      for (int& element : out) element += value;
    });
  });
}

/// to[i] += from[i]
template <Backend B, class From, class To>
void accumulate(MemoryManager<B>& manager, const From& from, const To& to, std::string_view name = "accumulate") {
  manager.run(name, reads(from), updates(to), [&](auto& op) {
    const auto in = op[from];
    const auto out = op[to];
    op.queue().launch(name, operation_time, {Touch::read(in), Touch::read(out), Touch::write(out)}, [in, out] {
      for (std::size_t i = 0; i < out.size(); ++i) out[i] += in[i];
    });
  });
}

/// `count` tensors of 64 bytes, all elements of the i-th being i + 1 by an upload.
template <Backend B>
std::vector<Tensor<int, B>> uploaded_tensors(MemoryManager<B>& manager, std::size_t count,
                                             std::string_view name = "w") {
  std::vector<Tensor<int, B>> tensors;
  for (std::size_t i = 0; i < count; ++i) {
    tensors.push_back(manager.template tensor<int>({length}, std::string(name) + std::to_string(i)));
    tensors.back().upload(std::vector<int>(length, static_cast<int>(i) + 1));
  }
  return tensors;
}

template <class T>
bool holds(const T& tensor, int value) {
  const std::vector<int> data = tensor.download();
  return std::all_of(data.begin(), data.end(), [&](int element) { return element == value; });
}

/// A program of its own, larger than a budget of 256 bytes: true if every bit comes out right.
template <Backend B>
bool probe(MemoryManager<B>& manager) {
  auto weights = uploaded_tensors(manager, 4, "probe.w");
  auto first = manager.template tensor<int>({length}, "probe.first");
  auto second = manager.template tensor<int>({length}, "probe.second");
  bool right = true;
  for (int round = 0; round < 5; ++round) {
    auto iteration = manager.iteration("probe");
    set(manager, first, round, "probe.set");
    for (auto& weight : weights) {
      add(manager, first, second, 1, "probe.add");
      accumulate(manager, second, weight, "probe.accumulate");
      std::swap(first, second);
    }
    right = right && holds(first, round + 4);
  }
  for (int i = 0; i < 4; ++i) {
    // In round r, weight i grows by r + i + 1.
    right = right && holds(weights[static_cast<std::size_t>(i)], (i + 1) + 10 + 5 * (i + 1));
  }
  return right;
}

/// How much a device was told to do: equal before and after a call that queued nothing.
[[nodiscard]] inline std::array<std::uint64_t, simulated::command_kind_count> queued(const Simulated& device) {
  std::array<std::uint64_t, simulated::command_kind_count> counts{};
  std::copy(std::begin(device.counters().queued), std::end(device.counters().queued), counts.begin());
  return counts;
}

/// Everything that was made on the device has ended again, and the checker saw nothing.
inline void check_clean(const Simulated& device) {
  const simulated::Counters& counters = device.counters();
  CHECK(counters.device_memories.live == 0);
  CHECK(counters.host_memories.live == 0);
  CHECK(counters.addresses.live == 0);
  CHECK(counters.events.live == 0);
  for (const std::string& violation : device.violations()) FAIL_CHECK(violation);
}

/// The exception of exactly this type that `call` throws; a failed check and nothing if there was another one, or none.
template <class E, class Call>
std::optional<E> thrown(Call&& call) {
  try {
    call();
  } catch (const E& error) {
    CHECK_MESSAGE(typeid(error) == typeid(E), typeid(error).name() << ": " << error.what());
    return error;
  } catch (const std::exception& error) {
    FAIL_CHECK(typeid(error).name() << ": " << error.what());
    return std::nullopt;
  }
  FAIL_CHECK("nothing was thrown");
  return std::nullopt;
}

/// What that exception says; nothing if there was another one, or none.
template <class E, class Call>
std::string text_of(Call&& call) {
  const std::optional<E> error = thrown<E>(std::forward<Call>(call));
  return error ? error->what() : std::string();
}

/// Whether `text` has all of `parts`, in that order.
[[nodiscard]] inline bool says(std::string_view text, std::initializer_list<std::string_view> parts) {
  for (const std::string_view part : parts) {
    const std::size_t at = text.find(part);
    if (at == std::string_view::npos) {
      MESSAGE("\"" << std::string(text) << "\" does not say \"" << std::string(part) << "\" there");
      return false;
    }
    text.remove_prefix(at + part.size());
  }
  return true;
}

}  // namespace swapmm::test
