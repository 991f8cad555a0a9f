// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include <swapmm/answers/quantities.hpp>
#include <swapmm/base/bytes.hpp>
#include <swapmm/base/result.hpp>
#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/machine.hpp>

namespace swapmm::answers {

/// Figures of a machine of version 1 that replace others.
struct MachineFigures {
  std::optional<Budget> budget;
  std::optional<std::uint64_t> bandwidth;  ///< of the link, each way
  std::optional<std::uint64_t> bandwidth_in;
  std::optional<std::uint64_t> bandwidth_out;
  std::optional<std::chrono::nanoseconds> latency;
  std::optional<Bytes> alignment;
  std::optional<Bytes> max_allocation;
  bool half_duplex = false;
};

/// What is taken where nothing says how fast the link is.
inline constexpr std::uint64_t default_bandwidth = 15'754'000'000;

/// Whether any figure is there.
[[nodiscard]] bool has_figures(const MachineFigures& figures);

/// A machine with these links. Its budget is 1.
[[nodiscard]] Result<Machine> links_with(const MachineFigures& figures);
/// `machine`, or links_with() without one, for a trace, of whose peak a budget may be a share. A Problem if there is
/// neither a machine nor a budget, or if no machine can be like that.
[[nodiscard]] Result<Machine> machine_with(const MachineFigures& figures, std::optional<Machine> machine,
                                           const Trace& trace);

/// "8.00 GB, 15.75 GB/s each way"
[[nodiscard]] std::string describe(const Machine& machine);
/// "15.75 GB/s each way", or "12.00 GB/s in, 11.00 GB/s out, latency 10.000 us in, 20.000 us out": latencies only where
/// there are some, both only where they differ.
[[nodiscard]] std::string describe_links(const Machine& machine);
/// "15.75 GB/s"
[[nodiscard]] std::string speed_text(std::uint64_t bytes_per_second);

}  // namespace swapmm::answers
