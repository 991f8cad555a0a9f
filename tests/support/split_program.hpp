// SPDX-License-Identifier: Apache-2.0
#pragma once

// A training step of random layers whose batch can be split, on the simulated device: whole numbers, so that the sum
// over all pieces is the same for any number of them.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <swapmm/backend/testing/simulated.hpp>
#include <swapmm/split.hpp>
#include <swapmm/swapmm.hpp>

#include "support/random_trace.hpp"

namespace swapmm::test {

/// A layer: its output has `fixed` elements, and `per_sample` for each sample.
struct SplitLayer {
  std::size_t weights = 1;
  std::size_t fixed = 0;
  std::size_t per_sample = 1;
  std::int64_t fixed_time = 0;
  std::int64_t time_per_sample = 1;
  std::size_t work = 0;  ///< of an operation's work area, per sample
};

struct SplitProgram {
  std::vector<SplitLayer> layers;
  std::size_t input = 1;    ///< elements of a sample
  bool reads_loss = false;  ///< the host does, in each step
};

[[nodiscard]] inline SplitProgram random_split_program(std::mt19937_64& random) {
  SplitProgram program;
  program.input = 1 + one_of(random, 20);
  program.reads_loss = chance(random, 0.5);
  program.layers.resize(1 + one_of(random, 5));
  for (SplitLayer& layer : program.layers) {
    layer.weights = 1 + one_of(random, 60);
    layer.fixed = chance(random, 0.3) ? one_of(random, 20) : 0;
    layer.per_sample = chance(random, 0.1) ? 0 : 1 + one_of(random, 30);
    if (layer.per_sample == 0) layer.fixed += 1;
    layer.fixed_time = static_cast<std::int64_t>(one_of(random, 500));
    layer.time_per_sample = static_cast<std::int64_t>(one_of(random, 300));
    layer.work = chance(random, 0.3) ? 1 + one_of(random, 10) : 0;
  }
  return program;
}

/// Runs steps of such a program.
class SplitProgramRun {
 public:
  using Device = simulated::Backend;
  using Numbers = Tensor<std::uint32_t, Device>;

  SplitProgramRun(const SplitProgram& program, MemoryManager<Device>& manager, const SplitOptions& options)
      : program_(program),
        manager_(manager),
        split_(manager, "train", options),
        loss_(manager.tensor<std::uint32_t>({1}, "loss")) {
    for (std::size_t i = 0; i < program_.layers.size(); ++i) {
      const std::size_t size = program_.layers[i].weights;
      weights_.push_back(manager.tensor<std::uint32_t>({size}, "w" + std::to_string(i)));
      weights_.back().upload(std::vector<std::uint32_t>(size, static_cast<std::uint32_t>(i) + 1));
      gradients_.push_back(manager.tensor<std::uint32_t>({size}, "g" + std::to_string(i)));
    }
    loss_.upload(std::vector<std::uint32_t>{0});
  }

  void step(std::uint32_t seed) {
    seed_ = seed;
    split_.step([&] { begin(); }, [&](const Piece& piece) { body(piece); }, [&] { end(); });
  }

  [[nodiscard]] const Split<Device>& split() const { return split_; }
  /// Weights, then the loss.
  [[nodiscard]] std::vector<std::uint32_t> values() const {
    std::vector<std::uint32_t> all;
    for (const Numbers& tensor : weights_) {
      const auto values = tensor.download();
      all.insert(all.end(), values.begin(), values.end());
    }
    all.push_back(loss_.download().front());
    return all;
  }

 private:
  void begin() {
    for (const Numbers& gradient : gradients_) {
      manager_.run("clear", writes(gradient), [&](auto& op) {
        const auto out = op[gradient];
        op.queue().launch("clear", std::chrono::nanoseconds{20}, {simulated::Touch::write(out)}, [out] {
          for (auto& element : out) element = 0;
        });
      });
    }
  }

  [[nodiscard]] Numbers upload(const Piece& piece) {
    Numbers x = manager_.tensor<std::uint32_t>({piece.samples * program_.input}, "x", transient);
    std::vector<std::uint32_t> values(x.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = (seed_ + static_cast<std::uint32_t>(piece.first * program_.input + i)) * 2654435761U;
    }
    x.upload(values);
    return x;
  }

  void body(const Piece& piece) {
    std::vector<Numbers> outputs;
    outputs.push_back(upload(piece));
    for (std::size_t i = 0; i < program_.layers.size(); ++i) {
      outputs.push_back(forward(i, piece.samples, outputs.back()));
    }
    for (std::size_t i = program_.layers.size(); i-- > 0;) {
      backward(i, piece.samples, outputs[0], outputs[i + 1]);
      outputs.pop_back();
    }
  }

  [[nodiscard]] std::chrono::nanoseconds time(std::size_t layer, std::size_t samples) const {
    const SplitLayer& is = program_.layers[layer];
    return std::chrono::nanoseconds{1 + is.fixed_time + is.time_per_sample * static_cast<std::int64_t>(samples)};
  }

  /// Moves samples, nothing more: what counts is which tensors are there.
  [[nodiscard]] Numbers forward(std::size_t layer, std::size_t samples, const Numbers& from) {
    const SplitLayer& is = program_.layers[layer];
    Numbers to =
        manager_.tensor<std::uint32_t>({is.fixed + is.per_sample * samples}, "h" + std::to_string(layer), transient);
    manager_.run("forward", reads(from, weights_[layer]), writes(to), scratch(is.work * samples * 4), [&](auto& op) {
      const auto in = op[from];
      const auto w = op[weights_[layer]];
      const auto out = op[to];
      op.queue().launch("forward", time(layer, samples),
                        {simulated::Touch::read(in), simulated::Touch::read(w), simulated::Touch::write(out)},
                        [in, w, out] {
                          for (std::size_t i = 0; i < out.size(); ++i) out[i] = in[i % in.size()] + w[i % w.size()];
                        });
    });
    return to;
  }

  /// Adds up what each sample of the input makes of the weights: the same sum, however the batch is split.
  void backward(std::size_t layer, std::size_t samples, const Numbers& x, const Numbers& output) {
    const std::size_t width = program_.input;
    manager_.run("backward", reads(x, output), updates(gradients_[layer], loss_), [&](auto& op) {
      const auto in = op[x];
      const auto out = op[output];
      const auto gradient = op[gradients_[layer]];
      const auto loss = op[loss_];
      op.queue().launch(
          "backward", time(layer, samples),
          {simulated::Touch::read(in), simulated::Touch::read(out), simulated::Touch::read(gradient),
           simulated::Touch::write(gradient), simulated::Touch::read(loss), simulated::Touch::write(loss)},
          [in, gradient, loss, width] {
            for (std::size_t i = 0; i < in.size(); ++i) {
              gradient[(in[i] + i % width) % gradient.size()] += in[i];
              loss[0] += in[i] * 3;
            }
          });
    });
  }

  void end() {
    for (std::size_t i = 0; i < weights_.size(); ++i) {
      manager_.run("learn", reads(gradients_[i]), updates(weights_[i]), [&](auto& op) {
        const auto gradient = op[gradients_[i]];
        const auto w = op[weights_[i]];
        op.queue().launch("learn", std::chrono::nanoseconds{40},
                          {simulated::Touch::read(gradient), simulated::Touch::read(w), simulated::Touch::write(w)},
                          [gradient, w] {
                            for (std::size_t k = 0; k < w.size(); ++k) w[k] = 3 * w[k] + gradient[k];
                          });
      });
    }
    if (program_.reads_loss) (void)loss_.download();
  }

  SplitProgram program_;
  MemoryManager<Device>& manager_;
  Split<Device> split_;
  std::vector<Numbers> weights_;
  std::vector<Numbers> gradients_;
  Numbers loss_;
  std::uint32_t seed_ = 0;
};

}  // namespace swapmm::test
