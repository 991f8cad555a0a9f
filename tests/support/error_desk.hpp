// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <swapmm/backend/testing/simulated.hpp>
#include <swapmm/swapmm.hpp>

#include "support/small_program.hpp"
#include "support/tensor_names.hpp"

namespace swapmm::test {

/// A device, a manager with a budget of four tensors on it, and the checks that belong to every error.
struct ErrorDesk {
  explicit ErrorDesk(const simulated::Options& device_options = {}, Options options = {.device_budget = Bytes{256}})
      : device(device_options), manager(device, options) {}
  ~ErrorDesk() {
    CHECK(probe(manager));
    for (const std::string& violation : device.violations()) FAIL_CHECK(violation);
  }

  Tensor<int, Simulated> tensor(std::string_view name, std::size_t elements = length) {
    return manager.tensor<int>({elements}, name);
  }
  /// The exception of type E that `call` throws without having queued anything.
  template <class E, class Call>
  std::optional<E> error(Call&& call) {
    const auto before = queued(device);
    const std::uint64_t operations = manager.report().operations;
    std::optional<E> error = thrown<E>(std::forward<Call>(call));
    CHECK(queued(device) == before);
    CHECK(manager.report().operations == operations);
    return error;
  }
  /// What it says.
  template <class E, class Call>
  std::string refused(Call&& call) {
    const std::optional<E> error = this->error<E>(std::forward<Call>(call));
    return error ? error->what() : std::string();
  }

  Simulated device;
  MemoryManager<Simulated> manager;
};

/// For operations that are refused.
inline constexpr auto nothing = [](auto&) { FAIL_CHECK("the callable of a refused operation ran"); };

}  // namespace swapmm::test
