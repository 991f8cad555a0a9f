// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a backend may define beside its functions: types for scopes around the library's calls, and a function that is
// told whose value a copy moves.

#include <cstdint>
#include <string_view>

#include <swapmm/backend/backend.hpp>

namespace swapmm::runtime {

/// Used if the backend does not define a scope.
struct NoScope {
  void check() {}
};

/// Exists while the callable of that operation runs. check() is called after the callable.
template <Backend B>
[[nodiscard]] auto around_operation([[maybe_unused]] B& backend, [[maybe_unused]] std::string_view name) {
  if constexpr (requires { typename B::OperationScope; }) {
    return typename B::OperationScope(backend, name);
  } else {
    return NoScope{};
  }
}

/// Exists while the library queues work or waits.
template <Backend B>
[[nodiscard]] auto annotate([[maybe_unused]] const B& backend, [[maybe_unused]] AnnotationKind kind,
                            [[maybe_unused]] std::string_view name) {
  if constexpr (requires { typename B::Annotation; }) {
    return typename B::Annotation(backend, kind, name);
  } else {
    return NoScope{};
  }
}

/// Tells a NamedCopyBackend whose value the next copy moves.
template <Backend B>
void name_next_copy([[maybe_unused]] B& backend, [[maybe_unused]] std::uint64_t serial) {
  if constexpr (NamedCopyBackend<B>) backend.next_copy_of(serial);
}

}  // namespace swapmm::runtime
