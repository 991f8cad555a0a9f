// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <swapmm/base/error.hpp>  // IWYU pragma: export
