// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "table.hpp"

// A process may have several OpenCL loaders: PyOpenCL's wheel brings one, and a library that it works with uses the
// system's. A loader sends calls through layers only once it was started, by a call that needs no object, such as
// clGetPlatformIDs(). A library that gets its context from elsewhere may never make one: its calls would go to the
// driver, with objects that are the layer's.

namespace swapmm::opencl::layer {

/// Called when a loader has found the layer; `inside_loader`: an address in it.
void loader_found_us(const void* inside_loader);

/// Some loaders leave of OPENCL_LAYERS only what is before the first colon. Puts this layer back into the list, for
/// other loaders and for the programs that this one starts.
void restore_layer_list();

/// Starts all loaders in the process that do not send their calls through the layer yet. Says so if one does not. Costs
/// little if nothing was loaded since the last call. The layer must have started, and no lock of it may be held.
void start_other_loaders();

/// Makes those functions of the layer's table call it that programs call seldom, and before others.
void watch_for_other_loaders(cl_icd_dispatch& table);

}  // namespace swapmm::opencl::layer
