// SPDX-License-Identifier: Apache-2.0
#pragma once

// Short words to write traces and plans down in tests.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/plan.hpp>

namespace swapmm::test {

using Waits = std::vector<Wait>;
using Before = std::optional<std::uint32_t>;

/// The end of operation i; from -n to -1 in the iteration before.
inline Wait op(std::int32_t i) { return {Wait::On::operation, false, i}; }
inline Wait cmd(std::int32_t j) { return {Wait::On::command, false, j}; }
inline Wait previous_cmd(std::int32_t j) { return {Wait::On::command, true, j}; }

inline Command command(CommandKind kind, std::uint32_t tensor, std::uint64_t offset, Waits after, Before before) {
  return {kind, Tier::host, TensorId{tensor}, Bytes{offset}, std::move(after), before};
}
inline Command allocate(std::uint32_t tensor, std::uint64_t offset, Waits after, Before before = {}) {
  return command(CommandKind::allocate, tensor, offset, std::move(after), before);
}
inline Command swap_in(std::uint32_t tensor, std::uint64_t offset, Waits after, Before before = {}) {
  return command(CommandKind::swap_in, tensor, offset, std::move(after), before);
}
inline Command swap_out(std::uint32_t tensor, Waits after, Before before = {}) {
  return command(CommandKind::swap_out, tensor, 0, std::move(after), before);
}
inline Command release(std::uint32_t tensor, Waits after, Before before = {}) {
  return command(CommandKind::release, tensor, 0, std::move(after), before);
}

inline Resident resident(std::uint32_t tensor, std::uint64_t offset, bool host_valid) {
  return {TensorId{tensor}, Bytes{offset}, host_valid};
}

inline TraceTensor tensor(std::string name, std::uint64_t bytes, TensorKind kind, std::uint32_t available_from = 0) {
  return {std::move(name), Bytes{bytes}, kind, available_from};
}

inline TraceOperation operation(std::string name, std::int64_t nanoseconds, std::vector<std::uint32_t> reads,
                                std::vector<std::uint32_t> writes = {}, std::vector<std::uint32_t> updates = {}) {
  const auto ids = [](const std::vector<std::uint32_t>& numbers) {
    std::vector<TensorId> result;
    for (const std::uint32_t number : numbers) result.push_back(TensorId{number});
    return result;
  };
  return {std::move(name), std::chrono::nanoseconds{nanoseconds}, ids(reads), ids(writes), ids(updates)};
}

/// A copy takes as many nanoseconds as it has bytes.
inline Machine machine(std::uint64_t budget, std::uint64_t alignment = 1, Duplex duplex = Duplex::full) {
  const Link link{1'000'000'000, std::chrono::nanoseconds{0}};
  return {"test", Bytes{budget}, Bytes{alignment}, std::nullopt, link, link, duplex};
}

inline Plan plan(const Trace& trace, Machine machine, std::vector<Resident> initial, std::vector<Command> commands) {
  return {digest(trace), "by hand", std::move(machine), std::move(initial), std::move(commands), {}};
}

/// So many constants of 10 bytes, and one operation that uses none of them.
inline Trace unused_constants(std::size_t count) {
  Trace trace;
  for (std::size_t t = 0; t < count; ++t) trace.tensors.push_back(tensor("", 10, TensorKind::persistent));
  trace.operations = {operation("only", 10, {})};
  return trace;
}

}  // namespace swapmm::test
