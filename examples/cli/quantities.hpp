// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <swapmm/answers/quantities.hpp>

namespace swapmm::cli {

// The command prints what these answer.
using namespace answers;  // NOLINT(*-build-using-namespace)

}  // namespace swapmm::cli
