// SPDX-License-Identifier: Apache-2.0
#pragma once

/// @file
/// Files for the C interface, component `file` of the package. Linux only. docs/c.md has an example.

#include <swapmm/swapmm.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Opens a file that is only read, for constants: see swapmm_tensor_create_constant(). Reads go through the page cache,
/// whose memory the system takes back when it needs it; no budget counts it. A file that becomes shorter while it is
/// used is an error of the operation that needs the missing bytes. ::SWAPMM_BACKEND_ERROR if it cannot be opened.
SWAPMM_C_EXPORT swapmm_status swapmm_weights_open(const char* path, swapmm_file** file);

/// Makes a file for values, of at most `capacity` bytes, in a folder: see swapmm_options::file. It has no name, and its
/// bytes are gone with the process. Null: the folder of the environment variable TMPDIR, else /var/tmp.
/// ::SWAPMM_BACKEND_ERROR if the folder does not allow it.
SWAPMM_C_EXPORT swapmm_status swapmm_file_open(const char* folder, uint64_t capacity, swapmm_file** file);

#ifdef __cplusplus
}  // extern "C"
#endif
