// SPDX-License-Identifier: Apache-2.0
#include "progress.hpp"

#include <unistd.h>

#include <cstdio>
#include <utility>

namespace swapmm::test {

Progress::Progress(std::uint64_t count) : count_(count), terminal_(isatty(STDOUT_FILENO) != 0) {}

void Progress::show(std::uint64_t done) {
  const auto interval = terminal_ ? std::chrono::milliseconds{200} : std::chrono::milliseconds{30'000};
  if (Clock::now() - shown_ < interval || done == 0) return;
  shown_ = Clock::now();
  const double rate = static_cast<double>(done) / seconds();
  const double left = static_cast<double>(count_ - done) / rate;
  std::printf("%s%llu of %llu seeds, %.0f a second, %.0f s left%s", terminal_ ? "\r" : "",
              static_cast<unsigned long long>(done), static_cast<unsigned long long>(count_), rate, left,
              terminal_ ? "   " : "\n");
  std::fflush(stdout);
  line_ = terminal_;
}

double Progress::end() {
  if (std::exchange(line_, false)) std::printf("\n");
  std::fflush(stdout);
  return seconds();
}

}  // namespace swapmm::test
