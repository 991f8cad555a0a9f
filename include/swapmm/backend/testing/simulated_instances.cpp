// SPDX-License-Identifier: Apache-2.0
// What templates need of a manager on this backend, compiled once.
#include <swapmm/backend/testing/simulated.hpp>

namespace swapmm::runtime {

template class Core<simulated::Backend>;
template class RunningOperation<simulated::Backend>;

}  // namespace swapmm::runtime
