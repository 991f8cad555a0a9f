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

/// A table whose functions return CL_INVALID_OPERATION. Each object of the layer begins with a pointer to it, so a call
/// that the layer does not know, and that reaches a driver with such an object, fails cleanly.
[[nodiscard]] const cl_icd_dispatch& trap_table();

}  // namespace swapmm::opencl::layer
