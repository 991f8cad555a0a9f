// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <swapmm/ir/trace.hpp>

namespace swapmm::v2::planning {

/// Whether the host reads an input that operations change. In version 2, it has one place for the value that it gives
/// and for the one that it reads, so not every plan of version 1 is right then.
[[nodiscard]] bool changes_input_that_host_reads(const Trace& trace);

/// When tensors are used next, and when their values die. Parts of tensors count as the whole.
class Uses {
 public:
  /// Linear in the size of the trace.
  explicit Uses(const Trace& trace);

  /// The first operation that accesses the tensor.
  [[nodiscard]] std::optional<OperationId> first(TensorId tensor) const;
  /// Operations from `at` to the next access, this iteration or the next; very large if there is none.
  [[nodiscard]] std::uint64_t distance(TensorId tensor, OperationId at) const;
  /// Whether the value that the tensor has after the operation is not needed by any operation.
  [[nodiscard]] bool dead_after(TensorId tensor, OperationId at) const;
  /// Whether the operation, which accesses the tensor, needs no value that it had before.
  [[nodiscard]] bool writes_whole(TensorId tensor, OperationId at) const {
    return of(tensor)[next(tensor, at) - 1].whole_write;
  }
  /// Whether the host reads the value that the tensor has after the operation, at its end or later.
  [[nodiscard]] bool host_reads_after(TensorId tensor, OperationId at) const;
  /// The same, later.
  [[nodiscard]] bool host_reads_later(TensorId tensor, OperationId at) const;
  [[nodiscard]] std::span<const TensorId> host_reads_at(OperationId at) const { return host_reads_[index(at)]; }
  /// Inputs that the host gives a new value at the end of the operation.
  [[nodiscard]] std::span<const TensorId> given_at(OperationId at) const { return given_[index(at)]; }

 private:
  struct Use {
    std::uint32_t operation;
    bool whole_write;
    bool changes;
  };
  [[nodiscard]] std::span<const Use> of(TensorId tensor) const {
    return {uses_.data() + first_[index(tensor)], first_[index(tensor) + 1] - first_[index(tensor)]};
  }
  /// Whether the host reads the value from this operation's end on, if this use comes next.
  [[nodiscard]] bool host_reads_from(TensorId tensor, std::uint32_t earliest, std::size_t next_use) const;
  /// The position of the first use after the operation; the number of uses if there is none.
  [[nodiscard]] std::size_t next(TensorId tensor, OperationId at) const;

  const Trace& trace_;
  std::vector<std::size_t> first_;
  std::vector<Use> uses_;  // of each tensor, ascending
  std::vector<std::vector<TensorId>> host_reads_;
  std::vector<std::vector<TensorId>> given_;
  std::vector<std::vector<std::uint32_t>> read_by_host_;  // of each tensor: operations, ascending
};

}  // namespace swapmm::v2::planning
