// SPDX-License-Identifier: Apache-2.0
#pragma once

// A training step whose forward operations may run again, on the simulated device, and as plain loops.

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <swapmm/backend/testing/simulated.hpp>
#include <swapmm/swapmm.hpp>

#include "support/chain.hpp"
#include "support/numbers.hpp"

namespace swapmm::test {

/// Links on which a copy of one tensor takes much longer than an operation, so that what runs again is cheaper.
[[nodiscard]] inline simulated::Options slow_links() {
  simulated::Options device;
  device.h2d.bytes_per_second = 50'000'000;
  device.d2h.bytes_per_second = 50'000'000;
  return device;
}

class ReplayedChain {
 public:
  using Device = simulated::Backend;
  static constexpr std::chrono::nanoseconds forward_time{2'000};
  static constexpr std::chrono::nanoseconds backward_time{4'000};

  /// `before(i)`, if there is one, is called before operation i of each iteration; operations count on from the first
  /// one, the input's upload excluded.
  explicit ReplayedChain(MemoryManager<Device>& manager, std::size_t layers)
      : manager_(manager), input_(manager.tensor<Number>({chain_length}, "x")) {
    for (std::size_t i = 0; i < layers; ++i) {
      weights_.push_back(manager.tensor<Number>({chain_length}, "w" + std::to_string(i)));
      weights_.back().upload(numbers(chain_length, static_cast<Number>(100 + i)));
    }
    for (std::size_t i = 0; i <= layers; ++i) {
      hidden_.push_back(manager.tensor<Number>({chain_length}, "h" + std::to_string(i)));
    }
  }

  std::function<void(std::size_t)> before;
  std::size_t runs = 0;  ///< of forward operations, those that run again included
  bool declares = true;  ///< that forward operations may run again

  void iterate(Number seed) {
    const auto iteration = manager_.iteration("train");
    std::size_t operation = 0;
    const auto next = [&] {
      if (before) before(operation);
      ++operation;
    };
    input_.upload(numbers(chain_length, seed));
    next();
    const auto first = [this](auto& op) {
      ++runs;
      const auto from = op[input_];
      const auto to = op[hidden_[0]];
      op.queue().launch("input", forward_time, {simulated::Touch::read(from), simulated::Touch::write(to)}, [from, to] {
        for (std::size_t i = 0; i < to.size(); ++i) to[i] = 3U * from[i] + 1;
      });
    };
    run("input", reads(input_), hidden_[0], first);
    for (std::size_t layer = 0; layer < weights_.size(); ++layer) {
      next();
      const auto forward = [this, layer](auto& op) {
        ++runs;
        const auto a = op[hidden_[layer]];
        const auto b = op[weights_[layer]];
        const auto to = op[hidden_[layer + 1]];
        op.queue().launch("forward", forward_time,
                          {simulated::Touch::read(a), simulated::Touch::read(b), simulated::Touch::write(to)},
                          [a, b, to] {
                            for (std::size_t i = 0; i < to.size(); ++i) {
                              to[i] = 3U * a[i] + 5U * b[i] + static_cast<Number>(i);
                            }
                          });
      };
      run("forward" + std::to_string(layer), reads(hidden_[layer], weights_[layer]), hidden_[layer + 1], forward);
    }
    for (std::size_t layer = weights_.size(); layer-- > 0;) {
      next();
      manager_.run("backward" + std::to_string(layer), reads(hidden_[layer]), updates(weights_[layer]), [&](auto& op) {
        const auto by = op[hidden_[layer]];
        const auto to = op[weights_[layer]];
        op.queue().launch("backward", backward_time,
                          {simulated::Touch::read(by), simulated::Touch::read(to), simulated::Touch::write(to)},
                          [by, to] {
                            for (std::size_t i = 0; i < to.size(); ++i) to[i] = 7U * to[i] + by[i];
                          });
      });
    }
    next();
  }

  [[nodiscard]] bool same_weights(const ChainModel& model) const {
    bool same = true;
    for (std::size_t i = 0; i < weights_.size(); ++i) same = same && weights_[i].download() == model.weights[i];
    return same;
  }
  [[nodiscard]] std::size_t operations() const { return 2 * weights_.size() + 1; }
  [[nodiscard]] Tensor<Number, Device>& input() { return input_; }
  [[nodiscard]] std::vector<Tensor<Number, Device>>& hidden() { return hidden_; }
  [[nodiscard]] std::vector<Tensor<Number, Device>>& weights() { return weights_; }

 private:
  template <class Reads, class Callable>
  void run(const std::string& name, const Reads& read, Tensor<Number, Device>& written, const Callable& callable) {
    if (declares) {
      manager_.run(name, read, writes(written), replayable, callable);
    } else {
      manager_.run(name, read, writes(written), callable);
    }
  }

  MemoryManager<Device>& manager_;
  Tensor<Number, Device> input_;
  std::vector<Tensor<Number, Device>> weights_;
  std::vector<Tensor<Number, Device>> hidden_;
};

/// The chain with a manager, and what it has to come to.
struct ReplayedDesk {
  static constexpr std::size_t layers = 5;
  static constexpr Bytes budget{7 * chain_tensor.value};  // of 12

  explicit ReplayedDesk(Options options = {.device_budget = budget}, SchedulerOptions scheduler = {})
      : device(slow_links()),
        manager(device, std::move(options), Scheduler(std::move(scheduler))),
        chain(manager, layers),
        model(layers) {}

  void iterate(Number seed) {
    chain.iterate(seed);
    model.iterate(seed);
  }
  [[nodiscard]] std::size_t replays() const {
    const Report report = manager.report();
    return report.plans.empty() ? 0 : report.plans.front().replays;
  }
  void check_right() {
    CHECK(chain.same_weights(model));
    manager.synchronize();
    CHECK(manager.report().device_peak <= budget);
    for (const std::string& violation : device.violations()) FAIL_CHECK(violation);
  }

  simulated::Backend device;
  MemoryManager<simulated::Backend> manager;
  ReplayedChain chain;
  ChainModel model;
};

}  // namespace swapmm::test
