// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/v2/simulation/deciding.hpp>

#include <utility>

namespace swapmm::v2::simulation {

std::vector<bool> deciding_elements(const Machine& machine, const std::vector<Element>& elements, const Waits& waits,
                                    std::uint32_t target) {
  std::vector<std::vector<std::uint32_t>> sharing(machine.capacities.size());
  const auto for_each_capacity = [&](std::uint32_t element, auto visit) {
    const Element& what = elements[element];
    if (!what.link || what.flow == Bytes{0}) return;
    for (const CapacityId capacity : machine.links[index(*what.link)].capacities) visit(sharing[index(capacity)]);
  };
  for (std::uint32_t e = 0; e < elements.size(); ++e) {
    for_each_capacity(e, [&](std::vector<std::uint32_t>& list) { list.push_back(e); });
  }

  std::vector<bool> decides(elements.size());
  std::vector<std::uint32_t> found;
  const auto add = [&](std::uint32_t element) {
    if (decides[element]) return;
    decides[element] = true;
    found.push_back(element);
  };
  add(target);
  while (!found.empty()) {
    const std::uint32_t element = found.back();
    found.pop_back();
    for (const Waits::Arc& arc : waits.waited_by(element)) add(arc.element);
    for_each_capacity(element, [&](std::vector<std::uint32_t>& list) {
      for (const std::uint32_t other : std::exchange(list, {})) add(other);  // once is enough
    });
  }
  return decides;
}

}  // namespace swapmm::v2::simulation
