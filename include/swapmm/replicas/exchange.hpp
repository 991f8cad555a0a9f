// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include <swapmm/base/error.hpp>
#include <swapmm/base/export.hpp>

namespace swapmm {

/// Another process of the replicas has failed, has ended, or does something else. what() names the process, and says
/// what it said. This process cannot go on together with it.
struct SWAPMM_EXPORT ReplicaFailed : Error {
  using Error::Error;
};

/// How the processes of one computation exchange bytes. A "process" is whatever has an object of its own: a process of
/// MPI (swapmm::mpi::Exchange), or a thread (exchanges_between_threads()). An object is for one thread at a time.
class SWAPMM_EXPORT Exchange {
 public:
  Exchange() = default;
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;
  virtual ~Exchange();

  /// The number of processes; at least 1.
  [[nodiscard]] virtual std::size_t processes() const = 0;
  /// The number of this one, from 0.
  [[nodiscard]] virtual std::size_t rank() const = 0;

  /// Sends bytes to another process. They may be overwritten once this returns. May wait until the other one receives.
  /// Throws ReplicaFailed.
  virtual void send(std::size_t to, std::span<const std::byte> bytes) = 0;
  /// Waits for the next bytes from another process, which must be as many. Throws ReplicaFailed, also if the number
  /// differs.
  virtual void receive(std::size_t from, std::span<std::byte> bytes) = 0;
  /// Tells all others that this process cannot go on, and why. Whatever they wait for then throws ReplicaFailed. Does
  /// not wait for them.
  virtual void fail(std::string_view why) noexcept = 0;
};

}  // namespace swapmm
