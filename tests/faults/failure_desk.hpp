// SPDX-License-Identifier: Apache-2.0
#pragma once

// A manager on a simulated device of which one call fails, for stories that are told one by one.

#include <chrono>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <swapmm/backend/testing/simulated.hpp>
#include <swapmm/swapmm.hpp>

#include "support/faulty_simulated.hpp"
#include "support/tensor_names.hpp"

namespace swapmm::test::failures {

using namespace swapmm::literals;

using Device = FaultySimulated;
using IntTensor = Tensor<int, Device>;
using simulated::Touch;
using test::has_name;
using test::names_are;
inline constexpr std::size_t size = 64;  // elements: 256 bytes

struct Fixture {
  explicit Fixture(Options options = {.device_budget = 1_KiB}) : manager(device, options) {}

  IntTensor tensor(const char* name, int value) {
    IntTensor made = manager.tensor<int>({size}, name);
    made.upload(std::vector<int>(size, value));
    return made;
  }
  void add_one(const char* name, const IntTensor& tensor, bool fails = false) {
    manager.run(name, updates(tensor), [&](auto& op) {
      auto view = op[tensor];
      op.queue().launch(name, std::chrono::nanoseconds{10}, {Touch::write(view)}, [view, fails] {
        if (fails) throw std::runtime_error("the kernel failed");
        for (int& element : view) ++element;
      });
    });
  }

  Device device{simulated::Backend()};
  MemoryManager<Device> manager;
};

/// What an exception of the library says: its text, and the names in it. Empty if there was none.
struct Caught {
  std::string text;
  ErrorDetails details;
  [[nodiscard]] bool empty() const { return text.empty(); }
  friend bool operator==(const Caught& a, const Caught& b) {
    return a.text == b.text && a.details.lost == b.details.lost;
  }
};

/// The exception that `call` throws; another one than expected passes.
template <class Expected, class Call>
[[nodiscard]] Caught error_of(Call&& call) {
  try {
    call();
  } catch (const Expected& error) {
    return {error.what(), error.details()};
  }
  return {};
}

/// Whether the value of that tensor is lost.
[[nodiscard]] inline bool loses(const Caught& error, std::string_view name) {
  return has_name(error.details.lost, name);
}

}  // namespace swapmm::test::failures
