/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels that the neural examples need beside a matrix product: one text, for OpenCL C and for CUDA C++.
 *
 * Images lie as [image][row][column][channel], so that work items of neighbouring channels touch neighbouring numbers.
 * Each memory is two arguments: where it begins, and how many elements further the kernel's part begins. Launches may
 * be rounded up, so every kernel compares its place with the extents. All sums have one fixed order: a program gives
 * the same bits in every run. */
#include <swapmm/kernel.h>

#define NEURAL_FLOATS(name) SWAPMM_GLOBAL float *SWAPMM_RESTRICT name, const swapmm_index name##_first
#define NEURAL_CONST_FLOATS(name) SWAPMM_GLOBAL const float *SWAPMM_RESTRICT name, const swapmm_index name##_first
#define NEURAL_LONGS(name) SWAPMM_GLOBAL swapmm_index *SWAPMM_RESTRICT name, const swapmm_index name##_first
#define NEURAL_CONST_LONGS(name) SWAPMM_GLOBAL const swapmm_index *SWAPMM_RESTRICT name, const swapmm_index name##_first
#define NEURAL_BYTES(name) SWAPMM_GLOBAL unsigned char *SWAPMM_RESTRICT name, const swapmm_index name##_first
#define NEURAL_CONST_BYTES(name) \
  SWAPMM_GLOBAL const unsigned char *SWAPMM_RESTRICT name, const swapmm_index name##_first

/* Items: rows and columns of `from`. */
SWAPMM_KERNEL void neural_transpose(NEURAL_CONST_FLOATS(from), NEURAL_FLOATS(to), const swapmm_index rows,
                                    const swapmm_index columns) {
  const swapmm_index row = SWAPMM_ID(0), column = SWAPMM_ID(1);
  if (row < rows && column < columns) to[to_first + column * rows + row] = from[from_first + row * columns + column];
}

/* Items: count. */
SWAPMM_KERNEL void neural_fill(NEURAL_FLOATS(y), const swapmm_index count, const float value) {
  const swapmm_index i = SWAPMM_ID(0);
  if (i < count) y[y_first + i] = value;
}

/* y = max(y + bias, floor), with floor 0 for a ReLU and minus infinity for none. Items: channels, pixels. */
SWAPMM_KERNEL void neural_bias_relu(NEURAL_FLOATS(y), NEURAL_CONST_FLOATS(bias), const swapmm_index channels,
                                    const swapmm_index pixels, const float floor) {
  const swapmm_index c = SWAPMM_ID(0), pixel = SWAPMM_ID(1);
  if (c >= channels || pixel >= pixels) return;
  const swapmm_index i = y_first + pixel * channels + c;
  const float sum = y[i] + bias[bias_first + c];
  y[i] = sum > floor ? sum : floor;
}

/* No gradient where the ReLU gave 0. Items: count. */
SWAPMM_KERNEL void neural_relu_backward(NEURAL_CONST_FLOATS(y), NEURAL_FLOATS(gradient), const swapmm_index count) {
  const swapmm_index i = SWAPMM_ID(0);
  if (i >= count) return;
  const float old = gradient[gradient_first + i];
  gradient[gradient_first + i] = y[y_first + i] > 0 ? old : 0.0f;
}

/* The first step of a bias' gradient: sums of each channel over blocks of pixels. Items: channels, blocks. */
SWAPMM_KERNEL void neural_column_sums(NEURAL_CONST_FLOATS(gradient), NEURAL_FLOATS(sums), const swapmm_index channels,
                                      const swapmm_index pixels, const swapmm_index pixels_per_block) {
  const swapmm_index c = SWAPMM_ID(0), block = SWAPMM_ID(1);
  const swapmm_index begin = block * pixels_per_block;
  if (c >= channels || begin >= pixels) return;
  const swapmm_index end = begin + pixels_per_block < pixels ? begin + pixels_per_block : pixels;
  float sum = 0;
  for (swapmm_index pixel = begin; pixel < end; ++pixel) sum += gradient[gradient_first + pixel * channels + c];
  sums[sums_first + block * channels + c] = sum;
}

/* The second step: total = (keep ? total : 0) + the sum of `parts` rows of `count` numbers. Items: count. */
SWAPMM_KERNEL void neural_add_parts(NEURAL_CONST_FLOATS(rows), NEURAL_FLOATS(total), const swapmm_index count,
                                    const swapmm_index parts, const swapmm_index keep) {
  const swapmm_index i = SWAPMM_ID(0);
  if (i >= count) return;
  float sum = 0;
  for (swapmm_index part = 0; part < parts; ++part) sum += rows[rows_first + part * count + i];
  total[total_first + i] = keep != 0 ? total[total_first + i] + sum : sum;
}

/* For each pixel its 3 x 3 neighbours one after the other, 0 outside the image: rows of 9 * channels numbers, so that a
 * convolution becomes a matrix product. Items: channels, columns of the image, rows of all images. */
SWAPMM_KERNEL void neural_im2col(NEURAL_CONST_FLOATS(x), NEURAL_FLOATS(columns), const swapmm_index channels,
                                 const swapmm_index side, const swapmm_index images) {
  const swapmm_index c = SWAPMM_ID(0), column = SWAPMM_ID(1), all_rows = SWAPMM_ID(2);
  if (c >= channels || column >= side || all_rows >= images * side) return;
  const int size = (int)side, here = (int)column, row = (int)all_rows % size;
  const swapmm_index pixel = all_rows * side + column;
  const swapmm_index to = columns_first + pixel * 9 * channels + c;
  for (int dy = 0; dy < 3; ++dy) {
    for (int dx = 0; dx < 3; ++dx) {
      const int inside = (row + dy >= 1) & (row + dy <= size) & (here + dx >= 1) & (here + dx <= size);
      const swapmm_index from = inside ? pixel + (dy - 1) * side + dx - 1 : pixel;
      const float value = x[x_first + from * channels + c];
      columns[to + (dy * 3 + dx) * channels] = inside ? value : 0.0f;
    }
  }
}

/* The way back: each number of an image adds up what the up to nine rows hold that it was copied to. Items as above. */
SWAPMM_KERNEL void neural_col2im(NEURAL_CONST_FLOATS(columns), NEURAL_FLOATS(x), const swapmm_index channels,
                                 const swapmm_index side, const swapmm_index images) {
  const swapmm_index c = SWAPMM_ID(0), column = SWAPMM_ID(1), all_rows = SWAPMM_ID(2);
  if (c >= channels || column >= side || all_rows >= images * side) return;
  const int size = (int)side, here = (int)column, row = (int)all_rows % size;
  const swapmm_index pixel = all_rows * side + column;
  float sum = 0;
  for (int dy = 0; dy < 3; ++dy) {
    for (int dx = 0; dx < 3; ++dx) {
      const int inside = (row - dy >= -1) & (row - dy <= size - 2) & (here - dx >= -1) & (here - dx <= size - 2);
      const swapmm_index from = inside ? pixel + (1 - dy) * side + 1 - dx : pixel;
      const float value = columns[columns_first + (from * 9 + dy * 3 + dx) * channels + c];
      sum += inside ? value : 0.0f;
    }
  }
  x[x_first + pixel * channels + c] = sum;
}

/* The largest of 2 x 2 pixels, and which it was (of equal ones the first), for images of 2 * side. Items: channels,
 * columns of y, rows of all images of y. */
SWAPMM_KERNEL void neural_max_pool(NEURAL_CONST_FLOATS(x), NEURAL_FLOATS(y), NEURAL_BYTES(map),
                                   const swapmm_index channels, const swapmm_index side, const swapmm_index images) {
  const swapmm_index c = SWAPMM_ID(0), column = SWAPMM_ID(1), row = SWAPMM_ID(2);
  if (c >= channels || column >= side || row >= images * side) return;
  const swapmm_index from = x_first + (row * 4 * side + column * 2) * channels + c;
  const float a = x[from], b = x[from + channels];
  const float d = x[from + 2 * side * channels], e = x[from + 2 * side * channels + channels];
  const float upper = b > a ? b : a, lower = e > d ? e : d;
  const unsigned char upper_at = b > a ? 1 : 0, lower_at = e > d ? 3 : 2;
  const swapmm_index to = (row * side + column) * channels + c;
  y[y_first + to] = lower > upper ? lower : upper;
  map[map_first + to] = lower > upper ? lower_at : upper_at;
}

/* The gradient goes to where the largest came from, and nowhere where y is 0: the ReLU before the pool gave 0 then.
 * Items as above. */
SWAPMM_KERNEL void neural_max_pool_backward(NEURAL_CONST_FLOATS(y), NEURAL_CONST_BYTES(map),
                                            NEURAL_CONST_FLOATS(y_gradient), NEURAL_FLOATS(x_gradient),
                                            const swapmm_index channels, const swapmm_index side,
                                            const swapmm_index images) {
  const swapmm_index c = SWAPMM_ID(0), column = SWAPMM_ID(1), row = SWAPMM_ID(2);
  if (c >= channels || column >= side || row >= images * side) return;
  const swapmm_index from = (row * side + column) * channels + c;
  const swapmm_index to = x_gradient_first + (row * 4 * side + column * 2) * channels + c;
  const float here = y_gradient[y_gradient_first + from];
  const float value = y[y_first + from] > 0 ? here : 0.0f;
  const int at = map[map_first + from];
  x_gradient[to] = at == 0 ? value : 0.0f;
  x_gradient[to + channels] = at == 1 ? value : 0.0f;
  x_gradient[to + 2 * side * channels] = at == 2 ? value : 0.0f;
  x_gradient[to + 2 * side * channels + channels] = at == 3 ? value : 0.0f;
}

/* Cross entropy of each image's softmax, in units of 2^-24, and its gradient times `scale`. A loss that is no number
 * counts as the largest one. Items: images. */
SWAPMM_KERNEL void neural_softmax_loss(NEURAL_CONST_FLOATS(logits), NEURAL_CONST_BYTES(labels), NEURAL_FLOATS(gradient),
                                       NEURAL_LONGS(losses), const swapmm_index classes, const swapmm_index images,
                                       const float scale) {
  const swapmm_index image = SWAPMM_ID(0);
  if (image >= images) return;
  const swapmm_index from = logits_first + image * classes;
  const swapmm_index to = gradient_first + image * classes;
  const int label = labels[labels_first + image];
  float largest = logits[from];
  for (swapmm_index i = 1; i < classes; ++i) largest = logits[from + i] > largest ? logits[from + i] : largest;
  float sum = 0;
  for (swapmm_index i = 0; i < classes; ++i) sum += exp(logits[from + i] - largest);
  for (swapmm_index i = 0; i < classes; ++i) {
    const float probability = exp(logits[from + i] - largest) / sum;
    gradient[to + i] = scale * (i == label ? probability - 1 : probability);
  }
  const float loss = log(sum) + largest - logits[from + label];
  losses[losses_first + image] = (swapmm_index)((loss < 1e6f ? loss : 1e6f) * 16777216.0f);
}

/* 1 where the largest logit (of equal ones the first) is the label's, else 0. Items: images. */
SWAPMM_KERNEL void neural_right_answers(NEURAL_CONST_FLOATS(logits), NEURAL_CONST_BYTES(labels), NEURAL_LONGS(right),
                                        const swapmm_index classes, const swapmm_index images) {
  const swapmm_index image = SWAPMM_ID(0);
  if (image >= images) return;
  const swapmm_index from = logits_first + image * classes;
  int best = 0;
  for (int i = 1; i < (int)classes; ++i) best = logits[from + i] > logits[from + best] ? i : best;
  right[right_first + image] = best == labels[labels_first + image] ? 1 : 0;
}

/* total = (keep ? total : 0) + the sum of all. One item: there is one number per image. */
SWAPMM_KERNEL void neural_add_counts(NEURAL_CONST_LONGS(counts), NEURAL_LONGS(total), const swapmm_index count,
                                     const swapmm_index keep) {
  if (SWAPMM_ID(0) != 0) return;
  swapmm_index sum = keep != 0 ? total[total_first] : 0;
  for (swapmm_index i = 0; i < count; ++i) sum += counts[counts_first + i];
  total[total_first] = sum;
}

/* One step of stochastic gradient descent with momentum. Items: count. */
SWAPMM_KERNEL void neural_momentum_step(NEURAL_FLOATS(value), NEURAL_FLOATS(velocity), NEURAL_CONST_FLOATS(gradient),
                                        const swapmm_index count, const float rate, const float momentum) {
  const swapmm_index i = SWAPMM_ID(0);
  if (i >= count) return;
  const float speed = momentum * velocity[velocity_first + i] + gradient[gradient_first + i];
  velocity[velocity_first + i] = speed;
  value[value_first + i] -= rate * speed;
}

/* exp() of what is far below 0 is 0, of what is far above infinite: both end well. */
#define NEURAL_SIGMOID(x) (1 / (1 + exp(-(x))))

/* One step of long short-term memory (Hochreiter and Schmidhuber, 1997; with a forget gate, Gers et al., 2000). Each
 * row of `gates` has 4 * hidden sums, for the gates of input and forgetting, the candidate, the gate of output; they
 * become the gates. cells = forget * before + input * candidate; out = output * tanh(cells). Items: hidden, rows. */
SWAPMM_KERNEL void neural_lstm(NEURAL_FLOATS(gates), NEURAL_CONST_FLOATS(bias), NEURAL_CONST_FLOATS(before),
                               NEURAL_FLOATS(cells), NEURAL_FLOATS(out), const swapmm_index hidden,
                               const swapmm_index rows) {
  const swapmm_index j = SWAPMM_ID(0), row = SWAPMM_ID(1);
  if (j >= hidden || row >= rows) return;
  const swapmm_index gate = gates_first + row * 4 * hidden + j, i = row * hidden + j;
  const float input = NEURAL_SIGMOID(gates[gate] + bias[bias_first + j]);
  const float forget = NEURAL_SIGMOID(gates[gate + hidden] + bias[bias_first + hidden + j]);
  const float candidate = tanh(gates[gate + 2 * hidden] + bias[bias_first + 2 * hidden + j]);
  const float output = NEURAL_SIGMOID(gates[gate + 3 * hidden] + bias[bias_first + 3 * hidden + j]);
  const float cell = forget * before[before_first + i] + input * candidate;
  gates[gate] = input;
  gates[gate + hidden] = forget;
  gates[gate + 2 * hidden] = candidate;
  gates[gate + 3 * hidden] = output;
  cells[cells_first + i] = cell;
  out[out_first + i] = output * tanh(cell);
}

/* The way back through one step: the gates become the gradients of their sums, the cells' gradient the one of the cells
 * before. Items as above. */
SWAPMM_KERNEL void neural_lstm_backward(NEURAL_FLOATS(gates), NEURAL_CONST_FLOATS(before), NEURAL_CONST_FLOATS(cells),
                                        NEURAL_CONST_FLOATS(out_gradient), NEURAL_FLOATS(cells_gradient),
                                        const swapmm_index hidden, const swapmm_index rows) {
  const swapmm_index j = SWAPMM_ID(0), row = SWAPMM_ID(1);
  if (j >= hidden || row >= rows) return;
  const swapmm_index gate = gates_first + row * 4 * hidden + j, i = row * hidden + j;
  const float input = gates[gate], forget = gates[gate + hidden];
  const float candidate = gates[gate + 2 * hidden], output = gates[gate + 3 * hidden];
  const float shown = tanh(cells[cells_first + i]), above = out_gradient[out_gradient_first + i];
  const float cell = cells_gradient[cells_gradient_first + i] + above * output * (1 - shown * shown);
  gates[gate] = cell * candidate * input * (1 - input);
  gates[gate + hidden] = cell * before[before_first + i] * forget * (1 - forget);
  gates[gate + 2 * hidden] = cell * input * (1 - candidate * candidate);
  gates[gate + 3 * hidden] = above * shown * output * (1 - output);
  cells_gradient[cells_gradient_first + i] = cell * forget;
}
