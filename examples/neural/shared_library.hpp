// SPDX-License-Identifier: Apache-2.0
#pragma once

// Libraries that a program uses where they are installed, and starts without where they are not.

#include <initializer_list>
#include <string>
#include <string_view>

namespace neural {

/// A library that was loaded while the program runs. It stays loaded until the process ends: what it started (threads,
/// handlers) may outlive every object of ours.
class SharedLibrary {
 public:
  /// Loads the first of the files that the system's loader finds, LD_LIBRARY_PATH included. `what` is the library's
  /// name for people. Throws std::runtime_error, which says what was tried and why each did not do.
  SharedLibrary(std::string_view what, std::initializer_list<const char*> files);

  /// The file that was loaded: "libcublas.so.13".
  [[nodiscard]] const std::string& file() const { return file_; }
  /// A function by its symbol; the type is that of its declaration in the library's header. Throws std::runtime_error
  /// where the library does not have it.
  template <class Function>
  [[nodiscard]] Function* function(const char* symbol) const {
    return reinterpret_cast<Function*>(address(symbol));
  }

 private:
  [[nodiscard]] void* address(const char* symbol) const;

  std::string file_;
  void* handle_ = nullptr;
};

}  // namespace neural
