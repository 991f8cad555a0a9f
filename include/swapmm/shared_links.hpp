// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <swapmm/interface/shared_links.hpp>  // IWYU pragma: export
