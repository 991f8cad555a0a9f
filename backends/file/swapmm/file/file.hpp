// SPDX-License-Identifier: Apache-2.0
#pragma once

// Component `file` of the package: a file on a disk as a memory, for Options::file. backends/file/README.md describes
// it. Linux only.

#include <cstddef>
#include <memory>
#include <string>

#include <swapmm/backend/file_memory.hpp>
#include <swapmm/base/bytes.hpp>
#include <swapmm/base/export.hpp>

/// Files as a memory, component `file` of the package.
namespace swapmm::file {

/// Options for one file.
struct Options {
  /// The folder that says on which disk the file is. Empty: that of the environment variable TMPDIR, else /var/tmp.
  /// (/tmp is often no disk.)
  std::string folder{};
  /// The most bytes that the file may take.
  Bytes capacity;
  /// The largest piece that one request to the disk reads or writes; rounded up to the alignment.
  Bytes request{std::uint64_t{1} << 20U};
  /// The number of requests that the disk has at a time: 1 to 256.
  unsigned depth = 16;
};

/// Makes a file that no other process can open: it has no name, and its bytes are gone when the last reference goes, or
/// when the process ends in any way. Transfers go past the page cache where the file system allows that (O_DIRECT), so
/// that what is in the file takes no memory of the host; name() says where it does not. Requests go through io_uring,
/// and through pread and pwrite where the system does not allow io_uring. Throws UsageError if the options make no
/// sense, BackendError if the folder does not allow it.
[[nodiscard]] SWAPMM_EXPORT std::shared_ptr<FileMemory> open(const Options& options);

}  // namespace swapmm::file
