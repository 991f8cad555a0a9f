// SPDX-License-Identifier: Apache-2.0
#include "faults/parts/manager_state.hpp"

#include <array>
#include <cstddef>
#include <string_view>

namespace swapmm::test {

std::string ManagerState::text() const {
  constexpr std::array<std::string_view, 6> courses{"making", "between", "observing", "following", "left", "ending"};
  constexpr std::array<std::string_view, 6> residencies{"none", "host", "clean", "dirty", "coming", "going"};
  return std::string(courses[static_cast<std::size_t>(course)]) + "/" +
         std::string(residencies[static_cast<std::size_t>(residency)]);
}

}  // namespace swapmm::test
