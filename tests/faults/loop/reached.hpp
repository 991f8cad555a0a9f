// SPDX-License-Identifier: Apache-2.0
#pragma once

// What faults have reached: distinct places in the library, by class, way and what the manager was doing.

#include <compare>
#include <cstddef>
#include <iosfwd>
#include <map>
#include <string>

#include "faults/script/script.hpp"

namespace swapmm::test {

class Reached {
 public:
  void add(const Hit& hit);
  void add(const Reached& other);

  /// Distinct (call site, class, way, state).
  [[nodiscard]] std::size_t size() const;
  [[nodiscard]] std::size_t sites() const;  ///< distinct places in the library
  /// How often a fault of that kind came about.
  [[nodiscard]] std::size_t count(const FaultKind& kind) const;

  /// One line for each place, class and way, with the states and how often each was met; then totals.
  void print(std::ostream& out) const;

 private:
  struct Place {
    FaultKind kind;
    std::string site;
    friend auto operator<=>(const Place&, const Place&) = default;
  };
  std::map<Place, std::map<ManagerState, std::size_t>> places_;
};

}  // namespace swapmm::test
