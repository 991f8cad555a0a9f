// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include <swapmm/base/error.hpp>
#include <swapmm/base/export.hpp>
#include <swapmm/opencl/handle.hpp>

namespace swapmm::opencl {

/// "CL_OUT_OF_RESOURCES" for -5, and so on; "an unknown status" for what the API does not name.
[[nodiscard]] SWAPMM_EXPORT std::string_view status_name(cl_int status);

/// What a status means to the library: -4 and -61 are out_of_device_memory, -6 out_of_host_memory, -2, -36 and
/// NVIDIA's -9999 device_lost, the rest failed. -36 (CL_INVALID_COMMAND_QUEUE) of a queue that was valid is what
/// drivers say once its context has died.
[[nodiscard]] SWAPMM_EXPORT BackendError::Kind kind_of(cl_int status);

/// "clCreateBuffer of 4096 bytes: CL_OUT_OF_RESOURCES (-5)", with the kind that the status means.
[[nodiscard]] SWAPMM_EXPORT BackendError error_of(cl_int status, std::string_view call, const std::string& detail = {});

/// Throws error_of() unless the status is CL_SUCCESS.
inline void check(cl_int status, std::string_view call) {
  if (status != CL_SUCCESS) throw error_of(status, call);
}

}  // namespace swapmm::opencl
