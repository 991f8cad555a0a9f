// SPDX-License-Identifier: Apache-2.0
#pragma once

// One step of an LSTM as unit operations: forward, and backward through it. What a step makes are tensors of their own,
// since each is needed again just once: when the backward pass comes to that step.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <swapmm/swapmm.hpp>

#include "neural/parameter.hpp"
#include "neural/random.hpp"
#include "neural/shapes.hpp"
#include "neural/steps.hpp"

namespace sequence {

/// Names: "cell.rows.weights", "cell.out.weights", "cell.bias", each with ".momentum" and ".gradient";
/// "gates.3", "cells.3", "out.3", "out.3.gradient" of step 3; "cells.gradient".
template <class Math>
class Cell {
 public:
  using Backend = typename Math::Backend;
  using Manager = swapmm::MemoryManager<Backend>;
  using Floats = swapmm::Tensor<float, Backend>;

  struct Shape {
    std::size_t rows = 1;     ///< sequences side by side: the batch
    std::size_t columns = 1;  ///< numbers per sequence that a step reads
    std::size_t hidden = 1;   ///< numbers per sequence that go from step to step, of each kind
  };

  Cell(Math& math, Manager& manager, const Shape& shape, std::mt19937& random)
      : math_(math),
        manager_(manager),
        shape_(shape),
        of_rows_(manager, {shape.columns, gates()}, "cell.rows.weights", first(shape.columns, random)),
        of_out_(manager, {shape.hidden, gates()}, "cell.out.weights", first(shape.hidden, random)),
        bias_(manager, {gates()}, "cell.bias", first_bias()),
        forward_gemms_{{.m = shape.rows, .n = gates(), .k = shape.columns},
                       {.m = shape.rows, .n = gates(), .k = shape.hidden}},
        backward_gemms_{{.transpose_a = true, .m = shape.columns, .n = gates(), .k = shape.rows},
                        {.transpose_a = true, .m = shape.hidden, .n = gates(), .k = shape.rows},
                        {.m = shape.rows, .n = shape.hidden, .k = gates()}} {
    for (const neural::Gemm& product : forward_gemms_) {
      forward_work_ = std::max(forward_work_, math.gemm_work(product));
    }
    for (const neural::Gemm& product : backward_gemms_) {
      backward_work_.gemm = std::max(backward_work_.gemm, neural::WorkArea::rounded(math.gemm_work(product)));
    }
    backward_work_.rest = sums() * gates() * sizeof(float);
  }

  /// A value of `hidden` zeros per sequence: what the first step finds.
  [[nodiscard]] Floats zeros(const std::string& name) {
    Floats y = tensor(shape_.hidden, name);
    manager_.run("begin." + name, swapmm::writes(y), [&](auto& op) { math_.fill(op.queue(), y.size(), op[y], 0); });
    return y;
  }

  struct Step {
    Floats gates;  ///< input, forget, candidate and output, `hidden` numbers of each per sequence
    Floats cells;  ///< what the LSTM remembers
    Floats out;    ///< what it says
  };
  /// From one step's cells and output to the next one's.
  [[nodiscard]] Step forward(std::size_t t, const Floats& rows, const Floats& cells, const Floats& out) {
    Step y{tensor(gates(), label("gates", t)), tensor(shape_.hidden, label("cells", t)),
           tensor(shape_.hidden, label("out", t))};
    manager_.run(label("forward", t), swapmm::reads(rows, cells, out, of_rows_.value(), of_out_.value(), bias_.value()),
                 swapmm::writes(y.gates, y.cells, y.out), swapmm::scratch(forward_work_), [&](auto& op) {
                   const Place area = forward_work_ == 0 ? Place() : Place(op.scratch());
                   math_.gemm(op.queue(), forward_gemms_[0], op[rows], op[of_rows_.value()], 0, op[y.gates], area);
                   math_.gemm(op.queue(), forward_gemms_[1], op[out], op[of_out_.value()], 1, op[y.gates], area);
                   math_.lstm(op.queue(), shape_.rows, shape_.hidden, op[y.gates], op[bias_.value()], op[cells],
                              op[y.cells], op[y.out]);
                 });
    return y;
  }

  /// What the backward pass adds up over all steps.
  struct Gradients {
    Floats of_rows, of_out, bias;
  };
  [[nodiscard]] Gradients new_gradients() const {
    return {of_rows_.new_gradient(), of_out_.new_gradient(), bias_.new_gradient()};
  }

  /// The weights of `out` as backward() multiplies by them.
  [[nodiscard]] Floats transposed_weights() {
    Floats y =
        manager_.template tensor<float>({gates(), shape_.hidden}, "cell.out.weights.transposed", swapmm::transient);
    manager_.run("transpose", swapmm::reads(of_out_.value()), swapmm::writes(y),
                 [&](auto& op) { math_.transpose(op.queue(), shape_.hidden, gates(), op[of_out_.value()], op[y]); });
    return y;
  }

  /// What backward() reads of a step's forward pass, beside its gates.
  struct Kept {
    const Floats& rows;          ///< what it read
    const Floats& out_before;    ///< the last step's
    const Floats& cells_before;  ///< the last step's
    const Floats& cells;         ///< its own
  };
  /// Through step t, in place where that is possible: the gates become gradients, the cells' gradient that of the cells
  /// before. Adds to the gradients of the weights; the last step, where the way back begins, gives them their first
  /// value. Returns the gradient of the output before.
  [[nodiscard]] Floats backward(std::size_t t, bool last, const Kept& kept, const Floats& gates_of_step,
                                const Floats& out_gradient, const Floats& cells_gradient, const Floats& transposed,
                                const Gradients& sum) {
    Floats y = tensor(shape_.hidden, (t == 0 ? "out.begin" : label("out", t - 1)) + ".gradient");
    swapmm::Bundle<Backend> bundle;
    bundle.reads(kept.rows, kept.out_before, kept.cells_before, kept.cells, out_gradient, transposed)
        .updates(gates_of_step, cells_gradient)
        .writes(y)
        .scratch(swapmm::Bytes{backward_work_.bytes()});
    if (last) {
      bundle.writes(sum.of_rows, sum.of_out, sum.bias);
    } else {
      bundle.updates(sum.of_rows, sum.of_out, sum.bias);
    }
    manager_.run(label("backward", t), bundle, [&](auto& op) {
      const Place area(op.scratch());
      const Place sums_area = area.at(backward_work_.gemm / sizeof(float));
      const Place gradients = op[gates_of_step];
      const float keep = last ? 0 : 1;
      math_.lstm_backward(op.queue(), shape_.rows, shape_.hidden, gradients, op[kept.cells_before], op[kept.cells],
                          op[out_gradient], op[cells_gradient]);
      math_.gemm(op.queue(), backward_gemms_[0], op[kept.rows], gradients, keep, op[sum.of_rows], area);
      math_.gemm(op.queue(), backward_gemms_[1], op[kept.out_before], gradients, keep, op[sum.of_out], area);
      math_.column_sums(op.queue(), shape_.rows, gates(), rows_per_sum, gradients, sums_area);
      math_.add_parts(op.queue(), gates(), sums(), sums_area, !last, op[sum.bias]);
      math_.gemm(op.queue(), backward_gemms_[2], gradients, op[transposed], 0, op[y], area);
    });
    return y;
  }

  void learn(const Gradients& sum, float rate, float momentum) {
    of_rows_.learn(math_, sum.of_rows, rate, momentum);
    of_out_.learn(math_, sum.of_out, rate, momentum);
    bias_.learn(math_, sum.bias, rate, momentum);
  }

  /// All that learns, in a fixed order.
  [[nodiscard]] std::vector<const neural::Parameter<Math>*> parameters() const { return {&of_rows_, &of_out_, &bias_}; }

 private:
  using Place = typename Math::Place;
  static constexpr std::size_t rows_per_sum = 32;

  [[nodiscard]] std::size_t gates() const { return 4 * shape_.hidden; }
  [[nodiscard]] std::size_t sums() const { return (shape_.rows + rows_per_sum - 1) / rows_per_sum; }
  [[nodiscard]] static std::string label(const char* what, std::size_t t) {
    return std::string(what) + "." + std::to_string(t);
  }
  [[nodiscard]] Floats tensor(std::size_t columns, const std::string& name) {
    return manager_.template tensor<float>({shape_.rows, columns}, name, swapmm::transient);
  }
  // Deviation 1 / sqrt(all that a gate sums up).
  [[nodiscard]] std::vector<float> first(std::size_t rows, std::mt19937& random) const {
    return neural::he_values(rows * gates(), 2 * (shape_.columns + shape_.hidden), random);
  }
  // Forgets little in the beginning (Gers et al., 2000).
  [[nodiscard]] std::vector<float> first_bias() const {
    std::vector<float> bias(gates());
    const auto forget = bias.begin() + static_cast<std::ptrdiff_t>(shape_.hidden);
    std::fill_n(forget, shape_.hidden, 1.0F);
    return bias;
  }

  Math& math_;
  Manager& manager_;
  Shape shape_;
  neural::Parameter<Math> of_rows_;
  neural::Parameter<Math> of_out_;
  neural::Parameter<Math> bias_;
  std::vector<neural::Gemm> forward_gemms_;
  std::vector<neural::Gemm> backward_gemms_;
  std::size_t forward_work_ = 0;
  neural::WorkArea backward_work_;
};

}  // namespace sequence
