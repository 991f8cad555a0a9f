// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/v2/simulation/parts.hpp>

#include <algorithm>
#include <tuple>

namespace swapmm::v2::simulation {

Parts::Parts(const Trace& trace, const Plan& plan) : trace_(trace), plan_(plan) {
  divisions_.resize(trace.tensors.size(), nullptr);
  for (const Division& division : plan.pieces) divisions_[index(division.tensor)] = &division;
  first_.reserve(trace.tensors.size() + 1);
  std::size_t next = 0;
  for (const Division* division : divisions_) {
    first_.push_back(static_cast<std::uint32_t>(next));
    next += division == nullptr ? 1 : division->at.size() + 1;
  }
  first_.push_back(static_cast<std::uint32_t>(next));
}

Bytes Parts::size(TensorId tensor, const std::optional<std::uint32_t>& piece, FormId form) const {
  if (form != FormId::plain) {
    const TensorForm* const found = encoding(tensor, form);
    return found == nullptr ? Bytes{0} : found->bytes;
  }
  const Bytes whole = trace_.tensors[index(tensor)].bytes;
  const Division* const division = divisions_[index(tensor)];
  if (division == nullptr) return whole;
  const std::size_t number = piece.value_or(0);
  const Bytes begin = number == 0 ? Bytes{0} : division->at[number - 1];
  return (number < division->at.size() ? division->at[number] : whole) - begin;
}

const TensorForm* Parts::encoding(TensorId tensor, FormId form) const {
  return find_form(trace_, tensor, name_of(plan_, form));
}

Parts::Range Parts::accessed(OperationId operation, TensorId tensor) const {
  const Range all = of(tensor);
  const Division* const division = divisions_[index(tensor)];
  if (division == nullptr) return all;
  const AccessRange* const found = find_range(trace_, operation, tensor);
  if (found == nullptr) return all;
  // A piece begins where the one before it ends. The first accessed one is the last that begins at or before `first`.
  const auto begins_behind = [&](Bytes byte) {
    const auto behind = std::ranges::upper_bound(division->at, byte);
    return static_cast<std::uint32_t>(behind - division->at.begin());
  };
  const Bytes last = found->first + found->bytes - Bytes{1};
  return {all.begin + begins_behind(found->first), all.begin + begins_behind(last) + 1};
}

}  // namespace swapmm::v2::simulation
