// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "numbers.hpp"

namespace swapmm::opencl::layer {

/// This process's page: in a new file of SWAPMM_REPORT_FOLDER, or in memory of its own if there is no folder or nothing
/// can be written there. `shared`: it is in the folder. Null if there is no memory.
[[nodiscard]] ReportPage* make_page(bool& shared);

}  // namespace swapmm::opencl::layer
