// SPDX-License-Identifier: Apache-2.0
// The kernels of random programs: their source, what they access, and the same computation on the host.
#pragma once

#include <cstdint>
#include <vector>

#include "memory.hpp"
#include "program.hpp"

namespace random_opencl {

extern const char* const kernel_source;

const char* name_of(Kernel kernel);

/// Must match the struct of the source.
struct Scale {
  cl_uint factor;
  cl_ushort shift;
  cl_uchar flag;
  cl_uint addend;
};

Scale scale_of(const Launch& launch);

struct Access {
  int object = -1;
  std::size_t begin = 0;  // bytes in the object
  std::size_t end = 0;
  bool write = false;
};

/// What a command of any kind accesses: launches, transfers, maps.
std::vector<Access> accesses_of(const Action& action, const std::vector<Object>& objects);

void run_on_host(const Action& action, Memory& memory);

/// What a native kernel does with one element.
inline std::uint32_t native_element(std::uint32_t value, std::uint32_t a) { return value * 5 + a; }

}  // namespace random_opencl
