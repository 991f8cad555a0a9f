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

}  // namespace

std::uint32_t EncodingHistory::number(std::string_view name, Bytes bytes) {
  std::string key(name);
  key.append(1, '\0').append(std::to_string(bytes.value));
  const auto [found, is_new] = numbers_.try_emplace(std::move(key), static_cast<std::uint32_t>(entries_.size()));
  if (is_new) entries_.push_back({bytes});
  return found->second;
}

void EncodingHistory::took(std::uint32_t number, bool to_device, std::chrono::nanoseconds time) {
  (to_device ? entries_[number].in : entries_[number].out).add(time);
}

std::optional<Bytes> EncodingHistory::alike(const Entry& entry, const Link& in, const Link& out) const {
  const std::chrono::nanoseconds time_in = entry.in.estimate();
  const std::chrono::nanoseconds time_out = entry.out.estimate();
  if (time_in.count() == 0 && time_out.count() == 0) return std::nullopt;
  return std::max({bytes_in(in, time_in), bytes_in(out, time_out), Bytes{1}});
}

std::optional<Bytes> EncodingHistory::moved(std::uint32_t number, const Link& in, const Link& out) const {
  if (is_in_vain(number, in, out)) return std::nullopt;
  return alike(entries_[number], in, out);
}

bool EncodingHistory::is_in_vain(std::uint32_t number, const Link& in, const Link& out) const {
  const Entry& entry = entries_[number];
  const std::optional<Bytes> bytes = alike(entry, in, out);
  return bytes && bytes->value > entry.bytes.value - entry.bytes.value / 10;
}

}  // namespace swapmm::runtime
