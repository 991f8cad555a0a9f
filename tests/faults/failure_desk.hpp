// SPDX-License-Identifier: Apache-2.0
#pragma once

// A manager on a simulated device of which one call fails, for stories that are told one by one.

#include <chrono>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <vector>

#include <swapmm/backend/testing/faulty.hpp>
#include <swapmm/backend/testing/simulated.hpp>
#include <swapmm/swapmm.hpp>

namespace swapmm::test::failures {

using namespace swapmm::literals;

using Device = Faulty<simulated::Backend>;
using IntTensor = Tensor<int, Device>;
using simulated::Touch;
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

/// The text of what `call` throws; empty where it throws nothing.
template <class Expected, class Call>
[[nodiscard]] std::string error_of(Call&& call) {
  try {
    call();
  } catch (const Expected& error) {
    return error.what();
  }
  return {};
}

[[nodiscard]] inline bool names(const std::string& text, const std::string& name) {
  return text.find('"' + name + '"') != std::string::npos;
}

}  // namespace swapmm::test::failures
