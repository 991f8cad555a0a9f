// SPDX-License-Identifier: Apache-2.0
// The CUDA runtime's functions that the backend and CudaMath call, done at once on the host: memories are the host's,
// copies are copies, and a launch runs its kernel for one thread after the other. No GPU is pretended: of order, time
// and failures the tests of tests/cuda_calls know more. Here it is about what is launched, and with which arguments.
#include <cuda_runtime_api.h>

#include <cmath>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <utility>

#include "neural/cuda/host_runtime.hpp"
#include "neural/cuda_kernels.hpp"
#include "support/host_kernel.hpp"

// ---- kernels.h, as functions of the host

namespace {

dim3 block_of_thread;
dim3 thread;
dim3 threads_of_block;

swapmm_index item(int dimension) {
  switch (dimension) {
    case 0: return static_cast<swapmm_index>(block_of_thread.x) * threads_of_block.x + thread.x;
    case 1: return static_cast<swapmm_index>(block_of_thread.y) * threads_of_block.y + thread.y;
    default: return static_cast<swapmm_index>(block_of_thread.z) * threads_of_block.z + thread.z;
  }
}

}  // namespace

#define SWAPMM_KERNEL extern "C"
#define SWAPMM_GLOBAL
#define SWAPMM_RESTRICT
#define SWAPMM_ID(d) item(d)
using std::exp;
using std::log;
using std::tanh;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#include "neural/kernels.h"
#pragma GCC diagnostic pop

namespace {

using swapmm::test::kernel_entry;
using swapmm::test::KernelCaller;

const std::map<const void*, KernelCaller>& kernels() {
  static const std::map<const void*, KernelCaller> all{
      kernel_entry(neural_transpose),     kernel_entry(neural_fill),          kernel_entry(neural_bias_relu),
      kernel_entry(neural_relu_backward), kernel_entry(neural_column_sums),   kernel_entry(neural_add_parts),
      kernel_entry(neural_im2col),        kernel_entry(neural_col2im),        kernel_entry(neural_max_pool),
      kernel_entry(neural_softmax_loss),  kernel_entry(neural_right_answers), kernel_entry(neural_max_pool_backward),
      kernel_entry(neural_add_counts),    kernel_entry(neural_momentum_step), kernel_entry(neural_lstm),
      kernel_entry(neural_lstm_backward)};
  return all;
}

[[noreturn]] void stop(const char* why) {
  std::fprintf(stderr, "host runtime: %s\n", why);
  std::abort();
}

bool fits(const dim3& grid, const dim3& block) {
  constexpr unsigned most_yz = 65535;
  return grid.x > 0 && grid.x <= 2147483647U && grid.y > 0 && grid.y <= most_yz && grid.z > 0 && grid.z <= most_yz &&
         block.x > 0 && block.y > 0 && block.z > 0 && block.z <= 64 && std::size_t{block.x} * block.y * block.z <= 1024;
}

cudaError_t next_launch = cudaSuccess;

cudaStream_t some_stream() {
  static char bytes[64];
  static std::size_t made = 0;
  return reinterpret_cast<cudaStream_t>(&bytes[made++ % sizeof bytes]);
}

}  // namespace

void swapmm::test::fail_next_launch(cudaError_t status) { next_launch = status; }

// NOLINTBEGIN(readability-identifier-naming, readability-inconsistent-declaration-parameter-name): the API's names
extern "C" {

cudaError_t cudaLaunchKernel(const void* kernel, dim3 grid, dim3 block, void** arguments, size_t, cudaStream_t) {
  if (next_launch != cudaSuccess) return std::exchange(next_launch, cudaSuccess);
  const auto found = kernels().find(kernel);
  if (found == kernels().end()) return cudaErrorInvalidDeviceFunction;
  if (!fits(grid, block)) return cudaErrorInvalidConfiguration;
  threads_of_block = block;
  dim3& b = block_of_thread;
  dim3& t = thread;
  for (b.z = 0; b.z < grid.z; ++b.z) {
    for (b.y = 0; b.y < grid.y; ++b.y) {
      for (b.x = 0; b.x < grid.x; ++b.x) {
        for (t.z = 0; t.z < block.z; ++t.z) {
          for (t.y = 0; t.y < block.y; ++t.y) {
            for (t.x = 0; t.x < block.x; ++t.x) found->second(kernel, arguments);
          }
        }
      }
    }
  }
  return cudaSuccess;
}

// ---- memory

cudaError_t cudaMalloc(void** memory, size_t size) {
  *memory = std::aligned_alloc(256, (size + 255) / 256 * 256);
  // Whatever depends on it is seen.
  if (*memory != nullptr) std::memset(*memory, 0xff, size);
  return *memory == nullptr ? cudaErrorMemoryAllocation : cudaSuccess;
}
cudaError_t cudaFree(void* memory) {
  std::free(memory);
  return cudaSuccess;
}
cudaError_t cudaHostAlloc(void** memory, size_t size, unsigned) {
  *memory = std::aligned_alloc(4096, (size + 4095) / 4096 * 4096);
  return *memory == nullptr ? cudaErrorMemoryAllocation : cudaSuccess;
}
cudaError_t cudaFreeHost(void* memory) { return cudaFree(memory); }
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t size, cudaMemcpyKind, cudaStream_t) {
  std::memcpy(to, from, size);
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* to, int value, size_t size, cudaStream_t) {
  std::memset(to, value, size);
  return cudaSuccess;
}
cudaError_t cudaLaunchHostFunc(cudaStream_t, cudaHostFn_t function, void* argument) {
  function(argument);
  return cudaSuccess;
}
cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  *free = *total = std::size_t{1} << 30U;
  return cudaSuccess;
}

// ---- one device

cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  std::memset(properties, 0, sizeof *properties);
  std::strcpy(properties->name, "the host");
  properties->totalGlobalMem = std::size_t{1} << 30U;
  properties->major = 9;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr what, int) {
  if (what == cudaDevAttrAsyncEngineCount) {
    *value = 2;
  } else if (what == cudaDevAttrComputeCapabilityMajor) {
    *value = 9;
  } else {
    stop("asked for an attribute that it does not know");
  }
  return cudaSuccess;
}
cudaError_t cudaDeviceGetPCIBusId(char* text, int length, int) {
  std::snprintf(text, static_cast<std::size_t>(length), "ffff:00:00.0");
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int) { return cudaSuccess; }
// There is one device.
cudaError_t cudaDeviceCanAccessPeer(int* can, int, int) {
  *can = 0;
  return cudaSuccess;
}
cudaError_t cudaDeviceEnablePeerAccess(int, unsigned) { return cudaErrorPeerAccessUnsupported; }
cudaError_t cudaMemcpyPeerAsync(void*, int, const void*, int, size_t, cudaStream_t) { return cudaErrorInvalidDevice; }
cudaError_t cudaDriverGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) { return cudaDriverGetVersion(version); }

// ---- streams and events: whatever was queued has ended

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  *stream = some_stream();
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned) { return cudaSuccess; }
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  *event = reinterpret_cast<cudaEvent_t>(some_stream());
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t) { return cudaSuccess; }
cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t) { return cudaSuccess; }
cudaError_t cudaEventQuery(cudaEvent_t) { return cudaSuccess; }
cudaError_t cudaEventSynchronize(cudaEvent_t) { return cudaSuccess; }
cudaError_t cudaEventElapsedTime(float* time, cudaEvent_t, cudaEvent_t) {
  *time = 0.01F;
  return cudaSuccess;
}

// ---- errors

cudaError_t cudaGetLastError() { return cudaSuccess; }
cudaError_t cudaPeekAtLastError() { return cudaSuccess; }
const char* cudaGetErrorName(cudaError_t) { return "cudaError"; }
const char* cudaGetErrorString(cudaError_t) { return "an error"; }

// ---- not here

cudaError_t cudaStreamBeginCapture(cudaStream_t, cudaStreamCaptureMode) { return cudaErrorNotSupported; }
cudaError_t cudaStreamEndCapture(cudaStream_t, cudaGraph_t*) { return cudaErrorNotSupported; }
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t*, cudaGraph_t, unsigned long long) {
  return cudaErrorNotSupported;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t, cudaStream_t) { return cudaErrorNotSupported; }
cudaError_t cudaGraphDestroy(cudaGraph_t) { return cudaSuccess; }
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t) { return cudaSuccess; }

}  // extern "C"
// NOLINTEND(readability-identifier-naming, readability-inconsistent-declaration-parameter-name)
