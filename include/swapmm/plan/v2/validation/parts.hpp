// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/v2/plan.hpp>

namespace swapmm::v2::validation {

/// An operation's access to a part.
struct PartAccess {
  std::uint32_t part = 0;
  Access access = Access::read;
};

/// The parts of a trace's tensors, as a plan divides them, and the units: each part in each form that it has. Units 0
/// to parts() - 1 are the plain parts, those behind them the forms of the trace in its order.
class Parts {
 public:
  /// Divisions must be of tensors of the trace, and within them.
  Parts(const Trace& trace, const Plan& plan);

  [[nodiscard]] std::size_t parts() const { return sizes_.size(); }
  [[nodiscard]] std::size_t units() const { return sizes_.size() + trace_.forms.size(); }
  [[nodiscard]] std::size_t tensor_of(std::size_t part) const { return tensors_[part]; }
  [[nodiscard]] std::size_t first_part(std::size_t tensor) const { return first_part_[tensor]; }
  [[nodiscard]] bool divided(std::size_t tensor) const { return first_part_[tensor + 1] - first_part_[tensor] > 1; }
  [[nodiscard]] std::size_t part(TensorId tensor, const std::optional<std::uint32_t>& piece) const {
    return first_part_[index(tensor)] + piece.value_or(0);
  }
  /// The unit of a part in a form of the plan; none if the tensor does not have the form.
  [[nodiscard]] std::optional<std::size_t> unit(std::size_t part, FormId form) const;
  /// The part that the unit stores.
  [[nodiscard]] std::size_t part_of(std::size_t unit) const {
    return unit < parts() ? unit : first_part_[index(trace_.forms[unit - parts()].tensor)];
  }
  /// The size of the unit's places.
  [[nodiscard]] Bytes place_bytes(std::size_t unit) const {
    return unit < parts() ? sizes_[unit] : trace_.forms[unit - parts()].bytes;
  }
  /// The parts that an operation accesses, each once.
  [[nodiscard]] std::span<const PartAccess> accesses(std::size_t operation) const {
    return {accesses_.data() + first_access_[operation], first_access_[operation + 1] - first_access_[operation]};
  }

 private:
  void divide(const Plan& plan);
  void collect_accesses();

  const Trace& trace_;
  const Plan& plan_;
  std::vector<std::size_t> first_part_;  // of each tensor, and an end
  std::vector<std::uint32_t> tensors_;   // of each part
  std::vector<Bytes> first_byte_;        // of each part, in its tensor
  std::vector<Bytes> sizes_;
  std::vector<std::size_t> first_access_;
  std::vector<PartAccess> accesses_;
};

/// What the host does at the end of operations: it reads parts, or gives inputs (a write). Inputs that are available
/// from operation 0 are given at the end of the last operation.
class HostEnds {
 public:
  HostEnds(const Trace& trace, const Parts& parts);
  [[nodiscard]] std::span<const PartAccess> at(std::size_t operation) const {
    return operation < ends_.size() ? std::span<const PartAccess>(ends_[operation]) : std::span<const PartAccess>();
  }

 private:
  std::vector<std::vector<PartAccess>> ends_;  // empty if there is nothing at all
};

}  // namespace swapmm::v2::validation
