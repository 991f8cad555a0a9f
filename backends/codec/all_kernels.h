/* SPDX-License-Identifier: Apache-2.0 */
/* All kernels of the zero codec, for compilers that find files: CUDA C++, and the host in tests. */
#include "codec/zero_kernels.h"

#define SWAPMM_ZERO_ELEMENT_BYTES 1
#include "codec/zero_element_kernels.h"
#define SWAPMM_ZERO_ELEMENT_BYTES 2
#include "codec/zero_element_kernels.h"
#define SWAPMM_ZERO_ELEMENT_BYTES 4
#include "codec/zero_element_kernels.h"
#define SWAPMM_ZERO_ELEMENT_BYTES 8
#include "codec/zero_element_kernels.h"
