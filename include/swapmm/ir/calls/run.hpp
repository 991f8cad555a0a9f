// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <swapmm/base/result.hpp>
#include <swapmm/ir/calls/call.hpp>

// Internal: what the calls of a log do with memory.

namespace swapmm::calls {

/// A buffer from its creation to its release. Parts of it are ranges of it.
struct Storage {
  Object object = 0;
  ObjectKind kind = ObjectKind::buffer;
  std::uint64_t bytes = 0;
  std::size_t created = 0;              ///< position of the call in CallLog::calls
  std::optional<std::size_t> released;  ///< with its last reference, and the last one to a part of it
};

/// A range of a storage, and what an operation does with it.
struct StorageAccess {
  std::uint32_t storage = 0;  ///< position in Run::storages
  Access access = Access::update;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  bool whole = false;  ///< each byte of the storage
  std::optional<std::uint32_t> argument;
};

/// A command that the API accepted, or the creation of a buffer with a value.
struct RunOperation {
  std::size_t call = 0;  ///< position in CallLog::calls
  std::vector<StorageAccess> accesses;
  /// The host learns a value by it (reads and maps), or gives one (writes, unmaps, creations).
  bool host_reads = false;
  bool host_writes = false;
  /// Equal for operations that do the same with storages of the same sizes, whichever these are.
  std::uint64_t token = 0;
};

struct Run {
  std::vector<Storage> storages;         ///< in the order of their creation
  std::vector<RunOperation> operations;  ///< in the order of the calls
};

/// What an operation does with each of its storages, each once: a whole write is `write`, a partial one is `update`.
[[nodiscard]] std::vector<StorageAccess> combined(const RunOperation& operation);

/// Calls that failed do nothing. A Problem names a call that is not possible: of an unknown object, or beyond its end.
[[nodiscard]] Result<Run> resolve(const CallLog& log);

}  // namespace swapmm::calls
