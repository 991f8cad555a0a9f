// SPDX-License-Identifier: Apache-2.0
#pragma once

// Component `mpi` of the package: processes on one or several machines, connected by MPI. backends/mpi/README.md
// describes it.

#include <mpi.h>

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include <swapmm/base/export.hpp>
#include <swapmm/replicas/exchange.hpp>

/// Replicas in several processes, component `mpi` of the package.
namespace swapmm::mpi {

/// Connects the processes of a communicator. It uses a duplicate of the communicator, whose errors are returned and
/// thrown, so messages of the program are never mixed up with its own. For the thread that made it; MPI must have been
/// initialized by then, and not be finalized before it is destroyed. swapmm::mpi::run() does both.
///
/// While it waits for another process, it looks for failures of all of them, and leaves the processor to others.
class SWAPMM_EXPORT Exchange : public swapmm::Exchange {
 public:
  /// Collective: waits for all processes of the communicator. Throws Error if MPI refuses it.
  explicit Exchange(MPI_Comm communicator);
  /// The same as end() if it was not called. If an exception is on its way, tells the others so instead.
  ~Exchange() override;

  /// @{
  /// See swapmm::Exchange. All throw ReplicaFailed if another process has failed or ended, and Error with MPI's text if
  /// MPI fails.
  [[nodiscard]] std::size_t processes() const override { return processes_; }
  [[nodiscard]] std::size_t rank() const override { return rank_; }
  void send(std::size_t to, std::span<const std::byte> bytes) override;
  void receive(std::size_t from, std::span<std::byte> bytes) override;
  void fail(std::string_view why) noexcept override;
  /// @}

  /// Tells that this process exchanges nothing more, and waits until all others have told so, too. Throws ReplicaFailed
  /// if one of them has failed. One that still sends to this process or waits for it gets ReplicaFailed; values that
  /// are on their way by then are dropped.
  void end();
  /// Waits until all processes have called this, at most some seconds. For processes that end after a failure.
  void gather_failed() noexcept;

 private:
  void require_no_failure();
  [[noreturn]] void throw_ended(std::size_t from) const;
  [[noreturn]] void throw_notice(std::size_t from, std::string_view text);
  void look_whether_ended(std::size_t process);
  void wait_for_send(MPI_Request& request);
  bool take_last_message();

  MPI_Comm communicator_ = MPI_COMM_NULL;
  std::size_t processes_ = 0;
  std::size_t rank_ = 0;
  int exceptions_ = 0;     // that were on their way when it was made
  bool finished_ = false;  // by end(), or after a failure
  std::vector<std::byte> outgoing_;
  std::vector<bool> has_ended_;  // by process: its message that it has ended was received
};

}  // namespace swapmm::mpi
