// SPDX-License-Identifier: Apache-2.0
#include "support/null_manager.hpp"

namespace swapmm::runtime {

SWAPMM_RUNTIME_INSTANCES(template, , test::NullBackend);

}  // namespace swapmm::runtime
