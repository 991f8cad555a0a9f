// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <swapmm/base/result.hpp>
#include <swapmm/formats/json/reader.hpp>

// Internal: the part of the reader that works with descriptions and is independent of the parser.

namespace swapmm::json {

/// Follows the events of a parser through the description of a document, and calls the functions that take the values.
/// Keys, strings and numbers may come in parts; the last part comes with the event without `_part`. If an event
/// function returns false, there is a problem(), and no further event may follow.
class Decoder {
 public:
  explicit Decoder(const Object& document) : document_(document) {}

  [[nodiscard]] const std::optional<Problem>& problem() const { return problem_; }
  /// The current position in the document: `operations[17].reads[2]`.
  [[nodiscard]] std::string path() const;
  /// Sets the number of bytes that the parser has not seen yet, including this piece; none if unknown.
  void set_bytes_left(std::optional<std::uint64_t> bytes) { bytes_left_ = bytes; }

  bool object_begin();
  bool object_end();
  bool array_begin();
  bool array_end();
  bool key_part(std::string_view part);
  bool key(std::string_view part);
  bool string_part(std::string_view part);
  bool string(std::string_view part);
  bool number_part(std::string_view part);
  bool integer(std::int64_t value);
  /// A number that is not an int64: a fraction, a number with an exponent, or one that is too large.
  bool other_number(std::string_view part);
  bool boolean(bool value);
  bool null();

 private:
  /// An object or array that has begun and not ended.
  struct Frame {
    const Object* object = nullptr;
    const List* list = nullptr;
    const Field* field = nullptr;  ///< in an object: the field of the last key; none if unknown
    std::uint64_t seen = 0;        ///< in an object: a bit for each field seen
    std::size_t count = 0;         ///< in an array: number of elements begun
  };

  const Value* next();
  const Value* next_scalar(std::string_view found);
  bool out_of_range(const Integer& wanted, const std::string& number);
  bool mismatch(const Value& wanted, std::string_view found);
  bool refuse(const std::string& message);

  const Object& document_;
  std::vector<Frame> frames_;
  std::size_t skipped_depth_ = 0;  ///< number of open objects and arrays within an unknown field
  std::string text_;               ///< text of an incomplete key, string or number
  std::optional<Problem> problem_;
  std::optional<std::uint64_t> bytes_left_;
};

}  // namespace swapmm::json
