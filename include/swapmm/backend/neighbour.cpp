// SPDX-License-Identifier: Apache-2.0

#include <swapmm/backend/neighbour.hpp>

namespace swapmm {

Neighbour::~Neighbour() = default;

}  // namespace swapmm
