// SPDX-License-Identifier: Apache-2.0
// Every test program: the cases come from the other files linked to it.
#define DOCTEST_CONFIG_IMPLEMENT
#include "support/missing_device.hpp"

#include <doctest/doctest.h>

#include <iostream>

int main(int count, char** words) {
  std::cout << std::unitbuf;  // a run that is ended from outside has said what it knew
  doctest::Context context(count, words);
  if (const auto missing = swapmm::test::missing_device(); !missing.empty()) {
    std::cout << "skipped: " << missing << '\n';
    return 0;
  }
  return context.run();
}
