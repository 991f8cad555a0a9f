/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SWAPMM_KERNEL_H
#define SWAPMM_KERNEL_H

/** @file
 * For custom kernels: valid in OpenCL C 1.2 and later, in CUDA C++, and on the host. One kernel source, with typed
 * views of tensors as its parameters:
 *
 *     #include <swapmm/kernel.h>
 *
 *     SWAPMM_KERNEL void scale(SWAPMM_VIEW(float, image), const float factor) {
 *       const swapmm_index x = SWAPMM_ID(0), y = SWAPMM_ID(1);
 *       if (y < SWAPMM_EXTENT(image, 0) && x < SWAPMM_EXTENT(image, 1)) SWAPMM_AT2(image, y, x) *= factor;
 *     }
 *
 * A view is two arguments for the caller: the data (a cl_mem, or a pointer), and a swapmm_layout by value. The host
 * makes the layout with swapmm::layout_of() of <swapmm/layout.hpp>. */

/* NOLINTBEGIN(modernize-use-using, readability-identifier-naming): C */

#if defined(__OPENCL_C_VERSION__) || defined(__OPENCL_VERSION__)

/** Begins the definition of a kernel. */
#define SWAPMM_KERNEL __kernel
/** Of pointers to the data of a view. */
#define SWAPMM_GLOBAL __global
/** Of pointers that no other one overlaps. */
#define SWAPMM_RESTRICT restrict
/** Of extents, strides and positions: 64 bits, everywhere. */
typedef long swapmm_index;
/** Position of the work item in dimension d, 0 the fastest. Launches may be rounded up: compare with the extent. */
#define SWAPMM_ID(d) ((swapmm_index)get_global_id(d))

#elif defined(__CUDACC__)

#define SWAPMM_KERNEL extern "C" __global__
#define SWAPMM_GLOBAL
#define SWAPMM_RESTRICT __restrict__
typedef long long swapmm_index;
#define SWAPMM_ID(d)                                                \
  ((d) == 0   ? (swapmm_index)blockIdx.x * blockDim.x + threadIdx.x \
   : (d) == 1 ? (swapmm_index)blockIdx.y * blockDim.y + threadIdx.y \
              : (swapmm_index)blockIdx.z * blockDim.z + threadIdx.z)

#else

typedef long long swapmm_index;

#endif

/** Most dimensions of a view. A tensor of more dimensions is reshaped to fewer. Nine views are below the 1024 bytes of
 * arguments that every OpenCL device takes. */
#define SWAPMM_MAX_RANK 6

/** The shape of a view. Element (i, j, ...) lies at i * strides[0] + j * strides[1] + ...; extents and strides count
 * elements, the slowest dimension first. Those from `rank` on are 1 and 0. The same bytes on host and device. */
typedef struct swapmm_layout {
  swapmm_index extents[SWAPMM_MAX_RANK]; /**< elements along each dimension */
  swapmm_index strides[SWAPMM_MAX_RANK]; /**< elements from one position of a dimension to the next */
  swapmm_index rank;                     /**< the number of dimensions */
} swapmm_layout;

/** Parameters of a kernel: the view `name` of elements of type T. Views of one kernel may not overlap unless all of
 * them are read only. */
#define SWAPMM_VIEW(T, name) SWAPMM_GLOBAL T *SWAPMM_RESTRICT name, const swapmm_layout name##_layout
/** The same, for elements that the kernel does not write. */
#define SWAPMM_CONST_VIEW(T, name) SWAPMM_GLOBAL const T *SWAPMM_RESTRICT name, const swapmm_layout name##_layout

/** The number of dimensions of a view. */
#define SWAPMM_RANK(name) (name##_layout.rank)
/** Elements along dimension d, 0 the slowest. */
#define SWAPMM_EXTENT(name, d) (name##_layout.extents[d])
/** Elements from one position of dimension d to the next. */
#define SWAPMM_STRIDE(name, d) (name##_layout.strides[d])

/** @{
 * One element, to read or to write, of a view of that many dimensions. Indices are not checked. */
#define SWAPMM_AT1(name, i) ((name)[(i)*SWAPMM_STRIDE(name, 0)])
#define SWAPMM_AT2(name, i, j) ((name)[(i)*SWAPMM_STRIDE(name, 0) + (j)*SWAPMM_STRIDE(name, 1)])
#define SWAPMM_AT3(name, i, j, k) \
  ((name)[(i)*SWAPMM_STRIDE(name, 0) + (j)*SWAPMM_STRIDE(name, 1) + (k)*SWAPMM_STRIDE(name, 2)])
#define SWAPMM_AT4(name, i, j, k, l)                                                             \
  ((name)[(i)*SWAPMM_STRIDE(name, 0) + (j)*SWAPMM_STRIDE(name, 1) + (k)*SWAPMM_STRIDE(name, 2) + \
          (l)*SWAPMM_STRIDE(name, 3)])
/** @} */

/* NOLINTEND(modernize-use-using, readability-identifier-naming) */

#endif /* SWAPMM_KERNEL_H */
