// SPDX-License-Identifier: Apache-2.0
#include "cuda_calls/support.hpp"

namespace swapmm::runtime {

template class Core<test::CheckedBackend>;
template class RunningOperation<test::CheckedBackend>;

}  // namespace swapmm::runtime
