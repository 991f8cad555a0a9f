// SPDX-License-Identifier: Apache-2.0
#pragma once

// What NVIDIA's driver (580.159.04 on an H100) does and PoCL does not, so that it can be tested without that driver:
// see tests/opencl_driver, which asks a driver.

#include <cstdint>

#include "opencl.hpp"

namespace watch::nvidia {

/// Puts functions into `table` with which the device looks like a GPU of NVIDIA's with memory of its own:
/// - Parts of buffers begin at multiples of 512 bytes.
/// - The memory of a command stays until a clFinish() of its queue, even if the program has released it. (How long that
///   driver keeps memory is not known; it may not be longer.)
/// - A write takes the bytes at the call, whatever it waits for, if they are in memory that is not page-locked.
/// - Programs that have a kernel without arguments are not built with argument information; without the option there is
///   none.
/// - Some wrong calls have another status than the specification says, or are done.
/// `below` must live as long as the process.
void pretend(cl_icd_dispatch& table, const cl_icd_dispatch& below);

/// Parts of buffers that were released before one that was made later and overlaps: that driver may crash.
[[nodiscard]] std::uint64_t parts_released_out_of_order();

}  // namespace watch::nvidia
