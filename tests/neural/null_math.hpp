// SPDX-License-Identifier: Apache-2.0
#pragma once

// Queues nothing, on a device that does nothing: the networks' own text is the same, and takes no time.

#include <cstddef>

#include "neural/shapes.hpp"
#include "support/null_manager.hpp"

namespace swapmm::test {

struct NullMath {
  using Backend = NullBackend;
  using Queue = Backend::Queue;
  struct Place {
    Place() = default;
    template <class T>
    Place(const Backend::View<T>&) {}  // NOLINT(*-explicit-*)
    [[nodiscard]] Place at(std::size_t) const { return {}; }
  };

  [[nodiscard]] static std::size_t gemm_work(const neural::Gemm&) { return 0; }
  void gemm(Queue&, const neural::Gemm&, Place, Place, float, Place, Place) {}
  void transpose(Queue&, std::size_t, std::size_t, Place, Place) {}
  void bias_relu(Queue&, std::size_t, std::size_t, bool, Place, Place) {}
  void relu_backward(Queue&, std::size_t, Place, Place) {}
  void column_sums(Queue&, std::size_t, std::size_t, std::size_t, Place, Place) {}
  void add_parts(Queue&, std::size_t, std::size_t, Place, bool, Place) {}
  void im2col(Queue&, const neural::Images&, Place, Place) {}
  void col2im(Queue&, const neural::Images&, Place, Place) {}
  void max_pool(Queue&, const neural::Images&, Place, Place, Place) {}
  void max_pool_backward(Queue&, const neural::Images&, Place, Place, Place, Place) {}
  void softmax_loss(Queue&, std::size_t, std::size_t, float, Place, Place, Place, Place) {}
  void right_answers(Queue&, std::size_t, std::size_t, Place, Place, Place) {}
  void add_counts(Queue&, std::size_t, Place, bool, Place) {}
  void momentum_step(Queue&, std::size_t, float, float, Place, Place, Place) {}
};

}  // namespace swapmm::test
