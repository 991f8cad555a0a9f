// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/v2/plan.hpp>
#include <swapmm/plan/v2/simulation/elements.hpp>
#include <swapmm/plan/v2/simulation/parts.hpp>

namespace swapmm::v2::simulation {

/// An element waits for the end of another one.
struct Edge {
  std::uint32_t waiting;
  std::uint32_t waited;
  bool back;  ///< the other one is that of the iteration before
};

/// The waits of all elements, by both ends.
class Waits {
 public:
  /// The other end of a wait.
  struct Arc {
    std::uint32_t element;
    bool back;
  };

  Waits(std::size_t elements, const std::vector<Edge>& edges);

  /// What the element waits for.
  [[nodiscard]] std::span<const Arc> waited_by(std::uint32_t element) const { return waited_.of(element); }
  /// What waits for the element.
  [[nodiscard]] std::span<const Arc> waiting_for(std::uint32_t element) const { return waiting_.of(element); }

 private:
  struct Lists {
    std::vector<std::size_t> first;  // of each element, and behind the last one
    std::vector<Arc> arcs;

    [[nodiscard]] std::span<const Arc> of(std::uint32_t element) const {
      return std::span(arcs).subspan(first[element], first[element + 1] - first[element]);
    }
  };

  Lists waited_;
  Lists waiting_;
};

/// All waits of rules 1 and 2: those that the plan has, those of the order on engines, and those between operations of
/// engines with the same memory.
[[nodiscard]] std::vector<Edge> collect_edges(const Trace& trace, const Plan& plan,
                                              const std::vector<Element>& elements, const Parts& parts);

}  // namespace swapmm::v2::simulation
