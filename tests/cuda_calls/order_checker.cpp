// SPDX-License-Identifier: Apache-2.0
#include "cuda_calls/order_checker.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace swapmm::test {

namespace {

void join(VectorClock& into, const VectorClock& other) {
  for (std::size_t i = 0; i < most_streams; ++i) into[i] = std::max(into[i], other[i]);
}

std::string describe(const std::string& name, std::size_t stream, bool write) {
  return name + (write ? " writes" : " reads") +
         (stream == host_stream ? std::string(" (host)") : " (stream " + std::to_string(stream) + ")");
}

}  // namespace

std::optional<std::string> OrderChecker::command(std::size_t stream, std::span<const ByteAccess> accesses,
                                                 const std::string& name) {
  VectorClock& clock = clocks_[stream];
  join(clock, clocks_[host_stream]);  // queued after what the host has seen
  std::optional<std::string> conflict;
  for (const ByteAccess& access : accesses) {
    for (const Past& past : past_) {
      if (!overlap(access, past.bytes) || (!access.write && !past.bytes.write)) continue;
      if (past.number <= clock[past.stream]) continue;
      conflict = describe(name, stream, access.write) + " bytes that " +
                 describe(past.name, past.stream, past.bytes.write) + " with nothing that orders the two";
    }
  }
  const std::uint64_t number = ++clock[stream];
  for (const ByteAccess& access : accesses) past_.push_back({access, stream, number, name});
  if (past_.size() > 4096) prune();
  return conflict;
}

void OrderChecker::wait(std::size_t stream, const VectorClock& point) { join(clocks_[stream], point); }

void OrderChecker::host_saw(const VectorClock& point) { join(clocks_[host_stream], point); }

std::optional<std::string> OrderChecker::forget(std::uintptr_t begin, std::size_t size) {
  const ByteAccess bytes{begin, size, true};
  std::optional<std::string> running;
  std::erase_if(past_, [&](const Past& past) {
    if (!overlap(bytes, past.bytes)) return false;
    if (past.number > clocks_[host_stream][past.stream]) {
      running = "memory goes while " + describe(past.name, past.stream, past.bytes.write) + " it";
    }
    return true;
  });
  return running;
}

// What the host has seen the end of is before everything that comes.
void OrderChecker::prune() {
  std::erase_if(past_, [&](const Past& past) { return past.number <= clocks_[host_stream][past.stream]; });
}

}  // namespace swapmm::test
