// SPDX-License-Identifier: Apache-2.0
#include "faults/loop/reached.hpp"

#include <iomanip>
#include <ostream>
#include <set>

namespace swapmm::test {

void Reached::add(const Hit& hit) { ++places_[{hit.kind, hit.site}][hit.state]; }

void Reached::add(const Reached& other) {
  for (const auto& [place, states] : other.places_) {
    for (const auto& [state, count] : states) places_[place][state] += count;
  }
}

std::size_t Reached::size() const {
  std::size_t sum = 0;
  for (const auto& [place, states] : places_) sum += states.size();
  return sum;
}

std::size_t Reached::sites() const {
  std::set<std::string> sites;
  for (const auto& [place, states] : places_) sites.insert(place.site);
  return sites.size();
}

std::size_t Reached::count(const FaultKind& kind) const {
  std::size_t sum = 0;
  for (const auto& [place, states] : places_) {
    if (place.kind != kind) continue;
    for (const auto& [state, count] : states) sum += count;
  }
  return sum;
}

void Reached::print(std::ostream& out) const {
  out << std::left << std::setw(20) << "class" << std::setw(14) << "way" << std::setw(56) << "call site"
      << "state x faults\n";
  std::size_t faults = 0;
  for (const auto& [place, states] : places_) {
    out << std::setw(20) << to_string(place.kind.call) << std::setw(14) << to_string(place.kind.way) << std::setw(55)
        << place.site << ' ';
    const char* separator = "";
    for (const auto& [state, count] : states) {
      out << separator << state.text() << " x " << count;
      separator = ", ";
      faults += count;
    }
    out << '\n';
  }
  out << std::right << '\n'
      << faults << " faults at " << sites() << " call sites; " << size()
      << " distinct (call site, class, way, state)\n";
}

}  // namespace swapmm::test
