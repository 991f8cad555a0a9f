// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

// By the layer and by `swapmm run` alike.

namespace swapmm::opencl::layer {

/// The name of a process's own file: the first "%p" is replaced by the process id.
[[nodiscard]] inline std::string file_of_process(std::string name, std::uint64_t process) {
  if (const std::size_t at = name.find("%p"); at != std::string::npos) name.replace(at, 2, std::to_string(process));
  return name;
}

}  // namespace swapmm::opencl::layer
