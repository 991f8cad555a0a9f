// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <swapmm/ir/limits.hpp>
#include <swapmm/plan/problem/planning_case.hpp>
#include <swapmm/plan/split/quantity.hpp>
#include <swapmm/plan/split/split.hpp>

namespace swapmm {
namespace {

using planning::compute_time;
using planning::most_samples;

/// Whether all bundles fit with so many pieces. The largest piece decides, as the first one and as a later one.
Check fits(const SplitStep& step, std::uint64_t batch, std::uint64_t pieces, const Machine& machine) {
  const std::uint64_t largest = (batch + pieces - 1) / pieces;
  const std::array<std::uint64_t, 2> sizes{largest, largest};
  const Result<Trace> trace = written_out(step, sizes);
  if (!trace) return trace.problem();
  const auto planning = planning::make_planning_case(*trace, machine);
  if (!planning) return planning.problem();
  return Done{};
}

/// A trace has room for so many, and an option may allow fewer.
std::uint64_t most_pieces(const SplitStep& step, std::uint64_t batch, const SplitChoiceOptions& options) {
  const std::size_t operations = std::max<std::size_t>(1, step.piece.size());
  const std::uint64_t most = std::min<std::uint64_t>(batch, std::max<std::size_t>(1, limits::operations / operations));
  return options.most_pieces == 0 ? most : std::min(most, options.most_pieces);
}

/// The least number of pieces whose bundles fit.
Result<std::uint64_t> least_pieces(const SplitStep& step, std::uint64_t batch, const Machine& machine,
                                   std::uint64_t most) {
  if (const Check check = fits(step, batch, most, machine); !check) {
    return Problem{"not even " + std::to_string(most) + " pieces fit: " + check.problem().message};
  }
  std::uint64_t too_few = 0;
  std::uint64_t enough = most;
  while (enough - too_few > 1) {
    const std::uint64_t middle = too_few + (enough - too_few) / 2;
    (fits(step, batch, middle, machine) ? enough : too_few) = middle;
  }
  return enough;
}

}  // namespace

const SplitTry& SplitChoice::chosen() const { return *std::ranges::find(tries, pieces, &SplitTry::pieces); }

Result<SplitChoice> choose_pieces(const SplitStep& step, std::uint64_t batch, const Machine& machine,
                                  const PlanStep& plan, const SplitChoiceOptions& options) {
  if (batch == 0 || batch > most_samples) {
    return Problem{"a batch of " + std::to_string(batch) + " is not from 1 to 2^40 samples"};
  }
  const std::uint64_t most = most_pieces(step, batch, options);
  const Result<std::uint64_t> least = least_pieces(step, batch, machine, most);
  if (!least) return least.problem();
  const Result<Trace> unsplit = written_out(step, piece_sizes(batch, 1));
  if (!unsplit) return unsplit.problem();
  SplitChoice choice;
  choice.unsplit = compute_time(*unsplit);
  std::optional<std::chrono::nanoseconds> best;
  for (std::uint64_t n = std::max(*least, options.least_pieces); n <= most && choice.tries.size() < options.most_tries;
       n += std::max<std::uint64_t>(1, n / 4)) {
    const Result<Trace> trace = written_out(step, piece_sizes(batch, n));
    if (!trace && best) break;
    if (!trace) return trace.problem();
    if (best && compute_time(*trace) >= *best) break;
    const Result<Plan> made = plan(*trace, machine);
    SplitTry& tried = choice.tries.emplace_back(SplitTry{n, (batch + n - 1) / n});
    if (!made) {
      tried.problem = made.problem().message;
      continue;
    }
    tried.predicted = made->predicted;
    if (best && made->predicted.iteration >= *best) continue;
    best = made->predicted.iteration;
    choice.pieces = n;
  }
  if (best) return choice;
  if (choice.tries.empty()) return Problem{"no number of pieces is allowed"};
  return Problem{std::to_string(choice.tries.front().pieces) + " pieces: " + choice.tries.front().problem};
}

}  // namespace swapmm
