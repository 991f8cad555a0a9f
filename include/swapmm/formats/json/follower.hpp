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

// Not part of the public interface: the half of the reader that knows descriptions and no parser.

namespace swapmm::json {

/// Follows what a parser reports through the description of a document, and calls what takes the values. Keys,
/// strings and numbers may come in parts, the last one with the event that has the name of the thing itself. False
/// from any event: there is a problem(), and no further event may come.
class Follower {
 public:
  explicit Follower(const Object& document) : document_(document) {}

  [[nodiscard]] const std::optional<Problem>& problem() const { return problem_; }
  /// Where in the description the reader is: `operations[17].reads[2]`.
  [[nodiscard]] std::string path() const;
  /// How many bytes the parser has yet to see, those of this piece included; none where nobody knows.
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
  /// Any number that is no int64: a fraction, one with an exponent, or too large.
  bool other_number(std::string_view part);
  bool boolean(bool value);
  bool null();

 private:
  /// An object or an array that was begun and not yet ended.
  struct Frame {
    const Object* object = nullptr;
    const List* list = nullptr;
    const Field* field = nullptr;  ///< of an object: the one whose key came last; none: an unknown one
    std::uint64_t seen = 0;        ///< of an object: a bit for each field that stood
    std::size_t count = 0;         ///< of an array: the elements begun
  };

  const Value* next();
  const Value* next_scalar(std::string_view found);
  bool out_of_range(const Integer& wanted, const std::string& number);
  bool mismatch(const Value& wanted, std::string_view found);
  bool refuse(const std::string& message);

  const Object& document_;
  std::vector<Frame> frames_;
  std::size_t skipped_depth_ = 0;  ///< objects and arrays begun within an unknown field
  std::string text_;               ///< of a key, string or number of which only parts came so far
  std::optional<Problem> problem_;
  std::optional<std::uint64_t> bytes_left_;
};

}  // namespace swapmm::json
