/* SPDX-License-Identifier: Apache-2.0 */
/* One source of kernels for OpenCL C and CUDA C++: everything that kernel.h defines is used. */
#include <swapmm/kernel.h>

SWAPMM_KERNEL void scale(SWAPMM_VIEW(float, image), const float factor) {
  const swapmm_index x = SWAPMM_ID(0), y = SWAPMM_ID(1);
  if (y < SWAPMM_EXTENT(image, 0) && x < SWAPMM_EXTENT(image, 1)) SWAPMM_AT2(image, y, x) *= factor;
}

SWAPMM_KERNEL void add(SWAPMM_CONST_VIEW(float, from), SWAPMM_VIEW(float, to)) {
  const swapmm_index x = SWAPMM_ID(0), y = SWAPMM_ID(1), z = SWAPMM_ID(2);
  if (SWAPMM_RANK(to) == 1) SWAPMM_AT1(to, x) += SWAPMM_AT1(from, x);
  if (SWAPMM_RANK(to) == 3) SWAPMM_AT3(to, z, y, x) += SWAPMM_AT3(from, z, y, x);
  if (SWAPMM_RANK(to) == 4) {
    for (swapmm_index i = 0; i < SWAPMM_EXTENT(to, 0); ++i) SWAPMM_AT4(to, i, z, y, x) += SWAPMM_AT4(from, i, z, y, x);
  }
}

SWAPMM_KERNEL void strides(SWAPMM_CONST_VIEW(float, of), SWAPMM_VIEW(swapmm_index, to)) {
  const swapmm_index d = SWAPMM_ID(0);
  if (d < SWAPMM_MAX_RANK) to[d] = SWAPMM_STRIDE(of, d);
}
