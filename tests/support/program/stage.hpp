// SPDX-License-Identifier: Apache-2.0
#pragma once

// Kernels of programs on a device whose bytes the host cannot touch: operands are copied to the host, the kernel's body
// runs there, and what it wrote is copied back. All of that is the operation's own work, on its queue.

#include <cstddef>
#include <cstdint>

#include "support/program/kernel.hpp"
#include "support/test_program.hpp"

namespace swapmm::test {

/// Of a kernel's body.
enum class KernelPhase : std::uint8_t { read, write, both };

inline void run_body(const Kernel& kernel, KernelPhase phase) {
  if (phase != KernelPhase::write) kernel.read();
  if (phase != KernelPhase::read) kernel.write();
}

/// The host's side of a kernel: one stretch of bytes for all operands and the work area, which is the last one.
class KernelStage {
 public:
  explicit KernelStage(Kernel& kernel) : kernel_(kernel) {}

  /// That all of them need.
  [[nodiscard]] std::size_t size() const {
    std::size_t size = kernel_.scratch_bytes;
    for (std::size_t i = 0; i < kernel_.part_count; ++i) size += size_of(i);
    return size;
  }
  void place(std::byte* bytes) {
    for (std::size_t i = 0; i < kernel_.part_count; ++i) {
      kernel_.parts[i].data = bytes;
      bytes += size_of(i);
    }
    kernel_.scratch = bytes;
  }

  [[nodiscard]] std::byte* data(std::size_t i) const {
    return i < kernel_.part_count ? kernel_.parts[i].data : kernel_.scratch;
  }
  [[nodiscard]] std::size_t size_of(std::size_t i) const {
    if (i == kernel_.part_count) return kernel_.scratch_bytes;
    return kernel_.parts[i].layout.size(kernel_.parts[i].range);
  }

  /// Has the device do its work, in this order: fetch(i) copies from its i-th place to data(i), put(i) goes the other
  /// way, body(phase) is run_body(). In two phases, what it reads must still be the same at its end, and its work area
  /// too.
  template <class Fetch, class Put, class Body>
  void run(const LaunchForm& form, Fetch&& fetch, Put&& put, Body&& body) const {
    const std::size_t scratch = kernel_.part_count;
    const auto each = [&](auto&& wanted, auto&& copy) {
      for (std::size_t i = 0; i < kernel_.part_count; ++i) {
        if (wanted(kernel_.parts[i].access)) copy(i);
      }
    };
    each([](Access access) { return access != Access::write; }, fetch);
    if (form.two_phases || form.two_launches) {
      body(KernelPhase::read);
      if (kernel_.scratch_bytes != 0) put(scratch);
      each([](Access access) { return access == Access::read; }, fetch);
      if (kernel_.scratch_bytes != 0) fetch(scratch);
      body(KernelPhase::write);
    } else {
      body(KernelPhase::both);
      if (kernel_.scratch_bytes != 0) put(scratch);
    }
    each([](Access access) { return access != Access::read; }, put);
  }

 private:
  Kernel& kernel_;
};

}  // namespace swapmm::test
