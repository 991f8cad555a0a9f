// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/v2/baselines/uses.hpp>

#include <algorithm>

namespace swapmm::v2::planning {

bool changes_input_that_host_reads(const Trace& trace) {
  std::vector<bool> read(trace.tensors.size(), false);
  for (const HostRead& host_read : trace.host_reads) {
    read[index(host_read.tensor)] = trace.tensors[index(host_read.tensor)].kind == TensorKind::input;
  }
  bool changes = false;
  for (const TraceOperation& operation : trace.operations) {
    for_each_access(operation, [&](TensorId tensor, Access access) {
      changes = changes || (access != Access::read && read[index(tensor)]);
    });
  }
  return changes;
}

Uses::Uses(const Trace& trace)
    : trace_(trace),
      first_(trace.tensors.size() + 1),
      host_reads_(trace.operations.size()),
      given_(trace.operations.size()),
      read_by_host_(trace.tensors.size()) {
  for (const TraceOperation& operation : trace.operations) {
    for_each_access(operation, [&](TensorId tensor, Access) { ++first_[index(tensor) + 1]; });
  }
  for (std::size_t t = 0; t < trace.tensors.size(); ++t) first_[t + 1] += first_[t];
  uses_.resize(first_.back());
  std::vector<std::size_t> next = first_;
  std::vector<bool> accessed(trace.tensors.size(), false);
  auto range = trace.ranges.begin();
  for (std::uint32_t i = 0; i < trace.operations.size(); ++i) {
    const auto first_range = range;
    while (range != trace.ranges.end() && index(range->operation) == i) ++range;
    for_each_access(trace.operations[i], [&](TensorId tensor, Access access) {
      const auto only = std::ranges::lower_bound(first_range, range, tensor, {}, &AccessRange::tensor);
      const TraceTensor& whole = trace.tensors[index(tensor)];
      const bool partly = only != range && only->tensor == tensor && only->bytes != whole.bytes;
      const bool fresh = whole.kind == TensorKind::transient && !accessed[index(tensor)];
      uses_[next[index(tensor)]++] = {i, access == Access::write && (!partly || fresh), access != Access::read};
      accessed[index(tensor)] = true;
    });
  }
  for (const HostRead& read : trace.host_reads) {
    host_reads_[index(read.after_operation)].push_back(read.tensor);
    read_by_host_[index(read.tensor)].push_back(static_cast<std::uint32_t>(read.after_operation));
  }
  for (std::vector<TensorId>& list : host_reads_) {
    std::ranges::sort(list);
    list.erase(std::unique(list.begin(), list.end()), list.end());
  }
  for (std::vector<std::uint32_t>& list : read_by_host_) std::ranges::sort(list);
  for (std::size_t t = 0; t < trace.tensors.size(); ++t) {
    if (trace.tensors[t].kind != TensorKind::input) continue;
    given_[giving_operation(trace.tensors[t], trace.operations.size())].push_back(id_at<TensorId>(t));
  }
}

std::optional<OperationId> Uses::first(TensorId tensor) const {
  const auto uses = of(tensor);
  if (uses.empty()) return std::nullopt;
  return OperationId{uses.front().operation};
}

std::size_t Uses::next(TensorId tensor, OperationId at) const {
  const auto uses = of(tensor);
  const auto found = std::ranges::upper_bound(uses, static_cast<std::uint32_t>(at), {}, &Use::operation);
  return static_cast<std::size_t>(found - uses.begin());
}

std::uint64_t Uses::distance(TensorId tensor, OperationId at) const {
  const auto uses = of(tensor);
  if (uses.empty()) return ~std::uint64_t{0};
  const std::size_t found = next(tensor, at);
  if (found < uses.size()) return uses[found].operation - index(at);
  return uses.front().operation + trace_.operations.size() - index(at);
}

bool Uses::dead_after(TensorId tensor, OperationId at) const {
  const auto uses = of(tensor);
  const std::size_t found = next(tensor, at);
  if (found < uses.size()) return uses[found].whole_write;
  if (trace_.tensors[index(tensor)].kind != TensorKind::persistent) return true;
  return !uses.empty() && uses.front().whole_write;
}

bool Uses::host_reads_from(TensorId tensor, std::uint32_t earliest, std::size_t next_use) const {
  // The value lives until the next write or update.
  const auto uses = of(tensor);
  std::uint32_t end = static_cast<std::uint32_t>(trace_.operations.size());
  for (std::size_t use = next_use; use < uses.size() && end == trace_.operations.size(); ++use) {
    if (uses[use].changes) end = uses[use].operation;
  }
  const auto& reads = read_by_host_[index(tensor)];
  const auto read = std::ranges::lower_bound(reads, earliest);
  if (read != reads.end() && *read < end) return true;
  // The next iteration begins with the value, unless it is given or made anew.
  const bool goes_on = end == trace_.operations.size() && next_use != 0;
  return goes_on && trace_.tensors[index(tensor)].kind == TensorKind::persistent && host_reads_from(tensor, 0, 0);
}

bool Uses::host_reads_after(TensorId tensor, OperationId at) const {
  return host_reads_from(tensor, static_cast<std::uint32_t>(at), next(tensor, at));
}

bool Uses::host_reads_later(TensorId tensor, OperationId at) const {
  return host_reads_from(tensor, static_cast<std::uint32_t>(at) + 1, next(tensor, at));
}

}  // namespace swapmm::v2::planning
