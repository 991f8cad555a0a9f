// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <ostream>
#include <string>

#include <swapmm/formats/json/wait_fields.hpp>
#include <swapmm/formats/json/writer.hpp>
#include <swapmm/formats/v2/machine_fields.hpp>
#include <swapmm/formats/v2/plan_json.hpp>

namespace swapmm::v2 {
namespace formats {
namespace {

/// Appends the elements of a plan. Ids become names, and fields that have their default are left out.
class PlanWriter {
 public:
  explicit PlanWriter(const Plan& plan)
      : plan_(plan), none_has_limit_(std::ranges::none_of(plan.machine.memories, [](const Memory& memory) {
          return memory.bytes.has_value();
        })) {}

  static void append(std::string& line, const Division& division) {
    line += '{';
    json::append_field(line, "tensor", index(division.tensor));
    json::append_key(line, "at");
    line += '[';
    for (std::size_t i = 0; i < division.at.size(); ++i) {
      if (i > 0) line += ", ";
      json::append_number(line, division.at[i].value);
    }
    line += "]}";
  }

  void append(std::string& line, const Place& place) const {
    line += '{';
    json::append_field(line, "tensor", index(place.tensor));
    append_piece_and_form(line, place);
    append_memory(line, place.memory);
    if (plan_.machine.memories[index(place.memory)].bytes) json::append_field(line, "offset", place.offset.value);
    line += place.valid ? "}" : ", \"valid\": false}";
  }

  void append(std::string& line, const Command& command) const {
    line += '{';
    json::append_field(line, "kind", to_string(command.kind));
    if (command.kind == CommandKind::run) {
      json::append_field(line, "operation", index(command.operation));
    } else {
      json::append_field(line, "tensor", index(command.tensor));
      append_piece_and_form(line, command);
      append_where(line, command);
    }
    if (command.offset) json::append_field(line, "offset", command.offset->value);
    if (command.position) json::append_field(line, "position", *command.position);
    if (!command.after.empty()) {
      json::append_key(line, "after");
      json::append_waits(line, command.after);
    }
    append_before(line, command.before_operations);
    line += '}';
  }

  void append_prediction(std::string& text) const {
    const Prediction& predicted = plan_.predicted;
    text += '{';
    json::append_field(text, "iteration_ns", predicted.iteration.count());
    json::append_field(text, "compute_ns", predicted.compute.count());
    json::append_field(text, "lower_bound_ns", predicted.lower_bound.count());
    append_predicted(text, "links", "link", "bytes", plan_.machine.links, predicted.links);
    append_predicted(text, "memories", "memory", "peak_bytes", plan_.machine.memories, predicted.peaks);
    text += '}';
  }

 private:
  /// Appends a list of the prediction: for each of the elements, its name and the bytes.
  template <class Element>
  void append_predicted(std::string& text, std::string_view list, std::string_view name, std::string_view field,
                        const std::vector<Element>& elements, const std::vector<Bytes>& bytes) const {
    json::append_key(text, list);
    text += '[';
    for (std::size_t i = 0; i < std::min(bytes.size(), elements.size()); ++i) {
      if (!has_entry(elements[i])) continue;
      text += text.ends_with('[') ? "{" : ", {";
      json::append_field(text, name, elements[i].name);
      json::append_field(text, field, bytes[i].value);
      text += '}';
    }
    text += ']';
  }

  static bool has_entry(const Link&) { return true; }
  /// Memories without limit have no peak. But if all are without limit, they have entries, because an empty list means
  /// that no peak is known.
  bool has_entry(const Memory& memory) const { return memory.bytes || none_has_limit_; }

  /// The operations that wait for a command: nothing, a number, or a list.
  static void append_before(std::string& line, const std::vector<std::uint32_t>& operations) {
    if (operations.empty()) return;
    if (operations.size() == 1) return json::append_field(line, "before_operation", operations.front());
    json::append_key(line, "before_operation");
    line += '[';
    for (std::size_t i = 0; i < operations.size(); ++i) {
      if (i > 0) line += ", ";
      json::append_number(line, operations[i]);
    }
    line += ']';
  }

  /// Of a place or a command.
  template <class Element>
  void append_piece_and_form(std::string& line, const Element& element) const {
    if (element.piece) json::append_field(line, "piece", *element.piece);
    if (element.form != FormId::plain) json::append_field(line, "form", name_of(plan_, element.form));
  }

  void append_memory(std::string& line, MemoryId memory) const {
    json::append_field(line, "memory", plan_.machine.memories[index(memory)].name);
  }

  /// The memory, link or engine of the command.
  void append_where(std::string& line, const Command& command) const {
    switch (command.kind) {
      case CommandKind::allocate:
      case CommandKind::release: return append_memory(line, command.memory);
      case CommandKind::copy: return json::append_field(line, "link", plan_.machine.links[index(command.link)].name);
      case CommandKind::encode:
      case CommandKind::decode:
        return json::append_field(line, "engine", plan_.machine.engines[index(command.engine)].name);
      case CommandKind::run: return;
    }
  }

  const Plan& plan_;
  bool none_has_limit_;
};

}  // namespace
}  // namespace formats

void write_plan(std::ostream& out, const Plan& plan) {
  const formats::PlanWriter writer(plan);
  const auto append_element = [&writer](std::string& line, const auto& element) { writer.append(line, element); };
  std::string text = "{\"format\": \"swapmm-plan\", \"version\": 2, \"trace\": ";
  json::append_text(text, plan.trace_digest);
  text += ", \"planner\": ";
  json::append_text(text, plan.planner);
  out << text << ",\n \"machine\": ";
  formats::write_machine_object(out, plan.machine);
  if (!plan.pieces.empty()) json::write_list(out, "pieces", plan.pieces, append_element);
  json::write_list(out, "initial", plan.initial, append_element);
  json::write_list(out, "commands", plan.commands, append_element);
  text = ",\n \"predicted\": ";
  writer.append_prediction(text);
  out << text << "}\n";
}

}  // namespace swapmm::v2
