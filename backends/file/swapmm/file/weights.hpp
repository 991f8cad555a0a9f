// SPDX-License-Identifier: Apache-2.0
#pragma once

// Component `file` of the package: files of weights, for MemoryManager::constant(). Linux only.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <swapmm/backend/file_memory.hpp>
#include <swapmm/base/bytes.hpp>
#include <swapmm/base/export.hpp>
#include <swapmm/base/result.hpp>

namespace swapmm::file {

/// Opens a file that is only read. Its size() is that of the file now, its capacity() is 0, and values may begin at any
/// byte. It may be the Options::file of a manager that has constants and needs no other file. Reads go through the page
/// cache, whose memory the system takes back when it needs it; no budget counts it. A file that becomes shorter while
/// it is used is an error of the read that misses bytes. Throws BackendError if the file cannot be opened, or is none.
[[nodiscard]] SWAPMM_EXPORT std::shared_ptr<FileMemory> open_weights(const std::string& path);

/// A tensor in a file of the format safetensors.
struct Weight {
  std::string name;                  ///< as the file has it
  std::string type;                  ///< as the file has it: "F32", "BF16", ...
  std::vector<std::uint64_t> shape;  ///< extents, slowest first; none: one number
  Bytes offset;                      ///< of the first byte, from the beginning of the file
  Bytes bytes;                       ///< of all elements
  friend bool operator==(const Weight&, const Weight&) = default;
};

/// The tensors of a file of the format safetensors, in the order of their bytes. Reads its head alone. A Problem that
/// says where and why, for a file of another format, and for one whose tensors lie beyond its end, overlap, or have
/// other bytes than their shapes. Throws BackendError if reading fails. Source: the format's description at
/// https://github.com/huggingface/safetensors.
[[nodiscard]] SWAPMM_EXPORT Result<std::vector<Weight>> read_safetensors(FileMemory& file);

}  // namespace swapmm::file
