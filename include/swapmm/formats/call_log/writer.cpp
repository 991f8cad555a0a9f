// SPDX-License-Identifier: Apache-2.0
#include <swapmm/formats/call_log/writer.hpp>

#include <algorithm>
#include <array>
#include <ostream>

#include <swapmm/base/text/utf8.hpp>
#include <swapmm/formats/call_log/records.hpp>
#include <swapmm/ir/limits.hpp>

namespace swapmm::call_log {
namespace {

void append_varint(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7U) out += static_cast<char>(0x80U | (value & 0x7FU));
  out += static_cast<char>(value);
}

/// The fields of a record or structure. Numbers that are 0 and texts that are empty are left out.
class Fields {
 public:
  void number(std::uint32_t field, std::uint64_t value) {
    if (value != 0) element(field, value);
  }
  /// A size or an offset. A program may have named one that is beyond the limit: the call failed.
  void size(std::uint32_t field, std::uint64_t value) { number(field, std::min(value, limits::magnitude - 1)); }
  void signed_number(std::uint32_t field, std::int64_t value) {
    const auto bits = static_cast<std::uint64_t>(value);
    number(field, (bits << 1U) ^ (value < 0 ? ~std::uint64_t{0} : 0));
  }
  void bytes(std::uint32_t field, std::string_view value) {
    if (!value.empty()) structure(field, value);
  }
  /// As it is, also if it is 0.
  void element(std::uint32_t field, std::uint64_t value) {
    append_varint(text_, std::uint64_t{field} << 1U);
    append_varint(text_, value);
  }
  template <class List>
  void list(std::uint32_t field, const List& values) {
    std::size_t left = list_elements;
    for (const std::uint64_t value : values) {
      if (left-- == 0) return;
      element(field, std::min(value, limits::magnitude - 1));
    }
  }
  void structure(std::uint32_t field, std::string_view value) {
    append_varint(text_, (std::uint64_t{field} << 1U) | 1U);
    append_varint(text_, value.size());
    text_ += value;
  }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  std::string text_;
};

void append_fixed(std::string& out, std::uint32_t value) {
  for (unsigned shift = 0; shift < 32; shift += 8) out += static_cast<char>((value >> shift) & 0xFFU);
}

void append_record(std::string& out, const Fields& fields) {
  append_fixed(out, static_cast<std::uint32_t>(fields.text().size()));
  append_fixed(out, checksum(fields.text()));
  out += fields.text();
}

Fields record(RecordType type, std::uint64_t sequence) {
  Fields fields;
  fields.number(field::type, static_cast<std::uint64_t>(type));
  fields.number(field::sequence, sequence);
  return fields;
}

std::string text_of(const calls::Box& box) {
  Fields fields;
  fields.list(field::origin, box.origin);
  fields.list(field::region, box.region);
  fields.size(field::row, box.row);
  fields.size(field::slice, box.slice);
  return fields.text();
}

std::string text_of(const calls::Operand& operand) {
  Fields fields;
  fields.element(field::operand_object, operand.object);
  fields.element(field::access, static_cast<std::uint64_t>(operand.access));
  fields.size(field::operand_offset, operand.offset);
  fields.size(field::operand_bytes, operand.bytes);
  if (operand.box) fields.structure(field::operand_box, text_of(*operand.box));
  if (operand.argument) fields.element(field::operand_argument, *operand.argument);
  return fields.text();
}

std::string text_of(const calls::HostData& host) {
  Fields fields;
  fields.number(field::address, host.address);
  fields.size(field::host_bytes, host.bytes);
  if (host.box) fields.structure(field::host_box, text_of(*host.box));
  fields.bytes(field::host_digest, host.digest);
  return fields.text();
}

std::string text_of(const calls::Argument& argument) {
  Fields fields;
  fields.number(field::index, argument.index);
  fields.element(field::argument_type, static_cast<std::uint64_t>(argument.type));
  fields.number(field::argument_object, argument.object);
  fields.size(field::argument_bytes, argument.bytes);
  fields.bytes(field::argument_value, argument.value);
  return fields.text();
}

std::string name(std::string_view text) { return text::to_valid_utf8(text, text_bytes); }

void append_places(Fields& fields, const calls::Call& call) {
  std::size_t left = list_elements;
  for (const calls::Operand& operand : call.operands) {
    if (left-- == 0) break;
    fields.structure(field::operand, text_of(operand));
  }
  if (call.host) fields.structure(field::host, text_of(*call.host));
  if (call.argument) fields.structure(field::argument, text_of(*call.argument));
  fields.bytes(field::name, name(call.name));
  fields.list(field::global_offset, call.offsets);
  fields.list(field::global, call.global);
  fields.list(field::local, call.local);
  if (call.source.size() <= source_bytes) fields.bytes(field::source, call.source);
  fields.bytes(field::source_digest, call.source_digest);
  fields.number(field::is_binary, call.is_binary ? 1 : 0);
  fields.bytes(field::options, std::string_view(call.options).substr(0, source_bytes / 8));
}

constexpr std::array<std::uint32_t, 256> checksum_table = [] {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = (value & 1U) != 0 ? 0xEDB88320U ^ (value >> 1U) : value >> 1U;
    table[i] = value;
  }
  return table;
}();

}  // namespace

std::uint32_t checksum(std::string_view bytes) {
  std::uint32_t value = 0xFFFFFFFFU;
  for (const char c : bytes) {
    value = checksum_table[(value ^ static_cast<unsigned char>(c)) & 0xFFU] ^ (value >> 8U);
  }
  return ~value;
}

void append_begin(std::string& out, std::uint64_t process, bool has_content) {
  out += first_line;
  Fields fields = record(RecordType::begin, 0);
  fields.number(field::process, process);
  fields.number(field::has_content, has_content ? 1 : 0);
  append_record(out, fields);
}

void append_call(std::string& out, const calls::Call& call) {
  Fields fields = record(RecordType::call, call.sequence);
  fields.number(field::ended_before, call.ended_before);
  fields.number(field::thread, call.thread);
  fields.number(field::begin_ns, static_cast<std::uint64_t>(std::max<std::int64_t>(0, call.begin.count())));
  fields.number(field::end_ns, static_cast<std::uint64_t>(std::max<std::int64_t>(0, call.end.count())));
  fields.number(field::kind, static_cast<std::uint64_t>(call.kind));
  fields.bytes(field::function, name(call.function));
  fields.signed_number(field::status, call.status);
  fields.number(field::object_kind, static_cast<std::uint64_t>(call.object_kind));
  fields.number(field::object, call.object);
  fields.number(field::parent, call.parent);
  fields.number(field::queue, call.queue);
  fields.list(field::another_object, call.objects);
  fields.list(field::wait, call.waits);
  fields.number(field::event, call.event);
  fields.number(field::blocking, call.blocking ? 1 : 0);
  fields.number(field::flags, call.flags);
  fields.size(field::offset, call.offset);
  fields.size(field::bytes, call.bytes);
  fields.signed_number(field::value, call.value);
  append_places(fields, call);
  if (call.host) append_content(out, call.sequence, call.host->content);
  append_record(out, fields);
  if (call.duration) append_duration(out, call.sequence, *call.duration);
}

void append_duration(std::string& out, std::uint64_t sequence, std::chrono::nanoseconds duration) {
  Fields fields = record(RecordType::duration, sequence);
  fields.number(field::nanoseconds, static_cast<std::uint64_t>(std::max<std::int64_t>(0, duration.count())));
  append_record(out, fields);
}

void append_digest(std::string& out, std::uint64_t sequence, std::string_view digest) {
  Fields fields = record(RecordType::digest, sequence);
  fields.bytes(field::digest, digest);
  append_record(out, fields);
}

void append_content(std::string& out, std::uint64_t sequence, std::string_view content) {
  for (std::size_t at = 0; at < content.size(); at += content_piece) {
    append_content_piece(out, sequence, at, content.substr(at, content_piece));
  }
}

void append_content_piece(std::string& out, std::uint64_t sequence, std::uint64_t position, std::string_view bytes) {
  Fields fields = record(RecordType::content, sequence);
  fields.number(field::position, position);
  fields.bytes(field::bytes_of_it, bytes);
  append_record(out, fields);
}

void append_end(std::string& out) { append_record(out, record(RecordType::end, 0)); }

void write_call_log(std::ostream& out, const calls::CallLog& log) {
  std::string text;
  append_begin(text, log.process, log.has_content);
  for (const calls::Call& call : log.calls) {
    append_call(text, call);
    if (text.size() < content_piece) continue;
    out << text;
    text.clear();
  }
  if (log.ended) append_end(text);
  out << text;
}

}  // namespace swapmm::call_log
