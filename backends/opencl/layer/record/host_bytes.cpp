// SPDX-License-Identifier: Apache-2.0
#include "host_bytes.hpp"

#include <algorithm>
#include <string_view>

#include <swapmm/base/bytes.hpp>
#include <swapmm/base/text/sha256.hpp>
#include <swapmm/formats/call_log/records.hpp>
#include <swapmm/formats/call_log/writer.hpp>
#include <swapmm/ir/limits.hpp>

#include "recorder.hpp"

namespace swapmm::opencl::layer::record {
namespace {

// Calls take(row) with each row of the memory.
template <class Take>
void for_each_row(const calls::HostData& host, Take take) {
  const auto* const first = reinterpret_cast<const char*>(host.address);
  if (!host.box) return take(std::string_view(first, host.bytes));
  const calls::Box& box = *host.box;
  for (std::uint64_t slice = 0; slice < box.region[2]; ++slice) {
    for (std::uint64_t row = 0; row < box.region[1]; ++row) {
      take(std::string_view(first + slice * box.slice + row * box.row, box.region[0]));
    }
  }
}

}  // namespace

calls::HostData host_range(const void* address, std::uint64_t bytes) {
  return {reinterpret_cast<std::uintptr_t>(address), bytes, std::nullopt, {}, {}};
}

std::optional<calls::Box> box_of(const std::size_t* origin, const std::size_t* region, std::size_t row,
                                 std::size_t slice) {
  if (origin == nullptr || region == nullptr) return std::nullopt;
  calls::Box box;
  std::copy_n(origin, 3, box.origin.begin());
  std::copy_n(region, 3, box.region.begin());
  for (const std::uint64_t each : {box.region[0], box.region[1], box.region[2]}) {
    if (each == 0) return std::nullopt;
  }
  // Sums and products beyond 64 bits are no memory.
  const auto times = [](std::optional<Bytes> size, std::uint64_t count) {
    return size ? checked_multiply(*size, count) : std::nullopt;
  };
  const auto plus = [](std::optional<Bytes> a, std::optional<Bytes> b) {
    return a && b ? checked_add(*a, *b) : std::nullopt;
  };
  const Bytes row_pitch{row != 0 ? row : box.region[0]};
  const std::optional<Bytes> slice_pitch = slice != 0 ? Bytes{slice} : times(row_pitch, box.region[1]);
  if (!slice_pitch) return std::nullopt;
  std::optional<Bytes> end = checked_add(Bytes{box.origin[0]}, Bytes{box.region[0]});
  end = plus(end, times(row_pitch, box.region[1]));
  end = plus(end, times(row_pitch, box.origin[1]));
  end = plus(end, times(slice_pitch, box.region[2]));
  end = plus(end, times(slice_pitch, box.origin[2]));
  if (!end || end->value >= limits::magnitude) return std::nullopt;
  box.row = row_pitch.value;
  box.slice = slice_pitch->value;
  return box;
}

std::uint64_t begin_of(const calls::Box& box) {
  return box.origin[0] + box.origin[1] * box.row + box.origin[2] * box.slice;
}

std::uint64_t span_of(const calls::Box& box) {
  return (box.region[2] - 1) * box.slice + (box.region[1] - 1) * box.row + box.region[0];
}

std::string digest_of(const calls::HostData& host) {
  text::Sha256 hash;
  for_each_row(host, [&](std::string_view row) { hash.add(row); });
  return hash.result();
}

void log_input(Recorder& recorder, std::uint64_t sequence, calls::HostData& host) {
  host.digest = digest_of(host);
  if (!recorder.keeps_content()) return;
  // A copy of one piece at a time.
  std::string piece;
  std::uint64_t position = 0;
  const auto write_piece = [&] {
    std::string records;
    call_log::append_content_piece(records, sequence, position, piece);
    recorder.write(records);
    position += piece.size();
    piece.clear();
  };
  for_each_row(host, [&](std::string_view row) {
    while (!row.empty()) {
      const std::size_t part = std::min(row.size(), call_log::content_piece - piece.size());
      piece += row.substr(0, part);
      row.remove_prefix(part);
      if (piece.size() == call_log::content_piece) write_piece();
    }
  });
  if (!piece.empty()) write_piece();
}

}  // namespace swapmm::opencl::layer::record
