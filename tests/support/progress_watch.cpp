// SPDX-License-Identifier: Apache-2.0
#include "support/progress_watch.hpp"

#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <string_view>
#include <system_error>

namespace swapmm::test {
namespace {

// A step takes less than a millisecond. The processor's time, not the clock's: a busy machine is no hang.
#ifdef SWAPMM_TEST_IS_SLOW
constexpr time_t usual_patience = 60;
#else
constexpr time_t usual_patience = 8;
#endif

time_t seconds_between_looks() {
  const char* const text = std::getenv("SWAPMM_TEST_PATIENCE");
  const long seconds = text == nullptr ? 0 : std::strtol(text, nullptr, 10);
  return seconds > 0 ? static_cast<time_t>(seconds) : usual_patience;
}

struct {
  std::atomic<const char*> test{nullptr};
  std::atomic<std::uint64_t> watches{0};
  std::atomic<std::uint64_t> seed{0};
  std::atomic<std::uint64_t> step{0};
  std::atomic<std::uint64_t> steps{0};  // of all tests so far
  std::atomic<std::uint64_t> steps_at_last_look{0};
} state;

/// A text put together without an allocation: it is written by a signal handler.
class Line {
 public:
  void add(std::string_view text) {
    const std::size_t count = std::min(text.size(), bytes_.size() - size_);
    std::copy_n(text.data(), count, bytes_.data() + size_);
    size_ += count;
  }
  void add(std::uint64_t number) {
    const auto [end, error] = std::to_chars(bytes_.data() + size_, bytes_.data() + bytes_.size(), number);
    if (error == std::errc()) size_ = static_cast<std::size_t>(end - bytes_.data());
  }
  void write() const { (void)!::write(STDOUT_FILENO, bytes_.data(), size_); }

 private:
  std::array<char, 512> bytes_{};
  std::size_t size_ = 0;
};

void look(int) {
  const std::uint64_t steps = state.steps;
  const char* const test = state.test;
  if (test == nullptr || state.steps_at_last_look.exchange(steps) != steps) return;
  Line line;
  line.add("\nERROR: no progress (O6): ");
  line.add(test);
  line.add(", seed ");
  line.add(state.seed);
  line.add(", step ");
  line.add(state.step);
  line.add(": a call of the library does not come back\n");
  line.write();
  ::_exit(1);
}

void look_regularly() {
  struct sigaction action {};
  action.sa_handler = look;
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGPROF, &action, nullptr);
  const time_t seconds = seconds_between_looks();
  const itimerval timer{{seconds, 0}, {seconds, 0}};
  ::setitimer(ITIMER_PROF, &timer, nullptr);
}

}  // namespace

ProgressWatch::ProgressWatch(const char* test, std::uint64_t seed) {
  [[maybe_unused]] static const bool looking = (look_regularly(), true);
  ++state.watches;
  state.seed = seed;
  step(0);
  state.test = test;
}

ProgressWatch::~ProgressWatch() {
  if (--state.watches == 0) state.test = nullptr;
}

void ProgressWatch::step(std::uint64_t number) {
  state.step = number;
  ++state.steps;
}

}  // namespace swapmm::test
