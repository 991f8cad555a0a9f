// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "../../loader/table.hpp"

namespace swapmm::opencl::layer::record {

/// Puts a wrapper around each function of the finished table if SWAPMM_LOG names a file. Else it does nothing.
void install(cl_icd_dispatch& table);

}  // namespace swapmm::opencl::layer::record
