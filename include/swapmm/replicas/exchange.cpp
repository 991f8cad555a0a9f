// SPDX-License-Identifier: Apache-2.0

#include <swapmm/replicas/exchange.hpp>

namespace swapmm {

Exchange::~Exchange() = default;

}  // namespace swapmm
