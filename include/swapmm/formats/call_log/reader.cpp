// SPDX-License-Identifier: Apache-2.0
#include <swapmm/formats/call_log/reader.hpp>

#include <algorithm>
#include <istream>
#include <limits>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include <swapmm/base/bytes.hpp>
#include <swapmm/formats/call_log/decode.hpp>
#include <swapmm/formats/call_log/records.hpp>
#include <swapmm/formats/call_log/taking.hpp>

namespace swapmm::call_log {
namespace {

using calls::Call;
using calls::CallLog;

std::uint32_t fixed(std::string_view bytes) {
  std::uint32_t value = 0;
  for (unsigned i = 0; i < 4; ++i) value |= std::uint32_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
  return value;
}

/// What a record that is not a call says about one.
struct Addition {
  std::uint64_t sequence = 0;
  std::optional<std::chrono::nanoseconds> duration;
  std::string digest;
  std::uint64_t position = 0;
  std::string content;
};

class Reader {
 public:
  explicit Reader(const ReadOptions& options) : options_(options) {}

  Check take(std::string_view record) {
    std::uint64_t type = 0;
    Check found = take_fields(record, ~std::uint64_t{0}, [&](std::uint32_t number, Taking& taking) {
      if (number == field::type) taking.number(type);
    });
    if (!found) return found;
    if (begun_ == (type == static_cast<std::uint64_t>(RecordType::begin))) {
      return Problem{begun_ ? "a second record of type 1" : "the first record is not of type 1"};
    }
    switch (static_cast<RecordType>(type)) {
      case RecordType::begin: return take_begin(record);
      case RecordType::call: return take_call(record);
      case RecordType::duration:
      case RecordType::digest: return take_addition(record, type);
      case RecordType::content: return take_content(record);
      case RecordType::end: log_.ended = true; return Done{};
    }
    return Done{};  // of a later version
  }

  Result<CallLog> finish(std::uint64_t incomplete) && {
    std::sort(log_.calls.begin(), log_.calls.end(),
              [](const Call& a, const Call& b) { return a.sequence < b.sequence; });
    for (std::size_t i = 1; i < log_.calls.size(); ++i) {
      if (log_.calls[i - 1].sequence == log_.calls[i].sequence) {
        return Problem{"call " + std::to_string(log_.calls[i].sequence) + " is there twice"};
      }
    }
    if (const Check added = add_all(); !added) return added.problem();
    log_.incomplete_bytes = incomplete;
    return std::move(log_);
  }

 private:
  Check take_begin(std::string_view record) {
    begun_ = true;
    return take_fields(record, 0, [&](std::uint32_t number, Taking& taking) {
      if (number == field::process) taking.number(log_.process);
      if (number == field::has_content) taking.flag(log_.has_content);
    });
  }

  Check take_call(std::string_view record) {
    if (log_.calls.size() == calls) return Problem{"more than " + std::to_string(calls) + " calls"};
    Result<Call> call = decode_call(record);
    if (!call) return call.problem();
    log_.calls.push_back(*std::move(call));
    return Done{};
  }

  Check take_addition(std::string_view record, std::uint64_t type) {
    if (additions_.size() >= 2 * calls) return Problem{"more than " + std::to_string(2 * calls) + " additions"};
    Addition addition;
    Check taken = take_fields(record, 0, [&](std::uint32_t number, Taking& taking) {
      if (number == field::sequence) taking.size(addition.sequence);
      if (type == static_cast<std::uint64_t>(RecordType::duration) && number == field::nanoseconds) {
        std::uint64_t value = 0;
        taking.size(value);
        addition.duration = std::chrono::nanoseconds{static_cast<std::int64_t>(value)};
      }
      if (type == static_cast<std::uint64_t>(RecordType::digest) && number == field::digest) {
        taking.digest(addition.digest);
      }
    });
    if (!taken) return taken;
    if (type == static_cast<std::uint64_t>(RecordType::duration) && !addition.duration) {
      addition.duration = std::chrono::nanoseconds{0};
    }
    additions_.push_back(std::move(addition));
    return Done{};
  }

  // The pieces of one call's content lie one behind the other, without a gap.
  Check take_content(std::string_view record) {
    Addition piece;
    Check taken = take_fields(record, 0, [&](std::uint32_t number, Taking& taking) {
      if (number == field::sequence) taking.size(piece.sequence);
      if (number == field::position) taking.size(piece.position);
      if (number == field::bytes_of_it) taking.bytes(piece.content, content_piece);
    });
    if (!taken) return taken;
    Content& content = contents_[piece.sequence];
    if (piece.content.empty() || piece.position != content.size) {
      return Problem{"the content of call " + std::to_string(piece.sequence) + " goes on at byte " +
                     std::to_string(content.size) + ", not at " + std::to_string(piece.position)};
    }
    content.size += piece.content.size();
    if (options_.content) content.bytes += piece.content;
    return Done{};
  }

  Call* find(std::uint64_t sequence) {
    const auto at = std::lower_bound(log_.calls.begin(), log_.calls.end(), sequence,
                                     [](const Call& call, std::uint64_t wanted) { return call.sequence < wanted; });
    return at != log_.calls.end() && at->sequence == sequence ? &*at : nullptr;
  }

  // What belongs to a call that never returned is dropped with it.
  Check add_all() {
    for (Addition& addition : additions_) {
      Call* const call = find(addition.sequence);
      if (call == nullptr) continue;
      const auto refuse = [&](const char* why) {
        return Problem{"call " + std::to_string(call->sequence) + " (" + call->function + ") " + why};
      };
      if (addition.duration) {
        if (call->duration) return refuse("has two durations");
        call->duration = addition.duration;
      }
      if (!addition.digest.empty()) {
        if (!call->host) return refuse("has a digest, but no host data");
        call->host->digest = std::move(addition.digest);
      }
    }
    for (auto& [sequence, content] : contents_) {
      Call* const call = find(sequence);
      if (call == nullptr) continue;
      if (!call->host || content.size != content_size(*call->host)) {
        return Problem{"call " + std::to_string(sequence) + " (" + call->function + ") has " +
                       std::to_string(content.size) + " bytes of content; its host data has another size"};
      }
      call->host->content = std::move(content.bytes);
    }
    return Done{};
  }

  // Of a rectangle, the bytes in it alone. Sizes are below 2^62, but their product need not be.
  static std::uint64_t content_size(const calls::HostData& host) {
    if (!host.box) return host.bytes;
    std::optional<Bytes> size = Bytes{1};
    for (const std::uint64_t length : host.box->region) size = size ? checked_multiply(*size, length) : size;
    return size ? size->value : std::numeric_limits<std::uint64_t>::max();
  }

  struct Content {
    std::uint64_t size = 0;
    std::string bytes;
  };

  ReadOptions options_;
  CallLog log_;
  bool begun_ = false;
  std::vector<Addition> additions_;
  std::unordered_map<std::uint64_t, Content> contents_;
};

}  // namespace

bool is_call_log(std::string_view text) { return text.starts_with(first_line.substr(0, 11)); }

Result<CallLog> read_call_log(std::istream& in, const ReadOptions& options) {
  std::string record(first_line.size(), '\0');
  in.read(record.data(), static_cast<std::streamsize>(record.size()));
  record.resize(static_cast<std::size_t>(in.gcount()));
  if (record != first_line) {
    return Problem{is_call_log(record) ? "format: only version 1 of swapmm-log is known" : "not a swapmm-log"};
  }
  Reader reader(options);
  std::uint64_t at = first_line.size();
  for (std::uint64_t number = 0;; ++number) {
    const auto wrong = [&](const std::string& why) {
      return Problem{"record " + std::to_string(number) + " at byte " + std::to_string(at) + ": " + why};
    };
    std::string frame(frame_bytes, '\0');
    in.read(frame.data(), static_cast<std::streamsize>(frame.size()));
    const auto got = static_cast<std::uint64_t>(in.gcount());
    if (got < frame_bytes) return std::move(reader).finish(got);
    const std::uint32_t size = fixed(frame);
    if (size > record_bytes) return wrong("has " + std::to_string(size) + " bytes, above the limit");
    record.resize(size);
    in.read(record.data(), static_cast<std::streamsize>(size));
    if (static_cast<std::uint64_t>(in.gcount()) < size) {
      return std::move(reader).finish(frame_bytes + static_cast<std::uint64_t>(in.gcount()));
    }
    if (fixed(std::string_view(frame).substr(4)) != checksum(record)) return wrong("its checksum is wrong");
    if (const Check taken = reader.take(record); !taken) return wrong(taken.problem().message);
    at += frame_bytes + size;
  }
}

}  // namespace swapmm::call_log
