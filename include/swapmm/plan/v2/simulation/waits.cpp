// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/v2/simulation/waits.hpp>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include <swapmm/plan/v2/simulation/implied_waits.hpp>

namespace swapmm::v2::simulation {
namespace {

void add_waits_of_plan(std::vector<Edge>& edges, const Plan& plan, std::uint32_t n) {
  for (std::size_t j = 0; j < plan.commands.size(); ++j) {
    const Command& command = plan.commands[j];
    const auto element = static_cast<std::uint32_t>(n + j);
    for (const Wait& wait : command.after) {
      if (wait.on == Wait::On::command) {
        edges.push_back({element, n + static_cast<std::uint32_t>(wait.index), wait.previous});
      } else {
        const bool back = wait.index < 0;
        edges.push_back({element, static_cast<std::uint32_t>(wait.index) + (back ? n : 0), back});
      }
    }
    for (const std::uint32_t operation : command.before_operations) {
      edges.push_back({operation % n, element, operation >= n});
    }
  }
}

/// Where an element stands in the order of its engine.
struct Turn {
  EngineId engine;
  std::uint32_t position;  // of operation i: 2i + 1; of a command right before it: 2i
  std::uint32_t element;   // commands with the same position: in their own order
};

void add_order_of_engines(std::vector<Edge>& edges, const Plan& plan, const std::vector<Element>& elements,
                          std::uint32_t n) {
  std::vector<Turn> turns;
  turns.reserve(elements.size());
  for (std::uint32_t e = 0; e < elements.size(); ++e) {
    if (elements[e].engine) {
      const std::uint32_t position = e < n ? 2 * e + 1 : 2 * plan.commands[e - n].position.value_or(n);
      turns.push_back({*elements[e].engine, position, e});
    } else {
      // A part has at most one place in each form and memory, so a valid plan takes and gives it back in turns. This
      // wait changes nothing then, and keeps an invalid plan from running away.
      edges.push_back({e, e, true});
    }
  }
  const auto key = [](const Turn& turn) { return std::tuple(turn.engine, turn.position, turn.element); };
  std::ranges::sort(turns, {}, key);
  for (std::size_t begin = 0; begin < turns.size();) {
    std::size_t end = begin + 1;
    for (; end < turns.size() && turns[end].engine == turns[begin].engine; ++end) {
      edges.push_back({turns[end].element, turns[end - 1].element, false});
    }
    edges.push_back({turns[begin].element, turns[end - 1].element, true});
    begin = end;
  }
}

/// No operation starts before all operations of the iteration before have ended.
void add_turns_of_iterations(std::vector<Edge>& edges, const std::vector<Element>& elements, std::uint32_t n) {
  const auto end = static_cast<std::uint32_t>(elements.size() - 1);
  std::map<EngineId, std::pair<std::uint32_t, std::uint32_t>> of_engine;  // the first and the last operation
  for (std::uint32_t i = 0; i < n; ++i) of_engine.try_emplace(*elements[i].engine, i, i).first->second.second = i;
  for (const auto& [engine, operations] : of_engine) {
    edges.push_back({operations.first, end, true});
    edges.push_back({end, operations.second, false});
  }
}

}  // namespace

Waits::Waits(std::size_t elements, const std::vector<Edge>& edges) {
  const auto fill = [&](Lists& lists, auto from, auto to) {
    lists.first.assign(elements + 1, 0);
    for (const Edge& edge : edges) ++lists.first[edge.*from + std::size_t{1}];
    for (std::size_t e = 0; e < elements; ++e) lists.first[e + 1] += lists.first[e];
    lists.arcs.resize(edges.size());
    std::vector<std::size_t> next = lists.first;
    for (const Edge& edge : edges) lists.arcs[next[edge.*from]++] = {edge.*to, edge.back};
  };
  fill(waited_, &Edge::waiting, &Edge::waited);
  fill(waiting_, &Edge::waited, &Edge::waiting);
}

std::vector<Edge> collect_edges(const Trace& trace, const Plan& plan, const std::vector<Element>& elements,
                                const Parts& parts) {
  const auto n = static_cast<std::uint32_t>(trace.operations.size());
  std::vector<Edge> edges;
  std::size_t waits = elements.size();
  for (const Command& command : plan.commands) waits += command.after.size() + command.before_operations.size();
  edges.reserve(waits);
  add_waits_of_plan(edges, plan, n);
  add_order_of_engines(edges, plan, elements, n);
  add_turns_of_iterations(edges, elements, n);
  add_implied_waits(edges, trace, plan.machine, elements, parts);
  return edges;
}

}  // namespace swapmm::v2::simulation
