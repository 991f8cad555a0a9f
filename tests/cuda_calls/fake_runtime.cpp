// SPDX-License-Identifier: Apache-2.0
// The functions of the CUDA runtime, by their names.
#include "cuda_calls/fake_runtime.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <string>

#include "cuda_calls/fake_state.hpp"

namespace swapmm::test::fake_cuda {

namespace {

constexpr std::size_t megabyte = 1'000'000;

double milliseconds(std::size_t bytes, double gb_per_s) {
  return static_cast<double>(bytes) / static_cast<double>(megabyte) / gb_per_s;
}

// The allocation that holds all of the range.
bool lies_in(const std::map<std::uintptr_t, std::size_t>& memories, const void* begin, std::size_t size) {
  const auto at = reinterpret_cast<std::uintptr_t>(begin);
  const auto behind = memories.upper_bound(at);
  if (behind == memories.begin()) return false;
  const auto& [start, length] = *std::prev(behind);
  return at + size <= start + length;
}

cudaError_t remove(std::map<std::uintptr_t, std::size_t>& memories, void* begin, const char* function) {
  State& s = state();
  const auto at = memories.find(reinterpret_cast<std::uintptr_t>(begin));
  if (at == memories.end()) {
    violation(std::string(function) + " of what was not allocated");
    return cudaErrorInvalidValue;
  }
  // The real calls wait for the device; the backend must have done so itself.
  if (const auto running = s.order.forget(at->first, at->second)) violation(std::string(function) + ": " + *running);
  memories.erase(at);
  return cudaSuccess;
}

ByteAccess access(const void* begin, std::size_t size, bool write) {
  return {reinterpret_cast<std::uintptr_t>(begin), size, write};
}

// A wait that names an event of the capture takes the stream into it.
cudaError_t wait_in_capture(State& s, const Stream& stream, const Event& event) {
  const bool captured = event.capture == s.capture->number;
  const bool takes_part = s.capture->streams.contains(stream.number);
  if (takes_part && !captured) {
    s.capture->invalid = true;
    violation("a captured stream waits for an event of before");
    return cudaErrorStreamCaptureIsolation;
  }
  if (captured) s.capture->streams.insert(stream.number);
  return cudaSuccess;
}

}  // namespace

}  // namespace swapmm::test::fake_cuda

// NOLINTBEGIN(readability-identifier-naming, readability-inconsistent-declaration-parameter-name): the API's names
using namespace swapmm::test;
using namespace swapmm::test::fake_cuda;

#define GATE(function) \
  if (const cudaError_t planned = gate(function); planned != cudaSuccess) return planned

extern "C" {

// ---- errors

cudaError_t cudaGetLastError() {
  State& s = state();
  const cudaError_t last = s.sticking != cudaSuccess ? s.sticking : s.last_error;
  s.last_error = cudaSuccess;
  return last;
}
// No kernel of the codec is linked with this runtime.
cudaError_t cudaLaunchKernel(const void*, dim3, dim3, void**, size_t, cudaStream_t) {
  return cudaErrorInvalidDeviceFunction;
}
cudaError_t cudaPeekAtLastError() { return state().sticking != cudaSuccess ? state().sticking : state().last_error; }
const char* cudaGetErrorName(cudaError_t status) {
  switch (status) {
    case cudaSuccess: return "cudaSuccess";
    case cudaErrorInvalidValue: return "cudaErrorInvalidValue";
    case cudaErrorMemoryAllocation: return "cudaErrorMemoryAllocation";
    case cudaErrorInvalidConfiguration: return "cudaErrorInvalidConfiguration";
    case cudaErrorIllegalAddress: return "cudaErrorIllegalAddress";
    case cudaErrorNotReady: return "cudaErrorNotReady";
    case cudaErrorInvalidResourceHandle: return "cudaErrorInvalidResourceHandle";
    default: return "cudaErrorOther";
  }
}
const char* cudaGetErrorString(cudaError_t status) {
  return status == cudaErrorMemoryAllocation ? "out of memory" : "a text of the runtime";
}

// ---- devices

cudaError_t cudaDriverGetVersion(int* version) {
  *version = state().count_status == cudaErrorInsufficientDriver ? 0 : 13000;
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceCount(int* count_of) {
  GATE("cudaGetDeviceCount");
  if (state().count_status != cudaSuccess) return fail(state().count_status);
  *count_of = static_cast<int>(state().devices.size());
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  GATE("cudaGetDeviceProperties");
  const FakeDevice& fake = state().devices.at(static_cast<std::size_t>(device));
  std::memset(properties, 0, sizeof *properties);
  fake.name.copy(properties->name, sizeof properties->name - 1);
  properties->totalGlobalMem = fake.memory;
  properties->integrated = fake.integrated ? 1 : 0;
  properties->major = 9;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetPCIBusId(char* text, int length, int device) {
  GATE("cudaDeviceGetPCIBusId");
  std::snprintf(text, static_cast<std::size_t>(length), "%s",
                state().devices.at(static_cast<std::size_t>(device)).bus.c_str());
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr what, int device) {
  GATE("cudaDeviceGetAttribute");
  if (what != cudaDevAttrAsyncEngineCount) violation("an attribute that the fake does not know");
  *value = state().devices.at(static_cast<std::size_t>(device)).copy_engines;
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* device) {
  GATE("cudaGetDevice");
  *device = state().current;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  GATE("cudaSetDevice");
  state().current = device;
  return cudaSuccess;
}
cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  GATE("cudaMemGetInfo");
  *total = state().devices.at(static_cast<std::size_t>(state().current)).memory;
  *free = *total - state().device_bytes;
  return cudaSuccess;
}

// ---- memory

cudaError_t cudaMalloc(void** memory, size_t size) {
  GATE("cudaMalloc");
  State& s = state();
  if (spoils_capture("cudaMalloc")) return fail(cudaErrorStreamCaptureUnsupported);
  if (size > s.devices.at(static_cast<std::size_t>(s.current)).memory - s.device_bytes) {
    return fail(cudaErrorMemoryAllocation);
  }
  *memory = reinterpret_cast<void*>(s.next_address);
  s.device_memory[s.next_address] = size;
  s.next_address += (size + 511) / 256 * 256;  // and a gap that belongs to nobody
  s.device_bytes += size;
  ++s.objects.device_memories;
  s.calls.push_back({"cudaMalloc", nullptr, nullptr, *memory, nullptr, size, s.current});
  return cudaSuccess;
}
cudaError_t cudaFree(void* memory) {
  const cudaError_t planned = gate("cudaFree");
  State& s = state();
  if (spoils_capture("cudaFree")) return fail(cudaErrorStreamCaptureUnsupported);
  const auto at = s.device_memory.find(reinterpret_cast<std::uintptr_t>(memory));
  const std::size_t size = at == s.device_memory.end() ? 0 : at->second;
  if (s.sticking != cudaSuccess) s.order = OrderChecker();  // nothing runs on a device that is gone
  if (remove(s.device_memory, memory, "cudaFree") != cudaSuccess) return fail(cudaErrorInvalidValue);
  s.device_bytes -= size;
  --s.objects.device_memories;
  s.calls.push_back({"cudaFree", nullptr, nullptr, memory, nullptr, size, s.current});
  return planned;
}
cudaError_t cudaHostAlloc(void** memory, size_t size, unsigned flags) {
  GATE("cudaHostAlloc");
  State& s = state();
  if (spoils_capture("cudaHostAlloc")) return fail(cudaErrorStreamCaptureUnsupported);
  *memory = std::aligned_alloc(4096, (size + 4095) / 4096 * 4096);
  s.host_memory[reinterpret_cast<std::uintptr_t>(*memory)] = size;
  ++s.objects.host_memories;
  s.calls.push_back({"cudaHostAlloc", nullptr, nullptr, *memory, nullptr, size, static_cast<int>(flags)});
  return cudaSuccess;
}
cudaError_t cudaFreeHost(void* memory) {
  const cudaError_t planned = gate("cudaFreeHost");
  State& s = state();
  if (spoils_capture("cudaFreeHost")) return fail(cudaErrorStreamCaptureUnsupported);
  if (s.sticking != cudaSuccess) s.order = OrderChecker();
  if (remove(s.host_memory, memory, "cudaFreeHost") != cudaSuccess) return fail(cudaErrorInvalidValue);
  --s.objects.host_memories;
  s.calls.push_back({"cudaFreeHost", nullptr, nullptr, memory, nullptr, 0, 0});
  std::free(memory);
  return planned;
}

// ---- streams

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  GATE("cudaStreamCreateWithFlags");
  State& s = state();
  if (s.streams.size() >= host_stream) {
    violation("more streams than the checker can count");
    return fail(cudaErrorInvalidValue);
  }
  s.streams.push_back(std::make_unique<Stream>());
  s.streams.back()->number = s.streams.size() - 1;
  s.streams.back()->device = s.current;
  *stream = reinterpret_cast<cudaStream_t>(s.streams.back().get());
  ++s.objects.streams;
  s.calls.push_back({"cudaStreamCreateWithFlags", *stream, nullptr, nullptr, nullptr, 0, static_cast<int>(flags)});
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  const cudaError_t planned = gate("cudaStreamDestroy");
  Stream* const at = find(stream);
  if (at == nullptr) {
    violation("a stream is destroyed that does not exist");
    return fail(cudaErrorInvalidResourceHandle);
  }
  at->destroyed = true;
  --state().objects.streams;
  return planned;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  const cudaError_t planned = gate("cudaStreamSynchronize");
  State& s = state();
  Stream* const at = find(stream);
  if (at == nullptr) {
    violation("a wait for a stream that does not exist");
    return fail(cudaErrorInvalidResourceHandle);
  }
  if (s.capture != nullptr && s.capture->streams.contains(at->number)) {
    (void)spoils_capture("cudaStreamSynchronize");
    return fail(cudaErrorStreamCaptureUnsupported);
  }
  if (planned != cudaSuccess && s.sticking == cudaSuccess) return planned;
  s.order.host_saw(s.order.point(at->number));
  s.host_clock = std::max(s.host_clock, at->clock);
  s.calls.push_back({"cudaStreamSynchronize", stream, nullptr, nullptr, nullptr, 0, 0});
  return planned;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
  GATE("cudaStreamWaitEvent");
  State& s = state();
  Stream* const on = find(stream);
  Event* const at = find(event);
  if (on == nullptr || at == nullptr) {
    violation("a wait of a stream, or for an event, that does not exist");
    return fail(cudaErrorInvalidResourceHandle);
  }
  if (in_spoilt_capture(*on)) return fail(cudaErrorStreamCaptureInvalidated);
  if (s.capture != nullptr) {
    if (const cudaError_t refused = wait_in_capture(s, *on, *at); refused != cudaSuccess) return fail(refused);
  } else if (at->capture != 0) {
    violation("a wait for an event that was last recorded in a capture");
    return fail(cudaErrorCapturedEvent);
  }
  s.calls.push_back({"cudaStreamWaitEvent", stream, event, nullptr, nullptr, 0, static_cast<int>(flags)});
  if (!at->recorded) return cudaSuccess;
  s.order.wait(on->number, at->point);
  on->clock = std::max(on->clock, at->at);
  return cudaSuccess;
}

// ---- events

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  GATE("cudaEventCreateWithFlags");
  State& s = state();
  auto made = std::make_unique<Event>();
  made->device = s.current;
  made->timed = (flags & cudaEventDisableTiming) == 0;
  *event = reinterpret_cast<cudaEvent_t>(made.get());
  s.events[*event] = std::move(made);
  ++s.objects.events;
  s.calls.push_back({"cudaEventCreateWithFlags", nullptr, *event, nullptr, nullptr, 0, static_cast<int>(flags)});
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  const cudaError_t planned = gate("cudaEventDestroy");
  Event* const at = find(event);
  if (at == nullptr) {
    violation("an event is destroyed that does not exist");
    return fail(cudaErrorInvalidResourceHandle);
  }
  state().events.erase(event);
  --state().objects.events;
  return planned;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  GATE("cudaEventRecord");
  State& s = state();
  Stream* const on = find(stream);
  Event* const at = find(event);
  if (on == nullptr || at == nullptr || on->device != at->device) {
    if (on == nullptr || at == nullptr) violation("an event is recorded, or on a stream, that does not exist");
    return fail(cudaErrorInvalidResourceHandle);
  }
  if (in_spoilt_capture(*on)) return fail(cudaErrorStreamCaptureInvalidated);
  at->recorded = true;
  at->seen = false;
  at->point = s.order.point(on->number);
  on->clock = std::max(on->clock, s.host_clock);
  at->at = on->clock;
  at->capture = s.capture != nullptr && s.capture->streams.contains(on->number) ? s.capture->number : 0;
  s.calls.push_back({"cudaEventRecord", stream, event, nullptr, nullptr, 0, at->timed ? 1 : 0});
  return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  GATE("cudaEventQuery");
  State& s = state();
  if (spoils_capture("cudaEventQuery")) return fail(cudaErrorStreamCaptureUnsupported);
  Event* const at = find(event);
  if (at == nullptr || at->capture != 0) {
    violation("a question about an event that does not exist, or is captured");
    return fail(at == nullptr ? cudaErrorInvalidResourceHandle : cudaErrorCapturedEvent);
  }
  if (!at->seen && s.random() % 100 >= s.query_luck) return fail(cudaErrorNotReady);
  at->seen = true;
  s.order.host_saw(at->point);
  return cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  GATE("cudaEventSynchronize");
  State& s = state();
  if (spoils_capture("cudaEventSynchronize")) return fail(cudaErrorStreamCaptureUnsupported);
  Event* const at = find(event);
  if (at == nullptr || at->capture != 0) {
    violation("a wait for an event that does not exist, or is captured");
    return fail(at == nullptr ? cudaErrorInvalidResourceHandle : cudaErrorCapturedEvent);
  }
  at->seen = true;
  s.order.host_saw(at->point);
  s.host_clock = std::max(s.host_clock, at->at);
  s.calls.push_back({"cudaEventSynchronize", nullptr, event, nullptr, nullptr, 0, 0});
  return cudaSuccess;
}
cudaError_t cudaEventElapsedTime(float* time, cudaEvent_t from, cudaEvent_t to) {
  GATE("cudaEventElapsedTime");
  Event* const begin = find(from);
  Event* const end = find(to);
  if (begin == nullptr || end == nullptr || !begin->timed || !end->timed || !begin->recorded || !end->recorded) {
    violation("a time between events that have none");
    return fail(cudaErrorInvalidResourceHandle);
  }
  *time = static_cast<float>(end->at - begin->at);
  return cudaSuccess;
}

// ---- work

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t size, cudaMemcpyKind kind, cudaStream_t stream) {
  GATE("cudaMemcpyAsync");
  State& s = state();
  Stream* const on = find(stream);
  if (on == nullptr) {
    violation("a copy on a stream that does not exist");
    return fail(cudaErrorInvalidResourceHandle);
  }
  const FakeDevice& device = s.devices.at(static_cast<std::size_t>(on->device));
  if (kind == cudaMemcpyDeviceToDevice) {
    if (!lies_in(s.device_memory, to, size) || !lies_in(s.device_memory, from, size)) {
      violation("a copy on the device outside of what was allocated");
    }
    s.calls.push_back({"cudaMemcpyAsync", stream, nullptr, to, from, size, static_cast<int>(kind)});
    return queue(*on, {access(from, size, false), access(to, size, true)}, "a copy on the device",
                 milliseconds(size, device.fill_gb_per_s), false);
  }
  const bool in = kind == cudaMemcpyHostToDevice;
  const void* const on_device = in ? to : from;
  const void* const on_host = in ? from : to;
  if (!lies_in(s.device_memory, on_device, size)) violation("a copy outside of what was allocated on the device");
  if (lies_in(s.device_memory, on_host, 1)) violation("a copy between two places of the device");
  if (kind != cudaMemcpyHostToDevice && kind != cudaMemcpyDeviceToHost) violation("a copy of an unknown kind");
  const bool pageable = !lies_in(s.host_memory, on_host, size);
  if (s.capture != nullptr && pageable) violation("a copy with pageable memory inside a capture");
  s.calls.push_back({"cudaMemcpyAsync", stream, nullptr, to, from, size, static_cast<int>(kind)});
  // The API may take the bytes of pageable memory at the call, whatever the stream still has to do. It may also wait
  // for the stream, or for a copy to pageable memory; nobody may rely on that.
  if (in && pageable) host_access(from, size, false, "a copy in");
  return queue(*on, {access(from, size, false), access(to, size, true)}, in ? "a copy in" : "a copy out",
               milliseconds(size, in ? device.h2d_gb_per_s : device.d2h_gb_per_s), true);
}
cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int other) {
  GATE("cudaDeviceCanAccessPeer");
  if (device == other) violation("a device asks for access to itself");
  *can = state().devices.at(static_cast<std::size_t>(other)).reaches_others ? 1 : 0;
  return cudaSuccess;
}
cudaError_t cudaDeviceEnablePeerAccess(int other, unsigned flags) {
  GATE("cudaDeviceEnablePeerAccess");
  State& s = state();
  if (flags != 0) violation("cudaDeviceEnablePeerAccess with flags");
  if (!s.devices.at(static_cast<std::size_t>(other)).reaches_others) return fail(cudaErrorPeerAccessUnsupported);
  if (!s.peers.insert({s.current, other}).second) return fail(cudaErrorPeerAccessAlreadyEnabled);
  s.calls.push_back({"cudaDeviceEnablePeerAccess", nullptr, nullptr, nullptr, nullptr, 0, other});
  return cudaSuccess;
}
cudaError_t cudaMemcpyPeerAsync(void* to, int to_device, const void* from, int from_device, size_t size,
                                cudaStream_t stream) {
  GATE("cudaMemcpyPeerAsync");
  State& s = state();
  Stream* const on = find(stream);
  if (on == nullptr) {
    violation("a copy on a stream that does not exist");
    return fail(cudaErrorInvalidResourceHandle);
  }
  if (!lies_in(s.device_memory, to, size) || !lies_in(s.device_memory, from, size)) {
    violation("a copy between devices outside of what was allocated");
  }
  if (on->device != to_device && on->device != from_device) violation("a copy on the stream of a third device");
  s.calls.push_back({"cudaMemcpyPeerAsync", stream, nullptr, to, from, size, to_device});
  return queue(*on, {access(from, size, false), access(to, size, true)}, "a copy between devices",
               milliseconds(size, s.devices.at(static_cast<std::size_t>(on->device)).peer_gb_per_s), true);
}
cudaError_t cudaMemsetAsync(void* to, int value, size_t size, cudaStream_t stream) {
  GATE("cudaMemsetAsync");
  State& s = state();
  Stream* const on = find(stream);
  if (on == nullptr || !lies_in(s.device_memory, to, size)) {
    violation("a fill outside of what was allocated, or on no stream");
    return fail(cudaErrorInvalidValue);
  }
  s.calls.push_back({"cudaMemsetAsync", stream, nullptr, to, nullptr, size, value});
  return queue(*on, {access(to, size, true)}, "a fill",
               milliseconds(size, s.devices.at(static_cast<std::size_t>(on->device)).fill_gb_per_s), false);
}

// The function says what it does with memory: see function_access().
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* argument) {
  GATE("cudaLaunchHostFunc");
  State& s = state();
  Stream* const on = find(stream);
  if (on == nullptr || s.capture != nullptr) {
    violation("a function of the host on no stream, or in a capture");
    return fail(cudaErrorInvalidResourceHandle);
  }
  s.calls.push_back({"cudaLaunchHostFunc", stream, nullptr, nullptr, nullptr, 0, 0});
  if (in_spoilt_capture(*on)) return fail(cudaErrorStreamCaptureInvalidated);
  std::vector<ByteAccess> accesses;
  s.function_accesses = &accesses;
  function(argument);
  s.function_accesses = nullptr;
  return queue(*on, accesses, "a function of the host", 0.01, false);
}

// ---- captures and graphs

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  GATE("cudaStreamBeginCapture");
  State& s = state();
  Stream* const on = find(stream);
  if (on == nullptr || s.capture != nullptr) {
    violation("a capture begins on no stream, or inside another");
    return fail(cudaErrorIllegalState);
  }
  s.capture = std::make_unique<OpenCapture>();
  s.capture->number = ++s.captures;
  s.capture->origin = on->number;
  s.capture->streams.insert(on->number);
  s.calls.push_back({"cudaStreamBeginCapture", stream, nullptr, nullptr, nullptr, 0, static_cast<int>(mode)});
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  const cudaError_t planned = gate("cudaStreamEndCapture");
  State& s = state();
  *graph = nullptr;
  Stream* const on = find(stream);
  if (on == nullptr || s.capture == nullptr || s.capture->origin != on->number) {
    if (planned == cudaSuccess) violation("a capture ends that did not begin there");
    return planned != cudaSuccess ? planned : fail(cudaErrorIllegalState);
  }
  const std::unique_ptr<OpenCapture> capture = std::move(s.capture);
  if (planned != cudaSuccess) return planned;
  if (capture->invalid) return fail(cudaErrorStreamCaptureInvalidated);
  for (const std::size_t number : capture->streams) {
    if (s.order.point(on->number)[number] < s.order.point(number)[number]) {
      return fail(cudaErrorStreamCaptureUnjoined);
    }
  }
  s.graphs.push_back(std::make_unique<fake_cuda::Graph>(capture->graph));
  *graph = reinterpret_cast<cudaGraph_t>(s.graphs.back().get());
  ++s.objects.graphs;
  s.calls.push_back({"cudaStreamEndCapture", stream, nullptr, nullptr, nullptr, capture->graph.commands, 0});
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* runnable, cudaGraph_t graph, unsigned long long) {
  GATE("cudaGraphInstantiateWithFlags");
  State& s = state();
  if (find_graph(graph) == nullptr) violation("a graph is instantiated that does not exist");
  s.graphs.push_back(std::make_unique<fake_cuda::Graph>(*reinterpret_cast<fake_cuda::Graph*>(graph)));
  *runnable = reinterpret_cast<cudaGraphExec_t>(s.graphs.back().get());
  ++s.objects.graphs;
  s.calls.push_back({"cudaGraphInstantiateWithFlags"});
  return cudaSuccess;
}
static cudaError_t destroy_graph(const void* graph, const char* function) {
  State& s = state();
  const cudaError_t planned = gate(function);
  fake_cuda::Graph* const at = find_graph(graph);
  if (at == nullptr) {
    violation(std::string(function) + " of a graph that does not exist");
    return fail(cudaErrorInvalidValue);
  }
  const VectorClock& seen = s.order.point(host_stream);
  for (std::size_t i = 0; i < most_streams; ++i) {
    if (at->end[i] > seen[i] && s.sticking == cudaSuccess) violation("a graph is destroyed while it runs");
  }
  at->alive = false;
  --s.objects.graphs;
  return planned;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) { return destroy_graph(graph, "cudaGraphDestroy"); }
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph) { return destroy_graph(graph, "cudaGraphExecDestroy"); }
cudaError_t cudaGraphLaunch(cudaGraphExec_t runnable, cudaStream_t stream) {
  GATE("cudaGraphLaunch");
  State& s = state();
  Stream* const on = find(stream);
  if (on == nullptr) {
    violation("a graph on a stream that does not exist");
    return fail(cudaErrorInvalidResourceHandle);
  }
  fake_cuda::Graph* const graph = find_graph(runnable);
  if (graph == nullptr) {
    violation("a graph is launched that does not exist");
    return fail(cudaErrorInvalidValue);
  }
  s.calls.push_back({"cudaGraphLaunch", stream, nullptr, nullptr, nullptr, graph->commands, 0});
  const cudaError_t status = queue(*on, graph->accesses, "a graph", 0.01, false);
  graph->end = s.order.point(on->number);
  return status;
}

}  // extern "C"
// NOLINTEND(readability-identifier-naming, readability-inconsistent-declaration-parameter-name)
