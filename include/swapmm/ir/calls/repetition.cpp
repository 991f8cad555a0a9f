// SPDX-License-Identifier: Apache-2.0
#include <swapmm/ir/calls/repetition.hpp>

#include <algorithm>
#include <set>
#include <unordered_map>
#include <utility>

namespace swapmm::calls {
namespace {

constexpr std::size_t most_candidates = 64;

/// The most frequent distances between two neighbouring occurrences of the same `width` tokens.
void add_candidates(std::span<const std::uint64_t> tokens, std::size_t width, const std::vector<bool>* only,
                    std::set<std::size_t>& periods) {
  if (tokens.size() < width) return;
  std::unordered_map<std::uint64_t, std::size_t> last;
  std::unordered_map<std::size_t, std::size_t> votes;
  // A rolling polynomial hash: equal ones may differ, which costs a candidate and no more.
  constexpr std::uint64_t base = 0x9E3779B97F4A7C15U;
  std::uint64_t leading = 1;
  for (std::size_t i = 1; i < width; ++i) leading *= base;
  std::uint64_t hash = 0;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (i >= width) hash -= leading * tokens[i - width];
    hash = hash * base + tokens[i];
    if (i + 1 < width || (only != nullptr && !(*only)[i])) continue;
    const auto [found, is_new] = last.try_emplace(hash, i);
    if (!is_new) ++votes[i - std::exchange(found->second, i)];
  }
  std::vector<std::pair<std::size_t, std::size_t>> ranked;
  ranked.reserve(votes.size());
  for (const auto& [distance, count] : votes) ranked.emplace_back(count, distance);
  const std::size_t kept = std::min(most_candidates, ranked.size());
  std::partial_sort(
      ranked.begin(), ranked.begin() + static_cast<std::ptrdiff_t>(kept), ranked.end(),
      [](const auto& a, const auto& b) { return a.first != b.first ? a.first > b.first : a.second < b.second; });
  for (std::size_t i = 0; i < kept; ++i) periods.insert(ranked[i].second);
}

std::optional<Repetition> longest(std::span<const std::uint64_t> tokens, const std::vector<bool>& marked, bool must,
                                  std::size_t period) {
  Repetition best{0, period, 0, 0};
  std::size_t best_length = 0;
  std::size_t covered_to = 0;
  const auto end_run = [&](std::size_t begin, std::size_t end) {
    if (end - begin < period) return;
    const auto first = marked.begin() + static_cast<std::ptrdiff_t>(begin);
    if (must && std::find(first, first + static_cast<std::ptrdiff_t>(period), true) ==
                    first + static_cast<std::ptrdiff_t>(period)) {
      return;
    }
    const std::size_t last = end + period;
    best.covered += last - std::max(begin, covered_to);
    covered_to = last;
    if (last - begin > best_length) {
      best_length = last - begin;
      best.begin = begin;
    }
  };
  std::size_t begin = 0;
  for (std::size_t i = 0; i + period < tokens.size(); ++i) {
    if (tokens[i] == tokens[i + period]) continue;
    end_run(begin, i);
    begin = i + 1;
  }
  if (tokens.size() >= period && begin + period <= tokens.size()) end_run(begin, tokens.size() - period);
  if (best_length == 0) return std::nullopt;
  // What follows a marked token begins an iteration. In front of the first one stands the end of another.
  for (std::size_t i = best.begin; i < best.begin + period; ++i) {
    const std::size_t before = i == best.begin ? i + period - 1 : i - 1;
    if (marked[before] && !marked[i] && best.begin + best_length - i >= 2 * period) {
      best_length -= i - best.begin;
      best.begin = i;
      break;
    }
  }
  best.count = best_length / period;
  return best;
}

}  // namespace

std::optional<Repetition> find_repetition(std::span<const std::uint64_t> tokens, const std::vector<bool>& marked) {
  const bool must = std::find(marked.begin(), marked.end(), true) != marked.end();
  std::set<std::size_t> periods;
  for (const std::size_t width : {std::size_t{1}, std::size_t{8}, std::size_t{64}}) {
    add_candidates(tokens, width, nullptr, periods);
  }
  if (must) add_candidates(tokens, 1, &marked, periods);
  std::optional<Repetition> best;
  for (const std::size_t period : periods) {  // ascending: a longer one must cover more
    const std::optional<Repetition> found = longest(tokens, marked, must, period);
    if (!found) continue;
    if (!best || found->covered > best->covered + best->covered / 200) best = found;
  }
  return best;
}

}  // namespace swapmm::calls
