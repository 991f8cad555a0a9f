// SPDX-License-Identifier: Apache-2.0
#include <swapmm/backend/file_memory.hpp>

namespace swapmm {

FileMemory::~FileMemory() = default;

}  // namespace swapmm
