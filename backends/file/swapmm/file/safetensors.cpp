// SPDX-License-Identifier: Apache-2.0
// The format: 8 bytes with the length of the head, little endian; the head, a JSON object with for each tensor its
// type, its shape and the range of its bytes behind the head; the bytes.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/json.hpp>

#include <swapmm/base/bytes.hpp>
#include <swapmm/file/weights.hpp>

namespace swapmm::file {

namespace {

namespace json = boost::json;

// The format's own limit.
constexpr std::uint64_t largest_head = 100'000'000;
constexpr std::size_t length_bytes = 8;

struct Type {
  std::string_view name;
  std::uint64_t bytes;
};
constexpr std::array<Type, 15> types{{{"F64", 8},
                                      {"F32", 4},
                                      {"F16", 2},
                                      {"BF16", 2},
                                      {"F8_E4M3", 1},
                                      {"F8_E5M2", 1},
                                      {"I64", 8},
                                      {"I32", 4},
                                      {"I16", 2},
                                      {"I8", 1},
                                      {"U64", 8},
                                      {"U32", 4},
                                      {"U16", 2},
                                      {"U8", 1},
                                      {"BOOL", 1}}};

// What the file says, for a line of text: files are untrusted.
std::string quoted(std::string_view text) {
  constexpr std::size_t most = 80;
  std::string result = "\"";
  for (const char c : text.substr(0, most)) {
    const bool shown = static_cast<unsigned char>(c) >= 0x20 && c != 0x7F && c != '"';
    result += shown ? c : '?';
  }
  return result + (text.size() > most ? "...\"" : "\"");
}

std::optional<std::uint64_t> whole_number(const json::value& value) {
  if (value.is_uint64()) return value.get_uint64();
  if (value.is_int64() && value.get_int64() >= 0) return static_cast<std::uint64_t>(value.get_int64());
  return std::nullopt;
}

std::optional<std::vector<std::uint64_t>> whole_numbers(const json::object& of, std::string_view key) {
  const json::value* const found = of.if_contains(key);
  if (found == nullptr || !found->is_array()) return std::nullopt;
  std::vector<std::uint64_t> numbers;
  for (const json::value& each : found->get_array()) {
    const std::optional<std::uint64_t> number = whole_number(each);
    if (!number) return std::nullopt;
    numbers.push_back(*number);
  }
  return numbers;
}

/// `data`: where the bytes begin; `size`: of the file.
Result<Weight> weight_of(const std::string& name, const json::value& entry, Bytes data, Bytes size) {
  const auto wrong = [&](const std::string& why) { return Problem{"tensor " + quoted(name) + " " + why}; };
  if (!entry.is_object()) return wrong("is not an object");
  const json::object& fields = entry.get_object();
  const json::value* const type = fields.if_contains("dtype");
  if (type == nullptr || !type->is_string()) return wrong("has no \"dtype\"");
  const std::string_view type_name(type->get_string().data(), type->get_string().size());
  const auto known = std::find_if(types.begin(), types.end(), [&](const Type& t) { return t.name == type_name; });
  if (known == types.end()) return wrong("has the unknown type " + quoted(type_name));
  const auto shape = whole_numbers(fields, "shape");
  if (!shape) return wrong("has no \"shape\" of whole numbers");
  const auto range = whole_numbers(fields, "data_offsets");
  if (!range || range->size() != 2 || (*range)[0] > (*range)[1]) return wrong("has no range in \"data_offsets\"");

  std::optional<Bytes> bytes = Bytes{known->bytes};
  for (const std::uint64_t extent : *shape) {
    if (bytes) bytes = checked_multiply(*bytes, extent);
  }
  const std::uint64_t given = (*range)[1] - (*range)[0];
  if (!bytes || bytes->value != given) {
    return wrong("has " + std::to_string(given) + " bytes, and its shape and type " +
                 (bytes ? std::to_string(bytes->value) : "more than 64 bits can count"));
  }
  if ((*range)[1] > (size - data).value) {
    return wrong("ends at byte " + std::to_string((*range)[1]) + " behind the head, and the file has " +
                 std::to_string((size - data).value));
  }
  return Weight{name, std::string(type_name), *shape, data + Bytes{(*range)[0]}, *bytes};
}

Result<std::vector<Weight>> weights_of(const json::object& head, Bytes data, Bytes size) {
  std::vector<Weight> weights;
  for (const auto& field : head) {
    const std::string name(field.key());
    if (name == "__metadata__") continue;
    Result<Weight> weight = weight_of(name, field.value(), data, size);
    if (!weight.has_value()) return weight.problem();
    weights.push_back(*std::move(weight));
  }
  const auto order = [](const Weight& a, const Weight& b) {
    return std::pair(a.offset, a.bytes) < std::pair(b.offset, b.bytes);
  };
  std::stable_sort(weights.begin(), weights.end(), order);
  for (std::size_t i = 1; i < weights.size(); ++i) {
    const Weight& before = weights[i - 1];
    if (before.offset + before.bytes > weights[i].offset) {
      return Problem{"tensors " + quoted(before.name) + " and " + quoted(weights[i].name) + " overlap"};
    }
  }
  return weights;
}

}  // namespace

Result<std::vector<Weight>> read_safetensors(FileMemory& file) {
  const auto wrong = [&](const std::string& why) { return Problem{file.name() + ": " + why}; };
  const Bytes size = file.size();
  if (size.value < length_bytes) return wrong("it has " + std::to_string(size.value) + " bytes, too few for a head");
  std::array<std::byte, length_bytes> encoded{};
  file.read(Bytes{}, encoded);
  std::uint64_t length = 0;
  for (std::size_t i = length_bytes; i-- > 0;) length = length << 8U | std::to_integer<std::uint64_t>(encoded[i]);
  if (length > largest_head || length > size.value - length_bytes) {
    return wrong("its head is to have " + std::to_string(length) + " bytes; it has " + std::to_string(size.value) +
                 " in all, and a head at most " + std::to_string(largest_head));
  }
  std::string text(static_cast<std::size_t>(length), '\0');
  file.read(Bytes{length_bytes}, std::as_writable_bytes(std::span(text.data(), text.size())));

  boost::system::error_code failed;
  const json::value head = json::parse(text, failed);
  if (failed) return wrong("its head is not JSON: " + failed.message());
  if (!head.is_object()) return wrong("its head is not a JSON object");
  Result<std::vector<Weight>> weights = weights_of(head.get_object(), Bytes{length_bytes + length}, size);
  if (!weights.has_value()) return wrong(weights.problem().message);
  return weights;
}

}  // namespace swapmm::file
