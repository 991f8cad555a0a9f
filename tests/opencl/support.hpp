// SPDX-License-Identifier: Apache-2.0
#pragma once

// The operations of support/numbers.hpp as kernels, and one context that tests share, so that they are compiled once.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <swapmm/opencl/backend.hpp>
#include <swapmm/opencl/program.hpp>
#include <swapmm/swapmm.hpp>

#include "opencl/api_calls.hpp"
#include "opencl/device.hpp"
#include "support/numbers.hpp"
#include "support/small_program.hpp"

namespace swapmm::test {

/// The first backend on the device. It stays for good, for the driver may be gone before the program's last objects.
inline const opencl::Backend& first_backend() {
  static const auto& backend = *new opencl::Backend(test::backend());
  return backend;
}
/// A backend of its own on the context that tests share.
inline opencl::Backend shared_backend(cl_command_queue queue = nullptr) {
  return {first_backend().context(), first_backend().device(), queue};
}

/// True for a GPU with memory of its own. There, making a context and compiling for it takes about a second.
inline bool device_is_far() { return !first_backend().capabilities().host_shares_memory; }
/// A backend for tests that want nothing of before: on a context of its own, but not on a device that is far.
inline opencl::Backend fresh_backend() { return device_is_far() ? shared_backend() : backend(); }

/// On a device that interprets kernels, long tests do a part of their work.
inline bool device_is_slow() { return first_backend().capabilities().device_name.find("clgrind") != std::string::npos; }

/// Each has a namesake in support/numbers.hpp that does the same on the host.
struct Kernels {
  static constexpr const char* source = R"(
__kernel void affine(__global const uint* from, __global uint* to, uint added) {
  size_t i = get_global_id(0);
  to[i] = 3u * from[i] + added;
}
__kernel void blend(__global const uint* a, __global const uint* b, __global uint* to) {
  size_t i = get_global_id(0);
  to[i] = 3u * a[i] + 5u * b[i] + (uint)i;
}
__kernel void grow(__global const uint* by, __global uint* to) {
  size_t i = get_global_id(0);
  to[i] = 7u * to[i] + by[i];
}
__kernel void set(__global uint* to, uint value) { to[get_global_id(0)] = value; }
)";
  opencl::Program program{first_backend(), source};
  opencl::Kernel affine = program.kernel("affine");
  opencl::Kernel blend = program.kernel("blend");
  opencl::Kernel grow = program.kernel("grow");
  opencl::Kernel set = program.kernel("set");
};
/// On the shared context. Never destroyed, see first_backend().
inline Kernels& kernels() {
  static auto& made = *new Kernels;
  return made;
}

/// The objects of the API while nothing is being tested: with those that tests share, which stay.
inline ApiObjects objects_at_rest() {
  (void)kernels();
  return api_objects();
}

/// What op[tensor] gives, as a kernel's argument: also where a backend around this one has a view of its own.
template <class T>
const opencl::View<T>& argument_of(const opencl::View<T>& view) {
  return view;
}

/// Runs an operation of one kernel over `size` work items: set_arguments(op) sets its arguments.
template <Backend B, class SetArguments, class... Parts>
void run_kernel(MemoryManager<B>& manager, std::string_view name, Form form, opencl::Kernel& kernel, std::size_t size,
                SetArguments&& set_arguments, const Parts&... parts) {
  if (form == Form::plain) {
    manager.run(name, parts..., [&](auto& op) {
      callable_began = true;
      set_arguments(op);
      kernel.enqueue(op.queue(), {size});
    });
  } else {
    manager.run(name, parts..., [&](auto& op, const opencl::WaitList& waits) {
      callable_began = true;
      set_arguments(op);
      return kernel.enqueue(op.queue(), {size}, {}, waits);
    });
  }
}

template <Backend B, class From, class To>
void run_affine(MemoryManager<B>& manager, Form form, std::string_view name, const From& from, const To& to,
                Number added) {
  run_kernel(
      manager, name, form, kernels().affine, to.size(),
      [&](auto& op) { kernels().affine.set(argument_of<Number>(op[from]), argument_of<Number>(op[to]), added); },
      reads(from), writes(to));
}
template <Backend B, class A, class Other, class To>
void run_blend(MemoryManager<B>& manager, Form form, std::string_view name, const A& a, const Other& b, const To& to) {
  run_kernel(
      manager, name, form, kernels().blend, to.size(),
      [&](auto& op) {
        kernels().blend.set(argument_of<Number>(op[a]), argument_of<Number>(op[b]), argument_of<Number>(op[to]));
      },
      reads(a, b), writes(to));
}
template <Backend B, class By, class To>
void run_grow(MemoryManager<B>& manager, Form form, std::string_view name, const By& by, const To& to) {
  run_kernel(
      manager, name, form, kernels().grow, to.size(),
      [&](auto& op) { kernels().grow.set(argument_of<Number>(op[by]), argument_of<Number>(op[to])); }, reads(by),
      updates(to));
}

}  // namespace swapmm::test
