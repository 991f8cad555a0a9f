// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include <swapmm/base/error.hpp>
#include <swapmm/base/export.hpp>
#include <swapmm/opencl/handle.hpp>

namespace swapmm::opencl {

/// The name of a status: "CL_OUT_OF_RESOURCES" for -5, and so on; "an unknown status" if the API has no name for it.
[[nodiscard]] SWAPMM_EXPORT std::string_view status_name(cl_int status);

/// The meaning of a status for the library: -4 and -61 are out_of_device_memory; -6 is out_of_host_memory; -2, -36 and
/// NVIDIA's -9999 are device_lost; all others are failed. Drivers return -36 (CL_INVALID_COMMAND_QUEUE) for a valid
/// queue after its context has died.
[[nodiscard]] SWAPMM_EXPORT BackendError::Kind kind_of(cl_int status);

/// The error for a failed call, with a text such as "clCreateBuffer of 4096 bytes: CL_OUT_OF_RESOURCES (-5)" and the
/// kind of the status.
[[nodiscard]] SWAPMM_EXPORT BackendError error_of(cl_int status, std::string_view call, const std::string& detail = {});

/// Throws error_of() unless the status is CL_SUCCESS.
inline void check(cl_int status, std::string_view call) {
  if (status != CL_SUCCESS) throw error_of(status, call);
}

}  // namespace swapmm::opencl
