// SPDX-License-Identifier: Apache-2.0
#include "support/null_manager.hpp"

namespace swapmm::runtime {

template class Core<test::NullBackend>;
template class RunningOperation<test::NullBackend>;

}  // namespace swapmm::runtime
