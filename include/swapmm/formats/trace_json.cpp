// SPDX-License-Identifier: Apache-2.0
#include <swapmm/formats/trace_json.hpp>

#include <algorithm>
#include <array>
#include <deque>
#include <ostream>
#include <span>

#include <swapmm/formats/json/integer_fields.hpp>
#include <swapmm/formats/json/name_table.hpp>
#include <swapmm/formats/json/reader.hpp>
#include <swapmm/formats/json/writer.hpp>

namespace swapmm {
namespace {

constexpr std::array tensor_kinds = {TensorKind::persistent, TensorKind::input, TensorKind::transient};
constexpr std::int64_t newest_version = 2;

/// The part of a trace that is being read.
struct TraceTarget {
  Trace trace;
  /// The ids of the current list; copied when complete, so that no memory is wasted. A growing vector would take six
  /// times the shortest text of its ids.
  std::deque<TensorId> ids;
  AccessRange range;                ///< of the current access
  std::size_t operation_begin = 0;  ///< the first range of the current operation in Trace::ranges
  json::NameTable engines;
};

json::Object form_fields(TraceTarget& target) {
  const auto form = [&target]() -> TensorForm& { return target.trace.forms.back(); };
  json::Object object;
  object.begin = [&target] {
    target.trace.forms.emplace_back().tensor = id_at<TensorId>(target.trace.tensors.size() - 1);
  };
  object.fields = {
      json::required("name", json::Name{[form](std::string_view text) { form().name = text; }}),
      json::required("bytes", json::integer_to(form, &TensorForm::bytes)),
      json::required("expected_bytes", json::integer_to(form, &TensorForm::expected)),
      json::required("encode_ns", json::integer_to(form, &TensorForm::encode)),
      json::required("decode_ns", json::integer_to(form, &TensorForm::decode)),
  };
  return object;
}

json::Object tensor_fields(TraceTarget& target, std::int64_t version) {
  const auto tensor = [&target]() -> TraceTensor& { return target.trace.tensors.back(); };
  json::Word kind;
  for (const TensorKind known : tensor_kinds) kind.known.push_back(to_string(known));
  kind.take = [tensor](std::size_t i) { tensor().kind = tensor_kinds[i]; };
  json::Object object;
  object.begin = [&target] { target.trace.tensors.emplace_back(); };
  object.fields = {
      json::required("name", json::Text{[tensor](std::string_view text) { tensor().name = text; }}),
      json::required("bytes", json::integer_to(tensor, &TraceTensor::bytes)),
      json::required("kind", std::move(kind)),
      json::optional("available_from", json::integer_to(tensor, &TraceTensor::available_from, json::largest_id)),
  };
  if (version == 1) return object;
  object.fields.push_back(json::optional("forms", json::list_of(form_fields(target), limits::forms)));
  return object;
}

/// An access to a part of a tensor's bytes.
json::Object range_fields(TraceTarget& target) {
  json::Object object;
  object.fields = {
      json::required("tensor", json::integer_to(target.range.tensor, json::largest_id)),
      json::required("first", json::integer_to(target.range.first)),
      json::required("bytes", json::integer_to(target.range.bytes)),
  };
  object.end = [&target]() -> Check {
    target.range.operation = id_at<OperationId>(target.trace.operations.size() - 1);
    target.trace.ranges.push_back(target.range);
    target.ids.push_back(target.range.tensor);
    return Done{};
  };
  return object;
}

json::List access_list(TraceTarget& target, std::vector<TensorId> TraceOperation::*member, std::int64_t version) {
  json::Integer id{0, json::largest_id, [&target](std::int64_t value) {
                     target.ids.push_back(id_at<TensorId>(static_cast<std::size_t>(value)));
                   }};
  json::List list = version == 1 ? json::list_of(std::move(id), limits::tensors)
                                 : json::list_of(json::one_of({std::move(id), range_fields(target)}), limits::tensors);
  list.begin = [&target](auto) { target.ids.clear(); };
  list.end = [&target, member] {
    std::vector<TensorId>& ids = target.trace.operations.back().*member;
    ids.reserve(target.ids.size());
    for (; !target.ids.empty(); target.ids.pop_front()) ids.push_back(target.ids.front());
  };
  return list;
}

/// The three lists of an operation may come in any order, the ranges of a trace ascend.
Check end_operation(TraceTarget& target) {
  std::vector<AccessRange>& ranges = target.trace.ranges;
  std::ranges::sort(ranges.begin() + static_cast<std::ptrdiff_t>(target.operation_begin), ranges.end(), {},
                    &AccessRange::tensor);
  if (target.engines.size() > limits::engines) {
    return Problem{"with its engine, the trace names more than " + std::to_string(limits::engines)};
  }
  return Done{};
}

json::Object operation_fields(TraceTarget& target, std::int64_t version) {
  const auto operation = [&target]() -> TraceOperation& { return target.trace.operations.back(); };
  json::Object object;
  object.begin = [&target] {
    target.trace.operations.emplace_back();
    target.operation_begin = target.trace.ranges.size();
  };
  object.fields = {
      json::required("name", json::Text{[operation](std::string_view text) { operation().name = text; }}),
      json::required("duration_ns", json::integer_to(operation, &TraceOperation::duration)),
      json::optional("reads", access_list(target, &TraceOperation::reads, version)),
      json::optional("writes", access_list(target, &TraceOperation::writes, version)),
      json::optional("updates", access_list(target, &TraceOperation::updates, version)),
  };
  if (version == 1) return object;
  const auto boolean = [operation](bool TraceOperation::*member) {
    return json::Boolean{[operation, member](bool value) { operation().*member = value; }};
  };
  object.fields.push_back(json::optional("engine", json::Name{[&target, operation](std::string_view name) {
                                           operation().engine = target.engines.number_of(name);
                                         }}));
  object.fields.push_back(json::optional("replayable", boolean(&TraceOperation::replayable)));
  object.fields.push_back(json::optional("in_pieces", boolean(&TraceOperation::in_pieces)));
  object.end = [&target] { return end_operation(target); };
  return object;
}

json::Object host_read_fields(TraceTarget& target) {
  const auto read = [&target]() -> HostRead& { return target.trace.host_reads.back(); };
  json::Object object;
  object.begin = [&target] { target.trace.host_reads.emplace_back(); };
  object.fields = {
      json::required("tensor", json::integer_to(read, &HostRead::tensor, json::largest_id)),
      json::required("after_operation", json::integer_to(read, &HostRead::after_operation, json::largest_id)),
  };
  return object;
}

json::Object lingering_fields(TraceTarget& target) {
  const auto value = [&target]() -> LingeringValue& { return target.trace.lingering.back(); };
  json::Object object;
  object.begin = [&target] { target.trace.lingering.emplace_back(); };
  object.fields = {
      json::required("tensor", json::integer_to(value, &LingeringValue::tensor, json::largest_id)),
      json::required("last_use", json::integer_to(value, &LingeringValue::last_use, json::largest_id)),
      json::required("until", json::integer_to(value, &LingeringValue::until, json::largest_id)),
  };
  return object;
}

/// What `version` does not know is an unknown field, and skipped.
json::Object trace_document(TraceTarget& target, std::int64_t version) {
  Trace& trace = target.trace;
  json::Object object;
  object.fields = {
      json::format("swapmm-trace"),
      json::version(1, newest_version),
      json::required("name", json::Text{[&target](std::string_view text) { target.trace.name = text; }}),
      json::required("tensors", json::reserving(json::list_of(tensor_fields(target, version), limits::tensors),
                                                trace.tensors, R"({"name":"","bytes":0,"kind":"input"},)")),
      json::required("operations", json::reserving(json::list_of(operation_fields(target, version), limits::operations),
                                                   trace.operations, R"({"name":"","duration_ns":0},)")),
      json::optional("host_reads", json::reserving(json::list_of(host_read_fields(target), limits::host_reads),
                                                   trace.host_reads, R"({"tensor":0,"after_operation":0},)")),
  };
  if (version != 1) return object;
  object.fields.push_back(
      json::optional("lingering", json::reserving(json::list_of(lingering_fields(target), limits::operations),
                                                  trace.lingering, R"({"tensor":0,"last_use":0,"until":1},)")));
  return object;
}

template <class Source>
Result<Trace> read_trace_from(Source&& source) {
  return json::read_by_version(source, [](auto&& text, std::optional<std::int64_t> version) -> Result<Trace> {
    TraceTarget target;
    const json::Object document = trace_document(target, version.value_or(newest_version));
    if (const Check check = json::read(text, document); !check) return check.problem();
    for (std::size_t i = 0; i < target.engines.size(); ++i) target.trace.engines.push_back(target.engines.name(i));
    if (const Check check = check_trace(target.trace); !check) return check.problem();
    return std::move(target.trace);
  });
}

// Writing.

/// Writes the lines of a trace. Tensors and operations must come in their order.
class TraceWriter {
 public:
  explicit TraceWriter(const Trace& trace) : trace_(trace) {}

  void append(std::string& line, const TraceTensor& tensor) {
    line += '{';
    json::append_field(line, "name", tensor.name);
    json::append_field(line, "bytes", tensor.bytes.value);
    json::append_field(line, "kind", to_string(tensor.kind));
    if (tensor.available_from != 0) json::append_field(line, "available_from", tensor.available_from);
    append_forms(line, id_at<TensorId>(next_tensor_++));
    line += '}';
  }

  void append(std::string& line, const TraceOperation& operation) {
    const auto ranges =
        next_elements(trace_.ranges, next_range_, &AccessRange::operation, id_at<OperationId>(next_operation_++));
    line += '{';
    json::append_field(line, "name", operation.name);
    json::append_field(line, "duration_ns", operation.duration.count());
    if (operation.engine < trace_.engines.size()) {
      json::append_field(line, "engine", trace_.engines[operation.engine]);
    }
    if (operation.replayable) line += ", \"replayable\": true";
    if (operation.in_pieces) line += ", \"in_pieces\": true";
    append_accesses(line, "reads", operation.reads, ranges);
    append_accesses(line, "writes", operation.writes, ranges);
    append_accesses(line, "updates", operation.updates, ranges);
    line += '}';
  }

  static void append(std::string& line, const LingeringValue& value) {
    line += '{';
    json::append_field(line, "tensor", index(value.tensor));
    json::append_field(line, "last_use", index(value.last_use));
    json::append_field(line, "until", value.until);
    line += '}';
  }

  static void append(std::string& line, const HostRead& read) {
    line += '{';
    json::append_field(line, "tensor", index(read.tensor));
    json::append_field(line, "after_operation", index(read.after_operation));
    line += '}';
  }

 private:
  /// The elements of an ascending list from `next` on that belong to `owner`. Moves `next` behind them.
  template <class Element, class Id>
  static std::span<const Element> next_elements(const std::vector<Element>& list, std::size_t& next,
                                                Id Element::*member, Id owner) {
    const std::size_t first = next;
    while (next < list.size() && list[next].*member == owner) ++next;
    return std::span(list).subspan(first, next - first);
  }

  void append_forms(std::string& line, TensorId tensor) {
    const auto forms = next_elements(trace_.forms, next_form_, &TensorForm::tensor, tensor);
    if (forms.empty()) return;
    json::append_key(line, "forms");
    line += '[';
    for (const TensorForm& form : forms) {
      line += &form == forms.data() ? "{" : ", {";
      json::append_field(line, "name", form.name);
      json::append_field(line, "bytes", form.bytes.value);
      json::append_field(line, "expected_bytes", form.expected.value);
      json::append_field(line, "encode_ns", form.encode.count());
      json::append_field(line, "decode_ns", form.decode.count());
      line += '}';
    }
    line += ']';
  }

  /// `ranges` are those of the operation.
  static void append_accesses(std::string& line, std::string_view name, const std::vector<TensorId>& ids,
                              std::span<const AccessRange> ranges) {
    json::append_key(line, name);
    line += '[';
    for (std::size_t i = 0; i < ids.size(); ++i) {
      if (i > 0) line += ", ";
      const auto range = std::ranges::lower_bound(ranges, ids[i], {}, &AccessRange::tensor);
      if (range == ranges.end() || range->tensor != ids[i]) {
        json::append_number(line, index(ids[i]));
      } else {
        line += '{';
        json::append_field(line, "tensor", index(ids[i]));
        json::append_field(line, "first", range->first.value);
        json::append_field(line, "bytes", range->bytes.value);
        line += '}';
      }
    }
    line += ']';
  }

  const Trace& trace_;
  std::size_t next_tensor_ = 0;
  std::size_t next_form_ = 0;
  std::size_t next_operation_ = 0;
  std::size_t next_range_ = 0;
};

}  // namespace

Result<Trace> read_trace(std::istream& in) { return read_trace_from(in); }
Result<Trace> read_trace(std::string_view text) { return read_trace_from(text); }

void write_trace(std::ostream& out, const Trace& trace) {
  TraceWriter writer(trace);
  const auto append_element = [&writer](std::string& line, const auto& element) { writer.append(line, element); };
  std::string header = "{\"format\": \"swapmm-trace\", \"version\": ";
  json::append_number(header, needs_version_2(trace) ? 2 : 1);
  header += ", \"name\": ";
  json::append_text(header, trace.name);
  out << header;
  json::write_list(out, "tensors", trace.tensors, append_element);
  json::write_list(out, "operations", trace.operations, append_element);
  if (!trace.host_reads.empty()) json::write_list(out, "host_reads", trace.host_reads, append_element);
  if (!trace.lingering.empty()) json::write_list(out, "lingering", trace.lingering, append_element);
  out << "}\n";
}

}  // namespace swapmm
