// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <swapmm/base/result.hpp>

// Internal: the fields of a record.

namespace swapmm::call_log {

/// One field: a number, or bytes.
struct FieldValue {
  std::uint32_t number = 0;
  bool is_bytes = false;
  std::uint64_t value = 0;
  std::string_view bytes;
};

/// Takes the fields of a text one after the other.
class FieldCursor {
 public:
  explicit FieldCursor(std::string_view text) : text_(text) {}
  /// The next field; none at the end, or after an error.
  [[nodiscard]] std::optional<FieldValue> next();
  [[nodiscard]] bool is_broken() const { return broken_; }

 private:
  std::optional<std::uint64_t> varint();
  std::string_view text_;
  bool broken_ = false;
};

}  // namespace swapmm::call_log
