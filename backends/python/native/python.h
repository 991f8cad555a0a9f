/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/// @file
/// What the Python package needs beyond the C interface. Only libswapmm_python has these functions. They are for the
/// package of the same version alone.

#include <stdint.h>

#include <swapmm/swapmm.h>

#ifdef __cplusplus
extern "C" {
#endif

/// A size as people write it ("8GB", "512MiB", "65536"), in bytes.
SWAPMM_C_EXPORT swapmm_status swapmm_python_size(const char* text, uint64_t* bytes);

#ifdef __cplusplus
}  // extern "C"
#endif
