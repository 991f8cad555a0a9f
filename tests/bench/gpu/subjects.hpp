// SPDX-License-Identifier: Apache-2.0
#pragma once

// The two networks of the benchmark on CUDA: README.md beside this says what they compute.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include <boost/json.hpp>

#include <swapmm/cuda/backend.hpp>
#include <swapmm/swapmm.hpp>

#include "bench/gpu/sweep.hpp"
#include "fashion_mnist/network.hpp"
#include "neural/cuda_math.hpp"
#include "transformer/cuda_math.hpp"
#include "transformer/elements.h"
#include "transformer/network.hpp"

namespace swapmm::bench {

class TransformerSubject {
 public:
  using Backend = cuda::Backend;
  static constexpr std::string_view name = "transformer";

  TransformerSubject(const Backend& backend, const transformer::Settings& settings)
      : backend_(backend), math_(backend), settings_(settings) {
    transformer::check_for_cuda(settings);
  }

  [[nodiscard]] const Backend& backend() const { return backend_; }
  [[nodiscard]] Bytes room() const { return room(settings_); }
  /// All activations at a time, and the gradients of one block, with work areas and some space between them.
  [[nodiscard]] static Bytes room(const transformer::Settings& s) {
    const std::size_t row_numbers = s.rows() * s.width;
    const std::size_t numbers = s.parameters() + 8 * s.width * s.width + row_numbers +
                                s.layers * (16 * row_numbers + s.scores()) + 20 * row_numbers + 2 * s.scores();
    return Bytes{numbers * 2 + s.layers * s.rows() * 16 + numbers / 5 + (std::uint64_t{256} << 20U)};
  }
  [[nodiscard]] boost::json::object config() const {
    return {{"layers", settings_.layers},
            {"width", settings_.width},
            {"heads", settings_.heads},
            {"sequence", settings_.sequence},
            {"batch", settings_.batch}};
  }

  class Run {
   public:
    Run(TransformerSubject& subject, MemoryManager<Backend>& manager, bool again)
        : network_(subject.math_, manager, with_replays(subject.settings_, again)) {}
    void step() { network_.train(transformer::usual_rate); }
    [[nodiscard]] std::uint64_t digest() {
      const double loss = network_.last_loss();
      std::uint64_t bits = 0;
      std::memcpy(&bits, &loss, sizeof bits);
      return transformer::mixed(network_.digest() ^ bits);
    }

   private:
    transformer::Network<transformer::CudaMath> network_;
  };

 private:
  Backend backend_;
  transformer::CudaMath math_;
  transformer::Settings settings_;
};

class CnnSubject {
 public:
  using Backend = cuda::Backend;
  static constexpr std::string_view name = "cnn";

  CnnSubject(const Backend& backend, const fashion::Settings& settings)
      : backend_(backend), math_(backend), settings_(settings) {
    for (std::size_t i = 0; i < settings.batch * pixels; ++i) images_.push_back(transformer::random_number(1, i));
    for (std::size_t i = 0; i < settings.batch; ++i) {
      labels_.push_back(static_cast<std::uint8_t>(transformer::mixed(i) % fashion::classes));
    }
  }

  [[nodiscard]] const Backend& backend() const { return backend_; }
  /// Each output, and its gradient, at a time.
  [[nodiscard]] Bytes room() const {
    std::size_t numbers = settings_.batch * pixels;
    std::size_t work = 0;
    for (const fashion::Layer& layer : fashion::architecture(settings_)) {
      numbers += 2 * settings_.parts * layer.outputs() + 4 * layer.weights();
      work =
          std::max({work, neural::forward_work(math_, layer.shape).bytes(),
                    neural::weights_work(math_, layer.shape).bytes(), neural::input_work(math_, layer.shape).bytes()});
    }
    return Bytes{numbers * sizeof(float) + 2 * work + (std::uint64_t{256} << 20U)};
  }
  [[nodiscard]] boost::json::object config() const {
    return {{"batch", settings_.batch},
            {"parts", settings_.parts},
            {"channels", settings_.channels},
            {"hidden", settings_.hidden}};
  }

  class Run {
   public:
    Run(CnnSubject& subject, MemoryManager<Backend>& manager, bool again)
        : subject_(subject), network_(subject.math_, manager, with_replays(subject.settings_, again)) {}
    void step() { network_.train(subject_.images_, subject_.labels_, 0.01F); }
    [[nodiscard]] std::uint64_t digest() {
      std::uint64_t result = 0;
      for (const float weight : network_.weights()) result = transformer::mixed(result ^ bits(weight));
      // Of all steps: it does not depend on how often it was asked.
      return transformer::mixed(result ^ static_cast<std::uint64_t>(network_.total_loss()));
    }

   private:
    static std::uint64_t bits(float value) {
      std::uint32_t result = 0;
      std::memcpy(&result, &value, sizeof result);
      return result;
    }
    CnnSubject& subject_;
    fashion::Network<neural::CudaMath> network_;
  };

 private:
  static constexpr std::size_t pixels = 784;

  Backend backend_;
  mutable neural::CudaMath math_;
  fashion::Settings settings_;
  std::vector<float> images_;
  std::vector<std::uint8_t> labels_;
};

}  // namespace swapmm::bench
