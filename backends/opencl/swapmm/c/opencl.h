// SPDX-License-Identifier: Apache-2.0
#pragma once

/// @file
/// OpenCL backends for the C interface, component `opencl` of the package. OpenCL's own handles are passed as `void*`,
/// so this header needs no other. docs/c.md has an example.

#include <swapmm/swapmm.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Makes a backend on the program's own context, to which it takes a reference. `context` is a cl_context, `device` a
/// cl_device_id of it. `queue` is a cl_command_queue of both, in order; operations then run on it. Null: on a queue of
/// swapmm.
SWAPMM_C_EXPORT swapmm_status swapmm_opencl_create(void* context, void* device, void* queue, swapmm_backend** backend);

/// Makes a backend on a device that is selected by its index or a part of its name. Null: the environment variable
/// SWAPMM_DEVICE selects it, else the preferred device is used. ::SWAPMM_USAGE_ERROR with a list of all devices if none
/// or more than one matches.
SWAPMM_C_EXPORT swapmm_status swapmm_opencl_pick(const char* wanted, swapmm_backend** backend);

/// Makes a neighbour of up to `bytes` on a second device of the backend's context, a cl_device_id. Copies pass through
/// `staging` bytes of page-locked host memory, a part of the host budget; 0: 8 MiB. See swapmm_options::neighbours.
SWAPMM_C_EXPORT swapmm_status swapmm_opencl_neighbour(void* device, uint64_t bytes, uint64_t staging,
                                                      swapmm_neighbour** neighbour);

/// The cl_context and the cl_device_id of a backend, to make programs and kernels with. They stay the backend's own:
/// retain them to keep them longer. Each pointer may be null.
SWAPMM_C_EXPORT swapmm_status swapmm_opencl_native(const swapmm_backend* backend, void** context, void** device);

#ifdef __cplusplus
}  // extern "C"
#endif
