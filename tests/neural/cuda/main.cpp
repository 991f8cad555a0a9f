// SPDX-License-Identifier: Apache-2.0
// Of the tests that need a CUDA device: without one they say why, and run nothing.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <exception>
#include <iostream>

#include <swapmm/cuda/devices.hpp>

int main(int count, char** words) try {
  std::cout << std::unitbuf;  // a run that is ended from outside has said what it knew
  const swapmm::cuda::DeviceList list = swapmm::cuda::devices();
  if (list.devices.empty()) {
    std::cout << "skipped: no CUDA device: " << list.why_none << '\n';
    return 0;
  }
  return doctest::Context(count, words).run();
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
