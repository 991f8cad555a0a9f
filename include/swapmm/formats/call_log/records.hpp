// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

// Internal: numbers and framing of the format `swapmm-log` (docs/formats.md).

namespace swapmm::call_log {

inline constexpr std::string_view first_line = "swapmm-log 1\n";

/// Sizes of the frame around a record: length and checksum.
inline constexpr std::size_t frame_bytes = 8;
inline constexpr std::uint32_t record_bytes = 1U << 24U;  ///< the most that a record may have
inline constexpr std::size_t content_piece = 1U << 20U;   ///< longer host data is written in pieces of this
inline constexpr std::size_t calls = std::size_t{1} << 22U;
inline constexpr std::size_t list_elements = 4096;  ///< of each list in a record
inline constexpr std::size_t text_bytes = 1024;     ///< names of functions and kernels
inline constexpr std::size_t source_bytes = std::size_t{8} << 20U;

enum class RecordType : std::uint8_t { begin = 1, call = 2, duration = 3, digest = 4, content = 5, end = 6 };

/// The numbers of the fields, by record and structure.
namespace field {
enum Record : std::uint32_t { type = 1, sequence = 2 };
enum Begin : std::uint32_t { process = 3, has_content = 4 };
enum Duration : std::uint32_t { nanoseconds = 3 };
enum Result : std::uint32_t { digest = 3 };
enum Content : std::uint32_t { position = 3, bytes_of_it = 4 };
enum Call : std::uint32_t {
  ended_before = 3,
  thread = 4,
  begin_ns = 5,
  end_ns = 6,
  kind = 7,
  function = 8,
  status = 9,
  object_kind = 10,
  object = 11,
  parent = 12,
  queue = 13,
  another_object = 14,
  wait = 15,
  event = 16,
  blocking = 17,
  flags = 18,
  offset = 19,
  bytes = 20,
  value = 21,
  operand = 22,
  host = 23,
  argument = 24,
  name = 25,
  global_offset = 26,
  global = 27,
  local = 28,
  source = 29,
  source_digest = 30,
  is_binary = 31,
  options = 32,
};
enum Operand : std::uint32_t {
  operand_object = 1,
  access = 2,
  operand_offset = 3,
  operand_bytes = 4,
  operand_box = 5,
  operand_argument = 6
};
enum Host : std::uint32_t { address = 1, host_bytes = 2, host_box = 3, host_digest = 4 };
enum Box : std::uint32_t { origin = 1, region = 2, row = 3, slice = 4 };
enum Argument : std::uint32_t {
  index = 1,
  argument_type = 2,
  argument_object = 3,
  argument_bytes = 4,
  argument_value = 5
};
}  // namespace field

/// CRC-32 as in gzip and PNG (polynomial 0xEDB88320).
[[nodiscard]] std::uint32_t checksum(std::string_view bytes);

}  // namespace swapmm::call_log
