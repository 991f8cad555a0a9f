// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include <swapmm/base/bytes.hpp>
#include <swapmm/base/ids.hpp>
#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/v2/plan.hpp>

namespace swapmm::v2::simulation {

/// The parts that a plan makes of the tensors of a trace, numbered: the pieces of a divided tensor one after the other,
/// and each other tensor as a whole. Keeps references to trace and plan.
class Parts {
 public:
  Parts(const Trace& trace, const Plan& plan);

  [[nodiscard]] std::size_t count() const { return first_.back(); }

  /// The size of a place.
  [[nodiscard]] Bytes size(TensorId tensor, const std::optional<std::uint32_t>& piece, FormId form) const;
  /// An encoding that the plan uses; nullptr if the tensor has none of that name.
  [[nodiscard]] const TensorForm* encoding(TensorId tensor, FormId form) const;

  /// The parts from `begin` to below `end`.
  struct Range {
    std::uint32_t begin = 0;
    std::uint32_t end = 0;
  };
  /// All parts of the tensor.
  [[nodiscard]] Range of(TensorId tensor) const { return {first_[index(tensor)], first_[index(tensor) + 1]}; }
  /// The parts of the tensor that an operation accesses.
  [[nodiscard]] Range accessed(OperationId operation, TensorId tensor) const;

 private:
  const Trace& trace_;
  const Plan& plan_;
  std::vector<std::uint32_t> first_;        // of each tensor, and behind the last one
  std::vector<const Division*> divisions_;  // of each tensor; nullptr: not divided
};

}  // namespace swapmm::v2::simulation
