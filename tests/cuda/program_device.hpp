// SPDX-License-Identifier: Apache-2.0
#pragma once

// A CUDA device under the runner of programs.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "cuda/support.hpp"
#include "support/program/device.hpp"
#include "support/program/stage.hpp"

namespace swapmm::test {

inline void check_cuda(cudaError_t status, const char* what) {
  if (status != cudaSuccess) throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(status));
}

/// Page-locked bytes for all operations of a program. Memory once taken stays for the next program.
class PinnedStages {
 public:
  /// All earlier ones may be given out again.
  void restart() {
    chunk_ = 0;
    used_ = 0;
  }
  [[nodiscard]] std::byte* take(std::size_t size) {
    while (chunk_ < chunks_.size() && chunks_[chunk_].size - used_ < size) {
      ++chunk_;
      used_ = 0;
    }
    if (chunk_ == chunks_.size()) {
      constexpr std::size_t usual = std::size_t{16} << 20U;
      Chunk chunk{nullptr, std::max(size, usual)};
      void* data = nullptr;
      check_cuda(cudaHostAlloc(&data, chunk.size, cudaHostAllocPortable), "cudaHostAlloc");
      chunk.data = static_cast<std::byte*>(data);
      chunks_.push_back(chunk);
    }
    return chunks_[chunk_].data + std::exchange(used_, used_ + size);
  }

 private:
  struct Chunk {
    std::byte* data;
    std::size_t size;
  };
  std::vector<Chunk> chunks_;
  std::size_t chunk_ = 0;  // that is given out
  std::size_t used_ = 0;   // of it
};

/// Operations need no kernel: on op.stream(), operands are copied to the host, a function there reads and writes them,
/// and what it wrote is copied back, while the program goes on. The second form gives an event of its own, or none.
class CudaProgramDevice {
 public:
  using Backend = cuda::Backend;
  using Place = cuda::View<std::byte>;

  explicit CudaProgramDevice(const TestProgram&) { stages().restart(); }

  /// All programs run on one, as making one takes its time.
  [[nodiscard]] static const Backend& backend() {
    static const auto& backend = *new Backend(cuda_backend());  // never destroyed: the driver may be gone before it
    return backend;
  }

  static void launch(cudaStream_t& stream, std::string_view, Kernel& kernel, const LaunchForm& form,
                     std::span<const Place> places) {
    KernelStage stage(kernel);
    stage.place(stages().take(stage.size()));
    const auto fetch = [&](std::size_t i) {
      check_cuda(cudaMemcpyAsync(stage.data(i), places[i].data(), stage.size_of(i), cudaMemcpyDeviceToHost, stream),
                 "an operand to the host");
    };
    const auto put = [&](std::size_t i) {
      check_cuda(cudaMemcpyAsync(places[i].data(), stage.data(i), stage.size_of(i), cudaMemcpyHostToDevice, stream),
                 "an operand to the device");
    };
    // The stream runs it on a thread of the driver's. It calls nothing of CUDA: that is forbidden there.
    const auto body = [&](KernelPhase phase) {
      const cudaHostFn_t function = phase == KernelPhase::read    ? run_phase<KernelPhase::read>
                                    : phase == KernelPhase::write ? run_phase<KernelPhase::write>
                                                                  : run_phase<KernelPhase::both>;
      check_cuda(cudaLaunchHostFunc(stream, function, &kernel), "cudaLaunchHostFunc");
    };
    stage.run(form, fetch, put, body);
  }
  cuda::NativeEvent launch(cudaStream_t& stream, std::string_view name, Kernel& kernel, const LaunchForm& form,
                           std::span<const Place> places, const cuda::WaitList& waits) {
    waits.queue_on(stream);
    launch(stream, name, kernel, form, places);
    if (form.two_phases) return {};
    cudaEvent_t event = nullptr;
    check_cuda(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreateWithFlags");
    events_.emplace_back(event);
    check_cuda(cudaEventRecord(event, stream), "cudaEventRecord");
    return {event};
  }

  [[nodiscard]] static ProgramPlace place(const Place& place) {
    return {nullptr, reinterpret_cast<std::uintptr_t>(place.data())};
  }

  [[nodiscard]] static std::string violation() {
    const cudaError_t status = cudaPeekAtLastError();
    return status == cudaSuccess ? std::string()
                                 : std::string("an error is left in CUDA: ") + cudaGetErrorString(status);
  }
  [[nodiscard]] static std::string excess(const Report&, const Options&) { return {}; }
  [[nodiscard]] static std::string left_over() { return {}; }
  [[nodiscard]] static std::uint64_t trace_hash() { return 0; }

 private:
  struct DestroyEvent {
    void operator()(cudaEvent_t event) const { cudaEventDestroy(event); }
  };
  using Event = std::unique_ptr<std::remove_pointer_t<cudaEvent_t>, DestroyEvent>;

  static PinnedStages& stages() {
    static auto& stages = *new PinnedStages;
    return stages;
  }
  template <KernelPhase phase>
  static void CUDART_CB run_phase(void* kernel) {
    run_body(*static_cast<const Kernel*>(kernel), phase);
  }

  std::vector<Event> events_;  // of operations; they live as long as the program runs
};

static_assert(ProgramDevice<CudaProgramDevice>);

}  // namespace swapmm::test
