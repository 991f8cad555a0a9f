// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace swapmm::test {

/// The name of a planner that makes the plans of `belady`, but works out no lower bound, which takes most of the time
/// of planning. For runs by the ten thousand. In a program without the component `ilp`, whose place it takes.
[[nodiscard]] std::string_view quick_planner();

}  // namespace swapmm::test
