// SPDX-License-Identifier: Apache-2.0
// Instantiates the templates of a manager on this backend, so that they are compiled once.
#include <swapmm/cuda/backend.hpp>

namespace swapmm::runtime {

SWAPMM_RUNTIME_INSTANCES(template, , cuda::Backend);

}  // namespace swapmm::runtime
