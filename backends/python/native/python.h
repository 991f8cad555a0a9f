/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/// @file
/// What the Python package needs beyond the C interface. Only libswapmm_python has these functions. They are for the
/// package of the same version alone.

// NOLINTBEGIN(modernize-*, readability-identifier-naming): this is C

#include <stdint.h>

#include <swapmm/swapmm.h>

#ifdef __cplusplus
extern "C" {
#endif

/// A size as people write it ("8GB", "512MiB", "65536"), in bytes.
SWAPMM_C_EXPORT swapmm_status swapmm_python_size(const char* text, uint64_t* bytes);

/// Called during long work: what it is, the time of an iteration with the best plan so far, and the proven bound, in
/// nanoseconds (0: none yet). Anything but 0 ends the work.
typedef int (*swapmm_python_progress)(const char* what, int64_t iteration_ns, int64_t lower_bound_ns);

/// Answers a question of the command `swapmm` with the same figures, as JSON. `question` is plan, fit, simulate,
/// compare, check, explain, bound, picture, need or planners. `options` is a JSON object, `trace` and `plan` are texts
/// of docs/formats.md; the last two may be null if the question needs none. `progress` may be null. The caller destroys
/// the answer. If `progress` has ended the work, the status is ::SWAPMM_USAGE_ERROR.
SWAPMM_C_EXPORT swapmm_status swapmm_python_ask(const char* question, const char* options, const char* trace,
                                                const char* plan, swapmm_python_progress progress, char** answer);

/// Work that Python does for C: with the argument that C was given, and for an operation that runs again its
/// swapmm_operation. It sets the status, 0 if it has done all.
typedef void (*swapmm_python_work)(void* argument, void* operation, int* status);

/// What swapmm_python_kernel() and swapmm_python_again() call.
SWAPMM_C_EXPORT void swapmm_python_set_work(swapmm_python_work kernel, swapmm_python_work again);
/// A kernel of the simulated device, and a function of swapmm_operation::again. Python drops an exception that comes
/// before the first line of a function that C calls, and then nothing has set the status: the work has failed.
SWAPMM_C_EXPORT int swapmm_python_kernel(void* argument);
SWAPMM_C_EXPORT int swapmm_python_again(void* argument, void* operation);

/// Makes a DLManagedTensor of dlpack.h, dense and with one lane, over memory that it does not own. It is freed by its
/// deleter, which may be called at any time and on any thread.
SWAPMM_C_EXPORT swapmm_status swapmm_python_dlpack_create(void* data, int32_t device_type, int32_t device_id,
                                                          uint8_t code, uint8_t bits, int32_t ndim,
                                                          const int64_t* shape, void** managed);
/// Frees one that nobody has taken. Null is allowed.
SWAPMM_C_EXPORT void swapmm_python_dlpack_destroy(void* managed);

#ifdef __cplusplus
}  // extern "C"
#endif

// NOLINTEND(modernize-*, readability-identifier-naming)
