// SPDX-License-Identifier: Apache-2.0

#include <swapmm/mpi/run.hpp>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>

#include <swapmm/mpi/exchange.hpp>

namespace swapmm::mpi {
namespace {

[[noreturn]] void end_all(Exchange& exchange, const std::string& why) {
  // One piece, so that lines of several processes do not mix.
  const std::string line = "swapmm: replica process " + std::to_string(exchange.rank()) + " of " +
                           std::to_string(exchange.processes()) + " ends: " + why + "\n";
  std::fflush(stdout);
  std::fputs(line.c_str(), stderr);
  std::fflush(stderr);
  exchange.fail(why);
  exchange.gather_failed();
  MPI_Abort(MPI_COMM_WORLD, 1);
  std::abort();
}

}  // namespace

bool launched() {
  constexpr std::array<const char*, 3> set_by_launchers{"OMPI_COMM_WORLD_SIZE", "PMI_RANK", "PMIX_RANK"};
  return std::any_of(set_by_launchers.begin(), set_by_launchers.end(), [](const char* name) {
    return std::getenv(name) != nullptr;  // NOLINT(concurrency-mt-unsafe): no program changes what launchers set
  });
}

int run(int& count, char**& words, const std::function<int(std::shared_ptr<swapmm::Exchange>)>& program) {
  int level = 0;
  if (MPI_Init_thread(&count, &words, MPI_THREAD_FUNNELED, &level) != MPI_SUCCESS) {
    throw Error("MPI_Init_thread failed");
  }
  if (level < MPI_THREAD_FUNNELED) throw Error("this MPI does not allow other threads beside its own");
  int status = 0;
  {
    const auto exchange = std::make_shared<Exchange>(MPI_COMM_WORLD);
    try {
      status = program(exchange);
      exchange->end();
    } catch (const std::exception& error) {
      end_all(*exchange, error.what());
    } catch (...) {
      end_all(*exchange, "an exception without a text");
    }
  }
  MPI_Finalize();
  return status;
}

}  // namespace swapmm::mpi
