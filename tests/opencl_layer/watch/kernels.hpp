// SPDX-License-Identifier: Apache-2.0
#pragma once

// What launches use: the objects that kernels have as arguments.

#include "opencl.hpp"

namespace watch {

/// Puts functions into `table` that remember arguments and tell the ledger of launches. `below` must live as long as
/// the process.
void watch_kernels(cl_icd_dispatch& table, const cl_icd_dispatch& below);

}  // namespace watch
