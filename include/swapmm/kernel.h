/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SWAPMM_KERNEL_H
#define SWAPMM_KERNEL_H

/** @file
 * Macros for custom kernels. Valid in OpenCL C 1.2 and later, in CUDA C++, and on the host. The same kernel source
 * compiles for both APIs, with typed views of tensors as its parameters:
 *
 *     #include <swapmm/kernel.h>
 *
 *     SWAPMM_KERNEL void scale(SWAPMM_VIEW(float, image), const float factor) {
 *       const swapmm_index x = SWAPMM_ID(0), y = SWAPMM_ID(1);
 *       if (y < SWAPMM_EXTENT(image, 0) && x < SWAPMM_EXTENT(image, 1)) SWAPMM_AT2(image, y, x) *= factor;
 *     }
 *
 * The caller passes two arguments for a view: the data (a cl_mem, or a pointer), and a swapmm_layout by value. On the
 * host, swapmm::layout_of() of <swapmm/layout.hpp> makes the layout. */

/* NOLINTBEGIN(modernize-use-using, readability-identifier-naming): C */

#if defined(__OPENCL_C_VERSION__) || defined(__OPENCL_VERSION__)

/** Begins the definition of a kernel. */
#define SWAPMM_KERNEL __kernel
/** Qualifier of pointers to the data of a view. */
#define SWAPMM_GLOBAL __global
/** Qualifier of pointers whose data no other pointer accesses. */
#define SWAPMM_RESTRICT restrict
/** The type of extents, strides and positions: 64 bits on all devices and on the host. */
typedef long swapmm_index;
/** Position of the work item in dimension d; dimension 0 is the fastest. A launch may be larger than the view: compare
 * with the extent. */
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

/** Largest number of dimensions of a view. Reshape a tensor with more dimensions. Nine views stay below the 1024 bytes
 * of arguments that every OpenCL device takes. */
#define SWAPMM_MAX_RANK 6

/** The shape of a view. Element (i, j, ...) is at i * strides[0] + j * strides[1] + ... Extents and strides are in
 * elements, slowest dimension first. From position `rank` on, extents are 1 and strides 0. The struct has the same
 * bytes on host and device. */
typedef struct swapmm_layout {
  swapmm_index extents[SWAPMM_MAX_RANK]; /**< number of elements along each dimension */
  swapmm_index strides[SWAPMM_MAX_RANK]; /**< distance in elements from one position of a dimension to the next */
  swapmm_index rank;                     /**< the number of dimensions */
} swapmm_layout;

/** Declares the view `name` of elements of type T as parameters of a kernel. Views of one kernel may not overlap unless
 * the kernel only reads all of them. */
#define SWAPMM_VIEW(T, name) SWAPMM_GLOBAL T *SWAPMM_RESTRICT name, const swapmm_layout name##_layout
/** The same, for a view that the kernel only reads. */
#define SWAPMM_CONST_VIEW(T, name) SWAPMM_GLOBAL const T *SWAPMM_RESTRICT name, const swapmm_layout name##_layout

/** The number of dimensions of a view. */
#define SWAPMM_RANK(name) (name##_layout.rank)
/** Number of elements along dimension d; dimension 0 is the slowest. */
#define SWAPMM_EXTENT(name, d) (name##_layout.extents[d])
/** Distance in elements from one position of dimension d to the next. */
#define SWAPMM_STRIDE(name, d) (name##_layout.strides[d])

/** @{
 * The element at these indices of a view with that many dimensions, to read or to write. Indices are not checked. */
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
