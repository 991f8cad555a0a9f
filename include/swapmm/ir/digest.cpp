// SPDX-License-Identifier: Apache-2.0
#include <swapmm/ir/trace.hpp>

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include <swapmm/base/text/sha256.hpp>

namespace swapmm {
namespace {

/// Lists are sets: two recordings of one program may have them in different order. `ranges` are those of the operation,
/// ascending by tensor.
void append_ascending(std::string& line, std::vector<TensorId> ids, std::span<const AccessRange> ranges) {
  std::sort(ids.begin(), ids.end());
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (i > 0) line += ',';
    line += std::to_string(index(ids[i]));
    const auto range = std::ranges::lower_bound(ranges, ids[i], {}, &AccessRange::tensor);
    if (range == ranges.end() || range->tensor != ids[i]) continue;
    line += '[' + std::to_string(range->first.value) + '+' + std::to_string(range->bytes.value) + ']';
  }
}

/// The next elements of an ascending list that are of `owner`. Moves `at` behind them.
template <class Element, class Id>
std::span<const Element> elements_of(const std::vector<Element>& list, Id Element::*member, Id owner, std::size_t& at) {
  const std::size_t first = at;
  while (at < list.size() && list[at].*member == owner) ++at;
  return {list.data() + first, at - first};
}

}  // namespace

std::string digest(const Trace& trace) {
  text::Sha256 hash;
  std::string line;
  std::size_t next_form = 0;
  for (std::size_t t = 0; t < trace.tensors.size(); ++t) {
    const TraceTensor& tensor = trace.tensors[t];
    line = "T " + std::to_string(tensor.bytes.value) + ' ' + std::string(to_string(tensor.kind)) + '\n';
    for (const TensorForm& form : elements_of(trace.forms, &TensorForm::tensor, id_at<TensorId>(t), next_form)) {
      line += "F " + form.name + ' ' + std::to_string(form.bytes.value) + '\n';
    }
    hash.add(line);
  }
  std::size_t next_range = 0;
  for (std::size_t i = 0; i < trace.operations.size(); ++i) {
    const TraceOperation& operation = trace.operations[i];
    const auto ranges = elements_of(trace.ranges, &AccessRange::operation, id_at<OperationId>(i), next_range);
    line = "O r";
    append_ascending(line, operation.reads, ranges);
    line += " w";
    append_ascending(line, operation.writes, ranges);
    line += " u";
    append_ascending(line, operation.updates, ranges);
    if (operation.engine != TraceOperation::default_engine) line += " e" + trace.engines[operation.engine];
    if (operation.replayable) line += " a";
    if (operation.in_pieces) line += " p";
    line += '\n';
    hash.add(line);
  }
  return text::hexadecimal(hash.result());
}

}  // namespace swapmm
