// SPDX-License-Identifier: Apache-2.0
#pragma once

// The sizes of a stack of transformer blocks, and the matrix products that they need.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <stdexcept>

namespace transformer {

struct Settings {
  std::size_t layers = 2;
  std::size_t width = 64;
  std::size_t heads = 4;
  std::size_t sequence = 32;
  std::size_t batch = 2;
  std::uint32_t seed = 1;   ///< of the first weights, and of the input
  bool replayable = false;  ///< the forward pass is declared so: its operations may run again instead of copies

  [[nodiscard]] std::size_t rows() const { return batch * sequence; }
  [[nodiscard]] std::size_t head_width() const { return width / heads; }
  /// Numbers of a block's attention, each head's sequence x sequence.
  [[nodiscard]] std::size_t scores() const { return batch * heads * sequence * sequence; }
  /// Of all blocks.
  [[nodiscard]] std::size_t parameters() const { return layers * (12 * width * width + 4 * width); }
};

/// Throws std::invalid_argument for what makes no sense.
inline void check(const Settings& s) {
  if (s.layers == 0 || s.width == 0 || s.heads == 0 || s.sequence == 0 || s.batch == 0 || s.width % s.heads != 0) {
    throw std::invalid_argument(
        "layers, width, heads, sequence and batch are at least 1, and the width divides into heads");
  }
}

/// One matrix of a product, of matrices that lie row by row.
struct Matrix {
  std::size_t first = 0;   ///< number that it begins at
  std::size_t row = 0;     ///< numbers from one row to the next, as it lies
  std::size_t stride = 0;  ///< numbers from one product's matrix to the next one's
};

/// c = alpha * a * b + beta * c, `count` times: m x n numbers from m x k and k x n. A transposed matrix lies as the k x
/// m, or n x k, numbers that it is the transpose of.
struct Product {
  bool transpose_a = false;
  bool transpose_b = false;
  std::size_t m = 1;
  std::size_t n = 1;
  std::size_t k = 1;
  float alpha = 1;
  float beta = 0;  ///< 0: what c holds before is not read
  std::size_t count = 1;
  Matrix a{};
  Matrix b{};
  Matrix c{};
};

/// Of whole matrices without gaps.
[[nodiscard]] inline Product whole(bool transpose_a, bool transpose_b, std::size_t m, std::size_t n, std::size_t k,
                                   float beta = 0) {
  return {transpose_a, transpose_b, m, n, k, 1, beta, 1, {.row = transpose_a ? m : k}, {.row = transpose_b ? k : n},
          {.row = n}};
}

/// The products of an attention: for one sequence of the batch, all heads at a time. Queries, keys and values are the
/// three thirds of the rows of one matrix; scores lie head by head.
class AttentionProducts {
 public:
  AttentionProducts(const Settings& s, std::size_t sequence)
      : length_(s.sequence),
        head_(s.head_width()),
        heads_(s.heads),
        scale_(1 / std::sqrt(static_cast<float>(s.head_width()))),
        query_{sequence * length_ * 3 * s.width, 3 * s.width, head_},
        key_{query_.first + s.width, query_.row, head_},
        value_{query_.first + 2 * s.width, query_.row, head_},
        scores_{sequence * heads_ * length_ * length_, length_, length_ * length_},
        context_{sequence * length_ * s.width, s.width, head_} {}

  /// scores = scale * queries * keys^T
  [[nodiscard]] Product scores() const { return square(scale_, query_, key_); }
  /// context = probabilities * values
  [[nodiscard]] Product context() const { return tall(false, 1, value_, context_); }
  /// The probabilities' gradient = the context's * values^T
  [[nodiscard]] Product scores_back() const { return square(1, context_, value_); }
  /// The values' gradient = probabilities^T * the context's
  [[nodiscard]] Product values_back() const { return tall(true, 1, context_, value_); }
  /// The queries' gradient = scale * the scores' * keys
  [[nodiscard]] Product queries_back() const { return tall(false, scale_, key_, query_); }
  /// The keys' gradient = scale * the scores'^T * queries
  [[nodiscard]] Product keys_back() const { return tall(true, scale_, query_, key_); }

 private:
  // To scores, from two of as many rows as the sequence is long.
  [[nodiscard]] Product square(float alpha, const Matrix& a, const Matrix& b) const {
    return {false, true, length_, length_, head_, alpha, 0, heads_, a, b, scores_};
  }
  // From scores.
  [[nodiscard]] Product tall(bool transpose, float alpha, const Matrix& b, const Matrix& c) const {
    return {transpose, false, length_, head_, length_, alpha, 0, heads_, scores_, b, c};
  }

  std::size_t length_;
  std::size_t head_;
  std::size_t heads_;
  float scale_;
  Matrix query_;
  Matrix key_;
  Matrix value_;
  Matrix scores_;
  Matrix context_;
};

}  // namespace transformer
