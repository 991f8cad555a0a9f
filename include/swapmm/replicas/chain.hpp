// SPDX-License-Identifier: Apache-2.0
#pragma once

// Sums over all processes in a fixed order. A running sum goes from process 0 to the last one, and each adds its own
// replicas to it, one by one; then the result goes once around. So the bits are those of one process that adds all
// replicas in the same order, however many of them each process has.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <swapmm/base/error.hpp>
#include <swapmm/replicas/exchange.hpp>
#include <swapmm/replicas/host_sum.hpp>

namespace swapmm::replicas {

/// Elements that move at a time, so that processes work side by side on a long sum.
inline constexpr std::size_t segment_elements = std::size_t{1} << 18U;

/// What a process is about to sum. Processes that disagree would wait for ever, or add up different things.
struct SumHeader {
  std::uint64_t step = 0;
  std::uint64_t chunk = 0;
  std::uint64_t layers = 0;
  std::uint64_t elements = 0;

  friend bool operator==(const SumHeader&, const SumHeader&) = default;
  [[nodiscard]] std::string text() const {
    return std::to_string(elements) + " elements of " + std::to_string(layers) + " layers in chunk " +
           std::to_string(chunk) + " of step " + std::to_string(step);
  }
};

/// Compares with the process before. Throws UsageError.
inline void compare_headers(Exchange& exchange, const SumHeader& own) {
  const std::size_t rank = exchange.rank();
  if (rank > 0) {
    SumHeader other;
    exchange.receive(rank - 1, std::as_writable_bytes(std::span(&other, 1)));
    if (other != own) {
      throw UsageError("replica process " + std::to_string(rank) + " sums " + own.text() + ", and process " +
                       std::to_string(rank - 1) + " " + other.text());
    }
  }
  if (rank + 1 < exchange.processes()) exchange.send(rank + 1, std::as_bytes(std::span(&own, 1)));
}

/// Calls work(first, count) for each segment of `elements`.
template <class Work>
void in_segments(std::size_t elements, const Work& work) {
  for (std::size_t first = 0; first < elements; first += segment_elements) {
    work(first, std::min(segment_elements, elements - first));
  }
}

/// Brings what the last process has to all others: from the last to the first, and on to the last but one.
template <class T>
void spread_from_last(Exchange& exchange, std::span<T> values) {
  const std::size_t rank = exchange.rank();
  const std::size_t last = exchange.processes() - 1;
  const std::size_t before = rank == 0 ? last : rank - 1;
  const std::size_t next = rank == last ? 0 : rank + 1;
  in_segments(values.size(), [&](std::size_t first, std::size_t count) {
    const std::span<T> segment = values.subspan(first, count);
    if (rank != last) exchange.receive(before, std::as_writable_bytes(segment));
    if (next != last) exchange.send(next, std::as_bytes(segment));
  });
}

/// The running sum up to and with this process, in the first part.
template <class T>
void add_to_chain(Exchange& exchange, std::span<const std::span<T>> parts, std::size_t threads) {
  const std::size_t rank = exchange.rank();
  std::vector<T> before(rank == 0 ? 0 : std::min(segment_elements, parts[0].size()));
  in_segments(parts[0].size(), [&](std::size_t first, std::size_t count) {
    std::vector<std::span<T>> segments;
    if (rank > 0) {
      segments.push_back(std::span(before).first(count));
      exchange.receive(rank - 1, std::as_writable_bytes(segments[0]));
    }
    for (const std::span<T> part : parts) segments.push_back(part.subspan(first, count));
    add_in_order<T>(segments, threads);
    if (rank > 0) std::copy(segments[0].begin(), segments[0].end(), segments[1].begin());
    if (rank + 1 < exchange.processes()) exchange.send(rank + 1, std::as_bytes(parts[0].subspan(first, count)));
  });
}

/// The sum of the parts of all processes, in the first part of each. `parts`: one or more of the same size; the others
/// keep their values. `exchange`: null if there is one process. Throws ReplicaFailed, and UsageError if processes sum
/// different things.
template <class T>
void sum_of_all(Exchange* exchange, const SumHeader& header, std::span<const std::span<T>> parts, std::size_t threads) {
  if (exchange == nullptr || exchange->processes() == 1) return add_in_order<T>(parts, threads);
  compare_headers(*exchange, header);
  add_to_chain<T>(*exchange, parts, threads);
  spread_from_last<T>(*exchange, parts[0]);
}

/// The largest of the processes' values, in all of them.
[[nodiscard]] inline std::int64_t largest_of_all(Exchange* exchange, std::int64_t value) {
  if (exchange == nullptr || exchange->processes() == 1) return value;
  const std::size_t rank = exchange->rank();
  if (rank > 0) {
    std::int64_t before = 0;
    exchange->receive(rank - 1, std::as_writable_bytes(std::span(&before, 1)));
    value = std::max(value, before);
  }
  if (rank + 1 < exchange->processes()) exchange->send(rank + 1, std::as_bytes(std::span(&value, 1)));
  spread_from_last<std::int64_t>(*exchange, std::span(&value, 1));
  return value;
}

}  // namespace swapmm::replicas
