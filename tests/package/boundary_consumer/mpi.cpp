// SPDX-License-Identifier: Apache-2.0
#include "check.hpp"

#include <swapmm/error.hpp>
#include <swapmm/mpi/run.hpp>

#include <cstddef>
#include <memory>

int check_mpi() {
  int failed = expect("mpi: no launcher", !swapmm::mpi::launched());
  int count = 0;
  char* no_word = nullptr;
  char** words = &no_word;
  const int result = swapmm::mpi::run(count, words, [&](const std::shared_ptr<swapmm::Exchange>& exchange) {
    failed += expect("mpi: one process", exchange->processes() == 1 && exchange->rank() == 0);
    const std::byte byte{};
    failed += expect_exception<swapmm::Error>("mpi: no such process", [&] { exchange->send(1, {&byte, 1}); });
    return 7;
  });
  return failed + expect("mpi: the program's result", result == 7);
}
