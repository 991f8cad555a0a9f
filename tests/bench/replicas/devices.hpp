// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace bench {

/// The demo's network on two real devices, with that many images per step. Prints a table.
int on_real_devices(std::size_t batch);

}  // namespace bench
