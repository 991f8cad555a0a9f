// SPDX-License-Identifier: Apache-2.0
#include "accesses.hpp"

namespace swapmm::opencl::layer::record {

Access access_of(const KnownKernel::Argument& argument, const KnownMemory& memory) {
  if (argument.where == CL_KERNEL_ARG_ADDRESS_CONSTANT) return Access::read;
  if ((memory.flags & CL_MEM_READ_ONLY) != 0) return Access::read;
  // A kernel that must not read need not write every byte.
  return Access::update;
}

}  // namespace swapmm::opencl::layer::record
