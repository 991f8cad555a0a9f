// SPDX-License-Identifier: Apache-2.0
#include "cycle_finder.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "command.hpp"

namespace swapmm::opencl::layer {
namespace {

constexpr std::size_t context_length = 4;
// How often a sequence runs in a row, and how many commands that are, before it is a cycle.
struct Proof {
  std::size_t repeats = 2;
  std::size_t commands = 0;
};
constexpr Proof proof_of(HostPart mark) {
  if (mark == HostPart::reads) return {2, 0};
  return mark == HostPart::gives ? Proof{4, 128} : Proof{8, 2048};
}
constexpr std::size_t matched_at_once = 64;  // bounds the work for one command
constexpr std::size_t planned_lately = 8;    // a cycle follows plans if one of so many iterations did

}  // namespace

CycleFinder::CycleFinder() : tokens_(2 * longest_period), counts_(2 * longest_period), places_(4 * longest_period) {}

std::size_t CycleFinder::longest() const {
  std::size_t most = 0;
  for (const Cycle& cycle : cycles_) most = std::max(most, cycle.tokens.size());
  return most;
}

CycleFinder::Step CycleFinder::next(std::uint64_t token, HostPart host, std::uint64_t moved) {
  const Step step = go_on(token);
  remember(token, host, moved);
  follow_period(token);
  if (current_ == none && is_cycle()) add_cycle();
  read_before_ = host == HostPart::reads;
  return step;
}

std::optional<std::uint64_t> CycleFinder::expected(std::size_t ahead) const {
  if (current_ == none) return std::nullopt;
  const std::vector<std::uint64_t>& tokens = cycles_[current_].tokens;
  return tokens[(position_ + ahead) % tokens.size()];
}

void CycleFinder::followed() {
  if (current_ != none && position_ == 0) cycles_[current_].unplanned = 0;
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
  if (step.ends) {
    position_ = 0;
    if (cycle.unplanned != none) ++cycle.unplanned;  // unless followed() says otherwise
  }
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

void CycleFinder::remember(std::uint64_t token, HostPart host, std::uint64_t moved) {
  Count count = count_ == 0 ? Count{} : counted(count_ - 1);
  if (host == HostPart::reads) ++count.reads;
  if (host == HostPart::gives) ++count.gives;
  count.moved = moved;
  tokens_[count_ % tokens_.size()] = token;
  counts_[count_ % counts_.size()] = count;
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

// What tells where the last period begins.
HostPart CycleFinder::mark_of_period() const {
  const Count now = counted(count_ - 1);
  const Count before = counted(count_ - 1 - period_);
  if (now.reads != before.reads) return HostPart::reads;
  const std::size_t given = now.gives - before.gives;
  return given != 0 && given != period_ ? HostPart::gives : HostPart::none;  // a loop of uploads alone is no step
}

bool CycleFinder::is_cycle() const {
  if (period_ == 0 || period_known_ || run_ < period_) return false;
  const Proof proof = proof_of(mark_of_period());
  return run_ >= (proof.repeats - 1) * period_ && run_ + period_ >= proof.commands;
}

// Where in the last period a cycle is to begin: behind a read of the host if there is one, else with the first of the
// commands in which the host gives something, and where the next commands come only once.
std::size_t CycleFinder::first_of_period() const {
  const std::uint64_t begin = count_ - period_;
  const HostPart mark = mark_of_period();
  const auto host = [&](std::size_t i) {
    const std::uint64_t position = begin + i % period_;
    const Count now = counted(position);
    const Count before = counted(position - 1);
    return now.reads != before.reads ? HostPart::reads : now.gives != before.gives ? HostPart::gives : HostPart::none;
  };
  const auto may_begin = [&](std::size_t i) {
    if (mark == HostPart::none) return true;
    const HostPart last = host(i + period_ - 1);
    return mark == HostPart::reads ? last == mark : host(i) == mark && last != mark;
  };
  const auto token = [&](std::size_t i) { return at(begin + i % period_); };
  std::size_t first = none;
  for (std::size_t i = 0; i < period_; ++i) {
    if (!may_begin(i)) continue;
    if (first == none) first = i;
    bool once = true;
    for (std::size_t j = 0; j < period_ && once; ++j) {
      once = j == i || token(j) != token(i) || token(j + 1) != token(i + 1) || !may_begin(j);
    }
    if (once) return i;
    if (i - first > 16) break;  // bounds the work
  }
  return first;
}

// Whether three quarters of these commands, a period from its command `first` on, are cycles that follow plans, and the
// others moved at most a quarter of the bytes. A long sequence of these, with an evaluation at its end, would have
// to be observed twice before it had a plan of its own.
bool CycleFinder::is_mostly_planned(const std::vector<std::uint64_t>& tokens, std::size_t first) const {
  std::size_t compared = 0;
  const auto is_at = [&](const Cycle& cycle, std::size_t i) {
    std::size_t same = 0;
    while (same < cycle.tokens.size() && cycle.tokens[same] == tokens[i + same]) ++same;
    compared += same + 1;
    return same == cycle.tokens.size();
  };
  const auto known_at = [&](std::size_t i) {
    std::size_t most = 0;
    for (const Cycle& cycle : cycles_) {
      const std::size_t size = cycle.tokens.size();
      if (cycle.unplanned > planned_lately || size <= most || size > tokens.size() - i || size == tokens.size())
        continue;
      if (is_at(cycle, i)) most = size;
    }
    return most;
  };
  // In the period before: the last command of all has not run yet.
  const std::uint64_t begin = count_ - 2 * period_;
  const auto moved_by = [&](std::size_t i) {
    const std::uint64_t position = begin + (first + i) % period_;
    return counted(position + 1).moved - counted(position).moved;
  };
  std::size_t known = 0;
  std::uint64_t beside = 0;
  for (std::size_t i = 0; i < tokens.size();) {
    if (compared > most_cycles * tokens.size()) return false;  // bounds the work
    const std::size_t size = known_at(i);
    if (size == 0) beside += moved_by(i);
    known += size;
    i += std::max<std::size_t>(size, 1);
  }
  const std::uint64_t moved = counted(begin + period_).moved - counted(begin).moved;
  return 4 * known >= 3 * tokens.size() && beside <= moved / 4;
}

void CycleFinder::add_cycle() {
  period_known_ = true;
  const std::size_t first = first_of_period();
  const std::uint64_t begin = count_ - period_;
  Cycle added;
  added.after_read = mark_of_period() == HostPart::reads;
  added.used = count_;
  added.tokens.reserve(period_);
  for (std::size_t i = 0; i < period_; ++i) added.tokens.push_back(at(begin + (first + i) % period_));
  auto same =
      std::find_if(cycles_.begin(), cycles_.end(), [&](const Cycle& cycle) { return cycle.tokens == added.tokens; });
  if (same == cycles_.end()) {
    if (is_mostly_planned(added.tokens, first)) return;
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
