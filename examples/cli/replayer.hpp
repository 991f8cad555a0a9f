// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <swapmm/ir/calls/call.hpp>

namespace swapmm::cli {

/// What became of a replay.
struct Replayed {
  std::string device;
  std::size_t calls = 0;                       ///< that were repeated
  std::map<std::string, std::size_t> skipped;  ///< calls that cannot be repeated, by why
  std::size_t compared = 0;                    ///< values that the host read, and whose digest the log has
  std::vector<std::string> different;          ///< of these, the ones with other bytes
  std::vector<std::string> failed;             ///< calls that fail now
  std::string digest;  ///< SHA-256 of all digests of what the host read, in the order of the calls
};

/// Repeats the calls of a log on a device of this process, in one thread and in the order of their numbers; a call that
/// waits does so when all calls have begun that had begun before it returned. Inputs that are not in the log are made
/// from `seed`. Throws a Failure if there is no device.
[[nodiscard]] Replayed replay(const calls::CallLog& log, std::uint64_t seed);

}  // namespace swapmm::cli
