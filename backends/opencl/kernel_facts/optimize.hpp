// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace llvm {
class Module;
}

namespace swapmm::kernel_facts {

/// Puts all functions into the kernels that call them, and simplifies: what is left says more clearly what depends on
/// what. Loads whose value nobody uses go, so the kernel does not count as reading there.
void optimize(llvm::Module& module);

}  // namespace swapmm::kernel_facts
