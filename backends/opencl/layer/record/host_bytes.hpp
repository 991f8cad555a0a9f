// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include <swapmm/ir/calls/call.hpp>

namespace swapmm::opencl::layer::record {

class Recorder;

/// Memory of the host as a call names it; nothing of it is read.
[[nodiscard]] calls::HostData host_range(const void* address, std::uint64_t bytes);
/// A rectangle: from the first to the last of its bytes. None if its sizes are not what the API allows.
[[nodiscard]] std::optional<calls::Box> box_of(const std::size_t* origin, const std::size_t* region, std::size_t row,
                                               std::size_t slice);
/// The first byte of a box, and the number of bytes to the end of its last row.
[[nodiscard]] std::uint64_t begin_of(const calls::Box& box);
[[nodiscard]] std::uint64_t span_of(const calls::Box& box);

/// SHA-256 of the bytes; of a rectangle, row after row. Reads the memory.
[[nodiscard]] std::string digest_of(const calls::HostData& host);
/// The same for bytes that go to the device. Also writes the bytes to the log, if it keeps them.
void log_input(Recorder& recorder, std::uint64_t sequence, calls::HostData& host);

}  // namespace swapmm::opencl::layer::record
