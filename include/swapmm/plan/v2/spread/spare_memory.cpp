// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/v2/spread/spare_memory.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

#include <swapmm/ir/liveness.hpp>
#include <swapmm/plan/v2/baselines/paths.hpp>
#include <swapmm/plan/v2/schedule/prediction.hpp>
#include <swapmm/plan/v2/spread/spread_plans.hpp>
#include <swapmm/plan/v2/spread/timeline.hpp>

namespace swapmm::v2::planning {
namespace {

/// The parts that run in each memory; none if they cannot be told apart.
std::vector<EnginePart> parts_of(const Trace& trace, const Machine& machine) {
  Result<std::vector<EnginePart>> alone = engine_parts(trace, machine);
  if (alone) return *std::move(alone);
  Result<Timeline> line = make_timeline(trace, machine);
  if (!line) return {};
  Result<SharedParts> parts = shared_parts(in_order(trace, *std::move(line)), machine, WhatLeaves::stays_until_copied);
  return parts ? std::move(parts->parts) : std::vector<EnginePart>{};
}

std::string name_of(const char* what, std::size_t number) {
  return std::string("spare.") + what + std::to_string(number);
}

}  // namespace

std::optional<SpareMemory> SpareMemory::find(const Trace& trace, const Machine& machine) {
  if (trace.engines.size() < 2) return std::nullopt;
  SpareMemory result(machine);
  const std::vector<EnginePart> parts = parts_of(trace, machine);
  for (const EnginePart& part : parts) {
    const Memory& memory = machine.memories[index(part.memory)];
    const bool is_linked = std::ranges::any_of(parts, [&](const EnginePart& other) {
      return other.memory != part.memory && fastest_link(machine, other.memory, part.memory) &&
             fastest_link(machine, part.memory, other.memory);
    });
    if (!is_linked || memory.max_allocation) continue;
    const Bytes peak = analyze_liveness(part.trace, memory.alignment).peak;
    // What fits by bytes may find no place.
    const Bytes needed = round_up(Bytes{peak.value + peak.value / 8}, memory.alignment);
    if (needed + Bytes{memory.bytes->value / 8} <= *memory.bytes) result.divide(part.memory, needed);
  }
  if (result.spares_.empty()) return std::nullopt;
  return result;
}

void SpareMemory::divide(MemoryId memory, Bytes needed) {
  const Memory& whole = whole_.memories[index(memory)];
  const auto spare = id_at<MemoryId>(divided_.memories.size());
  divided_.memories.push_back(
      {name_of("memory", spares_.size()), *whole.bytes - needed, whole.alignment, std::nullopt});
  divided_.memories[index(memory)].bytes = needed;
  spares_.push_back({memory, needed});
  for (std::size_t l = 0; l < whole_.links.size(); ++l) {
    Link& link = divided_.links[l];
    if (link.from != memory && link.to != memory) continue;
    if (!link.engine) {  // both copy on one engine
      link.engine = id_at<EngineId>(divided_.engines.size());
      divided_.engines.push_back({name_of("engine", index(*link.engine)), std::nullopt});
    }
    Link copied = link;
    (copied.from == memory ? copied.from : copied.to) = spare;
    copied.name = name_of("link", link_copied_.size());
    divided_.links.push_back(std::move(copied));
    link_copied_.push_back(id_at<LinkId>(l));
  }
}

Plan SpareMemory::for_whole(const Trace& trace, Plan plan) const {
  plan.machine = whole_;
  const auto place = [this](MemoryId& memory, Bytes* offset) {
    if (index(memory) < whole_.memories.size()) return;
    const Spare& spare = spares_[index(memory) - whole_.memories.size()];
    memory = spare.memory;
    if (offset != nullptr) *offset += spare.offset;
  };
  for (Place& it : plan.initial) place(it.memory, &it.offset);
  for (Command& command : plan.commands) {
    Bytes* const offset = command.offset ? &*command.offset : nullptr;
    if (command.kind == CommandKind::copy) {
      MemoryId to = divided_.links[index(command.link)].to;
      place(to, offset);
      if (index(command.link) >= whole_.links.size()) {
        command.link = link_copied_[index(command.link) - whole_.links.size()];
      }
    } else if (!has_engine(command.kind)) {
      place(command.memory, offset);
    }
  }
  predict(trace, plan);
  return plan;
}

}  // namespace swapmm::v2::planning
