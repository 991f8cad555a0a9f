// SPDX-License-Identifier: Apache-2.0
// Instantiates the templates of a manager on this backend, so that they are compiled once.
#include <swapmm/backend/testing/simulated.hpp>

namespace swapmm::runtime {

template class Core<simulated::Backend>;
template class RunningOperation<simulated::Backend>;

}  // namespace swapmm::runtime
