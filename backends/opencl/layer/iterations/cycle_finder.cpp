// SPDX-License-Identifier: Apache-2.0
#include "cycle_finder.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "command.hpp"

namespace swapmm::opencl::layer {
namespace {

constexpr std::size_t context_length = 4;
constexpr std::size_t short_repeats = 8;
constexpr std::size_t short_commands = 2048;
constexpr std::size_t matched_at_once = 64;  // bounds the work for one command

}  // namespace

CycleFinder::CycleFinder() : tokens_(2 * longest_period), reads_(2 * longest_period), places_(4 * longest_period) {}

std::size_t CycleFinder::longest() const {
  std::size_t most = 0;
  for (const Cycle& cycle : cycles_) most = std::max(most, cycle.tokens.size());
  return most;
}

CycleFinder::Step CycleFinder::next(std::uint64_t token, bool host_reads) {
  const Step step = go_on(token);
  remember(token, host_reads);
  follow_period(token);
  if (current_ == none && is_cycle()) add_cycle();
  read_before_ = host_reads;
  return step;
}

std::optional<std::uint64_t> CycleFinder::expected(std::size_t ahead) const {
  if (current_ == none) return std::nullopt;
  const std::vector<std::uint64_t>& tokens = cycles_[current_].tokens;
  return tokens[(position_ + ahead) % tokens.size()];
}

// ---- within cycles

CycleFinder::Step CycleFinder::go_on(std::uint64_t token) {
  Step step;
  if (current_ != none && cycles_[current_].tokens[position_] != token && !change_cycle(token)) {
    step.leaves = position_ != 0;
    current_ = none;
  }
  if (current_ == none && !enter(token)) return step;
  Cycle& cycle = cycles_[current_];
  step.begins = position_ == 0;
  if (step.begins) cycle.used = count_;
  ++position_;
  step.ends = position_ == cycle.tokens.size();
  if (step.ends) position_ = 0;
  return step;
}

// Takes the longest cycle that begins like this.
bool CycleFinder::enter(std::uint64_t token) {
  std::size_t best = none;
  for (std::size_t i = 0; i < cycles_.size(); ++i) {
    const Cycle& cycle = cycles_[i];
    if (cycle.tokens.front() != token || (cycle.after_read && !read_before_)) continue;
    if (best == none || cycle.tokens.size() > cycles_[best].tokens.size()) best = i;
  }
  if (best == none) return false;
  current_ = best;
  position_ = 0;
  return true;
}

// Goes on in another cycle that begins with what has come so far.
bool CycleFinder::change_cycle(std::uint64_t token) {
  if (position_ == 0) return false;
  const auto& now = cycles_[current_].tokens;
  for (std::size_t i = 0; i < cycles_.size(); ++i) {
    const auto& other = cycles_[i].tokens;
    if (i == current_ || other.size() <= position_ || other[position_] != token) continue;
    if (!std::equal(now.begin(), std::next(now.begin(), static_cast<std::ptrdiff_t>(position_)), other.begin()))
      continue;
    current_ = i;
    return true;
  }
  return false;
}

// ---- finding them

void CycleFinder::remember(std::uint64_t token, bool host_reads) {
  const std::uint32_t before = count_ == 0 ? 0 : reads_until(count_ - 1);
  tokens_[count_ % tokens_.size()] = token;
  reads_[count_ % reads_.size()] = before + (host_reads ? 1U : 0U);
  ++count_;
}

// Keeps the candidate as long as the commands repeat; else takes the last place where the last commands were the same.
void CycleFinder::follow_period(std::uint64_t token) {
  std::uint64_t context = 0;
  for (std::size_t i = 1; i <= std::min<std::uint64_t>(context_length, count_); ++i)
    context = mixed(context, at(count_ - i));
  Place& place = places_[context % places_.size()];
  if (period_ != 0 && at(count_ - 1 - period_) == token) {
    ++run_;
  } else {
    period_ = 0;
    run_ = 0;
    period_known_ = false;
    if (place.context == context && place.position != 0 && count_ - place.position <= longest_period) {
      period_ = static_cast<std::size_t>(count_ - place.position);
      const std::uint64_t most = std::min<std::uint64_t>(matched_at_once, count_ - period_);
      while (run_ < most && at(count_ - 1 - run_) == at(count_ - 1 - run_ - period_)) ++run_;
      if (run_ < context_length) period_ = 0;  // another context with the same number
    }
  }
  place = {context, count_};
}

bool CycleFinder::is_cycle() const {
  if (period_ == 0 || period_known_ || run_ < period_) return false;
  const std::uint64_t before = count_ - period_;
  if (reads_until(count_ - 1) != reads_until(before - 1)) return true;
  return run_ >= (short_repeats - 1) * period_ && run_ + period_ >= short_commands;
}

// Where in the last period a cycle is to begin: behind a read of the host if there is one, and where the next commands
// come only once.
std::size_t CycleFinder::first_of_period() const {
  const std::uint64_t begin = count_ - period_;
  const auto read = [&](std::size_t i) {
    const std::uint64_t position = begin + (i + period_ - 1) % period_;
    return reads_until(position) != reads_until(position - 1);
  };
  const auto token = [&](std::size_t i) { return at(begin + i % period_); };
  const bool any_read = reads_until(count_ - 1) != reads_until(begin - 1);
  std::size_t first = none;
  for (std::size_t i = 0; i < period_; ++i) {
    if (any_read && !read(i)) continue;
    if (first == none) first = i;
    bool once = true;
    for (std::size_t j = 0; j < period_ && once; ++j) {
      once = j == i || token(j) != token(i) || token(j + 1) != token(i + 1) || (any_read && !read(j));
    }
    if (once) return i;
    if (i - first > 16) break;  // bounds the work
  }
  return first;
}

void CycleFinder::add_cycle() {
  period_known_ = true;
  const std::size_t first = first_of_period();
  const std::uint64_t begin = count_ - period_;
  Cycle added;
  added.after_read = reads_until(count_ - 1) != reads_until(begin - 1);
  added.used = count_;
  added.tokens.reserve(period_);
  for (std::size_t i = 0; i < period_; ++i) added.tokens.push_back(at(begin + (first + i) % period_));
  auto same =
      std::find_if(cycles_.begin(), cycles_.end(), [&](const Cycle& cycle) { return cycle.tokens == added.tokens; });
  if (same == cycles_.end()) {
    ++found_;
    if (cycles_.size() == most_cycles) {
      cycles_.erase(std::min_element(cycles_.begin(), cycles_.end(),
                                     [](const Cycle& a, const Cycle& b) { return a.used < b.used; }));
    }
    cycles_.push_back(std::move(added));
    same = std::prev(cycles_.end());
  }
  same->used = count_;
  if (first != 0) return;
  current_ = static_cast<std::size_t>(std::distance(cycles_.begin(), same));  // the next command begins an iteration
  position_ = 0;
}

}  // namespace swapmm::opencl::layer
