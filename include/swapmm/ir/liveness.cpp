// SPDX-License-Identifier: Apache-2.0
#include <swapmm/ir/liveness.hpp>

#include <algorithm>
#include <cassert>
#include <optional>
#include <span>

#include <swapmm/ir/bundle.hpp>
#include <swapmm/ir/limits.hpp>

namespace swapmm {
namespace {

/// Sums over intervals of operations, stored as differences from one operation to the next. The unsigned differences
/// may wrap around; the final sums are sums of sizes and do not.
class IntervalSums {
 public:
  explicit IntervalSums(std::size_t operations) : difference_(operations + 1) {}

  /// Adds `bytes` to the operations from `first` to `last`, both included.
  void add(std::size_t first, std::size_t last, Bytes bytes) {
    difference_[first] += bytes;
    difference_[last + 1] -= bytes;
  }

  std::vector<Bytes> sums() && {
    for (std::size_t i = 1; i < difference_.size(); ++i) difference_[i] += difference_[i - 1];
    difference_.pop_back();
    return std::move(difference_);
  }

 private:
  std::vector<Bytes> difference_;
};

/// The points on the circle at which a tensor's value is needed.
struct Needs {
  std::span<const Use> uses;                  ///< ascending
  std::span<const OperationId> host_reads;    ///< the host reads after them; ascending
  std::span<const LingeringValue> lingering;  ///< its values that linger
  TensorKind kind = TensorKind::transient;
  std::size_t operations = 0;

  /// The operation that overwrites a lingering value, counted like LingeringValue::until.
  std::size_t overwritten(const LingeringValue& value) const {
    for (const Use& use : uses) {
      if (use.operation > value.last_use) return index(use.operation);
    }
    return index(uses.front().operation) + operations;
  }

  /// The last host read after `from` and not after `end`.
  std::optional<std::size_t> last_host_read(std::size_t from, std::size_t end) const {
    const auto after = std::lower_bound(host_reads.begin(), host_reads.end(), id_at<OperationId>(end));
    if (after == host_reads.begin() || index(*(after - 1)) < from) return std::nullopt;
    return index(*(after - 1));
  }
};

/// The last operation at which the value is live after this use. It lives until the next use if that needs it,
/// otherwise until the host has read it.
std::size_t live_until(const Needs& needs, std::size_t use) {
  const std::size_t from = index(needs.uses[use].operation);
  const bool is_last = use + 1 == needs.uses.size();
  if (!is_last && needs.uses[use + 1].access != Access::write) return index(needs.uses[use + 1].operation) - 1;
  const std::size_t end = is_last ? needs.operations : index(needs.uses[use + 1].operation);
  return needs.last_host_read(from, end).value_or(from);
}

/// Visits the rest of a persistent value's life: from its last use into the next iteration, if something there needs
/// it.
template <class Visit>
void visit_wrap(const Needs& needs, Visit& visit) {
  const std::size_t n = needs.operations;
  if (needs.uses.empty()) {
    if (!needs.host_reads.empty()) visit(std::size_t{0}, n - 1);
    return;
  }
  const std::size_t first = index(needs.uses.front().operation);
  const std::optional<std::size_t> read = needs.last_host_read(0, first);
  const bool needs_value = needs.uses.front().access != Access::write;
  if (!needs_value && !read) return;
  // The part up to the result of live_until() for the last use is counted already.
  const std::size_t counted = live_until(needs, needs.uses.size() - 1);
  if (counted + 1 < n) visit(counted + 1, n - 1);
  const std::size_t end = needs_value ? first : *read + 1;
  if (end > 0) visit(std::size_t{0}, end - 1);
}

/// Calls visit(first, last) for each interval of operations, both ends included, in which the value is live.
template <class Visit>
void visit_live(const Needs& needs, Visit visit) {
  for (std::size_t use = 0; use < needs.uses.size(); ++use) {
    visit(index(needs.uses[use].operation), live_until(needs, use));
  }
  if (needs.kind == TensorKind::persistent) visit_wrap(needs, visit);
  for (const LingeringValue& value : needs.lingering) {
    // Until the end of the operation; the one that overwrites the value has the tensor in its bundle.
    const std::size_t first = index(value.last_use) + 1;
    const std::size_t end = std::min<std::size_t>(value.until + 1, needs.overwritten(value));
    if (first < std::min(end, needs.operations)) visit(first, std::min(end, needs.operations) - 1);
    if (end > needs.operations) visit(std::max(first, needs.operations) - needs.operations, end - needs.operations - 1);
  }
}

/// The lingering values of a tensor.
std::span<const LingeringValue> lingering_of(const Trace& trace, TensorId tensor) {
  const auto first = std::ranges::lower_bound(trace.lingering, tensor, {}, &LingeringValue::tensor);
  const auto last = std::ranges::upper_bound(trace.lingering, tensor, {}, &LingeringValue::tensor);
  return {first, last};
}

std::vector<std::vector<OperationId>> host_reads_of(const Trace& trace) {
  std::vector<std::vector<OperationId>> reads(trace.tensors.size());
  for (const HostRead& read : trace.host_reads) reads[index(read.tensor)].push_back(read.after_operation);
  for (auto& ids : reads) std::sort(ids.begin(), ids.end());
  return reads;
}

}  // namespace

Liveness analyze_liveness(const Trace& trace, Bytes alignment) {
  assert(alignment.value >= 1 && alignment.value <= limits::alignment_bytes);
  const std::size_t n = trace.operations.size();
  Liveness liveness;
  liveness.uses.resize(trace.tensors.size());
  for (std::size_t i = 0; i < n; ++i) {
    for_each_access(trace.operations[i], [&](TensorId id, Access access) {
      liveness.uses[index(id)].push_back({id_at<OperationId>(i), access});
    });
    const Bytes bundle = detail::bundle_bytes(trace, trace.operations[i], alignment);
    if (bundle > liveness.largest_bundle) {
      liveness.largest_bundle = bundle;
      liveness.largest_bundle_operation = id_at<OperationId>(i);
    }
  }

  const auto host_reads = host_reads_of(trace);
  IntervalSums sums(n);
  for (std::size_t t = 0; t < trace.tensors.size(); ++t) {
    const TraceTensor& tensor = trace.tensors[t];
    const Bytes bytes = round_up(tensor.bytes, alignment);
    visit_live({liveness.uses[t], host_reads[t], lingering_of(trace, id_at<TensorId>(t)), tensor.kind, n},
               [&](std::size_t first, std::size_t last) { sums.add(first, last, bytes); });
  }
  liveness.live = std::move(sums).sums();
  liveness.peak = *std::max_element(liveness.live.begin(), liveness.live.end());
  return liveness;
}

std::vector<TensorId> tensors_live_at(const Trace& trace, const Liveness& liveness, OperationId operation) {
  const auto host_reads = host_reads_of(trace);
  const std::size_t at = index(operation);
  std::vector<TensorId> live;
  for (std::size_t t = 0; t < trace.tensors.size(); ++t) {
    bool is_live = false;
    visit_live({liveness.uses[t], host_reads[t], lingering_of(trace, id_at<TensorId>(t)), trace.tensors[t].kind,
                trace.operations.size()},
               [&](std::size_t first, std::size_t last) { is_live = is_live || (first <= at && at <= last); });
    if (is_live) live.push_back(id_at<TensorId>(t));
  }
  return live;
}

}  // namespace swapmm
