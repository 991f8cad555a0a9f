// SPDX-License-Identifier: Apache-2.0
#include "many_memories.hpp"

#include <iostream>
#include <utility>

#include "output.hpp"
#include "printable.hpp"
#include "quantities.hpp"

namespace swapmm::cli {

void print_prediction(const v2::Plan& plan) {
  const v2::Prediction& predicted = plan.predicted;
  print_times(predicted.compute, predicted.lower_bound, predicted.iteration);
  print_links_and_memories(plan);
}

void print_links_and_memories(const v2::Plan& plan) {
  const v2::Prediction& predicted = plan.predicted;
  for (std::size_t i = 0; i < predicted.links.size(); ++i) {
    if (predicted.links[i] == Bytes{0}) continue;
    print_line("over " + printable(plan.machine.links[i].name), decimal_size(predicted.links[i]) + " an iteration");
  }
  for (std::size_t i = 0; i < predicted.peaks.size(); ++i) {
    const v2::Memory& memory = plan.machine.memories[i];
    if (!memory.bytes) continue;
    print_line("used of " + printable(memory.name),
               decimal_size(predicted.peaks[i]) + " of " + decimal_size(*memory.bytes));
  }
}

boost::json::object to_json(const v2::Plan& plan) {
  const v2::Prediction& predicted = plan.predicted;
  boost::json::array links;
  for (std::size_t i = 0; i < predicted.links.size(); ++i) {
    links.push_back({{"link", plan.machine.links[i].name}, {"bytes", predicted.links[i].value}});
  }
  boost::json::array memories;
  for (std::size_t i = 0; i < predicted.peaks.size(); ++i) {
    const v2::Memory& memory = plan.machine.memories[i];
    if (memory.bytes) memories.push_back({{"memory", memory.name}, {"peak_bytes", predicted.peaks[i].value}});
  }
  return {{"iteration_ns", predicted.iteration.count()},
          {"compute_ns", predicted.compute.count()},
          {"lower_bound_ns", predicted.lower_bound.count()},
          {"links", std::move(links)},
          {"memories", std::move(memories)}};
}

void print_title(const Trace& trace, const v2::Plan& plan) {
  std::cout << printable(trace.name) << ", planned by " << printable(plan.planner) << " for "
            << printable(plan.machine.name) << "\n\n";
}

}  // namespace swapmm::cli
