// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <vector>

#include <swapmm/ir/calls/call.hpp>

#include "../event.hpp"

namespace swapmm::opencl::layer::record {

class Recorder;

/// Commands whose time on the device, or whose bytes on the host, are not known yet. Both become known when the command
/// has ended, and are written then.
class Pending {
 public:
  explicit Pending(Recorder& recorder) : recorder_(recorder) {}

  /// Writes the command's duration when it has ended. If too many wait, the oldest one stays without.
  void add_time(std::uint64_t sequence, Event& event);
  /// Writes the digest of what the command brings to the host.
  void add_read(std::uint64_t sequence, Event& event, const calls::HostData& host);
  /// Writes what is known. Called before a call returns to the program: once a program knows that a command has ended,
  /// it may free the memory. For the same reason the mutex is held while bytes are read.
  void settle();
  /// A way for the program to learn of a command's end that is not a call: no bytes of such commands are read any more.
  void forget_reads();
  /// The same for one address.
  void forget_reads(const void* address);

 private:
  struct Time {
    std::uint64_t sequence;
    Ref<Event> event;
  };
  struct Read {
    std::uint64_t sequence;
    Ref<Event> event;
    calls::HostData host;
  };
  Recorder& recorder_;
  std::mutex mutex_;
  std::deque<Time> times_;
  std::vector<Read> reads_;
};

}  // namespace swapmm::opencl::layer::record
