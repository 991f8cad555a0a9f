// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/v2/relaxation/store_model.hpp>

#include <algorithm>
#include <cstddef>
#include <map>

namespace swapmm::v2::planning {
namespace {

/// Tensors that no operation writes may be in any of them, and in any several at a time.
constexpr std::size_t most_stores = 5;

std::vector<MemoryId> linked_memories(const Machine& machine, MemoryId device) {
  std::vector<MemoryId> linked;
  for (const Link& link : machine.links) {
    if (link.from != device && link.to != device) continue;
    const MemoryId other = link.from == device ? link.to : link.from;
    if (std::ranges::count(linked, other) == 0) linked.push_back(other);
  }
  return linked;
}

double nanoseconds_for_a_byte(std::uint64_t bytes_per_second) { return 1e9 / static_cast<double>(bytes_per_second); }

/// What copies on the links of one direction between the device and a store share with others.
std::vector<SharedRate> shared_rates(const Machine& machine, MemoryId device, const std::vector<StoreOfModel>& stores) {
  std::vector<SharedRate> rates;
  const SharedRate unused{std::vector<double>(stores.size()), std::vector<double>(stores.size())};
  std::map<EngineId, SharedRate> by_engine;
  std::map<CapacityId, SharedRate> by_capacity;
  for (std::size_t s = 0; s < stores.size(); ++s) {
    for (const bool in : {true, false}) {
      const MemoryId from = in ? stores[s].memory : device;
      const MemoryId to = in ? device : stores[s].memory;
      std::vector<LinkId> links;
      double rate = 0;
      for (std::size_t i = 0; i < machine.links.size(); ++i) {
        if (machine.links[i].from != from || machine.links[i].to != to) continue;
        links.push_back(id_at<LinkId>(i));
        rate += static_cast<double>(machine.links[i].bytes_per_second);
      }
      SharedRate own = unused;
      (in ? own.in : own.out)[s] = 1e9 / rate;
      rates.push_back(own);
      // With several links between two memories, copies may choose: then only the sum of the links counts.
      if (links.size() != 1) continue;
      const Link& link = machine.links[index(links[0])];
      SharedRate& engine = by_engine.try_emplace(engine_of(machine, links[0]), unused).first->second;
      (in ? engine.in : engine.out)[s] = nanoseconds_for_a_byte(link.bytes_per_second);
      for (const CapacityId capacity : link.capacities) {
        SharedRate& shared = by_capacity.try_emplace(capacity, unused).first->second;
        (in ? shared.in : shared.out)[s] = nanoseconds_for_a_byte(machine.capacities[index(capacity)].bytes_per_second);
      }
    }
  }
  const auto uses = [](const SharedRate& rate) {
    const auto used = [](double x) { return x > 0; };
    return std::ranges::count_if(rate.in, used) + std::ranges::count_if(rate.out, used);
  };
  for (const auto& [engine, rate] : by_engine) {
    if (uses(rate) > 1) rates.push_back(rate);
  }
  for (const auto& [capacity, rate] : by_capacity) rates.push_back(rate);
  // Whatever another one is at least as strict as says nothing.
  std::vector<SharedRate> kept;
  for (std::size_t r = 0; r < rates.size(); ++r) {
    const auto covers = [&](const SharedRate& other) {
      for (std::size_t s = 0; s < stores.size(); ++s) {
        if (other.in[s] < rates[r].in[s] || other.out[s] < rates[r].out[s]) return false;
      }
      return true;
    };
    bool is_covered = std::ranges::any_of(kept, covers);
    for (std::size_t q = r + 1; q < rates.size(); ++q) is_covered = is_covered || covers(rates[q]);
    if (!is_covered) kept.push_back(rates[r]);
  }
  return kept;
}

}  // namespace

double StoreModel::bytes_of(std::size_t value) const {
  if (value < clean.size()) return swaps.clean[clean[value].windows.front()].bytes;
  const auto& written = swaps.values[value - clean.size()];
  // A value without windows that the host reads has no bytes here; its copy is left out.
  return written.windows > 0 ? swaps.dirty[written.first_window].bytes : 0;
}

bool StoreModel::must_move(std::size_t value) const {
  if (value >= clean.size()) return swaps.values[value - clean.size()].must_go;
  return std::ranges::any_of(clean[value].windows, [&](std::uint32_t w) { return swaps.clean[w].is_arrival; });
}

bool has_only_stores(const Machine& machine, MemoryId device) {
  for (const Link& link : machine.links) {
    if (link.from != device && link.to != device) return false;
  }
  const std::vector<MemoryId> linked = linked_memories(machine, device);
  const auto joined = [&](MemoryId memory) {
    return std::ranges::any_of(machine.links, [&](const Link& link) { return link.from == memory; }) &&
           std::ranges::any_of(machine.links, [&](const Link& link) { return link.to == memory; });
  };
  return !linked.empty() && linked.size() <= most_stores && std::ranges::all_of(linked, joined);
}

StoreModel make_store_model(const Machine& machine, MemoryId device, const swapmm::planning::PlanningCase& planning,
                            const swapmm::planning::OverlapLedger& ledger) {
  StoreModel model;
  model.swaps = swapmm::planning::relaxation::make_swap_model(planning, ledger);
  for (const MemoryId memory : linked_memories(machine, device)) {
    StoreOfModel store{memory, std::nullopt};
    if (const auto& bytes = machine.memories[index(memory)].bytes) store.space = static_cast<double>(bytes->value);
    if (memory == machine.host) model.host = model.stores.size();
    model.stores.push_back(store);
  }
  model.rates = shared_rates(machine, device, model.stores);
  std::map<TensorId, std::size_t> clean_of;
  for (std::uint32_t w = 0; w < model.swaps.clean.size(); ++w) {
    const TensorId tensor = ledger.absences[model.swaps.clean[w].absence].tensor;
    const auto [at, is_new] = clean_of.try_emplace(tensor, model.clean.size());
    if (is_new) {
      model.clean.emplace_back().is_in_host = planning.trace.tensors[index(tensor)].kind == TensorKind::input;
    }
    model.clean[at->second].windows.push_back(w);
  }
  return model;
}

}  // namespace swapmm::v2::planning
