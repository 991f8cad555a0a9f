// SPDX-License-Identifier: Apache-2.0
#include <swapmm/ir/trace.hpp>

#include <algorithm>
#include <string>
#include <vector>

#include <swapmm/base/text/sha256.hpp>

namespace swapmm {
namespace {

/// Lists are sets: two recordings of one program may have them in different order.
void append_ascending(std::string& line, std::vector<TensorId> ids) {
  std::sort(ids.begin(), ids.end());
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (i > 0) line += ',';
    line += std::to_string(index(ids[i]));
  }
}

}  // namespace

std::string digest(const Trace& trace) {
  text::Sha256 hash;
  std::string line;
  for (const TraceTensor& tensor : trace.tensors) {
    line = "T " + std::to_string(tensor.bytes.value) + ' ' + std::string(to_string(tensor.kind)) + '\n';
    hash.add(line);
  }
  for (const TraceOperation& operation : trace.operations) {
    line = "O r";
    append_ascending(line, operation.reads);
    line += " w";
    append_ascending(line, operation.writes);
    line += " u";
    append_ascending(line, operation.updates);
    line += '\n';
    hash.add(line);
  }
  return text::hexadecimal(hash.result());
}

}  // namespace swapmm
