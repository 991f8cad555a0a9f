// SPDX-License-Identifier: Apache-2.0
#pragma once

// Whether the streams, events and waits of a program order all accesses to the same bytes: by vector clocks, so that
// what is missing is found whatever the work takes, and nothing needs to run.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace swapmm::test {

/// Streams are numbered from 0; one more "stream" is the host.
inline constexpr std::size_t most_streams = 16;
inline constexpr std::size_t host_stream = most_streams - 1;

/// For each stream: the number of its commands that have ended before.
using VectorClock = std::array<std::uint64_t, most_streams>;

/// Bytes of the device or of the host that a command reads, or writes.
struct ByteAccess {
  std::uintptr_t begin = 0;
  std::size_t size = 0;
  bool write = false;
};

class OrderChecker {
 public:
  /// The stream's next command accesses these bytes. What is in conflict with an access that does not come before is
  /// the returned text.
  [[nodiscard]] std::optional<std::string> command(std::size_t stream, std::span<const ByteAccess> accesses,
                                                   const std::string& name);
  /// A point behind all commands of the stream so far.
  [[nodiscard]] const VectorClock& point(std::size_t stream) const { return clocks_[stream]; }
  /// Later commands of the stream come after that point.
  void wait(std::size_t stream, const VectorClock& point);
  /// The host has seen that point: whatever it does or queues from now on comes after it.
  void host_saw(const VectorClock& point);
  /// The bytes are somebody else's from now on: nothing done to them so far matters. What may still run is returned.
  [[nodiscard]] std::optional<std::string> forget(std::uintptr_t begin, std::size_t size);

 private:
  struct Past {
    ByteAccess bytes;
    std::size_t stream;
    std::uint64_t number;
    std::string name;
  };
  [[nodiscard]] static bool overlap(const ByteAccess& a, const ByteAccess& b) {
    return a.begin < b.begin + b.size && b.begin < a.begin + a.size;
  }
  void prune();

  std::array<VectorClock, most_streams> clocks_{};
  std::vector<Past> past_;
};

}  // namespace swapmm::test
