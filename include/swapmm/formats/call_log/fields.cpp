// SPDX-License-Identifier: Apache-2.0
#include <swapmm/formats/call_log/fields.hpp>

namespace swapmm::call_log {

std::optional<std::uint64_t> FieldCursor::varint() {
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 64 && !text_.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(text_.front());
    text_.remove_prefix(1);
    if (shift == 63 && byte > 1) break;
    value |= std::uint64_t{byte & 0x7FU} << shift;
    if ((byte & 0x80U) == 0) {
      if (byte == 0 && shift > 0) break;  // one way to write each number
      return value;
    }
  }
  broken_ = true;
  return std::nullopt;
}

std::optional<FieldValue> FieldCursor::next() {
  if (broken_ || text_.empty()) return std::nullopt;
  const std::optional<std::uint64_t> key = varint();
  if (!key) return std::nullopt;
  FieldValue field;
  field.number = static_cast<std::uint32_t>(*key >> 1U);
  field.is_bytes = (*key & 1U) != 0;
  const std::optional<std::uint64_t> value = varint();
  if (!value || *key >> 33U != 0 || field.number == 0 || (field.is_bytes && *value > text_.size())) {
    broken_ = true;
    return std::nullopt;
  }
  field.value = *value;
  if (field.is_bytes) {
    field.bytes = text_.substr(0, static_cast<std::size_t>(*value));
    text_.remove_prefix(static_cast<std::size_t>(*value));
  }
  return field;
}

}  // namespace swapmm::call_log
