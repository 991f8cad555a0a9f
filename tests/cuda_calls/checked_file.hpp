// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

#include "cuda_calls/fake_runtime.hpp"
#include "support/memory_file.hpp"

namespace swapmm::test {

/// A file in memory that tells the fake runtime which host memory it reads and writes.
class CheckedFile final : public MemoryFile {
 public:
  using MemoryFile::MemoryFile;
  void read(Bytes offset, std::span<std::byte> to) override {
    fake_cuda::function_access(to.data(), to.size(), true, "a read of the file");
    MemoryFile::read(offset, to);
  }
  void write(Bytes offset, std::span<const std::byte> from) override {
    fake_cuda::function_access(from.data(), from.size(), false, "a write of the file");
    MemoryFile::write(offset, from);
  }
};

}  // namespace swapmm::test
