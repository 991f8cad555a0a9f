// SPDX-License-Identifier: Apache-2.0
#include "measuring.hpp"

namespace bench {

Shuffled shuffled_lz4(const std::vector<float>&) { return {}; }

}  // namespace bench
