// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>

#include <swapmm/base/export.hpp>
#include <swapmm/replicas/exchange.hpp>

namespace swapmm::mpi {

/// True if this process was started by mpirun or mpiexec of Open MPI or MPICH, or by what speaks PMI or PMIx.
[[nodiscard]] SWAPMM_EXPORT bool launched();

/// Runs a program in each process that mpirun started: initializes MPI, calls program(exchange) with an exchange
/// between all of them, and finalizes MPI. Returns what the program returned. Call it once, from main().
///
/// If the program throws, a line on the standard error stream says which process failed and why; the others get
/// ReplicaFailed, say so, too, and all of them end with MPI_Abort and status 1, at most some seconds later. A process
/// that dies by a signal, or leaves without an exception, is mpirun's matter: it ends all others.
SWAPMM_EXPORT int run(int& count, char**& words, const std::function<int(std::shared_ptr<swapmm::Exchange>)>& program);

}  // namespace swapmm::mpi
