// SPDX-License-Identifier: Apache-2.0
#include <swapmm/formats/json/decoder.hpp>

#include <algorithm>
#include <utility>

#include <swapmm/formats/json/writer.hpp>
#include <swapmm/ir/limits.hpp>
#include <swapmm/ir/trace.hpp>

namespace swapmm::json {
namespace {

constexpr std::size_t longest_key = 64;     // longer than any known key
constexpr std::size_t longest_number = 64;  // only shown in a message

/// Text from the file for a message: short, and without characters that could disturb a terminal.
std::string quoted(std::string_view text) {
  static constexpr std::size_t most = 64;
  std::string quote;
  append_text(quote, text.substr(0, most));
  return text.size() > most ? quote + "..." : quote;
}

std::string joined(const std::vector<std::string_view>& words) {
  std::string text;
  for (const std::string_view word : words) text += (text.empty() ? "" : ", ") + std::string(word);
  return text;
}

/// The expected type of a value, in words.
struct Wanted {
  std::string operator()(const Integer&) const { return "an integer"; }
  std::string operator()(const Text&) const { return "a string"; }
  std::string operator()(const Name&) const { return "a string"; }
  std::string operator()(const Word& word) const { return "one of " + joined(word.known); }
  std::string operator()(const Boolean&) const { return "true or false"; }
  std::string operator()(const Refused&) const { return "nothing"; }
  std::string operator()(const Object&) const { return "an object"; }
  std::string operator()(const List&) const { return "an array"; }
  std::string operator()(const OneOf& any) const {
    std::string text;
    for (const Value& value : *any.values) text += (text.empty() ? "" : " or ") + std::visit(*this, value);
    return text;
  }
};

/// The value as that kind of description, or the one of its alternatives that is; none if there is none.
template <class Description>
const Description* as(const Value& value) {
  const auto* any = std::get_if<OneOf>(&value);
  if (any == nullptr) return std::get_if<Description>(&value);
  for (const Value& alternative : *any->values) {
    if (const auto* description = as<Description>(alternative)) return description;
  }
  return nullptr;
}

}  // namespace

std::string Decoder::path() const {
  std::string text;
  for (const Frame& frame : frames_) {
    if (frame.list != nullptr) {
      if (frame.count > 0) text += '[' + std::to_string(frame.count - 1) + ']';
    } else if (frame.field != nullptr) {
      if (!text.empty()) text += '.';
      text += frame.field->name;
    }
  }
  return text;
}

bool Decoder::object_begin() {
  if (skipped_depth_ > 0) return ++skipped_depth_ > 0;
  const Object* object = frames_.empty() ? &document_ : nullptr;
  if (object == nullptr) {
    const Value* value = next();
    if (problem_) return false;
    if (value == nullptr) return ++skipped_depth_ > 0;
    object = as<Object>(*value);
    if (object == nullptr) return mismatch(*value, "an object");
  }
  Frame frame;
  frame.object = object;
  frames_.push_back(frame);
  if (object->begin) object->begin();
  return true;
}

bool Decoder::object_end() {
  if (skipped_depth_ > 0) {
    --skipped_depth_;
    return true;
  }
  Frame& frame = frames_.back();
  for (std::size_t i = 0; i < frame.object->fields.size(); ++i) {
    const Field& field = frame.object->fields[i];
    if (field.presence == Field::Presence::required && (frame.seen >> i & 1U) == 0) {
      frame.field = &field;
      return refuse("missing");
    }
  }
  frame.field = nullptr;
  if (frame.object->end) {
    if (const Check check = frame.object->end(); !check) return refuse(check.problem().message);
  }
  frames_.pop_back();
  return true;
}

bool Decoder::array_begin() {
  if (skipped_depth_ > 0) return ++skipped_depth_ > 0;
  if (frames_.empty()) return refuse("an array stands where an object must");
  const Value* value = next();
  if (problem_) return false;
  if (value == nullptr) return ++skipped_depth_ > 0;
  const List* list = as<List>(*value);
  if (list == nullptr) return mismatch(*value, "an array");
  Frame frame;
  frame.list = list;
  frames_.push_back(frame);
  if (list->begin) list->begin(bytes_left_);
  return true;
}

bool Decoder::array_end() {
  if (skipped_depth_ > 0) {
    --skipped_depth_;
    return true;
  }
  const List* list = frames_.back().list;
  frames_.pop_back();
  if (list->end) list->end();
  return true;
}

bool Decoder::key_part(std::string_view part) {
  // A key that is longer than any known name is unknown, whatever follows.
  if (skipped_depth_ == 0 && text_.size() <= longest_key) text_ += part.substr(0, longest_key + 1);
  return true;
}

bool Decoder::key(std::string_view part) {
  if (skipped_depth_ > 0) return true;
  key_part(part);
  const std::string key = std::exchange(text_, {});
  Frame& frame = frames_.back();
  const auto& fields = frame.object->fields;
  const auto field = std::find_if(fields.begin(), fields.end(), [&](const Field& f) { return f.name == key; });
  frame.field = field == fields.end() ? nullptr : &*field;
  if (frame.field == nullptr) return true;
  const std::uint64_t bit = std::uint64_t{1} << static_cast<unsigned>(field - fields.begin());
  if ((frame.seen & bit) != 0) return refuse("stands twice in one object");
  frame.seen |= bit;
  return true;
}

bool Decoder::string_part(std::string_view part) {
  // One byte more than a name may have is enough to detect that it is too long.
  if (skipped_depth_ == 0 && text_.size() <= limits::name_bytes) text_ += part.substr(0, limits::name_bytes + 1);
  return true;
}

bool Decoder::string(std::string_view part) {
  string_part(part);
  const std::string text = std::exchange(text_, {});
  const Value* value = next_scalar("a string");
  if (value == nullptr) return !problem_;
  if (const auto* wanted = as<Text>(*value)) {
    if (text.size() > limits::name_bytes) return refuse("longer than " + std::to_string(limits::name_bytes) + " bytes");
    wanted->take(text);
    return true;
  }
  if (const auto* wanted = as<Name>(*value)) {
    if (!is_name(text)) return refuse(quoted(text) + " is not a name: 1 to 100 characters out of A-Z a-z 0-9 . _ -");
    wanted->take(text);
    return true;
  }
  if (const auto* wanted = as<Word>(*value)) {
    const auto word = std::find(wanted->known.begin(), wanted->known.end(), text);
    if (word == wanted->known.end()) return refuse(quoted(text) + " is not " + Wanted{}(*wanted));
    wanted->take(static_cast<std::size_t>(word - wanted->known.begin()));
    return true;
  }
  return mismatch(*value, "a string");
}

bool Decoder::number_part(std::string_view part) {
  if (skipped_depth_ == 0 && text_.size() <= longest_number) text_ += part.substr(0, longest_number);
  return true;
}

bool Decoder::integer(std::int64_t value) {
  text_.clear();
  const Value* place = next_scalar("a number");
  if (place == nullptr) return !problem_;
  const auto* wanted = as<Integer>(*place);
  if (wanted == nullptr) return mismatch(*place, "a number");
  if (value < wanted->least || value > wanted->most) return out_of_range(*wanted, std::to_string(value));
  wanted->take(value);
  return true;
}

bool Decoder::other_number(std::string_view part) {
  number_part(part);
  const std::string text = std::exchange(text_, {});
  const Value* place = next_scalar("a number");
  if (place == nullptr) return !problem_;
  const auto* wanted = as<Integer>(*place);
  if (wanted == nullptr) return mismatch(*place, "a number");
  const bool only_digits = text.find_first_not_of("-0123456789") == std::string::npos;
  return only_digits ? out_of_range(*wanted, text) : refuse(text + " is not written as an integer");
}

bool Decoder::boolean(bool value) {
  const Value* place = next_scalar("a boolean");
  if (place == nullptr) return !problem_;
  const auto* wanted = as<Boolean>(*place);
  if (wanted == nullptr) return mismatch(*place, value ? "true" : "false");
  wanted->take(value);
  return true;
}

bool Decoder::null() {
  const Value* place = next_scalar("null");
  if (place == nullptr) return !problem_;
  const auto* integer = as<Integer>(*place);
  if (integer != nullptr && integer->or_null) return true;
  const auto* name = as<Name>(*place);
  if (name != nullptr && name->or_null) return true;
  return mismatch(*place, "null");
}

/// The description of the value that begins now. None if the value is skipped, or, with a problem, if the list has too
/// many elements.
const Value* Decoder::next() {
  Frame& frame = frames_.back();
  if (frame.list == nullptr) return frame.field == nullptr ? nullptr : &frame.field->value;
  if (frame.count == frame.list->most) {
    frame.count = 0;  // the path is that of the list
    refuse("more than " + std::to_string(frame.list->most) + " elements");
    return nullptr;
  }
  ++frame.count;
  return frame.list->element.get();
}

const Value* Decoder::next_scalar(std::string_view found) {
  if (skipped_depth_ > 0) return nullptr;
  if (!frames_.empty()) return next();
  refuse(std::string(found) + " stands where an object must");
  return nullptr;
}

bool Decoder::out_of_range(const Integer& wanted, const std::string& number) {
  if (wanted.least == wanted.most) {
    return refuse(number + " is unknown, only " + std::to_string(wanted.most) + " is known");
  }
  if (wanted.least == wanted.most - 1) {
    return refuse(number + " is unknown, only " + std::to_string(wanted.least) + " and " + std::to_string(wanted.most) +
                  " are known");
  }
  if (number.front() == '-') return refuse(number + " is below " + std::to_string(wanted.least));
  return refuse(number + " is above " + std::to_string(wanted.most));
}

bool Decoder::mismatch(const Value& wanted, std::string_view found) {
  if (const auto* refused = std::get_if<Refused>(&wanted)) return refuse(refused->reason);
  return refuse(std::string(found) + " stands where " + std::visit(Wanted{}, wanted) + " must");
}

bool Decoder::refuse(const std::string& message) {
  const std::string where = path();
  problem_ = Problem{(where.empty() ? "" : where + ": ") + message};
  return false;
}

}  // namespace swapmm::json
