// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <doctest/doctest.h>

#include <cstddef>
#include <exception>
#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace swapmm::test {

/// Runs body(0), ..., body(count - 1), each in a thread of its own. What they throw makes the test fail.
inline void in_threads(std::size_t count, const std::function<void(std::size_t)>& body) {
  std::vector<std::string> errors(count);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < count; ++i) {
    threads.emplace_back([&, i] {
      try {
        body(i);
      } catch (const std::exception& error) {
        errors[i] = error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& error : errors) CHECK(error.empty());
}

}  // namespace swapmm::test
