// SPDX-License-Identifier: Apache-2.0
#include "support/v2/part_accesses.hpp"

#include <algorithm>

namespace swapmm::test::general {

using swapmm::v2::FormId;
using swapmm::v2::MemoryId;

Parts::Parts(const Trace& trace, const swapmm::v2::Plan& plan) : trace_(trace), plan_(plan) {
  for (std::size_t t = 0; t < trace.tensors.size(); ++t) {
    first_.push_back(parts_.size());
    std::uint64_t first = 0;
    for (const swapmm::v2::Division& division : plan.pieces) {
      if (index(division.tensor) != t) continue;
      for (const Bytes at : division.at) {
        parts_.push_back({t, first, at.value});
        first = at.value;
      }
    }
    parts_.push_back({t, first, trace.tensors[t].bytes.value});
  }
  add_accesses();
  const std::size_t n = trace.operations.size();
  reads_.resize(n);
  gifts_.resize(n);
  for (std::size_t part = 0; part < parts_.size(); ++part) {
    const TraceTensor& tensor = trace.tensors[parts_[part].tensor];
    for (const HostRead& read : trace.host_reads) {
      if (index(read.tensor) == parts_[part].tensor) reads_[index(read.after_operation)].push_back(part);
    }
    if (tensor.kind == TensorKind::input) {
      gifts_[tensor.available_from == 0 ? n - 1 : tensor.available_from - 1].push_back(part);
    }
  }
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint32_t named = trace.operations[i].engine;
    std::size_t engine = 0;
    while (named == TraceOperation::default_engine ? !plan.machine.engines[engine].memory
                                                   : plan.machine.engines[engine].name != trace.engines[named]) {
      ++engine;
    }
    engines_.push_back(engine);
    auto& uses = uses_.emplace_back();
    for (const PartAccess& access : accesses_[i]) {
      uses.push_back({access.part, memory(i), access.access != Access::read});
    }
    for (const std::size_t part : reads_[i]) uses.push_back({part, plan.machine.host, false});
    for (const std::size_t part : gifts_[i]) uses.push_back({part, plan.machine.host, true});
  }
}

void Parts::add_accesses() {
  std::vector<bool> was_accessed(parts_.size(), false);
  for (std::size_t i = 0; i < trace_.operations.size(); ++i) {
    std::vector<PartAccess>& accesses = accesses_.emplace_back();
    for_each_access(trace_.operations[i], [&](TensorId tensor, Access access) {
      std::uint64_t first = 0;
      std::uint64_t end = trace_.tensors[index(tensor)].bytes.value;
      for (const AccessRange& range : trace_.ranges) {
        if (index(range.operation) != i || range.tensor != tensor) continue;
        first = range.first.value;
        end = first + range.bytes.value;
      }
      for (std::size_t p = first_[index(tensor)]; p < parts_.size() && parts_[p].tensor == index(tensor); ++p) {
        const Part& part = parts_[p];
        const bool is_empty = trace_.tensors[index(tensor)].bytes.value == 0;
        if (!is_empty && (part.end <= first || end <= part.first)) continue;
        Access of_part = access;
        if (access == Access::write && (first > part.first || end < part.end)) {
          const bool is_new = trace_.tensors[index(tensor)].kind == TensorKind::transient && !was_accessed[p];
          of_part = is_new ? Access::write : Access::update;
        }
        accesses.push_back({p, of_part});
      }
    });
    for (const PartAccess& access : accesses) was_accessed[access.part] = true;
    std::ranges::sort(accesses, {}, &PartAccess::part);
  }
}

Bytes Parts::size(std::size_t part, FormId form) const {
  const Part& of = parts_[part];
  if (form == FormId::plain) return Bytes{of.end - of.first};
  for (const TensorForm& known : trace_.forms) {
    if (index(known.tensor) == of.tensor && known.name == plan_.forms[index(form) - 1]) return known.bytes;
  }
  return Bytes{0};
}

bool Parts::is_given_at_end(std::size_t part) const {
  const TraceTensor& tensor = trace_.tensors[parts_[part].tensor];
  return tensor.kind == TensorKind::input && tensor.available_from == 0;
}

MemoryId Parts::memory(std::size_t operation) const {
  return plan_.machine.engines[engines_[operation]].memory.value();
}

bool Parts::conflict(std::size_t a, std::size_t b) const {
  return std::ranges::any_of(uses_[a], [&](const Use& one) {
    return std::ranges::any_of(uses_[b], [&](const Use& other) {
      return one.part == other.part && one.memory == other.memory && (one.changes || other.changes);
    });
  });
}

}  // namespace swapmm::test::general
