// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/v2/simulation/steady_state.hpp>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

namespace swapmm::v2::simulation {
namespace {

constexpr std::size_t most_iterations = 1000;

/// The mean time of the last `iterations` iterations. There was at least one before them.
std::int64_t mean_of_last(const std::vector<Time>& ends, std::size_t iterations) {
  const auto count = static_cast<Time>(iterations);
  const Time sum = ends.back() - *(ends.end() - 1 - static_cast<std::ptrdiff_t>(iterations));
  return static_cast<std::int64_t>(std::min((sum + count / 2) / count, longest));
}

/// Brent's cycle detection: the state for comparison moves on at powers of two, so only one state is kept, and the
/// first equal state is a whole period away.
class Repetition {
 public:
  /// Takes the state after so many iterations; what it is afterwards has no meaning. Returns the period if the state is
  /// the one that is kept.
  std::optional<std::size_t> next(RunState& state, std::size_t iterations) {
    just_kept_ = false;
    if (kept_at_ != 0 && state == kept_) return iterations - kept_at_;
    if (iterations < 2 * kept_at_) return std::nullopt;
    std::swap(kept_, state);
    kept_at_ = iterations;
    just_kept_ = true;
    return std::nullopt;
  }
  /// Whether it has kept the last state.
  [[nodiscard]] bool just_kept() const { return just_kept_; }

 private:
  RunState kept_;
  std::size_t kept_at_ = 0;  // 0: nothing is kept
  bool just_kept_ = false;
};

}  // namespace

SteadyState run_until_periodic(EventRun& run) {
  const std::vector<Time>& ends = run.iteration_ends();
  Repetition of_all;
  Repetition of_deciding;
  std::optional<std::int64_t> mean;
  RunState state;
  std::size_t seen = 0;
  while (ends.size() < most_iterations && run.step(most_iterations)) {
    // Several iterations may end at the same time; they have one state.
    if (!run.settled() || ends.size() == seen) continue;
    seen = ends.size();
    run.capture(state, EventRun::Which::all);
    if (const auto period = of_all.next(state, seen)) {
      return {mean ? *mean : mean_of_last(ends, *period), *period};
    }
    if (of_all.just_kept()) run.occupation().restart();
    if (mean || run.all_decide()) continue;
    run.capture(state, EventRun::Which::deciding);
    if (const auto period = of_deciding.next(state, seen)) mean = mean_of_last(ends, *period);
  }
  if (mean) return {*mean, 0};
  if (ends.size() < most_iterations) return {static_cast<std::int64_t>(longest), 0};
  // Copies that run ever further ahead of the operations never repeat. Only a mean is known.
  return {mean_of_last(ends, most_iterations / 2), 0};
}

}  // namespace swapmm::v2::simulation
