// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "../loader/table.hpp"

namespace swapmm::opencl::layer::api {

/// Whether the program itself asked for the information about arguments. The layer asks for it always, because it must
/// know which arguments are buffers.
[[nodiscard]] bool tells_argument_info(cl_program program);

}  // namespace swapmm::opencl::layer::api
