// SPDX-License-Identifier: Apache-2.0
#pragma once

// Many runs on as many cores as the environment says.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace swapmm::test {

[[nodiscard]] inline std::string text_from_environment(const char* name) {
  const char* const text = std::getenv(name);
  return text == nullptr ? std::string() : text;
}
/// At least 1.
[[nodiscard]] inline std::uint64_t number_from_environment(const char* name, std::uint64_t usual) {
  const std::string text = text_from_environment(name);
  if (text.empty()) return usual;
  const std::uint64_t wish = std::strtoull(text.c_str(), nullptr, 10);
  return wish == 0 ? 1 : wish;
}

/// Calls `work(i)` for each i below `count`, and `take(i, result)` for what it gave, by one thread at a time.
template <class Result, class Work, class Take>
void in_parallel(std::size_t count, const Work& work, const Take& take) {
  std::atomic<std::size_t> next{0};
  std::mutex taking;
  std::exception_ptr failure;
  const auto run = [&] {
    for (std::size_t i = next++; i < count; i = next++) {
      try {
        const Result result = work(i);
        const std::lock_guard lock(taking);
        take(i, result);
      } catch (...) {
        const std::lock_guard lock(taking);
        failure = std::current_exception();
        next = count;
      }
    }
  };
  std::vector<std::thread> others;
  for (std::uint64_t i = 1; i < number_from_environment("SWAPMM_FAULT_THREADS", 1); ++i) others.emplace_back(run);
  run();
  for (std::thread& other : others) other.join();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace swapmm::test
