// SPDX-License-Identifier: Apache-2.0
#include <swapmm/runtime/observe/lingering.hpp>

#include <algorithm>

namespace swapmm::runtime {
namespace {

struct TracedUse {
  std::size_t operation = 0;
  Access access = Access::read;
};

std::vector<std::vector<TracedUse>> uses_of(const Trace& trace) {
  std::vector<std::vector<TracedUse>> uses(trace.tensors.size());
  for (std::size_t i = 0; i < trace.operations.size(); ++i) {
    for_each_access(trace.operations[i], [&](TensorId id, Access access) { uses[index(id)].push_back({i, access}); });
  }
  return uses;
}

/// For each operation, what the program has called by the wait that lets it go.
class Known {
 public:
  Known(std::size_t operations, std::span<const LogWait> waits) : moments_(operations, Proofs::never) {
    const auto n = static_cast<std::int64_t>(operations);
    // A wait lets go what was called in the cycles before, too, and may leave the last ones of them waiting.
    std::int64_t turns = 2;
    for (const LogWait& wait : waits) turns = std::max(turns, std::int64_t{wait.open} / n + 2);
    std::size_t next = 0;
    for (std::int64_t turn = 0; turn <= turns; ++turn) {
      for (const LogWait& wait : waits) {
        const std::int64_t calls = turn * n + wait.calls;
        while (next < operations && static_cast<std::int64_t>(next) < calls - wait.open) {
          moments_[next++] = static_cast<std::uint64_t>(LogWait::moment(calls));
        }
      }
    }
  }

  /// Operations are counted on from the cycle's first one.
  [[nodiscard]] bool has_proof(std::size_t operation, std::uint64_t proof) const {
    const std::size_t turns = operation / moments_.size();
    const std::uint64_t known = moments_[operation % moments_.size()];
    return known == Proofs::never || proof < known + LogWait::moments_per_call * turns * moments_.size();
  }

 private:
  std::vector<std::uint64_t> moments_;
};

}  // namespace

std::vector<LingeringValue> find_lingering(const Trace& trace, std::span<const LogWait> waits,
                                           std::span<const Proofs> proofs) {
  std::vector<LingeringValue> lingering;
  if (waits.empty()) return lingering;
  const std::size_t n = trace.operations.size();
  const Known known(n, waits);
  const std::vector<std::vector<TracedUse>> uses = uses_of(trace);
  for (std::size_t t = 0; t < uses.size(); ++t) {
    if (!proofs[t].known) continue;
    for (std::size_t use = 0; use < uses[t].size(); ++use) {
      const bool is_last = use + 1 == uses[t].size();
      const TracedUse& next = uses[t][is_last ? 0 : use + 1];
      if (next.access != Access::write) continue;
      const std::size_t last_use = uses[t][use].operation;
      const std::size_t overwritten = next.operation + (is_last ? n : 0);
      const bool ends = is_last && proofs[t].made_anew;
      std::uint64_t proof = is_last ? proofs[t].end : Proofs::never;
      if (!ends) proof = std::min(proof, LogWait::moment_of_call(overwritten));
      if (ends && proof == Proofs::never) continue;
      std::size_t first = last_use;  // the first operation at which there is proof; `overwritten` if there is none
      std::size_t end = overwritten;
      while (first < end) {
        const std::size_t middle = first + (end - first) / 2;
        (known.has_proof(middle, proof) ? end : first) = known.has_proof(middle, proof) ? middle : middle + 1;
      }
      if (first == last_use) continue;
      lingering.push_back({id_at<TensorId>(t), id_at<OperationId>(last_use), static_cast<std::uint32_t>(first)});
    }
  }
  return lingering;
}

}  // namespace swapmm::runtime
