// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <swapmm/interface/report.hpp>  // IWYU pragma: export
