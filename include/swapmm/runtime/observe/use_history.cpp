// SPDX-License-Identifier: Apache-2.0
#include <swapmm/runtime/observe/use_history.hpp>

#include <algorithm>

namespace swapmm::runtime {
namespace {

// The finalizer of splitmix64: each bit of the argument changes half of the bits of the result.
constexpr std::uint64_t mixed(std::uint64_t value) {
  value = (value ^ (value >> 30U)) * 0xbf58476d1ce4e5b9U;
  value = (value ^ (value >> 27U)) * 0x94d049bb133111ebU;
  return value ^ (value >> 31U);
}

}  // namespace

UseHistory::UseHistory()
    : operations_(capacity), uses_(capacity * most_uses), distances_(capacity * most_uses), contexts_(slots) {}

void UseHistory::add(std::uint64_t token, std::span<const Use> uses) {
  ++now_;
  at(now_) = {token, static_cast<std::uint32_t>(std::min(uses.size(), most_uses)), false};
  bool goes_on = false;
  if (match_ != 0 && remembers(match_ + 1)) {
    ++foretold_;
    goes_on = at(match_ + 1).token == token;
    if (goes_on) ++came_;
    at(now_ - 1).sure = goes_on;
  }
  note_uses(uses.first(at(now_).use_count));
  match_ = goes_on ? match_ + 1 : 0;
  if (now_ < since_ + alike) return;
  const std::uint64_t hash = context();
  Context& known = contexts_[hash % slots];
  if (match_ == 0 && known.hash == hash && remembers(known.operation)) match_ = known.operation;
  known = {hash, now_};
}

void UseHistory::interrupt() noexcept {
  since_ = now_;
  match_ = 0;
}

std::uint64_t UseHistory::distance(std::size_t index) const {
  if (!remembers(match_) || index >= at(match_).use_count) return unknown;
  const std::uint64_t distance = distances_[first_use(match_) + index];
  return distance == 0 ? unknown : distance;
}

std::span<const Use> UseHistory::upcoming(std::size_t ahead) const {
  if (ahead == 0 || !remembers(match_) || match_ + ahead >= now_ || !at(match_ + ahead - 1).sure) return {};
  return std::span(uses_).subspan(first_use(match_ + ahead), at(match_ + ahead).use_count);
}

std::uint64_t UseHistory::context() const {
  std::uint64_t hash = 0;
  for (std::uint64_t operation = now_ - alike + 1; operation <= now_; ++operation) {
    hash = mixed(hash + at(operation).token);
  }
  return hash;
}

void UseHistory::note_uses(std::span<const Use> uses) {
  for (std::uint32_t i = 0; i < uses.size(); ++i) {
    const Use& use = uses[i];
    if (use.record >= last_uses_.size()) last_uses_.resize(2 * static_cast<std::size_t>(use.record) + 16);
    LastUse& last = last_uses_[use.record];
    if (last.serial == use.serial && remembers(last.operation)) {
      distances_[first_use(last.operation) + last.use] = now_ - last.operation;
    }
    last = {use.serial, now_, i};
    uses_[first_use(now_) + i] = use;
    distances_[first_use(now_) + i] = 0;
  }
}

}  // namespace swapmm::runtime
