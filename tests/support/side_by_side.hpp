// SPDX-License-Identifier: Apache-2.0
#pragma once

// Programs side by side on simulated devices that share a clock and the way to the host, and the same as plain loops.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <swapmm/backend/testing/simulated.hpp>
#include <swapmm/shared_links.hpp>
#include <swapmm/swapmm.hpp>

#include "support/numbers.hpp"

namespace swapmm::test {

/// A training step: forward through layers, and back in the other order. Each forward operation leaves a result that
/// its backward operation reads.
struct SideProgram {
  std::size_t layers = 8;
  std::size_t numbers = 4096;  ///< of each tensor
  std::chrono::microseconds forward{20};
  std::chrono::microseconds backward{40};

  [[nodiscard]] Bytes tensor() const { return Bytes{numbers * sizeof(Number)}; }
  /// Of all that the program needs at once.
  [[nodiscard]] Bytes need() const { return Bytes{(2 * layers + 2) * tensor().value}; }
};

/// As plain loops on the host.
class SideModel {
 public:
  explicit SideModel(const SideProgram& program)
      : program_(program), input_(program.numbers), results_(program.layers, Numbers(program.numbers)) {
    for (std::size_t i = 0; i < program.layers; ++i) weights_.push_back(numbers(program.numbers, Number(100 + i)));
  }
  void iterate(Number seed) {
    evaluate(seed);
    for (std::size_t i = program_.layers; i-- > 0;) grow(results_[i], weights_[i]);
  }
  /// Forward alone.
  void evaluate(Number seed) {
    input_ = numbers(program_.numbers, seed);
    for (std::size_t i = 0; i < program_.layers; ++i) {
      blend(i == 0 ? input_ : results_[i - 1], weights_[i], results_[i]);
    }
  }
  [[nodiscard]] const std::vector<Numbers>& weights() const { return weights_; }

 private:
  const SideProgram program_;
  Numbers input_;
  std::vector<Numbers> weights_;
  std::vector<Numbers> results_;
};

/// On a device.
class SideRun {
 public:
  using Sim = simulated::Backend;
  using Touch = simulated::Touch;

  SideRun(const SideProgram& program, const simulated::Options& device_options, Options options,
          Scheduler scheduler = Scheduler())
      : device(device_options),
        manager(device, std::move(options), std::move(scheduler)),
        program_(program),
        input_(manager.tensor<Number>({program.numbers}, "input")) {
    for (std::size_t i = 0; i < program.layers; ++i) {
      weights_.push_back(manager.tensor<Number>({program.numbers}, "w" + std::to_string(i)));
      weights_.back().upload(numbers(program.numbers, Number(100 + i)));
      results_.push_back(manager.tensor<Number>({program.numbers}, "r" + std::to_string(i), transient));
    }
  }

  void iterate(Number seed, std::string_view name = "train") {
    const auto iteration = manager.iteration(name);
    forward(seed);
    backward();
  }
  /// Forward alone.
  void evaluate(Number seed, std::string_view name = "evaluate") {
    const auto iteration = manager.iteration(name);
    forward(seed);
  }
  [[nodiscard]] std::vector<Numbers> weights() {
    std::vector<Numbers> all;
    for (auto& weight : weights_) {
      all.emplace_back(program_.numbers);
      weight.download(all.back());
    }
    return all;
  }

  Sim device;
  MemoryManager<Sim> manager;

 private:
  void forward(Number seed) {
    input_.upload(numbers(program_.numbers, seed));
    for (std::size_t i = 0; i < program_.layers; ++i) {
      manager.run("forward" + std::to_string(i), reads(i == 0 ? input_ : results_[i - 1], weights_[i]),
                  writes(results_[i]), [&](auto& op) {
                    const auto a = op[i == 0 ? input_ : results_[i - 1]];
                    const auto b = op[weights_[i]];
                    const auto to = op[results_[i]];
                    op.queue().launch("forward", program_.forward, {Touch::read(a), Touch::read(b), Touch::write(to)},
                                      [=] {
                                        for (std::size_t k = 0; k < to.size(); ++k)
                                          to[k] = 3U * a[k] + 5U * b[k] + Number(k);
                                      });
                  });
    }
  }
  void backward() {
    for (std::size_t i = program_.layers; i-- > 0;) {
      manager.run("backward" + std::to_string(i), reads(results_[i]), updates(weights_[i]), [&](auto& op) {
        const auto by = op[results_[i]];
        const auto to = op[weights_[i]];
        op.queue().launch("backward", program_.backward, {Touch::read(by), Touch::write(to)}, [=] {
          for (std::size_t k = 0; k < to.size(); ++k) to[k] = 7U * to[k] + by[k];
        });
      });
    }
  }

  const SideProgram program_;
  Tensor<Number, Sim> input_;
  std::vector<Tensor<Number, Sim>> weights_;
  std::vector<Tensor<Number, Sim>> results_;
};

}  // namespace swapmm::test
