// SPDX-License-Identifier: Apache-2.0
// Instantiates the templates of a manager on this backend, so that they are compiled once.
#include <swapmm/backend/testing/simulated.hpp>

namespace swapmm::runtime {

SWAPMM_RUNTIME_INSTANCES(template, , simulated::Backend);

}  // namespace swapmm::runtime
