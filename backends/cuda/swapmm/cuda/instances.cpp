// SPDX-License-Identifier: Apache-2.0
// Instantiates the templates of a manager on this backend, so that they are compiled once.
#include <swapmm/cuda/backend.hpp>

namespace swapmm::runtime {

template class Core<cuda::Backend>;
template class RunningOperation<cuda::Backend>;

}  // namespace swapmm::runtime
