// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <swapmm/interface/options.hpp>  // IWYU pragma: export
