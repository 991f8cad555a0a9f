// SPDX-License-Identifier: Apache-2.0
// The CUDA runtime's functions that the codec and its test call, done at once on the host, and the codec's kernels as
// functions of the host. The work items of a group are fibers: each runs to its next barrier, or to its end, and then
// the next one does, in an order that differs from launch to launch. So what lacks a barrier gives wrong values.
#include <cuda_runtime_api.h>
#include <ucontext.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <map>
#include <numeric>
#include <random>
#include <vector>

#include <swapmm/cuda/codec/zero_kernels.hpp>

#include "cuda_codec/host_runtime.hpp"
#include "support/host_kernel.hpp"

// ---- the kernels, as functions of the host

namespace {

constexpr std::size_t group_size = 128;

int running_item = 0;  // the work item that runs
unsigned running_group = 0;
void barrier();

unsigned bits_set(unsigned word) { return static_cast<unsigned>(__builtin_popcount(word)); }

}  // namespace

#define SWAPMM_KERNEL static
#define SWAPMM_GLOBAL
#define SWAPMM_RESTRICT
#define SWAPMM_ZERO_FUNCTION inline
#define SWAPMM_ZERO_SHARED static
#define SWAPMM_ZERO_IN_SHARED
#define SWAPMM_ZERO_ITEM running_item
#define SWAPMM_ZERO_GROUP_INDEX static_cast<swapmm_index>(running_group)
#define SWAPMM_ZERO_BARRIER() barrier()
#define SWAPMM_ZERO_BITS_SET(word) bits_set(word)
#define SWAPMM_ZERO_SET_BITS(place, bits) (*(place) |= (bits))
using swapmm_zero_u64 = unsigned long long;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#include "codec/all_kernels.h"
#pragma GCC diagnostic pop

namespace {

using swapmm::test::kernel_entry;
using swapmm::test::KernelCaller;

const std::map<const void*, KernelCaller>& kernels() {
  static const std::map<const void*, KernelCaller> all{
      kernel_entry(swapmm_zero_scan_chunks),  kernel_entry(swapmm_zero_begin_encode),
      kernel_entry(swapmm_zero_begin_decode), kernel_entry(swapmm_zero_move),
      kernel_entry(swapmm_zero_count_1),      kernel_entry(swapmm_zero_pack_1),
      kernel_entry(swapmm_zero_unpack_1),     kernel_entry(swapmm_zero_count_2),
      kernel_entry(swapmm_zero_pack_2),       kernel_entry(swapmm_zero_unpack_2),
      kernel_entry(swapmm_zero_count_4),      kernel_entry(swapmm_zero_pack_4),
      kernel_entry(swapmm_zero_unpack_4),     kernel_entry(swapmm_zero_count_8),
      kernel_entry(swapmm_zero_pack_8),       kernel_entry(swapmm_zero_unpack_8)};
  return all;
}

template <class Function>
const void* address(Function* function) {
  return reinterpret_cast<const void*>(function);
}

// The number of the kernel's parameters is known to its type alone: parts begin at the last of them.
long long last_argument(const void* kernel, void** arguments) {
  const auto& all = *swapmm::cuda::detail::zero_kernels();
  if (kernel == all.begin_encode || kernel == all.begin_decode || kernel == all.move) return 0;
  std::size_t last = kernel == all.scan_chunks ? 5 : 4;  // of pack and unpack
  for (const auto& element : all.elements) {
    if (kernel == element.count) last = 3;
  }
  return *static_cast<long long*>(arguments[last]);
}

// ---- fibers

struct Fiber {
  ucontext_t context{};
  std::vector<std::byte> stack = std::vector<std::byte>(std::size_t{1} << 16U);
  bool ended = false;
};
std::array<Fiber, group_size> fibers;
ucontext_t scheduler;
KernelCaller caller = nullptr;
const void* launched = nullptr;
void** launched_arguments = nullptr;

Fiber& running() { return fibers[static_cast<std::size_t>(running_item)]; }
void barrier() { swapcontext(&running().context, &scheduler); }
void run_item() {
  caller(launched, launched_arguments);
  running().ended = true;
}

void start(Fiber& fiber) {
  getcontext(&fiber.context);
  fiber.context.uc_stack.ss_sp = fiber.stack.data();
  fiber.context.uc_stack.ss_size = fiber.stack.size();
  fiber.context.uc_link = &scheduler;
  fiber.ended = false;
  makecontext(&fiber.context, run_item, 0);
}

// False if some work items end where others wait at a barrier: on a GPU they would wait for ever.
bool run_group(const std::vector<int>& order) {
  for (Fiber& fiber : fibers) start(fiber);
  std::size_t ended = 0;
  while (ended == 0) {
    for (const int next : order) {
      running_item = next;
      swapcontext(&scheduler, &running().context);
      ended += running().ended ? 1 : 0;
    }
  }
  return ended == group_size;
}

}  // namespace

std::vector<swapmm::test::Launch>* swapmm::test::recorded_launches = nullptr;

namespace swapmm::cuda::detail {

#define SWAPMM_HOST_KERNELS(bytes) \
  { address(swapmm_zero_count_##bytes), address(swapmm_zero_pack_##bytes), address(swapmm_zero_unpack_##bytes) }

const ZeroKernels* zero_kernels() {
  static const ZeroKernels all{
      address(swapmm_zero_scan_chunks),
      address(swapmm_zero_begin_encode),
      address(swapmm_zero_begin_decode),
      address(swapmm_zero_move),
      {SWAPMM_HOST_KERNELS(1), SWAPMM_HOST_KERNELS(2), SWAPMM_HOST_KERNELS(4), SWAPMM_HOST_KERNELS(8)}};
  return &all;
}

}  // namespace swapmm::cuda::detail

// NOLINTBEGIN(readability-identifier-naming, readability-inconsistent-declaration-parameter-name): the API's names
extern "C" {

cudaError_t cudaLaunchKernel(const void* kernel, dim3 grid, dim3 block, void** arguments, size_t, cudaStream_t) {
  const auto found = kernels().find(kernel);
  if (found == kernels().end()) return cudaErrorInvalidDeviceFunction;
  if (grid.x == 0 || block.x != group_size) return cudaErrorInvalidConfiguration;
  if (swapmm::test::recorded_launches != nullptr) {
    swapmm::test::recorded_launches->push_back({kernel, grid.x, last_argument(kernel, arguments)});
    return cudaSuccess;
  }
  caller = found->second;
  launched = kernel;
  launched_arguments = arguments;
  static std::mt19937 random(1);
  std::vector<int> order(group_size);
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), random);
  for (running_group = 0; running_group < grid.x; ++running_group) {
    if (!run_group(order)) return cudaErrorLaunchTimeout;
  }
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** memory, size_t size) {
  *memory = std::aligned_alloc(256, (size + 255) / 256 * 256);
  return *memory == nullptr ? cudaErrorMemoryAllocation : cudaSuccess;
}
cudaError_t cudaFree(void* memory) {
  std::free(memory);
  return cudaSuccess;
}
cudaError_t cudaHostAlloc(void** memory, size_t size, unsigned) { return cudaMalloc(memory, size); }
cudaError_t cudaFreeHost(void* memory) { return cudaFree(memory); }
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t size, cudaMemcpyKind, cudaStream_t) {
  std::memcpy(to, from, size);
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned) { return cudaSuccess; }
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  std::memset(properties, 0, sizeof *properties);
  std::strcpy(properties->name, "the host");
  return cudaSuccess;
}
cudaError_t cudaGetLastError() { return cudaSuccess; }
cudaError_t cudaPeekAtLastError() { return cudaSuccess; }
const char* cudaGetErrorName(cudaError_t) { return "cudaError"; }
const char* cudaGetErrorString(cudaError_t) { return "an error"; }

}  // extern "C"
// NOLINTEND(readability-identifier-naming, readability-inconsistent-declaration-parameter-name)
