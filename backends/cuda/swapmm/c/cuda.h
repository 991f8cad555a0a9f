// SPDX-License-Identifier: Apache-2.0
#pragma once

/// @file
/// CUDA backends for the C interface, component `cuda` of the package. A cudaStream_t is passed as `void*`, so this
/// header needs no other.

#include <swapmm/swapmm.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Makes a backend on the device with that number, in the API's order. Operations run on a stream of swapmm.
SWAPMM_C_EXPORT swapmm_status swapmm_cuda_create(int32_t device, swapmm_backend** backend);

/// The same, with operations on the program's own stream. `stream` is a cudaStream_t of that device, which must exist
/// as long as the backend and its managers. Null is the legacy default stream.
SWAPMM_C_EXPORT swapmm_status swapmm_cuda_create_on_stream(int32_t device, void* stream, swapmm_backend** backend);

/// Makes a backend on a device that is selected by its index or a part of its name. Null: the environment variable
/// SWAPMM_DEVICE selects it, else the device with the most memory is used. ::SWAPMM_USAGE_ERROR with a list of all
/// devices if none or more than one matches.
SWAPMM_C_EXPORT swapmm_status swapmm_cuda_pick(const char* wanted, swapmm_backend** backend);

/// Makes a neighbour of up to `bytes` on the device with that number: see swapmm_options::neighbours.
SWAPMM_C_EXPORT swapmm_status swapmm_cuda_neighbour(int32_t device, uint64_t bytes, swapmm_neighbour** neighbour);

/// The number of a backend's device in the API's order.
SWAPMM_C_EXPORT swapmm_status swapmm_cuda_device(const swapmm_backend* backend, int32_t* device);

#ifdef __cplusplus
}  // extern "C"
#endif
