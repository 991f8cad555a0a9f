// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a backend may want to have done around the library's calls. Both are types of the backend that it need not have.

#include <string_view>

#include <swapmm/backend/backend.hpp>

namespace swapmm::runtime {

/// Where a backend has nothing to do.
struct NoScope {
  void check() {}
};

/// For as long as the callable of that operation runs; its check() comes behind the callable.
template <Backend B>
[[nodiscard]] auto around_operation([[maybe_unused]] B& backend, [[maybe_unused]] std::string_view name) {
  if constexpr (requires { typename B::OperationScope; }) {
    return typename B::OperationScope(backend, name);
  } else {
    return NoScope{};
  }
}

/// For as long as the library queues or waits.
template <Backend B>
[[nodiscard]] auto annotate([[maybe_unused]] const B& backend, [[maybe_unused]] AnnotationKind kind,
                            [[maybe_unused]] std::string_view name) {
  if constexpr (requires { typename B::Annotation; }) {
    return typename B::Annotation(backend, kind, name);
  } else {
    return NoScope{};
  }
}

}  // namespace swapmm::runtime
