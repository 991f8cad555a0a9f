// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <swapmm/base/bytes.hpp>
#include <swapmm/base/export.hpp>
#include <swapmm/plan/machine.hpp>
#include <swapmm/runtime/timing/round_times.hpp>

namespace swapmm::runtime {

/// Stands for no number of EncodingHistory.
inline constexpr std::uint32_t not_encoded = 0xffffffffU;

/// Which values are encoded on their way to the host, and how long such copies took. Tensors of the same name and size
/// are taken for alike, because programs make many of them anew in each iteration.
class EncodingHistory {
 public:
  /// Values of fewer bytes are not encoded: the header alone is a part of them.
  static constexpr Bytes least{128};

  /// `largest`: values of more bytes are not encoded; 0: none is.
  explicit EncodingHistory(Bytes largest) : largest_(largest) {}

  [[nodiscard]] bool is_on() const { return largest_.value != 0; }
  [[nodiscard]] Bytes largest() const { return largest_; }
  [[nodiscard]] bool may_encode(Bytes bytes) const { return is_on() && bytes >= least && bytes <= largest_; }

  /// Tensors of so many names and sizes at most are told apart; others are not encoded.
  static constexpr std::size_t most = 100'000;

  /// The number of tensors of that name and size. not_encoded if there are too many others.
  [[nodiscard]] SWAPMM_TEMPLATE_EXPORT std::uint32_t number(std::string_view name, Bytes bytes);
  /// The same for tensors of which the number was asked before; not_encoded for others.
  [[nodiscard]] SWAPMM_TEMPLATE_EXPORT std::uint32_t find(std::string_view name, Bytes bytes) const;

  /// A copy of that size to the device, or to the host, took so long.
  SWAPMM_TEMPLATE_EXPORT void took(std::uint32_t number, bool to_device, std::chrono::nanoseconds time);

  /// The bytes that a plain copy moves in the time that encoded copies of these tensors take, in the slower direction.
  /// Nothing if none was timed, or if that is not less by a tenth than what a plain copy moves.
  [[nodiscard]] SWAPMM_TEMPLATE_EXPORT std::optional<Bytes> moved(std::uint32_t number, const Link& in,
                                                                  const Link& out) const;
  /// True if encoding such tensors was tried twice in a direction, and does not pay there. (The first time may include
  /// what a driver does once.)
  [[nodiscard]] SWAPMM_TEMPLATE_EXPORT bool is_in_vain(std::uint32_t number, const Link& in, const Link& out) const;

 private:
  struct Entry {
    Bytes bytes;
    DurationSamples in{};
    DurationSamples out{};
    std::uint32_t times_in = 0;
    std::uint32_t times_out = 0;
  };
  static std::string key_of(std::string_view name, Bytes bytes);

  Bytes largest_;
  std::vector<Entry> entries_;
  std::unordered_map<std::string, std::uint32_t> numbers_;
};

}  // namespace swapmm::runtime
