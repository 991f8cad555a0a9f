// SPDX-License-Identifier: Apache-2.0
// Where PyTorch gets memory of a CUDA device under a budget. What an operation of the manager makes gets the place that
// the manager has chosen for it; everything else comes from a memory pool of the CUDA runtime with a limit: work areas,
// small tensors, and what has another size than expected. Both together are the budget.
//
// PyTorch calls swapmm_torch_allocate() and swapmm_torch_free() (torch.cuda.memory.CUDAPluggableAllocator), by any
// thread. The other functions are the adapter's (backends/python/src/swapmm/torch).

#include <cuda_runtime_api.h>
#include <sys/types.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#define SWAPMM_TORCH_EXPORT extern "C" __attribute__((visibility("default")))

namespace {

/// function, file, line, text
using Raise = void (*)(const char*, const char*, std::uint32_t, const char*);

/// A place for a new tensor of a size, which is free.
struct Expected {
  void* place;
  std::size_t bytes;
  bool taken;
  std::int64_t request;  // the only one that gets it; -1: any
};

/// A part of the manager's memory, while a compiled graph runs: requests get their bytes from it.
class Room {
 public:
  void open(std::uint64_t place, std::uint64_t bytes, std::uint64_t least) {
    *this = {};
    begin_ = place;
    end_ = place + bytes;
    least_ = least;
  }

  /// The number of a new request.
  std::int64_t next_request() { return requests_++; }

  /// The first place that is free; null: there is none, or it is too small to count.
  void* take(std::size_t bytes) {
    if (!is_open() || bytes < least_) return nullptr;
    const std::uint64_t size = (bytes + alignment - 1) / alignment * alignment;
    std::uint64_t place = begin_;
    for (const auto& [start, length] : live_) {
      if (start - place >= size) break;
      place = start + length;
    }
    if (end_ - place < size) {
      refused_ += size;
      return nullptr;
    }
    live_.emplace(place, size);
    peak_ = std::max(peak_, place + size - begin_);
    return reinterpret_cast<void*>(place);
  }

  void give_back(void* memory) { live_.erase(reinterpret_cast<std::uint64_t>(memory)); }

  void note(void* memory, std::int64_t request) {
    if (is_open()) request_of_[memory] = request;
  }

  [[nodiscard]] std::int64_t request_of(void* memory) const {
    const auto found = request_of_.find(memory);
    return found == request_of_.end() ? -1 : found->second;
  }

  /// How many requests have their bytes from it.
  [[nodiscard]] std::uint64_t live() const { return live_.size(); }
  /// How many bytes would have been enough.
  [[nodiscard]] std::uint64_t peak() const { return peak_ + refused_; }

 private:
  static constexpr std::uint64_t alignment = 512;

  [[nodiscard]] bool is_open() const { return least_ != 0; }

  std::uint64_t begin_ = 0;
  std::uint64_t end_ = 0;
  std::uint64_t least_ = 0;                             // smaller requests are the pool's; 0: it is not open
  std::map<std::uint64_t, std::uint64_t> live_;         // sizes by place
  std::unordered_map<void*, std::int64_t> request_of_;  // the last one that got it
  std::int64_t requests_ = 0;
  std::uint64_t peak_ = 0;
  std::uint64_t refused_ = 0;
};

struct State {
  std::mutex mutex;
  std::map<int, cudaMemPool_t> pools;  // by device
  cudaMemPool_t pool = nullptr;        // that of `device`
  int device = 0;
  std::size_t limit = 0;
  std::size_t used = 0;  // bytes of the pool that PyTorch has now
  std::size_t peak = 0;
  std::size_t refused = 0;                      // size of the last request that did not fit
  std::unordered_map<void*, std::size_t> live;  // of the pool
  std::unordered_set<void*> elsewhere;          // on devices without a budget
  std::vector<Expected> expected;
  Room room;
  void* next = nullptr;  // answers the next request
  Raise raise = nullptr;
  std::string text;  // of the last refusal
};

// Never destroyed: PyTorch frees tensors until the process has ended.
State& state() {
  static auto& made = *new State;
  return made;
}

// Whether the pool has no more of the driver than it may. What it holds and nobody uses goes back first.
bool within_limit(State& now) {
  for (const bool is_first : {true, false}) {
    std::uint64_t reserved = 0;
    cudaMemPoolGetAttribute(now.pool, cudaMemPoolAttrReservedMemCurrent, &reserved);
    if (reserved <= now.limit) return true;
    if (is_first) {
      cudaDeviceSynchronize();  // what was freed is free then
      cudaMemPoolTrimTo(now.pool, 0);
    }
  }
  return false;
}

}  // namespace

/// Opens the pool of that device. `most` bytes of it stay when PyTorch has freed them, and `limit` is what it may have
/// for now. Returns a cudaError_t.
SWAPMM_TORCH_EXPORT int swapmm_torch_open(int device, std::uint64_t most, std::uint64_t limit) {
  State& now = state();
  const std::lock_guard lock(now.mutex);
  now.limit = static_cast<std::size_t>(limit);
  now.peak = now.used;
  cudaError_t status = cudaSuccess;
  cudaMemPool_t& pool = now.pools[device];
  if (pool == nullptr) {
    cudaMemPoolProps properties{};
    properties.allocType = cudaMemAllocationTypePinned;
    properties.location.type = cudaMemLocationTypeDevice;
    properties.location.id = device;
    status = cudaMemPoolCreate(&pool, &properties);
    if (status != cudaSuccess) return static_cast<int>(status);
  }
  now.pool = pool;
  now.device = device;
  // What was freed stays for the next request.
  std::uint64_t keep = most;
  status = cudaMemPoolSetAttribute(now.pool, cudaMemPoolAttrReleaseThreshold, &keep);
  return static_cast<int>(status);
}

/// Another limit.
SWAPMM_TORCH_EXPORT void swapmm_torch_limit(std::uint64_t limit) {
  State& now = state();
  const std::lock_guard lock(now.mutex);
  now.limit = static_cast<std::size_t>(limit);
}

/// The places of what the running operation will make: PyTorch's requests of these sizes get them, in this order.
SWAPMM_TORCH_EXPORT void swapmm_torch_expect(std::uint64_t count, const std::uint64_t* sizes,
                                             const std::uint64_t* places) {
  State& now = state();
  const std::lock_guard lock(now.mutex);
  now.expected.clear();
  for (std::uint64_t i = 0; i < count; ++i) {
    now.expected.push_back({reinterpret_cast<void*>(places[i]), static_cast<std::size_t>(sizes[i]), false, -1});
  }
}

/// Which requests get these places, counted from 0 since the room was opened; -1: any of the size.
SWAPMM_TORCH_EXPORT void swapmm_torch_expect_requests(std::uint64_t count, const std::int64_t* requests) {
  State& now = state();
  const std::lock_guard lock(now.mutex);
  for (std::size_t i = 0; i < std::min<std::size_t>(count, now.expected.size()); ++i) {
    now.expected[i].request = requests[i];
  }
}

/// From now on requests of at least so many bytes that are not expected get their bytes from these, if there are
/// enough. 0, 0, 0: no longer.
SWAPMM_TORCH_EXPORT void swapmm_torch_room(std::uint64_t place, std::uint64_t bytes, std::uint64_t least) {
  State& now = state();
  const std::lock_guard lock(now.mutex);
  now.room.open(place, bytes, least);
}

/// How large the room has to be for all that was asked for since it was opened, in bytes.
SWAPMM_TORCH_EXPORT std::uint64_t swapmm_torch_room_peak() {
  State& now = state();
  const std::lock_guard lock(now.mutex);
  return now.room.peak();
}

/// How many tensors have bytes of the room.
SWAPMM_TORCH_EXPORT std::uint64_t swapmm_torch_room_live() {
  State& now = state();
  const std::lock_guard lock(now.mutex);
  return now.room.live();
}

/// Which request since the room was opened got that address. -1: none.
SWAPMM_TORCH_EXPORT std::int64_t swapmm_torch_request_of(std::uint64_t address) {
  State& now = state();
  const std::lock_guard lock(now.mutex);
  return now.room.request_of(reinterpret_cast<void*>(address));
}

/// The answer to the next request, whatever its size.
SWAPMM_TORCH_EXPORT void swapmm_torch_next(std::uint64_t place) {
  State& now = state();
  const std::lock_guard lock(now.mutex);
  now.next = reinterpret_cast<void*>(place);
}

/// Bytes of the pool: that PyTorch has, the largest number of them, that the pool has from the driver, and the size of
/// the last request that did not fit (0: none since the last call).
SWAPMM_TORCH_EXPORT void swapmm_torch_numbers(std::uint64_t numbers[4]) {
  State& now = state();
  const std::lock_guard lock(now.mutex);
  std::uint64_t reserved = 0;
  if (now.pool != nullptr) cudaMemPoolGetAttribute(now.pool, cudaMemPoolAttrReservedMemCurrent, &reserved);
  numbers[0] = now.used;
  numbers[1] = now.peak;
  numbers[2] = reserved;
  numbers[3] = std::exchange(now.refused, 0);
}

/// How errors are told to PyTorch: a function of PyTorch's that throws its own exception (c10::detail::torchCheckFail).
/// An exception of this library cannot be caught there, because each may have a C++ runtime of its own.
SWAPMM_TORCH_EXPORT void swapmm_torch_raise_by(Raise raise) { state().raise = raise; }

namespace {

// One of the manager's places, or null.
void* place_for(State& now, std::size_t bytes, std::int64_t request) {
  for (Expected& expected : now.expected) {
    if (expected.taken || expected.bytes != bytes) continue;
    if (expected.request >= 0 && expected.request != request) continue;
    expected.taken = true;
    return expected.place;
  }
  return now.room.take(bytes);
}

// The devices beside the manager's have no budget. PyTorch has made `device` the current one.
void* allocate_elsewhere(State& now, std::size_t size, int device, cudaStream_t stream) {
  void* made = nullptr;
  const cudaError_t status = cudaMallocAsync(&made, std::max<std::size_t>(size, 1), stream);
  if (status == cudaSuccess) {
    now.elsewhere.insert(made);
    return made;
  }
  (void)cudaGetLastError();
  now.text = "swapmm: " + std::to_string(size) + " bytes on CUDA device " + std::to_string(device) +
             ", which has no budget (" + cudaGetErrorString(status) + ")";
  return nullptr;
}

// Null: refused, and the text says why.
void* allocate(std::size_t size, int device, cudaStream_t stream) {
  State& now = state();
  const std::lock_guard lock(now.mutex);
  if (device != now.device) return allocate_elsewhere(now, size, device, stream);
  if (now.next != nullptr) return std::exchange(now.next, nullptr);
  const std::size_t bytes = std::max<std::size_t>(size, 1);  // PyTorch knows them by address
  const std::int64_t request = now.room.next_request();
  if (void* const place = place_for(now, bytes, request)) {
    now.room.note(place, request);
    return place;
  }
  void* made = nullptr;
  cudaError_t status = cudaErrorNotReady;
  if (now.pool != nullptr && now.used + bytes <= now.limit) {
    status = cudaMallocFromPoolAsync(&made, bytes, now.pool, stream);
    if (status == cudaSuccess && !within_limit(now)) {
      (void)cudaFreeAsync(made, stream);
      status = cudaErrorMemoryAllocation;
      (void)within_limit(now);
    }
  } else if (now.pool != nullptr) {
    status = cudaErrorMemoryAllocation;
  }
  if (status != cudaSuccess) {
    (void)cudaGetLastError();
    now.refused = bytes;
    now.text = "swapmm: " + std::to_string(bytes) + " bytes on CUDA device " + std::to_string(device) +
               " beside the manager's places: " + std::to_string(now.used) + " of " + std::to_string(now.limit) +
               " are in use (" + cudaGetErrorString(status) + ")";
    return nullptr;
  }
  now.live.emplace(made, bytes);
  now.room.note(made, request);
  now.used += bytes;
  now.peak = std::max(now.peak, now.used);
  return made;
}

}  // namespace

/// PyTorch's request. What does not fit is a RuntimeError in Python.
SWAPMM_TORCH_EXPORT void* swapmm_torch_allocate(ssize_t size, int device, cudaStream_t stream) {
  void* const made = allocate(static_cast<std::size_t>(size), device, stream);
  // Nothing here has a destructor that would have to run when the exception passes.
  if (made == nullptr) state().raise("swapmm_torch_allocate", "torch_allocator.cpp", __LINE__, state().text.c_str());
  return made;
}

/// PyTorch gives memory back. Places of the manager are the manager's.
SWAPMM_TORCH_EXPORT void swapmm_torch_free(void* memory, ssize_t /*size*/, int /*device*/, cudaStream_t stream) {
  State& now = state();
  const std::lock_guard lock(now.mutex);
  if (now.elsewhere.erase(memory) != 0) {
    (void)cudaFreeAsync(memory, stream);
    return;
  }
  const auto found = now.live.find(memory);
  if (found != now.live.end()) {
    now.used -= found->second;
    now.live.erase(found);
    (void)cudaFreeAsync(memory, stream);
    return;
  }
  now.room.give_back(memory);
  // A temporary result had the place that is expected by a later one.
  for (Expected& expected : now.expected) {
    if (expected.place == memory) expected.taken = false;
  }
}
