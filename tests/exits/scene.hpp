// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <swapmm/swapmm.hpp>

#ifdef SWAPMM_EXITS_OPENCL
#include "exits/opencl_stage.hpp"
#else
#include "exits/simulated_stage.hpp"
#endif

namespace swapmm::test {

/// A manager with one and a half times as many bytes in tensors as fit, so that operations and copies of both
/// directions are in flight once it was started.
template <Backend B>
class Scene {
 public:
  static constexpr std::size_t count = 6;
  static constexpr Bytes budget{4 * stage::elements * sizeof(int)};

  explicit Scene(B device, SchedulerOptions options = {})
      : scheduler(std::move(options)), manager(std::move(device), {.device_budget = budget}, scheduler) {
    for (std::size_t i = 0; i < count; ++i) {
      tensors.push_back(manager.template tensor<int>({stage::elements}, "t" + std::to_string(i)));
    }
  }

  void set(std::size_t i, int value) {
    manager.run("set", writes(tensors[i]), [&](auto& op) { stage::queue_set(op, tensors[i], value); });
  }
  /// As updates: a plan keeps the values over the end of an iteration.
  void iterate(int value) {
    const auto iteration = manager.iteration("work");
    for (std::size_t i = 0; i < count; ++i) {
      manager.run("change", updates(tensors[i]),
                  [&](auto& op) { stage::queue_set(op, tensors[i], value + static_cast<int>(i)); });
    }
  }
  /// Tensor i is 40 + i at the end.
  void start() {
    for (std::size_t i = 0; i < count; ++i) set(i, 0);
    for (const int value : {10, 20, 30, 40}) iterate(value);
  }
  [[nodiscard]] bool right() const {
    for (std::size_t i = 0; i < count; ++i) {
      const std::vector<int> data = tensors[i].download();
      const auto wanted = static_cast<int>(40 + i);
      if (!std::all_of(data.begin(), data.end(), [&](int element) { return element == wanted; })) return false;
    }
    return true;
  }

  Scheduler scheduler;
  MemoryManager<B> manager;
  std::vector<Tensor<int, B>> tensors;
};

using DeviceScene = Scene<stage::Device>;

/// What every end has: a started scene on a device of its own.
[[nodiscard]] inline DeviceScene started_scene() {
  DeviceScene scene(stage::make_device());
  scene.start();
  return scene;
}

}  // namespace swapmm::test
