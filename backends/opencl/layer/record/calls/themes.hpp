// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "../hook.hpp"

// The wrappers with something special, by theme. Each function replaces the entries of its theme.

namespace swapmm::opencl::layer::record {

void wrap_objects(cl_icd_dispatch& table);
void wrap_memory(cl_icd_dispatch& table);
void wrap_programs(cl_icd_dispatch& table);
void wrap_kernels(cl_icd_dispatch& table);
void wrap_transfers(cl_icd_dispatch& table);
void wrap_rectangles(cl_icd_dispatch& table);
void wrap_maps(cl_icd_dispatch& table);
void wrap_foreign(cl_icd_dispatch& table);
void wrap_waits(cl_icd_dispatch& table);

/// A memory object of a command: the bytes [offset, offset + bytes) of it.
void add_operand(Hook& hook, cl_mem handle, Access access, std::uint64_t offset, std::uint64_t bytes);
/// Whether the last operand lies within its object. Only then does the program promise that the host's bytes exist.
[[nodiscard]] bool fits(const Hook& hook);

}  // namespace swapmm::opencl::layer::record
