// SPDX-License-Identifier: Apache-2.0
#pragma once

// A random loop on the simulated device.

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include <swapmm/backend/testing/simulated.hpp>
#include <swapmm/swapmm.hpp>

#include "support/random_loop.hpp"

namespace swapmm::test {

/// A loop under way on a device of its own.
class RunningLoop {
 public:
  explicit RunningLoop(const Loop& loop)
      : device(loop.device), manager(device, loop.manager, Scheduler(loop.scheduler)), loop_(loop) {
    tensors_.reserve(loop.tensors.size());
    for (std::size_t i = 0; i < loop.tensors.size(); ++i) {
      tensors_.push_back(manager.tensor<std::byte>({loop.tensors[i].value}, "t" + std::to_string(i)));
      data_.emplace_back(loop.tensors[i].value, std::byte{1});
      tensors_.back().upload(data_.back());
    }
  }

  void iterate() {
    promised_.clear();
    auto iteration = manager.iteration("loop");
    for (const std::size_t input : loop_.inputs) tensors_[input].upload(data_[input]);
    for (const LoopStep& step : loop_.steps) {
      bundle_.clear();
      for (const auto& [tensor, access] : step.bundle) {
        if (access == Access::read) bundle_.reads(tensors_[tensor]);
        if (access == Access::write) bundle_.writes(tensors_[tensor]);
        if (access == Access::update) bundle_.updates(tensors_[tensor]);
      }
      bundle_.scratch(step.scratch);
      manager.run("step", bundle_, [&](auto& op) { op.queue().launch("step", step.duration, {}, [] {}); });
      if (!step.host_reads) continue;
      const std::size_t tensor = step.bundle.front().first;
      promised_.push_back(tensors_[tensor].download_async(data_[tensor]));
    }
  }

  /// When the last operation of each iteration since that entry of the log ended.
  [[nodiscard]] std::vector<nanoseconds> ends_since(std::size_t entry) const {
    std::vector<nanoseconds> ends;
    std::size_t kernels = 0;
    for (; entry < device.log().size(); ++entry) {
      if (device.log()[entry].kind != simulated::CommandKind::kernel) continue;
      if (++kernels % loop_.steps.size() == 0) ends.push_back(device.log()[entry].end);
    }
    return ends;
  }

  simulated::Backend device;
  MemoryManager<simulated::Backend> manager;

 private:
  const Loop& loop_;
  std::vector<Tensor<std::byte, simulated::Backend>> tensors_;
  std::vector<std::vector<std::byte>> data_;
  Bundle<simulated::Backend> bundle_;
  std::vector<PendingDownload<simulated::Backend>> promised_;
};

}  // namespace swapmm::test
