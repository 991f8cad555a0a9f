// SPDX-License-Identifier: Apache-2.0
#pragma once

// The operations of support/numbers.hpp on a CUDA device.

#include <sstream>
#include <string_view>

#include <swapmm/cuda/backend.hpp>
#include <swapmm/swapmm.hpp>

#include "cuda/kernels.hpp"
#include "support/chain.hpp"

namespace swapmm::test {

/// On the device that Backend::pick() takes, without a word. It is the thread's current one from then on, for what
/// tests make and launch themselves.
inline cuda::Backend cuda_backend(const cuda::Settings& settings = {}) {
  std::ostringstream silent;
  cuda::Backend backend = cuda::Backend::pick(silent, settings);
  (void)cudaSetDevice(backend.device());
  return backend;
}

/// Runs an operation of one kernel, which `launch(stream, op)` puts on the stream.
template <Backend B, class Launch, class... Parts>
void run_kernel(MemoryManager<B>& manager, Form form, std::string_view name, Launch&& launch, const Parts&... parts) {
  if (form == Form::plain) {
    manager.run(name, parts..., [&](auto& op) {
      callable_began = true;
      launch(op.stream(), op);
    });
    return;
  }
  manager.run(name, parts..., [&](auto& op, const cuda::WaitList& waits) {
    callable_began = true;
    waits.queue_on(op.stream());
    launch(op.stream(), op);
    return cuda::NativeEvent();
  });
}

template <Backend B, class From, class To>
void run_affine(MemoryManager<B>& manager, Form form, std::string_view name, const From& from, const To& to,
                Number added) {
  const auto launch = [&](cudaStream_t stream, auto& op) {
    launch_affine(stream, op[from].data(), op[to].data(), to.size(), added);
  };
  run_kernel(manager, form, name, launch, reads(from), writes(to));
}
template <Backend B, class A, class Other, class To>
void run_blend(MemoryManager<B>& manager, Form form, std::string_view name, const A& a, const Other& b, const To& to) {
  const auto launch = [&](cudaStream_t stream, auto& op) {
    launch_blend(stream, op[a].data(), op[b].data(), op[to].data(), to.size());
  };
  run_kernel(manager, form, name, launch, reads(a, b), writes(to));
}
template <Backend B, class By, class To>
void run_grow(MemoryManager<B>& manager, Form form, std::string_view name, const By& by, const To& to) {
  const auto launch = [&](cudaStream_t stream, auto& op) {
    launch_grow(stream, op[by].data(), op[to].data(), to.size());
  };
  run_kernel(manager, form, name, launch, reads(by), updates(to));
}

}  // namespace swapmm::test
