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

// Internal: the reader that all text formats share. A format is a description of the allowed structure, with functions
// that take the values. The text is never stored as a whole or as a tree.
//
// Reading is strict: it stops at the first error, with a Problem that begins with the path, such as
// `operations[17].reads[2]`. Unknown fields are skipped, whatever they contain.

namespace swapmm::json {

/// A number written as an integer (no fraction, no exponent), from `least` to `most`. If these allow only one or two
/// values, messages list them.
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

/// A string that things in the file are called by: is_name() of ir/trace.hpp holds for it.
struct Name {
  std::function<void(std::string_view)> take;
  bool or_null = false;  ///< null counts as absent
};

/// One of a few known words.
struct Word {
  std::vector<std::string_view> known;
  std::function<void(std::size_t)> take;  ///< the position in `known`
};

struct Boolean {
  std::function<void(bool)> take;
};

/// A field that must not be present, because version 1 of the format has no value for it.
struct Refused {
  std::string reason;
};

struct Field;

struct Object {
  std::vector<Field> fields;         ///< at most 64; each may appear once
  std::function<void()> begin = {};  ///< optional
  std::function<Check()> end = {};   ///< optional; its Problem is prefixed with the object's path
};

struct Value;

struct List {
  std::size_t most = 0;  ///< elements
  std::shared_ptr<const Value> element;
  /// Optional. Its argument is the number of bytes of text that are left, if known.
  std::function<void(std::optional<std::uint64_t> bytes_left)> begin = {};
  std::function<void()> end = {};  ///< optional
};

/// One of several values. Their types in JSON differ: one may be an integer, another one an object.
struct OneOf {
  std::shared_ptr<const std::vector<Value>> values;
};

struct Value : std::variant<Integer, Text, Name, Word, Boolean, Refused, Object, List, OneOf> {
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
[[nodiscard]] OneOf one_of(std::vector<Value> values);

/// The same list, with its elements stored in `elements`. Some elements are up to four times as large as their
/// `shortest` text, so a vector that doubles when it is full would need twelve times the text while it copies itself.
/// Reserving for the largest possible number avoids this: pages that are never touched cost nothing. If far too much
/// was reserved, it is given back at the end.
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

/// The field `format` of a file.
[[nodiscard]] Field format(std::string_view name, Field::Presence presence = Field::Presence::required);
/// The field `version` of a file of version 1.
[[nodiscard]] Field version(Field::Presence presence = Field::Presence::required);
/// The field `version` of a file of one of the versions from `oldest` to `newest`.
[[nodiscard]] Field version(std::int64_t oldest, std::int64_t newest,
                            Field::Presence presence = Field::Presence::required);

/// The size of the pieces in which the parser gets a text.
inline constexpr std::size_t piece_bytes = std::size_t{1} << 16U;

/// Reads one JSON text that matches `document`. The parser gets the text in pieces of `piece` bytes; their size affects
/// only the byte that is reported for broken JSON.
[[nodiscard]] Check read(std::string_view text, const Object& document, std::size_t piece = piece_bytes);
/// Reads to the end of the stream, in pieces. If the stream knows its length, lists can reserve their memory.
[[nodiscard]] Check read(std::istream& in, const Object& document);

/// The value of the field `version` of the text, wherever it stands. None if there is none, or something is wrong
/// before it; reading the text then tells what.
[[nodiscard]] std::optional<std::int64_t> find_version(std::string_view text);

/// What find_version() needed to know of a stream.
struct Preview {
  std::optional<std::int64_t> version;
  std::optional<std::string> text;  ///< all that the stream had, if it cannot go back to where it was
};
/// Finds the version, and goes back to where the stream was. Reads a stream that cannot go back, as a pipe, to its end.
[[nodiscard]] Result<Preview> preview(std::istream& in);

/// @{
/// Calls read(source, version) with the version of the text, so that it can choose the description by version. `source`
/// is a std::string_view or a std::istream&. If `version` comes first, as it should, the text is read once.
template <class Read>
[[nodiscard]] auto read_by_version(std::string_view text, Read read) {
  return read(text, find_version(text));
}
template <class Read>
[[nodiscard]] auto read_by_version(std::istream& in, Read read) -> decltype(read(in, std::optional<std::int64_t>())) {
  const Result<Preview> seen = preview(in);
  if (!seen) return seen.problem();
  if (seen->text) return read(std::string_view(*seen->text), seen->version);
  return read(in, seen->version);
}
/// @}

}  // namespace swapmm::json
