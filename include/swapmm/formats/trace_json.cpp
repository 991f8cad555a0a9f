// SPDX-License-Identifier: Apache-2.0
#include <swapmm/formats/trace_json.hpp>

#include <array>
#include <deque>
#include <limits>
#include <ostream>

#include <swapmm/formats/json/reader.hpp>
#include <swapmm/formats/json/writer.hpp>

namespace swapmm {
namespace {

constexpr std::array tensor_kinds = {TensorKind::persistent, TensorKind::input, TensorKind::transient};
constexpr auto largest_magnitude = static_cast<std::int64_t>(limits::magnitude - 1);
/// Ids that do not fit 32 bits are refused while reading. check_trace() checks that the others exist.
constexpr std::int64_t largest_id = std::numeric_limits<std::uint32_t>::max();

/// The part of a trace that is being read.
struct TraceTarget {
  Trace trace;
  /// The ids of the current list; copied when complete, so that no memory is wasted. A growing vector would take six
  /// times the shortest text of its ids.
  std::deque<TensorId> ids;
};

json::Object tensor_fields(TraceTarget& target) {
  const auto tensor = [&target]() -> TraceTensor& { return target.trace.tensors.back(); };
  json::Word kind;
  for (const TensorKind known : tensor_kinds) kind.known.push_back(to_string(known));
  kind.take = [tensor](std::size_t i) { tensor().kind = tensor_kinds[i]; };
  json::Object object;
  object.begin = [&target] { target.trace.tensors.emplace_back(); };
  object.fields = {
      json::required("name", json::Text{[tensor](std::string_view text) { tensor().name = text; }}),
      json::required("bytes", json::Integer{0, largest_magnitude,
                                            [tensor](std::int64_t bytes) {
                                              tensor().bytes = Bytes{static_cast<std::uint64_t>(bytes)};
                                            }}),
      json::required("kind", std::move(kind)),
      json::optional("available_from", json::Integer{0, largest_id,
                                                     [tensor](std::int64_t operation) {
                                                       tensor().available_from = static_cast<std::uint32_t>(operation);
                                                     }}),
  };
  return object;
}

json::List id_list(TraceTarget& target, std::vector<TensorId> TraceOperation::*member) {
  json::List list = json::list_of(json::Integer{0, largest_id,
                                                [&target](std::int64_t id) {
                                                  target.ids.push_back(id_at<TensorId>(static_cast<std::size_t>(id)));
                                                }},
                                  limits::tensors);
  list.begin = [&target](auto) { target.ids.clear(); };
  list.end = [&target, member] {
    std::vector<TensorId>& ids = target.trace.operations.back().*member;
    ids.reserve(target.ids.size());
    for (; !target.ids.empty(); target.ids.pop_front()) ids.push_back(target.ids.front());
  };
  return list;
}

json::Object operation_fields(TraceTarget& target) {
  const auto operation = [&target]() -> TraceOperation& { return target.trace.operations.back(); };
  json::Object object;
  object.begin = [&target] { target.trace.operations.emplace_back(); };
  object.fields = {
      json::required("name", json::Text{[operation](std::string_view text) { operation().name = text; }}),
      json::required("duration_ns", json::Integer{0, largest_magnitude,
                                                  [operation](std::int64_t duration) {
                                                    operation().duration = std::chrono::nanoseconds{duration};
                                                  }}),
      json::optional("reads", id_list(target, &TraceOperation::reads)),
      json::optional("writes", id_list(target, &TraceOperation::writes)),
      json::optional("updates", id_list(target, &TraceOperation::updates)),
  };
  return object;
}

json::Object host_read_fields(TraceTarget& target) {
  const auto read = [&target]() -> HostRead& { return target.trace.host_reads.back(); };
  json::Object object;
  object.begin = [&target] { target.trace.host_reads.emplace_back(); };
  object.fields = {
      json::required("tensor", json::Integer{0, largest_id,
                                             [read](std::int64_t id) {
                                               read().tensor = id_at<TensorId>(static_cast<std::size_t>(id));
                                             }}),
      json::required("after_operation", json::Integer{0, largest_id,
                                                      [read](std::int64_t id) {
                                                        read().after_operation =
                                                            id_at<OperationId>(static_cast<std::size_t>(id));
                                                      }}),
  };
  return object;
}

json::Object trace_document(TraceTarget& target) {
  Trace& trace = target.trace;
  json::Object object;
  object.fields = {
      json::format("swapmm-trace"),
      json::version(),
      json::required("name", json::Text{[&target](std::string_view text) { target.trace.name = text; }}),
      json::required("tensors", json::reserving(json::list_of(tensor_fields(target), limits::tensors), trace.tensors,
                                                R"({"name":"","bytes":0,"kind":"input"},)")),
      json::required("operations", json::reserving(json::list_of(operation_fields(target), limits::operations),
                                                   trace.operations, R"({"name":"","duration_ns":0},)")),
      json::optional("host_reads", json::reserving(json::list_of(host_read_fields(target), limits::host_reads),
                                                   trace.host_reads, R"({"tensor":0,"after_operation":0},)")),
  };
  return object;
}

template <class Source>
Result<Trace> read_trace_from(Source&& source) {
  TraceTarget target;
  if (const Check check = json::read(source, trace_document(target)); !check) return check.problem();
  if (const Check check = check_trace(target.trace); !check) return check.problem();
  return std::move(target.trace);
}

void append_ids(std::string& line, std::string_view name, const std::vector<TensorId>& ids) {
  line += ", \"";
  line += name;
  line += "\": [";
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (i > 0) line += ", ";
    json::append_number(line, index(ids[i]));
  }
  line += ']';
}

void append(std::string& line, const TraceTensor& tensor) {
  line += "{\"name\": ";
  json::append_text(line, tensor.name);
  line += ", \"bytes\": ";
  json::append_number(line, tensor.bytes.value);
  line += ", \"kind\": ";
  json::append_text(line, to_string(tensor.kind));
  if (tensor.available_from != 0) {
    line += ", \"available_from\": ";
    json::append_number(line, tensor.available_from);
  }
  line += '}';
}

void append(std::string& line, const TraceOperation& operation) {
  line += "{\"name\": ";
  json::append_text(line, operation.name);
  line += ", \"duration_ns\": ";
  json::append_number(line, operation.duration.count());
  append_ids(line, "reads", operation.reads);
  append_ids(line, "writes", operation.writes);
  append_ids(line, "updates", operation.updates);
  line += '}';
}

void append(std::string& line, const HostRead& read) {
  line += "{\"tensor\": ";
  json::append_number(line, index(read.tensor));
  line += ", \"after_operation\": ";
  json::append_number(line, index(read.after_operation));
  line += '}';
}

}  // namespace

Result<Trace> read_trace(std::istream& in) { return read_trace_from(in); }
Result<Trace> read_trace(std::string_view text) { return read_trace_from(text); }

void write_trace(std::ostream& out, const Trace& trace) {
  const auto append_element = [](std::string& line, const auto& element) { append(line, element); };
  std::string name;
  json::append_text(name, trace.name);
  out << "{\"format\": \"swapmm-trace\", \"version\": 1, \"name\": " << name;
  json::write_list(out, "tensors", trace.tensors, append_element);
  json::write_list(out, "operations", trace.operations, append_element);
  if (!trace.host_reads.empty()) json::write_list(out, "host_reads", trace.host_reads, append_element);
  out << "}\n";
}

}  // namespace swapmm
