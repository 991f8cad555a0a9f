// SPDX-License-Identifier: Apache-2.0
#include "support/faulty_simulated.hpp"

namespace swapmm::runtime {

template class Core<test::FaultySimulated>;
template class RunningOperation<test::FaultySimulated>;

}  // namespace swapmm::runtime
