// SPDX-License-Identifier: Apache-2.0
// The kernels as CUDA C++, with a launch as a program would write it: a pointer and a layout per view. In CUDA the
// layout is the same bytes as on the host of an OpenCL device.
#include "kernels.h"

static_assert(sizeof(swapmm_layout) == 13 * 8 && sizeof(swapmm_index) == 8, "the same bytes everywhere");

void launch(float* image, swapmm_layout layout, float factor) {
  const dim3 block(16, 16);
  const dim3 grid(static_cast<unsigned>((layout.extents[1] + 15) / 16),
                  static_cast<unsigned>((layout.extents[0] + 15) / 16));
  scale<<<grid, block>>>(image, layout, factor);
}
