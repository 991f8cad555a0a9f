// SPDX-License-Identifier: Apache-2.0
#include <swapmm/formats/call_log/decode.hpp>

#include <array>
#include <cstdint>
#include <string>

#include <swapmm/formats/call_log/records.hpp>
#include <swapmm/formats/call_log/taking.hpp>

namespace swapmm::call_log {
namespace {

using calls::Call;

constexpr std::array<std::string_view, 3> access_names = {"read", "write", "update"};

Result<calls::Box> decode_box(std::string_view text) {
  calls::Box box;
  std::size_t origins = 0;
  std::size_t regions = 0;
  const auto next = [](Taking& taking, std::array<std::uint64_t, 3>& list, std::size_t& count) {
    if (count == list.size()) return taking.refuse("more than 3");
    taking.size(list[count++]);
  };
  const Check taken =
      take_fields(text, field_bit(field::origin) | field_bit(field::region), [&](std::uint32_t number, Taking& taking) {
        switch (number) {
          case field::origin: return next(taking, box.origin, origins);
          case field::region: return next(taking, box.region, regions);
          case field::row: return taking.size(box.row);
          case field::slice: return taking.size(box.slice);
          default: return;
        }
      });
  if (!taken) return taken.problem();
  if (origins != 3 || regions != 3) return Problem{"a rectangle has 3 origins and 3 sizes"};
  return box;
}

Result<calls::Operand> decode_operand(std::string_view text) {
  calls::Operand operand;
  std::uint64_t seen = 0;
  const Check taken = take_fields(text, 0, [&](std::uint32_t number, Taking& taking) {
    if (number < 64) seen |= field_bit(number);
    switch (number) {
      case field::operand_object: return taking.small(operand.object);
      case field::access: return taking.word(operand.access, access_names);
      case field::operand_offset: return taking.size(operand.offset);
      case field::operand_bytes: return taking.size(operand.bytes);
      case field::operand_box: return taking.structure(operand.box, decode_box);
      case field::operand_argument: return taking.small(operand.argument.emplace());
      default: return;
    }
  });
  if (!taken) return taken.problem();
  constexpr std::uint64_t needed = field_bit(field::operand_object) | field_bit(field::access);
  if ((seen & needed) != needed) return Problem{"an operand has an object and an access"};
  return operand;
}

Result<calls::HostData> decode_host(std::string_view text) {
  calls::HostData host;
  const Check taken = take_fields(text, 0, [&](std::uint32_t number, Taking& taking) {
    switch (number) {
      case field::address: return taking.number(host.address);
      case field::host_bytes: return taking.size(host.bytes);
      case field::host_box: return taking.structure(host.box, decode_box);
      case field::host_digest: return taking.digest(host.digest);
      default: return;
    }
  });
  if (!taken) return taken.problem();
  return host;
}

Result<calls::Argument> decode_argument(std::string_view text) {
  calls::Argument argument;
  bool has_type = false;
  const Check taken = take_fields(text, 0, [&](std::uint32_t number, Taking& taking) {
    switch (number) {
      case field::index: return taking.small(argument.index);
      case field::argument_type: has_type = true; return taking.word(argument.type, calls::argument_type_names);
      case field::argument_object: return taking.small(argument.object);
      case field::argument_bytes: return taking.size(argument.bytes);
      case field::argument_value: return taking.bytes(argument.value, source_bytes);
      default: return;
    }
  });
  if (!taken) return taken.problem();
  if (!has_type) return Problem{"an argument has a type"};
  if (argument.type == calls::Argument::Type::value && argument.value.size() != argument.bytes) {
    return Problem{"the value of an argument has another size than it says"};
  }
  return argument;
}

template <class T>
void add(Taking& taking, std::vector<T>& list, Result<T> (*decode)(std::string_view)) {
  if (!taking.room(list)) return;
  T decoded;
  taking.structure(decoded, decode);
  if (!taking.problem()) list.push_back(std::move(decoded));
}

void take_nanoseconds(Taking& taking, std::chrono::nanoseconds& time) {
  std::uint64_t value = 0;
  taking.size(value);
  time = std::chrono::nanoseconds{static_cast<std::int64_t>(value)};
}

// Places and texts of a call; the rest is taken below.
void take_content(std::uint32_t number, Taking& taking, Call& call) {
  switch (number) {
    case field::operand: return add(taking, call.operands, decode_operand);
    case field::host: return taking.structure(call.host, decode_host);
    case field::argument: return taking.structure(call.argument, decode_argument);
    case field::name: return taking.text(call.name);
    case field::global_offset: return taking.element(call.offsets);
    case field::global: return taking.element(call.global);
    case field::local: return taking.element(call.local);
    case field::source: return taking.bytes(call.source, source_bytes);
    case field::source_digest: return taking.digest(call.source_digest);
    case field::is_binary: return taking.flag(call.is_binary);
    case field::options: return taking.bytes(call.options, source_bytes);
    default: return;
  }
}

void take_field(std::uint32_t number, Taking& taking, Call& call) {
  switch (number) {
    case field::sequence: return taking.size(call.sequence);
    case field::ended_before: return taking.size(call.ended_before);
    case field::thread: return taking.small(call.thread);
    case field::begin_ns: return take_nanoseconds(taking, call.begin);
    case field::end_ns: return take_nanoseconds(taking, call.end);
    case field::kind: return taking.word(call.kind, calls::call_kind_names);
    case field::function: return taking.identifier(call.function);
    case field::status: {
      std::int64_t status = 0;
      taking.signed_number(status);
      if (status != static_cast<std::int32_t>(status)) return taking.refuse("is no status");
      call.status = static_cast<std::int32_t>(status);
      return;
    }
    case field::object_kind: return taking.word(call.object_kind, calls::object_kind_names);
    case field::object: return taking.small(call.object);
    case field::parent: return taking.small(call.parent);
    case field::queue: return taking.small(call.queue);
    case field::another_object: return taking.element(call.objects);
    case field::wait: return taking.element(call.waits);
    case field::event: return taking.small(call.event);
    case field::blocking: return taking.flag(call.blocking);
    case field::flags: return taking.number(call.flags);
    case field::offset: return taking.size(call.offset);
    case field::bytes: return taking.size(call.bytes);
    case field::value: return taking.signed_number(call.value);
    default: return take_content(number, taking, call);
  }
}

}  // namespace

Result<Call> decode_call(std::string_view record) {
  Call call;
  std::uint64_t repeated = 0;
  for (const std::uint32_t each :
       {std::uint32_t{field::another_object}, std::uint32_t{field::wait}, std::uint32_t{field::operand},
        std::uint32_t{field::global_offset}, std::uint32_t{field::global}, std::uint32_t{field::local}}) {
    repeated |= field_bit(each);
  }
  const Check taken =
      take_fields(record, repeated, [&](std::uint32_t number, Taking& taking) { take_field(number, taking, call); });
  if (!taken) return taken.problem();
  if (call.function.empty()) return Problem{"a call has the name of a function"};
  if (call.ended_before <= call.sequence) return Problem{"a call cannot return before it began"};
  if (call.end < call.begin) return Problem{"a call cannot return before it began"};
  if (call.is_binary && call.source_digest.empty()) return Problem{"a binary has a digest"};
  return call;
}

}  // namespace swapmm::call_log
