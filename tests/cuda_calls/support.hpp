// SPDX-License-Identifier: Apache-2.0
#pragma once

// A backend on the fake runtime, and the operations of support/numbers.hpp there: they are queued and checked, and
// compute nothing.

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <swapmm/cuda/backend.hpp>
#include <swapmm/runtime/instances.hpp>
#include <swapmm/swapmm.hpp>

#include "cuda_calls/fake_runtime.hpp"
#include "support/chain.hpp"

namespace swapmm::test {

/// Tells the checker what the host itself reads and writes.
class CheckedBackend : public cuda::Backend {
 public:
  using cuda::Backend::Backend;
  CheckedBackend(const cuda::Backend& backend) : cuda::Backend(backend) {}  // NOLINT(*-explicit-*)

  void note_host_access(const HostMemory& memory, Bytes offset, Bytes size, bool write) {
    fake_cuda::host_access(memory.data() + offset.value, static_cast<std::size_t>(size.value), write);
  }
};

/// Without the measurement, whose calls are a test's of their own.
inline CheckedBackend fake_backend(bool nvtx = false, int device = 0) {
  return CheckedBackend(device, cuda::Settings{.nvtx = nvtx, .measure = false});
}

/// The calls of one function so far.
inline std::vector<fake_cuda::Call> calls_of(const std::string& function) {
  std::vector<fake_cuda::Call> found;
  for (const fake_cuda::Call& call : fake_cuda::calls()) {
    if (call.function == function) found.push_back(call);
  }
  return found;
}

/// The bytes of a tensor in an operation, read or written.
template <class T>
ByteAccess bytes_of(const cuda::View<T>& view, bool write) {
  return {reinterpret_cast<std::uintptr_t>(view.data()), view.bytes(), write};
}

/// The calls that found nothing wrong so far, as a text for messages.
inline std::string violations_text() {
  std::string text;
  for (const std::string& each : fake_cuda::violations()) text += each + "; ";
  return text;
}

/// Two devices; nothing of them may be left, and nothing misused.
struct TwoDevicesFixture {
  TwoDevicesFixture() { fake_cuda::restart({{}, {.name = "Second GPU"}}); }
  ~TwoDevicesFixture() {
    CHECK_MESSAGE(fake_cuda::violations().empty(), violations_text());
    CHECK(fake_cuda::objects() == fake_cuda::Objects{});
    CHECK(fake_cuda::current_device() == 0);
  }
};

namespace detail {
template <Backend B, class Accesses, class... Parts>
void run_fake(MemoryManager<B>& manager, Form form, std::string_view name, Accesses&& accesses, const Parts&... parts) {
  if (form == Form::plain) {
    manager.run(name, parts..., [&](auto& op) {
      callable_began = true;
      fake_cuda::launch(op.stream(), accesses(op), std::string(name));
    });
    return;
  }
  manager.run(name, parts..., [&](auto& op, const auto& waits) {
    callable_began = true;
    waits.queue_on(op.stream());
    fake_cuda::launch(op.stream(), accesses(op), std::string(name));
    return cuda::NativeEvent();
  });
}
}  // namespace detail

template <Backend B, class From, class To>
void run_affine(MemoryManager<B>& manager, Form form, std::string_view name, const From& from, const To& to, Number) {
  const auto accesses = [&](auto& op) {
    return std::vector<ByteAccess>{bytes_of(op[from], false), bytes_of(op[to], true)};
  };
  detail::run_fake(manager, form, name, accesses, reads(from), writes(to));
}
template <Backend B, class A, class Other, class To>
void run_blend(MemoryManager<B>& manager, Form form, std::string_view name, const A& a, const Other& b, const To& to) {
  const auto accesses = [&](auto& op) {
    return std::vector<ByteAccess>{bytes_of(op[a], false), bytes_of(op[b], false), bytes_of(op[to], true)};
  };
  detail::run_fake(manager, form, name, accesses, reads(a, b), writes(to));
}
template <Backend B, class By, class To>
void run_grow(MemoryManager<B>& manager, Form form, std::string_view name, const By& by, const To& to) {
  const auto accesses = [&](auto& op) {
    return std::vector<ByteAccess>{bytes_of(op[by], false), bytes_of(op[to], true)};
  };
  detail::run_fake(manager, form, name, accesses, reads(by), updates(to));
}

}  // namespace swapmm::test

// Compiled once, and not in each test that uses a manager.
namespace swapmm::runtime {
SWAPMM_RUNTIME_INSTANCES(extern template, , test::CheckedBackend);
}  // namespace swapmm::runtime
