// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

namespace swapmm::opencl::layer {

/// Texts that outlive the process, in a folder of swapmm/ in the user's cache. The folder and its files belong to the
/// user alone. Files are replaced as a whole, so several processes may use the folder at once. A file that is damaged,
/// or that is not the user's, counts as absent, and one line on stderr says so. May be used by several threads at once.
class CacheFolder {
 public:
  /// What the folder may hold. Beyond it, what was unused for longest goes. Several processes that write at the same
  /// time may exceed it for a while.
  struct Limits {
    std::size_t files = 0;
    std::uint64_t bytes = 0;
  };

  /// Does nothing yet: the folder is made by the first call that needs it.
  CacheFolder(const char* name, Limits limits) : name_(name), limits_(limits) {}
  CacheFolder(const CacheFolder&) = delete;
  CacheFolder& operator=(const CacheFolder&) = delete;

  /// The text of that name, if there is one.
  [[nodiscard]] std::optional<std::string> text(const std::string& name);
  /// Keeps a text. If that fails, one line on stderr says so, and nothing is kept from then on.
  void keep(const std::string& name, const std::string& text);

 private:
  [[nodiscard]] int folder();
  void trim() const;

  const char* name_;
  Limits limits_;
  std::once_flag opened_;
  int folder_ = -1;
  std::atomic<bool> damage_said_{false};
  std::atomic<bool> failed_{false};
  std::atomic<unsigned> kept_{0};
};

/// What is known of kernels: the folder "kernels".
[[nodiscard]] CacheFolder& kernel_cache();
/// Plans: the folder "plans".
[[nodiscard]] CacheFolder& plan_cache();

}  // namespace swapmm::opencl::layer
