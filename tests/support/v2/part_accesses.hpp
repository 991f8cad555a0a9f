// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/v2/plan.hpp>

namespace swapmm::test::general {

struct PartAccess {
  std::size_t part;
  Access access;
};

/// The parts of a trace's tensors as a plan divides them, and what operations and the host do with them. Written from
/// docs/formats.md.
class Parts {
 public:
  Parts(const Trace& trace, const swapmm::v2::Plan& plan);

  [[nodiscard]] std::size_t count() const { return parts_.size(); }
  [[nodiscard]] std::size_t id(TensorId tensor, std::optional<std::uint32_t> piece) const {
    return first_[index(tensor)] + piece.value_or(0);
  }
  [[nodiscard]] std::size_t tensor(std::size_t part) const { return parts_[part].tensor; }
  [[nodiscard]] Bytes size(std::size_t part, swapmm::v2::FormId form) const;
  /// By tensor, then piece.
  [[nodiscard]] const std::vector<PartAccess>& of_operation(std::size_t operation) const {
    return accesses_[operation];
  }
  /// What the host reads, and what it gives, at the operation's end.
  [[nodiscard]] const std::vector<std::size_t>& read_after(std::size_t operation) const { return reads_[operation]; }
  [[nodiscard]] const std::vector<std::size_t>& given_after(std::size_t operation) const { return gifts_[operation]; }
  /// Whether the part's value was given right before an iteration begins.
  [[nodiscard]] bool is_given_at_end(std::size_t part) const;
  [[nodiscard]] std::size_t engine(std::size_t operation) const { return engines_[operation]; }
  [[nodiscard]] swapmm::v2::MemoryId memory(std::size_t operation) const;
  /// Whether both use a part in the same memory, and one of them changes it there.
  [[nodiscard]] bool conflict(std::size_t a, std::size_t b) const;

 private:
  struct Part {
    std::size_t tensor;
    std::uint64_t first;
    std::uint64_t end;
  };
  struct Use {
    std::size_t part;
    swapmm::v2::MemoryId memory;
    bool changes;
  };
  void add_accesses();

  const Trace& trace_;
  const swapmm::v2::Plan& plan_;
  std::vector<Part> parts_;
  std::vector<std::size_t> first_;  // of each tensor
  std::vector<std::vector<PartAccess>> accesses_;
  std::vector<std::vector<std::size_t>> reads_;
  std::vector<std::vector<std::size_t>> gifts_;
  std::vector<std::size_t> engines_;
  std::vector<std::vector<Use>> uses_;
};

}  // namespace swapmm::test::general
