// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/v2/validation/parts.hpp>

#include <algorithm>

namespace swapmm::v2::validation {

Parts::Parts(const Trace& trace, const Plan& plan) : trace_(trace), plan_(plan) {
  divide(plan);
  collect_accesses();
}

std::optional<std::size_t> Parts::unit(std::size_t part, FormId form) const {
  if (form == FormId::plain) return part;
  const TensorForm* const found = find_form(trace_, id_at<TensorId>(tensors_[part]), name_of(plan_, form));
  if (found == nullptr) return std::nullopt;
  return parts() + static_cast<std::size_t>(found - trace_.forms.data());
}

void Parts::divide(const Plan& plan) {
  std::vector<const Division*> division(trace_.tensors.size(), nullptr);
  for (const Division& d : plan.pieces) division[index(d.tensor)] = &d;
  first_part_.reserve(trace_.tensors.size() + 1);
  for (std::uint32_t t = 0; t < trace_.tensors.size(); ++t) {
    first_part_.push_back(sizes_.size());
    const auto add = [&](Bytes begin, Bytes end) {
      tensors_.push_back(t);
      first_byte_.push_back(begin);
      sizes_.push_back(end - begin);
    };
    Bytes begin;
    if (division[t] != nullptr) {
      for (const Bytes end : division[t]->at) {
        add(begin, end);
        begin = end;
      }
    }
    add(begin, trace_.tensors[t].bytes);
  }
  first_part_.push_back(sizes_.size());
}

void Parts::collect_accesses() {
  std::vector<bool> accessed(parts(), false);
  auto range = trace_.ranges.begin();
  std::vector<const AccessRange*> of_tensor(trace_.ranges.empty() ? 0 : trace_.tensors.size(), nullptr);
  for (std::size_t i = 0; i < trace_.operations.size(); ++i) {
    first_access_.push_back(accesses_.size());
    const auto first_range = range;
    for (; range != trace_.ranges.end() && index(range->operation) == i; ++range)
      of_tensor[index(range->tensor)] = &*range;
    for_each_access(trace_.operations[i], [&](TensorId id, Access access) {
      const std::size_t tensor = index(id);
      const AccessRange* const only = of_tensor.empty() ? nullptr : of_tensor[tensor];
      for (std::size_t part = first_part_[tensor]; part < first_part_[tensor + 1]; ++part) {
        const Bytes begin = first_byte_[part];
        const Bytes end = begin + sizes_[part];
        const Bytes from = only == nullptr ? begin : std::max(begin, only->first);
        const Bytes to = only == nullptr ? end : std::min(end, only->first + only->bytes);
        if (only != nullptr && from >= to) continue;
        Access kind = access;
        const bool first_of_transient = trace_.tensors[tensor].kind == TensorKind::transient && !accessed[part];
        if (access == Access::write && (from != begin || to != end) && !first_of_transient) kind = Access::update;
        accesses_.push_back({static_cast<std::uint32_t>(part), kind});
        accessed[part] = true;
      }
    });
    for (auto at = first_range; at != range; ++at) of_tensor[index(at->tensor)] = nullptr;
  }
  first_access_.push_back(accesses_.size());
}

HostEnds::HostEnds(const Trace& trace, const Parts& parts) {
  const auto add = [&](std::size_t operation, std::size_t tensor, Access access) {
    ends_.resize(trace.operations.size());
    for (std::size_t part = parts.first_part(tensor); part < parts.first_part(tensor + 1); ++part) {
      ends_[operation].push_back({static_cast<std::uint32_t>(part), access});
    }
  };
  for (const HostRead& read : trace.host_reads) add(index(read.after_operation), index(read.tensor), Access::read);
  for (std::size_t t = 0; t < trace.tensors.size(); ++t) {
    if (trace.tensors[t].kind != TensorKind::input) continue;
    add(giving_operation(trace.tensors[t], trace.operations.size()), t, Access::write);
  }
}

}  // namespace swapmm::v2::validation
