// SPDX-License-Identifier: Apache-2.0
#include "cuda_custom_kernel/kernels.hpp"

// Each pixel of `to` becomes the mean of the four neighbours in `from`; around the image all is black.
SWAPMM_KERNEL void blur(SWAPMM_CONST_VIEW(float, from), SWAPMM_VIEW(float, to)) {
  const swapmm_index x = SWAPMM_ID(0), y = SWAPMM_ID(1);
  const swapmm_index rows = SWAPMM_EXTENT(from, 0), columns = SWAPMM_EXTENT(from, 1);
  if (y >= rows || x >= columns) return;
  float sum = 0;
  if (y > 0) sum += SWAPMM_AT2(from, y - 1, x);
  if (y + 1 < rows) sum += SWAPMM_AT2(from, y + 1, x);
  if (x > 0) sum += SWAPMM_AT2(from, y, x - 1);
  if (x + 1 < columns) sum += SWAPMM_AT2(from, y, x + 1);
  SWAPMM_AT2(to, y, x) = 0.25f * sum;
}

SWAPMM_KERNEL void blend(SWAPMM_CONST_VIEW(float, other), SWAPMM_VIEW(float, image), const float weight) {
  const swapmm_index i = SWAPMM_ID(0);
  if (i < SWAPMM_EXTENT(image, 0)) SWAPMM_AT1(image, i) += weight * (SWAPMM_AT1(other, i) - SWAPMM_AT1(image, i));
}

namespace {

unsigned blocks(swapmm_index items, unsigned threads) { return static_cast<unsigned>((items + threads - 1) / threads); }

}  // namespace

// A view is a pointer and a layout. Launches that the device refuses are found behind the operation, by swapmm.
void queue_blur(cudaStream_t stream, const float* from, float* to, const swapmm_layout& image) {
  const dim3 block(32, 8);
  const dim3 grid(blocks(image.extents[1], block.x), blocks(image.extents[0], block.y));
  blur<<<grid, block, 0, stream>>>(from, image, to, image);
}

void queue_blend(cudaStream_t stream, const float* other, float* image, const swapmm_layout& flat, float weight) {
  blend<<<blocks(flat.extents[0], 256), 256, 0, stream>>>(other, flat, image, flat, weight);
}
