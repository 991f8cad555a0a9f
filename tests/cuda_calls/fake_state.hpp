// SPDX-License-Identifier: Apache-2.0
#pragma once

// Inside of the fake runtime.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "cuda_calls/fake_runtime.hpp"

namespace swapmm::test::fake_cuda {

struct Graph {
  bool alive = true;
  VectorClock end{};                 ///< of its latest run
  std::vector<ByteAccess> accesses;  ///< of all its commands
  std::size_t commands = 0;
};

/// A capture under way.
struct OpenCapture {
  std::uint64_t number = 0;  ///< from 1
  std::size_t origin = 0;
  std::set<std::size_t> streams;  ///< that take part
  Graph graph;
  bool invalid = false;
};

struct Event {
  int device = 0;
  bool timed = false;
  bool recorded = false;
  VectorClock point{};
  bool seen = false;          ///< the host knows that it has ended
  double at = 0;              ///< milliseconds
  std::uint64_t capture = 0;  ///< number of the capture it was last recorded in; 0: none
};

struct Stream {
  int device = 0;
  std::size_t number = 0;
  double clock = 0;  ///< milliseconds
  bool destroyed = false;
};

/// Everything the fake knows.
struct State {
  std::vector<FakeDevice> devices{FakeDevice{}};
  std::mt19937_64 random{1};
  unsigned query_luck = 50;
  cudaError_t count_status = cudaSuccess;
  int current = 0;
  cudaError_t last_error = cudaSuccess;
  cudaError_t sticking = cudaSuccess;

  std::vector<Call> calls;
  Objects objects;
  std::vector<std::string> violations;
  OrderChecker order;

  std::vector<std::unique_ptr<Stream>> streams;
  std::unordered_map<const void*, std::unique_ptr<Event>> events;
  std::vector<std::unique_ptr<Graph>> graphs;           // and their runnable copies
  std::map<std::uintptr_t, std::size_t> device_memory;  // begin, size
  std::map<std::uintptr_t, std::size_t> host_memory;    // page-locked
  std::uintptr_t next_address = 0x7f00'0000'0000;
  std::size_t device_bytes = 0;
  double host_clock = 0;                                   // milliseconds: nothing that is queued later starts before
  std::set<std::pair<int, int>> peers;                     // whose accesses are enabled
  std::map<int, double> engine_clock;                      // of devices with one copy engine
  std::map<int, std::unique_ptr<Stream>> default_streams;  // of each device, made when first used
  std::vector<ByteAccess>* function_accesses = nullptr;    // of the function of the host that runs now
  std::unique_ptr<OpenCapture> capture;
  std::uint64_t captures = 0;

  std::string failing;
  cudaError_t failing_status = cudaSuccess;
  std::uint64_t failing_left = 0;
  bool failing_happened = false;
  cudaError_t losing_status = cudaSuccess;
  std::uint64_t losing_left = 0;
};

[[nodiscard]] State& state();
void violation(const std::string& text);
/// Counts the call; the status it fails with, if it does. `can_fail` is false for clean-up, which a lost device fails
/// too, but does.
[[nodiscard]] cudaError_t gate(const char* function);
/// Notes the error as the runtime does, and returns it.
cudaError_t fail(cudaError_t status);
[[nodiscard]] Stream* find(cudaStream_t stream);
[[nodiscard]] Event* find(cudaEvent_t event);
/// The command takes its time on the stream, into the open capture if the stream takes part.
cudaError_t queue(Stream& stream, const std::vector<ByteAccess>& accesses, const std::string& name, double milliseconds,
                  bool copy);
/// The graph, a description or a runnable one, if it lives.
[[nodiscard]] Graph* find_graph(const void* graph);
/// The stream takes part in a capture that is spoilt: the API refuses all but its end.
[[nodiscard]] bool in_spoilt_capture(const Stream& stream);
/// In a capture these calls fail and spoil it.
[[nodiscard]] bool spoils_capture(const char* function);

}  // namespace swapmm::test::fake_cuda
