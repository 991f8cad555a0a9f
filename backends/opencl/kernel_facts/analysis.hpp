// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace llvm {
class Function;
}

namespace swapmm::kernel_facts {

/// What is known of a kernel. One letter for each argument:
///
///     s  no buffer: a scalar or a structure, local memory, an image, a sampler
///     v  a scalar; where something is written at a place of W or L, and whether it is, does not depend on its value
///     -  a buffer that is neither read nor written
///     r  a buffer that is read only
///     u  a buffer that may be read and written
///     w  a buffer that is written and not read, at places that may depend on the contents of memory
///     W  the same, at places that depend on the sizes of the launch and scalar arguments alone
///     L  the same, if the program says how large a work group is
struct KernelFacts {
  std::string arguments;
  bool effects = false;  ///< it changes something beside its arguments: it prints, or writes an image
};

/// Describes a kernel of a module after optimize(). `whole`: the module is all of its program.
[[nodiscard]] KernelFacts describe(llvm::Function& kernel, bool whole);

}  // namespace swapmm::kernel_facts
