// SPDX-License-Identifier: Apache-2.0
#include <swapmm/runtime/timing/encoding_history.hpp>

#include <algorithm>

namespace swapmm::runtime {
namespace {

/// The bytes that a plain copy moves in that time.
Bytes bytes_in(const Link& link, std::chrono::nanoseconds time) {
  const std::chrono::nanoseconds moving = std::max(time - link.latency, std::chrono::nanoseconds{0});
  return Bytes{static_cast<std::uint64_t>(static_cast<double>(moving.count()) * 1e-9 *
                                          static_cast<double>(link.bytes_per_second))};
}

/// Whether that is not less by a tenth than what a plain copy moves.
bool gains_nothing(Bytes moved, Bytes plain) { return moved.value > plain.value - plain.value / 10; }

}  // namespace

std::string EncodingHistory::key_of(std::string_view name, Bytes bytes) {
  std::string key(name);
  key.append(1, '\0').append(std::to_string(bytes.value));
  return key;
}

std::uint32_t EncodingHistory::number(std::string_view name, Bytes bytes) {
  if (entries_.size() >= most) return find(name, bytes);
  const auto [found, is_new] = numbers_.try_emplace(key_of(name, bytes), static_cast<std::uint32_t>(entries_.size()));
  if (is_new) entries_.push_back({bytes});
  return found->second;
}

std::uint32_t EncodingHistory::find(std::string_view name, Bytes bytes) const {
  const auto found = numbers_.find(key_of(name, bytes));
  return found == numbers_.end() ? not_encoded : found->second;
}

void EncodingHistory::took(std::uint32_t number, bool to_device, std::chrono::nanoseconds time) {
  if (time.count() == 0) return;
  Entry& entry = entries_[number];
  (to_device ? entry.in : entry.out).add(time);
  ++(to_device ? entry.times_in : entry.times_out);
}

std::optional<Bytes> EncodingHistory::moved(std::uint32_t number, const Link& in, const Link& out) const {
  const Entry& entry = entries_[number];
  if (entry.times_in == 0 && entry.times_out == 0) return std::nullopt;
  const Bytes moved = std::max({bytes_in(in, entry.in.estimate()), bytes_in(out, entry.out.estimate()), Bytes{1}});
  return gains_nothing(moved, entry.bytes) ? std::nullopt : std::optional(moved);
}

bool EncodingHistory::is_in_vain(std::uint32_t number, const Link& in, const Link& out) const {
  const Entry& entry = entries_[number];
  return (entry.times_in >= 2 && gains_nothing(bytes_in(in, entry.in.estimate()), entry.bytes)) ||
         (entry.times_out >= 2 && gains_nothing(bytes_in(out, entry.out.estimate()), entry.bytes));
}

}  // namespace swapmm::runtime
