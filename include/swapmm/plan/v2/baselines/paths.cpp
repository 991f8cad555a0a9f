// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/v2/baselines/paths.hpp>

#include <algorithm>
#include <queue>
#include <utility>

namespace swapmm::v2::planning {

std::uint64_t rate_alone(const Machine& machine, const Link& link) {
  std::uint64_t rate = link.bytes_per_second;
  for (const CapacityId capacity : link.capacities) {
    rate = std::min(rate, machine.capacities[index(capacity)].bytes_per_second);
  }
  return rate;
}

std::optional<LinkId> fastest_link(const Machine& machine, MemoryId from, MemoryId to) {
  std::optional<LinkId> best;
  const auto rate = [&](LinkId id) { return rate_alone(machine, machine.links[index(id)]); };
  for (std::size_t i = 0; i < machine.links.size(); ++i) {
    const auto id = id_at<LinkId>(i);
    if (machine.links[i].from != from || machine.links[i].to != to) continue;
    if (!best || rate(id) > rate(*best)) best = id;
  }
  return best;
}

Bytes typical_size(const Trace& trace) {
  Bytes sum;
  for (const TraceTensor& tensor : trace.tensors) sum += tensor.bytes;
  return Bytes{std::max<std::uint64_t>(1, sum.value / std::max<std::size_t>(1, trace.tensors.size()))};
}

Paths::Paths(const Machine& machine, Bytes typical, const std::vector<bool>& ends_only)
    : machine_(machine), memories_(machine.memories.size()), ways_(memories_ * memories_) {
  std::vector<double> seconds;
  std::vector<std::vector<LinkId>> links_from(memories_);
  for (std::size_t i = 0; i < machine.links.size(); ++i) {
    const Link& link = machine.links[i];
    const double latency = static_cast<double>(link.latency.count()) / 1e9;
    // One byte at least, so that each link costs something.
    const auto bytes = static_cast<double>(std::max<std::uint64_t>(typical.value, 1));
    seconds.push_back(latency + bytes / static_cast<double>(rate_alone(machine, link)));
    links_from[index(link.from)].push_back(id_at<LinkId>(i));
  }
  for (std::size_t from = 0; from < memories_; ++from) search(machine, from, links_from, seconds, ends_only);
}

// Dijkstra's algorithm.
void Paths::search(const Machine& machine, std::size_t from, const std::vector<std::vector<LinkId>>& links_from,
                   const std::vector<double>& seconds, const std::vector<bool>& ends_only) {
  using Reached = std::pair<double, std::size_t>;
  std::priority_queue<Reached, std::vector<Reached>, std::greater<>> open;
  Way* const ways = ways_.data() + from * memories_;
  ways[from].seconds = 0;
  open.emplace(0, from);
  while (!open.empty()) {
    const auto [time, memory] = open.top();
    open.pop();
    if (time > ways[memory].seconds) continue;
    if (memory != from && !ends_only.empty() && ends_only[memory]) continue;
    for (const LinkId link : links_from[memory]) {
      Way& next = ways[index(machine.links[index(link)].to)];
      const double then = time + seconds[index(link)];
      if (then >= next.seconds) continue;
      next = {then, link};
      open.emplace(then, index(machine.links[index(link)].to));
    }
  }
}

std::vector<LinkId> Paths::links(MemoryId from, MemoryId to) const {
  std::vector<LinkId> links;
  for (MemoryId memory = to; memory != from;) {
    links.push_back(at(from, memory).last);
    memory = machine_.links[index(links.back())].from;
  }
  std::ranges::reverse(links);
  return links;
}

}  // namespace swapmm::v2::planning
