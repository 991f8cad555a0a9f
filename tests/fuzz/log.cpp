// SPDX-License-Identifier: Apache-2.0
// Any bytes as a log of calls. Behind a first byte of 'r' they are the fields of records, each with its length in one
// byte before it: so that checksums keep nothing out.
#include <cstdint>
#include <sstream>
#include <string>
#include <string_view>

#include <swapmm/formats/call_log/graph_dot.hpp>
#include <swapmm/formats/call_log/reader.hpp>
#include <swapmm/formats/call_log/records.hpp>
#include <swapmm/formats/call_log/writer.hpp>
#include <swapmm/ir/calls/iteration.hpp>
#include <swapmm/ir/calls/program_graph.hpp>

#include "fuzz/target.hpp"

using namespace swapmm;

namespace {

void append_fixed(std::string& out, std::uint32_t value) {
  for (unsigned shift = 0; shift < 32; shift += 8) out += static_cast<char>((value >> shift) & 0xFFU);
}

std::string framed(std::string_view bytes) {
  std::string text;
  call_log::append_begin(text, 1, false);
  while (!bytes.empty()) {
    const std::string_view record = bytes.substr(1, static_cast<unsigned char>(bytes.front()));
    bytes.remove_prefix(1 + record.size());
    append_fixed(text, static_cast<std::uint32_t>(record.size()));
    append_fixed(text, call_log::checksum(record));
    text += record;
  }
  return text;
}

Result<calls::CallLog> read(const std::string& text) {
  std::istringstream in(text);
  return call_log::read_call_log(in, {true});
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string text(fuzz::text_of(data, size));
  if (text.starts_with('r')) text = framed(std::string_view(text).substr(1));
  const Result<calls::CallLog> log = read(text);
  if (!log) {
    fuzz::expect_clear(log.problem().message);
    return 0;
  }
  std::ostringstream out;
  call_log::write_call_log(out, *log);
  Result<calls::CallLog> again = read(out.str());
  fuzz::expect(again.has_value(), "what was written can be read", again ? "" : again.problem().message);
  again->incomplete_bytes = log->incomplete_bytes;
  fuzz::expect(*again == *log, "what was written is read as it was");
  const Result<calls::Run> run = calls::resolve(*log);
  if (!run) {
    fuzz::expect_clear(run.problem().message);
    return 0;
  }
  const calls::ProgramGraph graph = make_program_graph(*log, *run);
  for (const DataNode& node : graph.flow.data) {
    for (const OperationId use : node.used_by) {
      fuzz::expect(!node.made_by || *node.made_by <= use, "a value is made before it is used");
    }
  }
  std::ostringstream dot;
  call_log::write_dot(dot, *log, *run, graph, 0, 100);
  const Result<calls::RecordedIteration> iteration = calls::recorded_iteration(*log, *run, "fuzz");
  if (!iteration) {
    fuzz::expect_clear(iteration.problem().message);
  } else {
    fuzz::expect(check_trace(iteration->trace).has_value(), "a recorded trace passes its check");
  }
  return 0;
}
