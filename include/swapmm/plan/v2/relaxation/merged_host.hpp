// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/machine.hpp>
#include <swapmm/plan/v2/machine.hpp>

namespace swapmm::v2::planning {

/// The machine that is left if these memories are merged to one device, all others to a host without limit, and all
/// links from others into these to one link that carries as much, and the same for links out of them. No plan is slower
/// on it, unless it needs what the host gives or reads there. None if one of the memories has no limit.
[[nodiscard]] std::optional<swapmm::Machine> merged_host(const Machine& machine, const std::vector<MemoryId>& device);

/// The same with a device of one memory.
[[nodiscard]] std::optional<swapmm::Machine> merged_host(const Machine& machine, MemoryId memory);

/// The same to plan for, and not for a bound: with the largest allocation of the memory.
[[nodiscard]] std::optional<swapmm::Machine> with_one_host(const Machine& machine, MemoryId memory);

/// The memory in which all operations and codings run; nothing if there are several, or if it is the host.
[[nodiscard]] std::optional<MemoryId> only_device(const Machine& machine);

/// The links of merged_host() before they are merged.
struct CutLinks {
  std::vector<LinkId> in;
  std::vector<LinkId> out;
};
[[nodiscard]] CutLinks links_across(const Machine& machine, const std::vector<MemoryId>& device);

/// Some tensors of a trace, with ids of their own.
class KeptTensors {
 public:
  KeptTensors(const Trace& trace, std::vector<bool> kept);

  [[nodiscard]] const std::vector<TraceTensor>& tensors() const { return tensors_; }
  /// The id of a tensor that is kept.
  [[nodiscard]] TensorId id(TensorId tensor) const { return ids_[index(tensor)]; }
  /// An operation of the trace with its accesses to them.
  [[nodiscard]] TraceOperation of(const TraceOperation& operation) const;

 private:
  std::vector<bool> kept_;
  std::vector<TensorId> ids_;
  std::vector<TraceTensor> tensors_;
};

/// The part of a trace that one engine runs, without tensors that other engines use, too, and without what only version
/// 2 can say. Every plan for the trace contains one for this part.
[[nodiscard]] Trace part_on_engine(const Trace& trace, const Machine& machine, EngineId engine);

}  // namespace swapmm::v2::planning
