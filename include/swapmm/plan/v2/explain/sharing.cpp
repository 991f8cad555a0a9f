// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/v2/explain/sharing.hpp>

#include <algorithm>
#include <cstddef>

#include <swapmm/plan/v2/simulation/fair_rates.hpp>

namespace swapmm::v2::explaining {

using long_run::Turn;
using simulation::Element;
using simulation::Time;
using simulation::Work;

namespace {

/// A copy begins or ends to flow.
struct FlowEvent {
  Time time;
  bool begins;
  std::uint32_t element;
};

std::vector<FlowEvent> flow_events(const std::vector<Element>& elements, const Turn& turn) {
  std::vector<FlowEvent> events;
  for (const simulation::ElementRun& run : turn.runs) {
    const Element& element = elements[run.element];
    if (!element.link || element.flow == Bytes{0}) continue;
    const Time begin = std::max(run.start + element.time, turn.begin);
    const Time end = std::min(run.end.value_or(turn.end), turn.end);
    if (begin >= end) continue;
    events.push_back({begin, true, run.element});
    events.push_back({end, false, run.element});
  }
  std::ranges::sort(events, [](const FlowEvent& a, const FlowEvent& b) { return a.time < b.time; });
  return events;
}

}  // namespace

Sharing::Sharing(const Machine& machine, const std::vector<Element>& elements, const Turn& turn)
    : machine_(machine), full_(machine.capacities.size(), 0), loads_(machine.capacities.size()) {
  if (machine.capacities.empty()) return;
  simulation::FairRates fair(machine);
  std::vector<std::uint32_t> flowing;
  std::vector<LinkId> links;
  std::vector<std::uint64_t> rates;
  const std::vector<FlowEvent> events = flow_events(elements, turn);
  for (std::size_t i = 0; i < events.size();) {
    const Time now = events[i].time;
    std::vector<std::uint32_t> ended;
    for (; i < events.size() && events[i].time == now; ++i) {
      if (events[i].begins) {
        flowing.push_back(events[i].element);
      } else {
        ended.push_back(events[i].element);
      }
    }
    // One run of an element may end when its next one begins.
    for (const std::uint32_t element : ended) flowing.erase(std::ranges::find(flowing, element));
    if (i == events.size() || flowing.empty()) continue;
    links.clear();
    for (const std::uint32_t element : flowing) links.push_back(*elements[element].link);
    rates.resize(flowing.size());
    fair.compute(links, rates);
    add(flowing, links, rates, events[i].time - now);
  }
}

void Sharing::add(const std::vector<std::uint32_t>& flowing, const std::vector<LinkId>& links,
                  const std::vector<std::uint64_t>& rates, Time time) {
  for (std::size_t i = 0; i < links.size(); ++i) {
    for (const CapacityId capacity : machine_.links[index(links[i])].capacities) {
      Load& load = loads_[index(capacity)];
      load.rate += rates[i];
      load.fastest = std::max(load.fastest, rates[i]);
      ++load.copies;
    }
  }
  // Shares are rounded down, so less than one byte per second of each copy may be left.
  const auto is_full = [&](CapacityId capacity) {
    const Load& load = loads_[index(capacity)];
    return machine_.capacities[index(capacity)].bytes_per_second - load.rate < load.copies;
  };
  for (std::size_t i = 0; i < links.size(); ++i) {
    const Link& link = machine_.links[index(links[i])];
    if (rates[i] >= link.bytes_per_second) continue;
    for (const CapacityId capacity : link.capacities) {
      // A copy is limited where everything is used and no other copy has more.
      if (!is_full(capacity) || loads_[index(capacity)].fastest > rates[i]) continue;
      std::vector<Limited>& list = limited_[flowing[i]];
      const auto known = std::ranges::find(list, capacity, &Limited::capacity);
      if (known == list.end()) {
        list.push_back({capacity, time});
      } else {
        known->time += time;
      }
      break;
    }
  }
  for (const LinkId link : links) {
    for (const CapacityId capacity : machine_.links[index(link)].capacities) {
      Load& load = loads_[index(capacity)];
      if (load.copies != 0 && is_full(capacity)) full_[index(capacity)] += time;
      load = {};
    }
  }
}

std::optional<CapacityId> Sharing::limit_of(std::uint32_t element) const {
  const auto found = limited_.find(element);
  if (found == limited_.end()) return std::nullopt;
  return std::ranges::max_element(found->second, {}, &Limited::time)->capacity;
}

Time time_alone(const Machine& machine, const Element& copy) {
  const Link& link = machine.links[index(*copy.link)];
  std::uint64_t rate = link.bytes_per_second;
  for (const CapacityId capacity : link.capacities) {
    rate = std::min(rate, machine.capacities[index(capacity)].bytes_per_second);
  }
  const Work work = copy.flow.value * simulation::work_per_byte;
  return copy.time + static_cast<Time>((work + rate - 1) / rate);
}

}  // namespace swapmm::v2::explaining
