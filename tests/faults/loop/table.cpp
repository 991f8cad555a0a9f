// SPDX-License-Identifier: Apache-2.0
#include "faults/loop/table.hpp"

#include <iomanip>
#include <ostream>
#include <string>

namespace swapmm::test {

void FaultTable::add(const FaultKind& kind, const LoopResult& result, bool new_calls) {
  runs_ += result.runs;
  reached_.add(result.reached);
  if (!new_calls) return;
  Cell& cell = cells_[kind];
  cell.calls += result.runs;
  cell.hidden += result.hidden;
}

void FaultTable::print(std::ostream& out) const {
  constexpr int width = 14;
  out << "calls (scenario, class, way, n) that failed, in brackets those that nobody had to be told of\n"
      << std::setw(20) << "";
  for (std::size_t way = 0; way < way_count; ++way) out << std::setw(width) << to_string(static_cast<Way>(way));
  out << '\n';
  for (std::size_t call = 0; call < call_class_count; ++call) {
    out << std::left << std::setw(20) << to_string(static_cast<CallClass>(call)) << std::right;
    for (std::size_t way = 0; way < way_count; ++way) {
      const auto cell = cells_.find({static_cast<CallClass>(call), static_cast<Way>(way)});
      std::string text;
      if (cell != cells_.end()) {
        text = std::to_string(cell->second.calls);
        if (cell->second.hidden != 0) text += " (" + std::to_string(cell->second.hidden) + ")";
      }
      out << std::setw(width) << text;
    }
    out << '\n';
  }
  out << runs_ << " runs with a fault; " << reached_.size() << " distinct (call site, class, way, state) at "
      << reached_.sites() << " call sites\n";
}

}  // namespace swapmm::test
