// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <swapmm/base/result.hpp>
#include <swapmm/ir/limits.hpp>

// What the readers of the text formats share; not part of the public interface. A format is a description of what
// may stand where, with functions that take what was found. The text is never held as a whole or as a tree.
//
// Read strictly: the first thing that does not fit ends it, with a Problem that begins with its path, such as
// `operations[17].reads[2]`. Fields that the description does not know are skipped, whatever they hold.

namespace swapmm::json {

/// A number written as an integer (no fraction, no exponent), from `least` to `most`.
struct Integer {
  std::int64_t least = 0;
  std::int64_t most = 0;
  std::function<void(std::int64_t)> take;
  bool or_null = false;  ///< null counts as absent
};

/// A string of at most limits::name_bytes bytes of UTF-8.
struct Text {
  std::function<void(std::string_view)> take;
};

/// One of a few known words.
struct Word {
  std::vector<std::string_view> known;
  std::function<void(std::size_t)> take;  ///< the position in `known`
};

struct Boolean {
  std::function<void(bool)> take;
};

/// A field that must not be there: version 1 of a format knows no value for it.
struct Refused {
  std::string reason;
};

struct Field;

struct Object {
  std::vector<Field> fields;         ///< at most 64; each may stand once
  std::function<void()> begin = {};  ///< optional
  std::function<Check()> end = {};   ///< optional; its Problem gets the object's path in front
};

struct Value;

struct List {
  std::size_t most = 0;  ///< elements
  std::shared_ptr<const Value> element;
  /// Optional; is told how many bytes of text are still to come, if that is known.
  std::function<void(std::optional<std::uint64_t> bytes_left)> begin = {};
  std::function<void()> end = {};  ///< optional
};

struct Value : std::variant<Integer, Text, Word, Boolean, Refused, Object, List> {
  using variant::variant;
};

struct Field {
  enum class Presence : std::uint8_t { required, optional };
  std::string_view name;
  Presence presence = Presence::required;
  Value value;
};

[[nodiscard]] Field required(std::string_view name, Value value);
[[nodiscard]] Field optional(std::string_view name, Value value);
[[nodiscard]] List list_of(Value element, std::size_t most);

/// The same list, whose elements go to `elements`. Some are in memory up to four times their `shortest` text, so a
/// vector that doubles when it is full would be twelve times the text while it copies itself. Reserving for the most
/// that the text can hold avoids that: pages that are never touched cost nothing. What was far too much is given back
/// at the end.
template <class T>
[[nodiscard]] List reserving(List list, std::vector<T>& elements, std::string_view shortest) {
  list.begin = [&elements, most = list.most, each = shortest.size()](std::optional<std::uint64_t> bytes_left) {
    if (!bytes_left) return;
    const std::uint64_t count = std::min<std::uint64_t>(*bytes_left, limits::file_bytes) / each + 1;
    elements.reserve(static_cast<std::size_t>(std::min<std::uint64_t>(count, most)));
  };
  list.end = [&elements] {
    if (elements.capacity() / 4 > elements.size()) elements.shrink_to_fit();
  };
  return list;
}

/// The fields `format` and `version` that a file of version 1 begins with.
[[nodiscard]] Field format(std::string_view name, Field::Presence presence = Field::Presence::required);
[[nodiscard]] Field version(Field::Presence presence = Field::Presence::required);

/// In what pieces texts reach the parser.
inline constexpr std::size_t piece_bytes = std::size_t{1} << 16U;

/// Reads one JSON text that is `document` and nothing else. The text reaches the parser in pieces of `piece` bytes,
/// which makes no difference but to the byte at which broken JSON is noticed.
[[nodiscard]] Check read(std::string_view text, const Object& document, std::size_t piece = piece_bytes);
/// Reads to the end of the stream, in pieces. A stream that knows its length lets lists reserve their memory.
[[nodiscard]] Check read(std::istream& in, const Object& document);

}  // namespace swapmm::json
