// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/v2/ways/way_parts.hpp>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <optional>
#include <utility>

#include <swapmm/plan/v2/relaxation/merged_host.hpp>
#include <swapmm/plan/v2/spread/shared_parts.hpp>
#include <swapmm/plan/v2/spread/spread_plans.hpp>
#include <swapmm/plan/v2/spread/timeline.hpp>
#include <swapmm/plan/ways/program/history.hpp>

namespace swapmm::v2::planning {
namespace {

/// Gives the part the ways of the trace that it is a part of.
void add_ways(const Trace& trace, const EnginePart& from, Trace& part) {
  for (std::size_t i = 0; i < part.operations.size(); ++i) {
    const std::size_t whole = index(from.operations[i]);
    const bool is_idle = whole == trace.operations.size() ||
                         (i + 1 < part.operations.size() && from.operations[i] == from.operations[i + 1]);
    part.operations[i].replayable = !is_idle && trace.operations[whole].replayable;
  }
  for (std::size_t t = 0; t < part.tensors.size(); ++t) {
    for (TensorForm form : forms_of(trace, from.tensors[t])) {
      form.tensor = id_at<TensorId>(t);
      part.forms.push_back(std::move(form));
    }
  }
}

std::vector<WayPart> parts_of_engines(const Trace& trace, const Machine& machine) {
  Result<Timeline> line = make_timeline(trace, machine);
  if (!line) return {};
  const OrderedProgram ordered = in_order(trace, *std::move(line));
  Result<SharedParts> parts = shared_parts(ordered, machine, WhatLeaves::leaves_at_once);
  if (!parts) return {};
  const SpreadCase all = make_spread_case(ordered.trace, machine, *std::move(parts));
  std::vector<WayPart> result;
  for (std::size_t p = 0; p < all.parts.size(); ++p) {
    const EnginePart& from = all.parts[p];
    WayPart part{from.trace, machine_of_part(all, p, 1), from.memory, from.tensors, {}};
    add_ways(ordered.trace, from, part.trace);
    for (const OperationId id : from.operations) {
      const bool is_behind = index(id) == trace.operations.size();
      part.operations.push_back(is_behind ? id : ordered.line.order[index(id)]);
    }
    if (swapmm::planning::has_ways(part.trace)) result.push_back(std::move(part));
  }
  return result;
}

}  // namespace

WaysBack WayPart::of_whole(const WaysBack& ways) const {
  const auto operation = [this](OperationId of_part) { return operations[index(of_part)]; };
  WaysBack whole;
  for (const Replay& replay : ways.replays) {
    whole.replays.push_back({operation(replay.operation), operation(replay.before)});
  }
  for (const Coding& coding : ways.codings) {
    whole.codings.push_back(
        {tensors[index(coding.tensor)], coding.form, operation(coding.after), operation(coding.before)});
  }
  for (const TensorPieces& pieces : ways.pieces) whole.pieces.push_back({tensors[index(pieces.tensor)], pieces.at});
  return whole;
}

std::vector<WayPart> way_parts(const Trace& trace, const Machine& machine) {
  if (!trace.engines.empty()) return parts_of_engines(trace, machine);
  const std::optional<MemoryId> device = only_device(machine);
  std::optional<swapmm::Machine> merged = device ? with_one_host(machine, *device) : std::nullopt;
  if (!merged) return {};
  WayPart part{trace, *std::move(merged), *device, {}, {}};
  for (std::size_t t = 0; t < trace.tensors.size(); ++t) part.tensors.push_back(id_at<TensorId>(t));
  for (std::size_t i = 0; i < trace.operations.size(); ++i) part.operations.push_back(id_at<OperationId>(i));
  return {std::move(part)};
}

}  // namespace swapmm::v2::planning
