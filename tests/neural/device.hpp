// SPDX-License-Identifier: Apache-2.0
#pragma once

// Numbers to compute with, and plain memories of the device to compute them in. The same tests are built for OpenCL and
// for CUDA: a program's API is that of the header included here.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <type_traits>
#include <vector>

#ifdef SWAPMM_TEST_ON_CUDA
#include "neural/cuda_device.hpp"
#else
#include "neural/opencl_device.hpp"
#endif
#include "neural/same_bits.hpp"

namespace swapmm::test {

/// The same on every machine: multiples of 1/8 in [-2, 2], so that sums of few products are exact.
inline std::vector<float> numbers(std::size_t count, std::uint32_t seed) {
  std::vector<float> values(count);
  for (float& value : values) {
    seed = seed * 1664525U + 1013904223U;
    value = static_cast<float>(static_cast<int>((seed >> 16U) % 33) - 16) / 8;
  }
  return values;
}

using neural::same_bits;

/// The largest difference, in parts of the largest value.
template <class A, class B>
double distance(const std::vector<A>& values, const std::vector<B>& exact) {
  REQUIRE(values.size() == exact.size());
  double apart = 0;
  double largest = std::numeric_limits<double>::min();
  for (std::size_t i = 0; i < exact.size(); ++i) {
    const double difference = std::abs(static_cast<double>(values[i]) - static_cast<double>(exact[i]));
    apart = std::max(apart, std::isnan(difference) ? std::numeric_limits<double>::infinity() : difference);
    largest = std::max(largest, std::abs(static_cast<double>(exact[i])));
  }
  return apart / largest;
}

/// A memory of `lead` elements and then the values; kernels are to begin behind the lead. Where there are no values yet
/// it holds what no result may depend on, and what lies around the values must never change.
template <class T>
class Memory {
 public:
  static constexpr std::size_t lead = 64;

  explicit Memory(const std::vector<T>& values) : count_(values.size()), bytes_((2 * lead + count_) * sizeof(T)) {
    std::vector<T> all(2 * lead + count_, poison());
    std::copy(values.begin(), values.end(), all.begin() + lead);
    bytes_.write(std::as_bytes(std::span(all)));
  }
  explicit Memory(std::size_t count) : Memory(std::vector<T>(count, poison())) {}

  /// Behind the lead.
  [[nodiscard]] Math::Place place() const { return begin().at(lead); }
  [[nodiscard]] Math::Place begin() const { return bytes_.place(); }
  [[nodiscard]] std::vector<T> values() const {
    std::vector<T> all(2 * lead + count_);
    bytes_.read(std::as_writable_bytes(std::span(all)));
    const T expected = poison();
    std::size_t changed = 0;
    for (std::size_t i = 0; i < lead; ++i) {
      if (std::memcmp(&all[i], &expected, sizeof(T)) != 0) ++changed;
      if (std::memcmp(&all[lead + count_ + i], &expected, sizeof(T)) != 0) ++changed;
    }
    CHECK(changed == 0);
    return {all.begin() + lead, all.end() - lead};
  }

 private:
  static T poison() {
    if constexpr (std::is_floating_point_v<T>) return std::numeric_limits<T>::quiet_NaN();
    return static_cast<T>(0x55);
  }

  std::size_t count_;
  DeviceBytes bytes_;
};

}  // namespace swapmm::test
