// SPDX-License-Identifier: Apache-2.0
#include "cuda_calls/support.hpp"

namespace swapmm::runtime {

SWAPMM_RUNTIME_INSTANCES(template, , test::CheckedBackend);

}  // namespace swapmm::runtime
