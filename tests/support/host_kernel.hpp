// SPDX-License-Identifier: Apache-2.0
#pragma once

// Kernels that are functions of the host, called with arguments as cudaLaunchKernel() gets them.

#include <cstddef>
#include <utility>

namespace swapmm::test {

using KernelCaller = void (*)(const void* kernel, void** arguments);

namespace detail {
template <class... Parameters, std::size_t... I>
void call_kernel(void (*kernel)(Parameters...), void** arguments, std::index_sequence<I...>) {
  kernel(*static_cast<Parameters*>(arguments[I])...);
}
}  // namespace detail

/// A kernel's address, and what calls it.
template <class... Parameters>
std::pair<const void* const, KernelCaller> kernel_entry(void (*kernel)(Parameters...)) {
  return {reinterpret_cast<const void*>(kernel), [](const void* which, void** arguments) {
            auto* const typed = reinterpret_cast<void (*)(Parameters...)>(const_cast<void*>(which));
            detail::call_kernel(typed, arguments, std::index_sequence_for<Parameters...>());
          }};
}

}  // namespace swapmm::test
