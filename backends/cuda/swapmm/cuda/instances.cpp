// SPDX-License-Identifier: Apache-2.0
// What templates need of a manager on this backend, compiled once.
#include <swapmm/cuda/backend.hpp>

namespace swapmm::runtime {

template class Core<cuda::Backend>;
template class RunningOperation<cuda::Backend>;

}  // namespace swapmm::runtime
