// SPDX-License-Identifier: Apache-2.0
#pragma once

// The tables of functions through which a layer and the loader call each other. All of the layer includes the API's
// header through this file.

#ifndef CL_TARGET_OPENCL_VERSION
#define CL_TARGET_OPENCL_VERSION 300
#endif
#include <CL/cl.h>
#include <CL/cl_icd.h>
#include <CL/cl_layer.h>

namespace swapmm::opencl::layer {

/// The functions below this layer: the driver's, or another layer's. Valid from clInitLayer() on. An entry that the
/// loader does not have is null.
extern cl_icd_dispatch down;

/// The layer's functions, which loaders call. Valid from clInitLayer() on.
[[nodiscard]] const cl_icd_dispatch& layer_table();

/// A table of which each object of the layer begins with a pointer to. A loader that was not started calls its
/// functions: they start it, and go on with the layer's own. A call that the layer does not know, and that reaches a
/// driver with such an object, fails cleanly, with CL_INVALID_OPERATION.
[[nodiscard]] const cl_icd_dispatch& trap_table();

}  // namespace swapmm::opencl::layer
