// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include <swapmm/swapmm.h>
#include <swapmm/base/error.hpp>
#include <swapmm/base/export.hpp>

// Between exceptions and the codes of the C interface. Functions that carry SWAPMM_TEMPLATE_EXPORT are for the
// backends' libraries.

namespace swapmm::c_interface {

/// Called while an exception is handled: its code. Keeps its text for swapmm_last_error().
[[nodiscard]] SWAPMM_TEMPLATE_EXPORT swapmm_status failure() noexcept;

/// Runs `body`. No exception leaves this.
template <class Body>
[[nodiscard]] swapmm_status guarded(Body&& body) noexcept {
  try {
    body();
    return SWAPMM_OK;
  } catch (...) {
    return failure();
  }
}

/// The object of a pointer that the caller passes. Throws UsageError if it is null.
template <class T>
[[nodiscard]] T& required(T* pointer, const char* what) {
  if (pointer == nullptr) throw UsageError(std::string(what) + " is null");
  return *pointer;
}

/// Gives the caller the new object that `make()` returns; null if it throws. `what` names the caller's pointer.
template <class Object, class Make>
[[nodiscard]] swapmm_status make_object(Object** object, const char* what, Make&& make) noexcept {
  return guarded([&] {
    Object*& made = required(object, what);
    made = nullptr;
    made = make();
  });
}

/// A text that the caller passes, or the default if it is null.
[[nodiscard]] inline std::string_view text_or(const char* text, std::string_view otherwise) {
  return text == nullptr ? otherwise : std::string_view(text);
}

}  // namespace swapmm::c_interface
