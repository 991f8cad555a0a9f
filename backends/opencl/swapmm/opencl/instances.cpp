// SPDX-License-Identifier: Apache-2.0
// Instantiates the templates of a manager on this backend, so that they are compiled once.
#include <swapmm/opencl/backend.hpp>

namespace swapmm::runtime {

template class Core<opencl::Backend>;
template class RunningOperation<opencl::Backend>;

}  // namespace swapmm::runtime
