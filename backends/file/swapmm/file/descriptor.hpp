// SPDX-License-Identifier: Apache-2.0
#pragma once

// Internal to the component; not for programs.

#include <unistd.h>

#include <string>
#include <system_error>
#include <utility>

#include <swapmm/base/error.hpp>

namespace swapmm::file::detail {

/// Owns an open file, or none.
class Descriptor {
 public:
  Descriptor() = default;
  /// Takes the file over; -1: none.
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }

  explicit operator bool() const { return number_ >= 0; }
  [[nodiscard]] int get() const { return number_; }

 private:
  int number_ = -1;
};

/// The error of a call of the system: `what` and the text of the error number, which is the code.
[[nodiscard]] inline BackendError error_of(int number, const std::string& what) {
  return {BackendError::Kind::failed, number, what + ": " + std::generic_category().message(number)};
}

}  // namespace swapmm::file::detail
