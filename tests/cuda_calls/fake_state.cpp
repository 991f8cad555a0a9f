// SPDX-License-Identifier: Apache-2.0
#include "cuda_calls/fake_state.hpp"

#include <algorithm>
#include <ostream>
#include <string_view>
#include <utility>

namespace swapmm::test::fake_cuda {

State& state() {
  static State the_state;
  return the_state;
}

void violation(const std::string& text) {
  if (state().violations.size() < 20) state().violations.push_back(text);
}

cudaError_t fail(cudaError_t status) {
  if (status != cudaSuccess) state().last_error = status;
  return status;
}

cudaError_t gate(const char* function) {
  State& s = state();
  if (s.losing_status != cudaSuccess && s.sticking == cudaSuccess && --s.losing_left == 0) s.sticking = s.losing_status;
  if (s.sticking != cudaSuccess) return fail(s.sticking);
  const bool harmless = std::string_view(function) == "cudaGetDevice" || std::string_view(function) == "cudaSetDevice";
  if ((s.failing == function || (s.failing == "any" && !harmless)) && s.failing_left != 0 && --s.failing_left == 0) {
    s.failing_happened = true;
    return fail(s.failing_status);
  }
  return cudaSuccess;
}

Graph* find_graph(const void* graph) {
  for (const auto& each : state().graphs) {
    if (each.get() == graph && each->alive) return each.get();
  }
  return nullptr;
}

bool in_spoilt_capture(const Stream& stream) {
  const State& s = state();
  return s.capture != nullptr && s.capture->invalid && s.capture->streams.contains(stream.number);
}

Stream* find(cudaStream_t stream) {
  if (stream == nullptr) {  // the one of the device that is current
    auto& made = state().default_streams[state().current];
    if (made == nullptr) {
      made = std::make_unique<Stream>();
      made->device = state().current;
      made->number = host_stream - 1 - state().default_streams.size();
    }
    return made.get();
  }
  for (const auto& each : state().streams) {
    if (reinterpret_cast<cudaStream_t>(each.get()) == stream && !each->destroyed) return each.get();
  }
  return nullptr;
}

Event* find(cudaEvent_t event) {
  const auto at = state().events.find(event);
  return at == state().events.end() ? nullptr : at->second.get();
}

cudaError_t queue(Stream& stream, const std::vector<ByteAccess>& accesses, const std::string& name, double milliseconds,
                  bool copy) {
  State& s = state();
  if (in_spoilt_capture(stream)) return fail(cudaErrorStreamCaptureInvalidated);
  if (const auto conflict = s.order.command(stream.number, accesses, name)) violation(*conflict);
  if (s.capture != nullptr && s.capture->streams.contains(stream.number)) {
    auto& all = s.capture->graph.accesses;
    all.insert(all.end(), accesses.begin(), accesses.end());
    ++s.capture->graph.commands;
    return cudaSuccess;
  }
  const auto device = static_cast<std::size_t>(stream.device);
  double* const engine = copy && s.devices[device].real_copy_engines == 1 ? &s.engine_clock[stream.device] : nullptr;
  stream.clock = std::max(stream.clock, s.host_clock);
  if (engine != nullptr) stream.clock = std::max(stream.clock, *engine);
  stream.clock += milliseconds;
  if (engine != nullptr) *engine = stream.clock;
  return cudaSuccess;
}

bool spoils_capture(const char* function) {
  State& s = state();
  if (s.capture == nullptr) return false;
  s.capture->invalid = true;
  violation(std::string(function) + " inside a capture");  // thread-local mode allows none of these calls
  return true;
}

std::ostream& operator<<(std::ostream& out, const Objects& o) {
  return out << o.streams << " streams, " << o.events << " events, " << o.device_memories << " device memories, "
             << o.host_memories << " host memories, " << o.graphs << " graphs";
}

void restart(std::vector<FakeDevice> devices, std::uint64_t seed) {
  state() = State{};
  state().devices = std::move(devices);
  state().random.seed(seed);
}

void set_device_count_status(cudaError_t status) { state().count_status = status; }
void set_query_luck(unsigned percent) { state().query_luck = percent; }
const std::vector<Call>& calls() { return state().calls; }
void clear_calls() { state().calls.clear(); }
std::size_t count(const std::string& function) {
  return static_cast<std::size_t>(
      std::count_if(calls().begin(), calls().end(), [&](const Call& call) { return call.function == function; }));
}
const Objects& objects() { return state().objects; }
std::size_t device_bytes() { return state().device_bytes; }
const std::vector<std::string>& violations() { return state().violations; }
int current_device() { return state().current; }

void launch(cudaStream_t stream, const std::vector<ByteAccess>& accesses, const std::string& name) {
  if (gate("launch") != cudaSuccess) return;
  Stream* const on = find(stream);
  if (on == nullptr) return violation("a launch on a stream that does not exist");
  if (on->device != state().current) violation("a launch on a stream of another device than the current one");
  state().calls.push_back({"launch", stream, nullptr, nullptr, nullptr, accesses.size(), 0});
  (void)queue(*on, accesses, name, 0.001, false);
}

void host_access(const void* begin, std::size_t size, bool write, const std::string& name) {
  const std::vector<ByteAccess> accesses{{reinterpret_cast<std::uintptr_t>(begin), size, write}};
  if (const auto conflict = state().order.command(host_stream, accesses, name)) violation(*conflict);
}

void function_access(const void* begin, std::size_t size, bool write, const std::string& name) {
  auto* const accesses = state().function_accesses;
  if (accesses == nullptr) return host_access(begin, size, write, name);
  accesses->push_back({reinterpret_cast<std::uintptr_t>(begin), size, write});
}

FailingCall::FailingCall(std::string function, cudaError_t status, std::uint64_t n) {
  state().failing = std::move(function);
  state().failing_status = status;
  state().failing_left = n;
  state().failing_happened = false;
}
FailingCall::~FailingCall() { state().failing.clear(); }
bool FailingCall::happened() const { return state().failing_happened; }

LosingDevice::LosingDevice(cudaError_t status, std::uint64_t n) {
  state().losing_status = status;
  state().losing_left = n;
}
LosingDevice::~LosingDevice() { state().losing_status = cudaSuccess; }
bool LosingDevice::happened() const { return state().sticking != cudaSuccess; }

}  // namespace swapmm::test::fake_cuda
