// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <swapmm/options.hpp>

namespace swapmm::opencl::layer {

/// Gives the manager a file for what the host has no room for, if the user wants one. `host_budget` is set. Throws as
/// swapmm::file::open() does.
void use_file(Options& options);

}  // namespace swapmm::opencl::layer
