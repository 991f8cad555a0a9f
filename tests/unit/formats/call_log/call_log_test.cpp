// SPDX-License-Identifier: Apache-2.0
// The format swapmm-log: what is written comes back; what is broken is told.
#include <doctest/doctest.h>

#include <cstdint>
#include <sstream>
#include <string>

#include <swapmm/formats/call_log/reader.hpp>
#include <swapmm/formats/call_log/records.hpp>
#include <swapmm/formats/call_log/writer.hpp>

#include "support/call_logs.hpp"

using namespace swapmm;
using calls::Call;
using calls::CallKind;
using calls::CallLog;

namespace {

Result<CallLog> read(const std::string& text, bool content = true) {
  std::istringstream in(text);
  return call_log::read_call_log(in, {content});
}

std::string written(const CallLog& log) {
  std::ostringstream out;
  call_log::write_call_log(out, log);
  return out.str();
}

/// One call that has a value in each of its fields.
Call full_call() {
  Call call;
  call.sequence = 1;
  call.ended_before = 7;
  call.thread = 3;
  call.begin = std::chrono::nanoseconds{123456789012};
  call.end = std::chrono::nanoseconds{123456789013};
  call.kind = CallKind::copy;
  call.function = "clEnqueueCopyBufferRect";
  call.status = -61;
  call.object_kind = calls::ObjectKind::part;
  call.object = 4'000'000'000;
  call.parent = 300;
  call.queue = 2;
  call.objects = {5, 0, 7};
  call.waits = {0, 9};
  call.event = 11;
  call.blocking = true;
  call.flags = std::uint64_t{1} << 63U;
  call.offset = (std::uint64_t{1} << 61U);
  call.bytes = 128;
  call.value = -5;
  calls::Box box{{1, 2, 3}, {4, 0, 6}, 70, 800};
  calls::Operand operand;
  operand.object = 12;
  operand.access = Access::read;
  operand.offset = 13;
  operand.bytes = 14;
  operand.box = box;
  operand.argument = 0;
  call.operands = {operand, calls::Operand{}};
  call.host = calls::HostData{0xFFFF'FFFF'FFFF'FFFF, 3, {}, std::string(32, '\xAB'), std::string("a\0b", 3)};
  call.argument = calls::Argument{15, calls::Argument::Type::value, 16, 2, std::string("\0\xFF", 2)};
  call.name = "k\xC3\xA4rnel";
  call.offsets = {0, 1};
  call.global = {64, 2};
  call.local = {8, 1};
  call.source = std::string("kernel\0void", 11);
  call.source_digest = std::string(32, '\1');
  call.is_binary = true;
  call.options = "-DN=1";
  call.duration = std::chrono::nanoseconds{0};
  return call;
}

CallLog two_calls() {
  CallLog log;
  log.process = 77;
  log.has_content = true;
  log.ended = true;
  Call first;
  first.ended_before = 1;
  first.function = "clFinish";
  first.kind = CallKind::finish;
  log.calls = {first, full_call()};
  return log;
}

/// A record with a right frame around these bytes, behind a right beginning.
std::string with_record(const std::string& payload) {
  std::string text;
  call_log::append_begin(text, 1, false);
  const auto fixed = [&](std::uint32_t value) {
    for (unsigned shift = 0; shift < 32; shift += 8) text += static_cast<char>((value >> shift) & 0xFFU);
  };
  fixed(static_cast<std::uint32_t>(payload.size()));
  fixed(call_log::checksum(payload));
  return text + payload;
}

std::string problem(const std::string& payload) {
  const Result<CallLog> log = read(with_record(payload));
  return log ? "" : log.problem().message;
}

/// A field with a number, and one with bytes.
std::string number(unsigned field, unsigned value) { return {static_cast<char>(field * 2), static_cast<char>(value)}; }
std::string bytes(unsigned field, const std::string& value) {
  return std::string{static_cast<char>(field * 2 + 1), static_cast<char>(value.size())} + value;
}

/// The least that a call is: number 5, `f`.
std::string small_call() { return number(1, 2) + number(2, 5) + number(3, 6) + bytes(8, "f"); }

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("the checksum is the one of gzip and PNG") {
  CHECK(call_log::checksum("123456789") == 0xCBF43926U);
  CHECK(call_log::checksum("") == 0U);
}

TEST_CASE("each field of a call comes back") {
  const CallLog log = two_calls();
  const Result<CallLog> again = read(written(log));
  REQUIRE(again.has_value());
  REQUIRE(again->calls.size() == 2);
  CHECK(again->calls[1] == log.calls[1]);
  CHECK(*again == log);
}

TEST_CASE("content is dropped unless it is asked for") {
  const Result<CallLog> log = read(written(two_calls()), false);
  REQUIRE(log.has_value());
  CHECK(log->calls[1].host->content.empty());
  CHECK(log->calls[1].host->digest == std::string(32, '\xAB'));
}

TEST_CASE("calls are sorted by their number") {
  CallLog log = two_calls();
  std::swap(log.calls[0], log.calls[1]);
  const Result<CallLog> again = read(written(log));
  REQUIRE(again.has_value());
  CHECK(again->calls.front().function == "clFinish");
}

TEST_CASE("long content comes in pieces and is one again") {
  CallLog log = two_calls();
  std::string long_one(call_log::content_piece * 2 + 5, 'x');
  long_one.back() = 'y';
  log.calls[1].host->content = long_one;
  log.calls[1].host->bytes = long_one.size();
  const Result<CallLog> again = read(written(log));
  REQUIRE(again.has_value());
  CHECK(again->calls[1].host->content == long_one);
}

TEST_CASE("a log that ends anywhere is read up to its last whole record") {
  const std::string text = written(two_calls());
  std::size_t calls_before = 0;
  for (std::size_t size = call_log::first_line.size(); size < text.size(); ++size) {
    const Result<CallLog> log = read(text.substr(0, size));
    INFO(size);
    REQUIRE(log.has_value());
    CHECK_FALSE(log->ended);
    CHECK(log->calls.size() >= calls_before);
    calls_before = log->calls.size();
    for (const Call& call : log->calls) {
      if (call.host) CHECK(call.host->content == std::string("a\0b", 3));
    }
  }
  CHECK(calls_before == 2);
  const Result<CallLog> cut = read(text.substr(0, text.size() - 1));
  CHECK(cut->incomplete_bytes == call_log::frame_bytes + 1);
}

TEST_CASE("each changed byte of a log is noticed, or changes nothing but the frame of its end") {
  const std::string text = written(two_calls());
  const CallLog log = two_calls();
  for (std::size_t at = 0; at < text.size(); ++at) {
    for (const unsigned bit : {0U, 3U, 7U}) {
      std::string broken = text;
      broken[at] = static_cast<char>(static_cast<unsigned char>(broken[at]) ^ (1U << bit));
      const Result<CallLog> read_again = read(broken);
      INFO(at);
      // A longer length makes the rest an incomplete record.
      if (read_again) CHECK((read_again->incomplete_bytes != 0 && read_again->calls.size() <= 2));
    }
  }
}

TEST_CASE("texts that are no log") {
  CHECK(read("").problem().message == "not a swapmm-log");
  CHECK(read("{\"format\"").problem().message == "not a swapmm-log");
  CHECK(has(read("swapmm-log 2\n").problem().message, "version 1"));
  CHECK(call_log::is_call_log("swapmm-log 2\n"));
  CHECK_FALSE(call_log::is_call_log("swapmm-lo"));
}

TEST_CASE("a zoo of broken records") {
  CHECK(problem(small_call()).empty());
  CHECK(has(problem(number(1, 2) + number(2, 5) + bytes(8, "f")), "record 1 at byte"));
  CHECK(has(problem(number(1, 2) + number(2, 5) + bytes(8, "f")), "return before it began"));
  CHECK(has(problem(number(1, 2) + number(2, 5) + number(3, 6)), "name of a function"));
  for (const char* const name : {"f\t", "f\n", "f g", "caf\xC3\xA9"}) {
    CHECK(
        has(problem(number(1, 2) + number(2, 5) + number(3, 6) + bytes(8, name)), "field 8: is no name of a function"));
  }
  CHECK(has(problem(small_call() + number(2, 5)), "field 2: is there twice"));
  CHECK(has(problem(small_call() + bytes(4, "x")), "field 4: is not a number"));
  CHECK(has(problem(small_call() + number(25, 1)), "field 25: is a number"));
  CHECK(has(problem(small_call() + number(7, 20)), "field 7: 20 is above 19"));
  CHECK(has(problem(small_call() + number(10, 12)), "field 10: 12 is above 11"));
  CHECK(has(problem(small_call() + number(17, 2)), "field 17: 2 is above 1"));
  CHECK(has(problem(small_call() + bytes(30, "short")), "field 30: a digest has 32 bytes"));
  CHECK(has(problem(small_call() + bytes(25, "\xFF")), "field 25: is not UTF-8"));
  CHECK(has(problem(small_call() + number(31, 1)), "a binary has a digest"));
  CHECK(has(problem(small_call() + bytes(22, number(1, 1))), "field 22: an operand has an object and an access"));
  CHECK(has(problem(small_call() + bytes(22, number(1, 1) + number(2, 3))), "field 2: 3 is above 2"));
  CHECK(has(problem(small_call() + bytes(22, number(1, 1) + number(2, 0) + bytes(5, number(1, 1)))), "3 origins"));
  CHECK(has(problem(small_call() + bytes(24, number(1, 1))), "an argument has a type"));
  CHECK(has(problem(small_call() + bytes(24, number(2, 0) + number(4, 2) + bytes(5, "x"))), "another size"));
  CHECK(has(problem(small_call() + "\x07"), "fields are broken"));  // no value
  CHECK(has(problem(small_call() + std::string("\x33\x05"
                                               "ab",
                                               4)),
            "fields are broken"));                                                          // bytes beyond the end
  CHECK(has(problem(small_call() + std::string("\x08\x80\x00", 3)), "fields are broken"));  // a long zero
  CHECK(has(problem(small_call() + std::string("\x00\x01", 2)), "fields are broken"));      // no field 0
  CHECK(has(problem(small_call() + std::string("\x28\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x7F", 10)), "is above"));
  CHECK(has(problem(small_call() + std::string("\x28\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x7F", 11)),
            "fields are broken"));
  CHECK(has(problem(number(1, 1)), "a second record of type 1"));
  CHECK(has(problem(number(1, 5) + number(2, 5) + number(3, 1) + bytes(4, "x")), "goes on at byte 0, not at 1"));
  CHECK(has(problem(number(1, 5) + number(2, 5)), "goes on at byte 0"));
  CHECK(problem(number(1, 99) + number(2, 1)).empty());  // of a later version
  CHECK(problem(small_call() + number(63, 1)).empty());  // a later field
  CHECK(problem(number(1, 4) + number(2, 5)).empty());   // of a call that never returned
}

TEST_CASE("what belongs to another call or none is told") {
  const auto both = [](const std::string& more) {
    std::string text = with_record(small_call());
    return read(text + with_record(more).substr(with_record("").size() - call_log::frame_bytes));
  };
  CHECK(both(number(1, 3) + number(2, 5) + number(3, 9))->calls[0].duration == std::chrono::nanoseconds{9});
  CHECK(has(both(small_call()).problem().message, "call 5 is there twice"));
  CHECK(has(both(number(1, 4) + number(2, 5) + bytes(3, std::string(32, 'd'))).problem().message, "no host data"));
  CHECK(has(both(number(1, 5) + number(2, 5) + bytes(4, "x")).problem().message, "its host data has another size"));
}

TEST_CASE("a record above the limit is refused before it is read") {
  std::string text;
  call_log::append_begin(text, 1, false);
  text += std::string("\x01\x00\x00\x01\x00\x00\x00\x00", 8);
  CHECK(has(read(text).problem().message, "has 16777217 bytes, above the limit"));
}

TEST_CASE("what is too long for the format is cut by the writer") {
  Call call = full_call();
  call.name = std::string(2000, 'n');
  call.source = std::string(call_log::source_bytes + 1, 's');
  call.waits.assign(5000, 1);
  std::string text;
  call_log::append_begin(text, 1, true);
  call_log::append_call(text, call);
  const Result<CallLog> log = read(text);
  REQUIRE(log.has_value());
  CHECK(log->calls[0].name == std::string(1024, 'n'));
  CHECK(log->calls[0].source.empty());
  CHECK(log->calls[0].waits.size() == call_log::list_elements);
}

TEST_CASE("sizes that no buffer can have are told as the largest, and the log can be read") {
  constexpr std::uint64_t absurd = ~std::uint64_t{0};
  constexpr std::uint64_t largest = (std::uint64_t{1} << 62U) - 1;
  Call call = full_call();
  call.offset = call.bytes = absurd;
  call.global = {absurd, 1, 2};
  REQUIRE_FALSE(call.operands.empty());
  call.operands[0].offset = call.operands[0].bytes = absurd;
  std::string text;
  call_log::append_begin(text, 1, true);
  call_log::append_call(text, call);
  const Result<CallLog> log = read(text);
  REQUIRE_MESSAGE(log.has_value(), (log ? std::string() : log.problem().message));
  CHECK(log->calls[0].offset == largest);
  CHECK(log->calls[0].bytes == largest);
  CHECK(log->calls[0].global[0] == largest);
  CHECK(log->calls[0].operands[0].offset == largest);
  CHECK(log->calls[0].operands[0].bytes == largest);
}

TEST_CASE("a call of a log has one duration, and a digest only of host data") {
  calls::Call call;
  call.sequence = 4;
  call.ended_before = 5;
  call.kind = calls::CallKind::copy;
  call.function = "clEnqueueCopyBuffer";
  std::string text;
  call_log::append_begin(text, 1, false);
  call_log::append_call(text, call);
  call_log::append_duration(text, 4, std::chrono::nanoseconds{5});
  const auto said = [](const std::string& log) {
    std::istringstream in(log);
    const auto read = call_log::read_call_log(in, {true});
    return read ? std::string() : read.problem().message;
  };
  CHECK(said(text) == "");
  std::string twice = text;
  call_log::append_duration(twice, 4, std::chrono::nanoseconds{5});
  CHECK(said(twice).ends_with("call 4 (clEnqueueCopyBuffer) has two durations"));
  std::string digest = text;
  call_log::append_digest(digest, 4, std::string(32, 'x'));
  CHECK(said(digest).ends_with("call 4 (clEnqueueCopyBuffer) has a digest, but no host data"));
}
