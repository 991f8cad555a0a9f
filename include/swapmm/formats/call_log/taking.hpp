// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include <swapmm/base/text/utf8.hpp>
#include <swapmm/formats/call_log/fields.hpp>
#include <swapmm/formats/call_log/records.hpp>
#include <swapmm/ir/limits.hpp>

// Internal: what the decoders of records and structures share.

namespace swapmm::call_log {

/// Takes values out of fields, and keeps the first thing that is wrong.
class Taking {
 public:
  explicit Taking(const FieldValue& field) : field_(field) {}

  void number(std::uint64_t& target, std::uint64_t most = std::numeric_limits<std::uint64_t>::max()) {
    if (!is_number()) return;
    if (field_.value > most) return refuse(std::to_string(field_.value) + " is above " + std::to_string(most));
    target = field_.value;
  }
  template <class Small>
  void small(Small& target, std::uint64_t most = std::numeric_limits<Small>::max()) {
    std::uint64_t value = 0;
    number(value, most);
    target = static_cast<Small>(value);
  }
  void size(std::uint64_t& target) { number(target, limits::magnitude - 1); }
  void flag(bool& target) {
    std::uint64_t value = 0;
    number(value, 1);
    target = value != 0;
  }
  void signed_number(std::int64_t& target) {
    if (!is_number()) return;
    target = static_cast<std::int64_t>((field_.value >> 1U) ^ (~(field_.value & 1U) + 1));
  }
  template <class Enum, std::size_t count>
  void word(Enum& target, const std::array<std::string_view, count>&) {
    std::uint64_t value = 0;
    number(value, count - 1);
    target = static_cast<Enum>(value);
  }
  void text(std::string& target, std::size_t most = text_bytes) {
    if (!is_bytes(most)) return;
    if (text::to_valid_utf8(field_.bytes, most) != field_.bytes) return refuse("is not UTF-8");
    target = field_.bytes;
  }
  /// A name in C, so that messages can show it.
  void identifier(std::string& target) {
    text(target);
    if (target.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_") !=
        std::string::npos)
      refuse("is no name of a function");
  }
  void bytes(std::string& target, std::size_t most) {
    if (is_bytes(most)) target = field_.bytes;
  }
  void digest(std::string& target) {
    if (!is_bytes(32)) return;
    if (field_.bytes.size() != 32) return refuse("a digest has 32 bytes");
    target = field_.bytes;
  }
  /// Room for one more in a list.
  template <class List>
  [[nodiscard]] bool room(const List& list) {
    if (list.size() >= list_elements) refuse("more than " + std::to_string(list_elements));
    return !problem_;
  }
  template <class List>
  void element(List& list) {
    std::uint64_t value = 0;
    number(value, std::numeric_limits<typename List::value_type>::max());
    if (room(list)) list.push_back(static_cast<typename List::value_type>(value));
  }
  /// A structure of its own: decode(text) gives a Result.
  template <class Target, class Decode>
  void structure(Target& target, Decode decode) {
    if (!is_bytes(std::numeric_limits<std::size_t>::max())) return;
    auto decoded = decode(field_.bytes);
    if (!decoded) return refuse(decoded.problem().message);
    target = *std::move(decoded);
  }
  void refuse(std::string why) {
    if (!problem_) problem_ = std::move(why);
  }
  [[nodiscard]] const std::optional<std::string>& problem() const { return problem_; }

 private:
  bool is_number() {
    if (field_.is_bytes) refuse("is not a number");
    return !field_.is_bytes;
  }
  bool is_bytes(std::size_t most) {
    if (!field_.is_bytes) refuse("is a number");
    if (field_.bytes.size() > most) refuse("has more than " + std::to_string(most) + " bytes");
    return !problem_;
  }
  const FieldValue& field_;
  std::optional<std::string> problem_;
};

/// Calls take(field number, Taking&) for each field of a text. A field below 64 may be there once, unless `repeated`
/// has its bit. take() ignores fields that it does not know.
template <class Take>
[[nodiscard]] Check take_fields(std::string_view text, std::uint64_t repeated, Take take) {
  FieldCursor cursor(text);
  std::uint64_t seen = 0;
  while (const std::optional<FieldValue> field = cursor.next()) {
    const std::string place = "field " + std::to_string(field->number);
    if (field->number < 64) {
      const std::uint64_t bit = std::uint64_t{1} << field->number;
      if ((seen & bit & ~repeated) != 0) return Problem{place + ": is there twice"};
      seen |= bit;
    }
    Taking taking(*field);
    take(field->number, taking);
    if (taking.problem()) return Problem{place + ": " + *taking.problem()};
  }
  if (cursor.is_broken()) return Problem{"its fields are broken"};
  return Done{};
}

[[nodiscard]] constexpr std::uint64_t field_bit(std::uint32_t field) { return std::uint64_t{1} << field; }

}  // namespace swapmm::call_log
