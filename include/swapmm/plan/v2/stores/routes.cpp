// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/v2/stores/routes.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include <swapmm/plan/v2/baselines/paths.hpp>
#include <swapmm/plan/v2/relaxation/store_model.hpp>

namespace swapmm::v2::planning {
namespace {

constexpr std::size_t most_routed = 64;

/// The rate of the slowest link of a way.
std::uint64_t rate_of_way(const Machine& machine, const std::vector<LinkId>& way) {
  std::uint64_t rate = rate_alone(machine, machine.links[index(way.front())]);
  for (const LinkId link : way) rate = std::min(rate, rate_alone(machine, machine.links[index(link)]));
  return rate;
}

/// The offset from which on a memory is free for values that pass; none: that would be too little.
std::optional<Bytes> free_from(const Trace& trace, const Machine& machine, MemoryId id,
                               const std::vector<bool>& in_host) {
  const Memory& memory = machine.memories[index(id)];
  std::uint64_t left = memory.bytes->value;
  const auto size_of = [&](std::size_t t) { return round_up(trace.tensors[t].bytes, memory.alignment).value; };
  const auto stays = [&](std::size_t t) { return id == machine.host && in_host[t]; };  // it passes nothing
  for (std::size_t t = 0; t < trace.tensors.size(); ++t) {
    if (stays(t)) left -= std::min(left, size_of(t));
  }
  std::uint64_t largest = 0;  // of those that can pass
  for (std::size_t t = 0; t < trace.tensors.size(); ++t) {
    if (!stays(t) && size_of(t) <= left) largest = std::max(largest, size_of(t));
  }
  if (largest == 0) return std::nullopt;
  // Room for some to pass at a time.
  constexpr std::uint64_t some = 8;
  const std::uint64_t quarter = left / 4;
  const std::uint64_t size = largest > quarter ? largest : std::min(some * largest, quarter);
  std::uint64_t from = (memory.bytes->value - size) / memory.alignment.value * memory.alignment.value;
  if (memory.max_allocation) {
    // In one arena, or in whole ones.
    const std::uint64_t arena = memory.max_allocation->value;
    const std::uint64_t last = (memory.bytes->value - 1) / arena * arena;
    if (from < last) from = memory.bytes->value - last >= largest ? last : from / arena * arena;
  }
  if (memory.bytes->value - from > left) return std::nullopt;
  return Bytes{from};
}

/// Fills in `direct` and `links`.
void make_direct(const Machine& machine, MemoryId device, StoreRoutes& routes) {
  const bool is_direct = std::ranges::none_of(routes.stores, &RoutedStore::is_far);
  if (is_direct && has_only_stores(machine, device)) {
    routes.direct = machine;
    for (const RoutedStore& store : routes.stores) {
      routes.links.push_back({store.memory, store.in.front(), store.out.front()});
    }
    return;
  }
  Machine& direct = routes.direct;
  direct.name = machine.name;
  direct.memories = machine.memories;
  direct.engines = machine.engines;
  direct.capacities = machine.capacities;
  direct.host = machine.host;
  for (std::size_t m = 0; m < direct.memories.size(); ++m) {
    if (routes.passing[m]) direct.memories[m].bytes = routes.passing[m];
  }
  // What several ways use is a capacity that they share. Links of one engine count as one.
  std::map<EngineId, std::pair<std::uint64_t, std::size_t>> used;  // the fastest of its links; the number of ways
  const auto for_each_way = [&](auto&& f) {
    for (const RoutedStore& store : routes.stores) {
      f(store, true, store.in);
      f(store, false, store.out);
    }
  };
  for_each_way([&](const RoutedStore&, bool, const std::vector<LinkId>& way) {
    for (const LinkId id : way) {
      auto& [rate, ways] = used[engine_of(machine, id)];
      rate = std::max(rate, machine.links[index(id)].bytes_per_second);
      ++ways;
    }
  });
  std::map<EngineId, CapacityId> shared;
  for (const auto& [engine, use] : used) {
    if (use.second < 2) continue;
    shared[engine] = id_at<CapacityId>(direct.capacities.size());
    direct.capacities.push_back(
        {"way." + std::to_string(index(engine)), std::max(use.first, std::uint64_t{use.second})});
  }
  for_each_way([&](const RoutedStore& store, bool is_in, const std::vector<LinkId>& way) {
    Link link;
    link.name = (is_in ? "from." : "to.") + machine.memories[index(store.memory)].name;
    link.from = is_in ? store.memory : device;
    link.to = is_in ? device : store.memory;
    link.bytes_per_second = rate_of_way(machine, way);
    for (const LinkId id : way) {
      const Link& passed = machine.links[index(id)];
      link.latency += passed.latency;
      link.capacities.insert(link.capacities.end(), passed.capacities.begin(), passed.capacities.end());
      const auto at = shared.find(engine_of(machine, id));
      if (at != shared.end()) link.capacities.push_back(at->second);
    }
    std::ranges::sort(link.capacities);
    link.capacities.erase(std::unique(link.capacities.begin(), link.capacities.end()), link.capacities.end());
    if (is_in) {
      routes.links.push_back({store.memory, id_at<LinkId>(direct.links.size()), LinkId{}});
    } else {
      routes.links.back().out = id_at<LinkId>(direct.links.size());
    }
    direct.links.push_back(std::move(link));
  });
}

}  // namespace

StoreRoutes find_routes(const Trace& trace, const Machine& machine, MemoryId device, const std::vector<bool>& in_host) {
  StoreRoutes routes;
  std::vector<bool> known(machine.memories.size(), false);
  known[index(device)] = true;
  const auto add = [&](RoutedStore store) {
    known[index(store.memory)] = true;
    if (routes.stores.size() < most_routed) routes.stores.push_back(std::move(store));
  };
  const std::vector<std::vector<Store>> linked = find_stores(machine, {device});
  for (const Store& store : linked.front()) add({store.memory, {store.in}, {store.out}});
  const Paths paths(machine, typical_size(trace));
  routes.passing.assign(machine.memories.size(), std::nullopt);
  for (std::size_t m = 0; m < machine.memories.size(); ++m) {
    const auto memory = id_at<MemoryId>(m);
    if (known[m] || !paths.reach(memory, device) || !paths.reach(device, memory)) continue;
    RoutedStore store{memory, paths.links(memory, device), paths.links(device, memory)};
    // What is slower than a store without limit is not needed, unless it is the host.
    bool is_useful = memory == machine.host || std::ranges::none_of(linked.front(), [&](const Store& direct) {
                       return !machine.memories[index(direct.memory)].bytes &&
                              rate_of_way(machine, {direct.in}) >= rate_of_way(machine, store.in) &&
                              rate_of_way(machine, {direct.out}) >= rate_of_way(machine, store.out);
                     });
    std::vector<std::pair<MemoryId, Bytes>> free;
    for (const auto* way : {&store.in, &store.out}) {
      for_each_passed(machine, *way, [&](std::size_t, MemoryId passed) {
        // What is behind a memory without limit is not needed.
        const bool is_limited = machine.memories[index(passed)].bytes.has_value();
        const auto from = is_limited ? free_from(trace, machine, passed, in_host) : std::nullopt;
        is_useful = is_useful && (from || (!is_limited && memory == machine.host));
        if (from) free.emplace_back(passed, *from);
      });
    }
    if (!is_useful) continue;
    for (const auto& [passed, from] : free) routes.passing[index(passed)] = from;
    add(std::move(store));
  }
  std::ranges::stable_sort(routes.stores, std::greater{},
                           [&](const RoutedStore& store) { return rate_of_way(machine, store.in); });
  make_direct(machine, device, routes);
  return routes;
}

std::optional<Bytes> largest_to_pass(const StoreRoutes& routes, const Machine& machine, const RoutedStore& store) {
  std::optional<Bytes> least;
  for (const auto* way : {&store.in, &store.out}) {
    for_each_passed(machine, *way, [&](std::size_t, MemoryId passed) {
      const Memory& memory = machine.memories[index(passed)];
      const std::optional<Bytes>& from = routes.passing[index(passed)];
      if (!from) return;
      Bytes size{memory.bytes->value - from->value};
      if (memory.max_allocation) size = std::min(size, *memory.max_allocation);
      least = least ? std::min(*least, size) : size;
    });
  }
  return least;
}

}  // namespace swapmm::v2::planning
