// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <swapmm/plan/plan.hpp>

#include "fuzz/decoder.hpp"

namespace swapmm::fuzz {

/// Changes the plan as the bytes say: commands that go, come twice or change places, other tensors and offsets, waits
/// that come and go, other residents, another machine. The plan stays one that can be written, and need not make sense.
void edit(Plan& plan, Decoder& in);

}  // namespace swapmm::fuzz
