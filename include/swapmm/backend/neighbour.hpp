// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <string>

#include <swapmm/base/bytes.hpp>
#include <swapmm/base/export.hpp>

namespace swapmm {

/// A part of another device's memory, for values that do not fit on the manager's own device. Backends make them:
/// simulated::neighbour(), opencl::neighbour(). One manager uses it, see Options::neighbours. It says which device and
/// how much; the manager allocates all of it when the manager is created.
class SWAPMM_EXPORT Neighbour {
 public:
  Neighbour() = default;
  Neighbour(const Neighbour&) = delete;
  Neighbour& operator=(const Neighbour&) = delete;
  virtual ~Neighbour();

  /// The bytes that the manager may use there. A part that is no multiple of alignment() is not used.
  [[nodiscard]] virtual Bytes capacity() const = 0;
  /// Places of values begin at multiples of this: a power of two.
  [[nodiscard]] virtual Bytes alignment() const = 0;
  /// The most bytes in one allocation there; above 0.
  [[nodiscard]] virtual Bytes largest_allocation() const { return capacity(); }
  /// Host memory that copies pass through, which the backend allocates: a part of Options::host_budget.
  [[nodiscard]] virtual Bytes staging() const { return {}; }
  /// What it is, for people: "a part of NVIDIA A100".
  [[nodiscard]] virtual std::string name() const = 0;

  /// Called by a manager that is going to use the neighbour. Returns false if another one does.
  [[nodiscard]] bool take() noexcept { return !taken_.exchange(true); }
  /// Called by the manager when nothing of it is there any more.
  void give_back() noexcept { taken_.store(false); }

 private:
  std::atomic<bool> taken_{false};
};

}  // namespace swapmm
