// SPDX-License-Identifier: Apache-2.0
#include "support/faulty_simulated.hpp"

namespace swapmm::runtime {

SWAPMM_RUNTIME_INSTANCES(template, , test::FaultySimulated);

}  // namespace swapmm::runtime
