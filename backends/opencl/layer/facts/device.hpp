// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "../loader/table.hpp"

namespace swapmm::opencl::layer::facts {

/// What of a device matters to programs.
struct DeviceFacts {
  bool usable = false;  ///< the analysis can say something of programs for it
  std::string version;  ///< of OpenCL, as __OPENCL_VERSION__ has it: "210"; empty if it cannot be read
  std::string fields;   ///< of a request (request.hpp)
  std::string name;     ///< with the driver and its version: what a launch did there, it does again
};

[[nodiscard]] const DeviceFacts& device_facts(cl_device_id device);

/// Adds a field to a request.
void add_field(std::string& request, const std::string& name, const std::string& value);

}  // namespace swapmm::opencl::layer::facts
