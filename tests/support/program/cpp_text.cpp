// SPDX-License-Identifier: Apache-2.0
#include "support/program/cpp_text.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace swapmm::test {
namespace {

std::string text(bool value) { return value ? "true" : "false"; }
std::string text(Bytes value) { return "Bytes{" + std::to_string(value.value) + "}"; }
std::string text(const std::optional<Bytes>& value) { return value ? text(*value) : "std::nullopt"; }
std::string text(int value) { return std::to_string(value); }
std::string text(std::uint64_t value) { return std::to_string(value) + "U"; }
std::string text(double value) {
  std::string digits = std::to_string(value);
  return digits == "0.000000" && value != 0 ? "1e-9" : digits;
}
std::string text(const std::string& value) { return '"' + value + '"'; }
std::string text(std::chrono::milliseconds value) {
  return "std::chrono::milliseconds{" + std::to_string(value.count()) + "}";
}
std::string text(std::chrono::nanoseconds value) { return "nanoseconds{" + std::to_string(value.count()) + "}"; }
std::string text(simulated::Order order) {
  constexpr std::array<std::string_view, 7> names{"virtual_time", "uniform",     "pct",   "starved",
                                                  "copies_first", "copies_last", "chosen"};
  return "simulated::Order::" + std::string(names[static_cast<std::size_t>(order)]);
}
std::string text(QueueKind queue) {
  constexpr std::array<std::string_view, 3> names{"compute", "h2d", "d2h"};
  return "QueueKind::" + std::string(names[index(queue)]);
}
std::string text(DemandMode mode) {
  return mode == DemandMode::per_operation ? "DemandMode::per_operation" : "DemandMode::least_recently_used";
}
std::string text(Planning planning) {
  return planning == Planning::deferred ? "Planning::deferred" : "Planning::immediate";
}
std::string text(DropRule rule) {
  switch (rule) {
    case DropRule::observed: return "DropRule::observed";
    case DropRule::proven: return "DropRule::proven";
    case DropRule::by_evidence: break;
  }
  return "DropRule::by_evidence";
}

/// Assignments to the members of an options struct.
class Assignments {
 public:
  explicit Assignments(std::string variable) : variable_(std::move(variable)) {}

  template <class T>
  void add(std::string_view member, const T& value, const T& usual) {
    if (value != usual) text_ += "  " + variable_ + "." + std::string(member) + " = " + text(value) + ";\n";
  }
  [[nodiscard]] std::string take() { return std::move(text_); }

 private:
  std::string variable_;
  std::string text_;
};

}  // namespace

std::string_view cpp_prelude() {
  return R"(#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <initializer_list>
#include <iostream>
#include <optional>
#include <span>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <swapmm/backend/testing/simulated.hpp>
#include <swapmm/backend/testing/simulated/pattern.hpp>
#include <swapmm/swapmm.hpp>

using namespace swapmm;

namespace {

using Device = simulated::Backend;
using Manager = MemoryManager<Device>;
using Handle = std::optional<Tensor<std::byte, Device>>;
using simulated::Touch;
using std::chrono::nanoseconds;

bool held = true;

[[maybe_unused]] void fail(const std::string& what) {
  std::cout << what << "\n";
  held = false;
}

/// So many bytes of a pattern that says whose they are, and of which version.
struct Piece {
  std::size_t bytes;
  std::uint64_t whose;
  std::uint64_t version;
};
using Pieces = std::initializer_list<Piece>;

/// Version 0 is zeros.
[[maybe_unused]] void fill(std::span<std::byte> bytes, Pieces pieces) {
  for (const Piece& piece : pieces) {
    for (std::byte& byte : bytes.first(piece.bytes)) byte = std::byte{0};
    if (piece.version != 0) simulated::fill(bytes.first(piece.bytes), piece.whose, piece.version);
    bytes = bytes.subspan(piece.bytes);
  }
}

[[maybe_unused]] std::vector<std::byte> value(Pieces pieces) {
  std::size_t size = 0;
  for (const Piece& piece : pieces) size += piece.bytes;
  std::vector<std::byte> bytes(size);
  fill(bytes, pieces);
  return bytes;
}

simulated::Finding check(std::span<const std::byte> bytes, const Piece& piece) {
  if (piece.version != 0) return simulated::check(bytes, piece.whose, piece.version);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] != std::byte{0}) return {simulated::Found::foreign, i, 0};
  }
  return {};
}

[[maybe_unused]] void expect(const std::string& reader, std::span<const std::byte> bytes, Pieces pieces) {
  for (const Piece& piece : pieces) {
    const simulated::Finding finding = check(bytes.first(piece.bytes), piece);
    bytes = bytes.subspan(piece.bytes);
    if (finding.found == simulated::Found::exact) continue;
    fail(reader + " reads bytes that are " + std::string(to_string(finding.found)) + ", from byte " +
         std::to_string(finding.offset) + " of {" + std::to_string(piece.bytes) + ", " + std::to_string(piece.whose) +
         ", " + std::to_string(piece.version) + "}");
  }
}

template <class Call>
void refused(Call&& call) {
  try {
    call();
  } catch (const std::exception& error) {
    std::cout << "refused, as expected: " << error.what() << "\n";
    return;
  }
  fail("a call was accepted that must be refused");
}

[[maybe_unused]] void load(Scheduler& scheduler, const std::string& iteration, const std::string& plan) {
  std::istringstream text(plan);
  try {
    scheduler.load_plan(iteration, text);
  } catch (const PlanRefused& error) {
    std::cout << error.what() << "\n";
  }
}

)";
}

std::string cpp_device_options(const simulated::Options& device) {
  const simulated::Options usual;
  Assignments list("device_options");
  list.add("device_bytes", device.device_bytes, usual.device_bytes);
  list.add("alignment", device.alignment, usual.alignment);
  list.add("max_allocation", device.max_allocation, usual.max_allocation);
  list.add("host_bytes", device.host_bytes, usual.host_bytes);
  list.add("pinned_bytes", device.pinned_bytes, usual.pinned_bytes);
  list.add("host_slab", device.host_slab, usual.host_slab);
  list.add("h2d.bytes_per_second", device.h2d.bytes_per_second, usual.h2d.bytes_per_second);
  list.add("h2d.latency", device.h2d.latency, usual.h2d.latency);
  list.add("d2h.bytes_per_second", device.d2h.bytes_per_second, usual.d2h.bytes_per_second);
  list.add("d2h.latency", device.d2h.latency, usual.d2h.latency);
  list.add("half_duplex", device.half_duplex, usual.half_duplex);
  list.add("order", device.order, usual.order);
  list.add("pct_depth", device.pct_depth, usual.pct_depth);
  list.add("starved_queue", device.starved_queue, usual.starved_queue);
  list.add("seed", device.seed, usual.seed);
  list.add("pieces", device.pieces, usual.pieces);
  list.add("steps_in_calls", device.steps_in_calls, usual.steps_in_calls);
  list.add("needs_flush", device.needs_flush, usual.needs_flush);
  return list.take();
}

std::string cpp_manager_options(const Options& manager) {
  const Options usual;
  Assignments list("manager_options");
  list.add("device_budget", manager.device_budget, usual.device_budget);
  list.add("pinned_budget", manager.pinned_budget, usual.pinned_budget);
  list.add("host_budget", manager.host_budget, usual.host_budget);
  list.add("queue_depth", std::uint64_t{manager.queue_depth}, std::uint64_t{usual.queue_depth});
  list.add("run_ahead", std::uint64_t{manager.run_ahead}, std::uint64_t{usual.run_ahead});
  list.add("demand_mode", manager.demand_mode, usual.demand_mode);
  list.add("check_access", manager.check_access, usual.check_access);
  return list.take();
}

std::string cpp_scheduler_options(const SchedulerOptions& scheduler) {
  const SchedulerOptions usual;
  Assignments list("scheduler_options");
  list.add("observe", std::uint64_t{scheduler.observe}, std::uint64_t{usual.observe});
  list.add("planner", scheduler.planner.name(), usual.planner.name());
  list.add("planning", scheduler.planning, usual.planning);
  list.add("max_period", std::uint64_t{scheduler.max_period}, std::uint64_t{usual.max_period});
  list.add("max_sequences", std::uint64_t{scheduler.max_sequences}, std::uint64_t{usual.max_sequences});
  list.add("planning_time", scheduler.planning_time, usual.planning_time);
  list.add("planning_limit", scheduler.planning_limit, usual.planning_limit);
  list.add("planning_share", scheduler.planning_share, usual.planning_share);
  list.add("sample_every", std::uint64_t{scheduler.sample_every}, std::uint64_t{usual.sample_every});
  list.add("replan_above", scheduler.replan_above, usual.replan_above);
  list.add("trial_iterations", std::uint64_t{scheduler.trial_iterations}, std::uint64_t{usual.trial_iterations});
  list.add("drops", scheduler.drops, usual.drops);
  return list.take();
}

std::string_view cpp_closing() {
  return R"(  const Device device(device_options);
  try {
    program(device);
  } catch (const std::exception& error) {
    fail(std::string("unexpected: ") + error.what());
  }
  for (const std::string& violation : device.violations()) fail("the device's checker: " + violation);
  const simulated::Counters& left = device.counters();
  if (left.device_memories.live + left.host_memories.live + left.addresses.live + left.events.live != 0) {
    fail("something is left on the device or the host");
  }
  std::cout << (held ? "all held" : "it does not hold") << ", trace hash " << device.trace_hash() << "\n";
  return held ? 0 : 1;
}
)";
}

}  // namespace swapmm::test
