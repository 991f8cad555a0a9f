// SPDX-License-Identifier: Apache-2.0
// What templates need of a manager on this backend, compiled once.
#include <swapmm/opencl/backend.hpp>

namespace swapmm::runtime {

template class Core<opencl::Backend>;
template class RunningOperation<opencl::Backend>;

}  // namespace swapmm::runtime
