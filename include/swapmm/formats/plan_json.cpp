// SPDX-License-Identifier: Apache-2.0
#include <swapmm/formats/plan_json.hpp>

#include <algorithm>
#include <array>
#include <limits>
#include <ostream>

#include <swapmm/formats/json/integer_fields.hpp>
#include <swapmm/formats/json/machine_fields.hpp>
#include <swapmm/formats/json/wait_fields.hpp>
#include <swapmm/formats/json/writer.hpp>

namespace swapmm {
namespace {

constexpr std::array kinds = {CommandKind::allocate, CommandKind::swap_in, CommandKind::swap_out, CommandKind::release};
constexpr std::int64_t largest_number = std::numeric_limits<std::int64_t>::max();

// Reading.

/// The part of a plan that is being read. What a command's kind decides about, which may come in any order, is kept
/// here until the command's end.
struct Target {
  Plan plan;
  json::WaitTarget waits;
  std::optional<Bytes> offset;
};

json::Object resident_fields(Target& target) {
  const auto resident = [&target]() -> Resident& { return target.plan.initial.back(); };
  json::Object object;
  object.begin = [&target] { target.plan.initial.emplace_back(); };
  object.fields = {
      json::required("tensor", json::integer_to(resident, &Resident::tensor, json::largest_tensor)),
      json::required("offset", json::integer_to(resident, &Resident::offset)),
      json::required("host_valid", json::Boolean{[resident](bool valid) { resident().host_valid = valid; }}),
  };
  return object;
}

Check end_command(Target& target) {
  Command& command = target.plan.commands.back();
  if (has_place(command.kind)) {
    if (!target.offset)
      return Problem{"no offset, and a command of kind " + std::string(to_string(command.kind)) + " needs one"};
    command.offset = *target.offset;
  }
  command.after.assign(target.waits.waits.begin(), target.waits.waits.end());
  return Done{};
}

json::Object command_fields(Target& target) {
  const auto command = [&target]() -> Command& { return target.plan.commands.back(); };
  json::Word kind;
  for (const CommandKind known : kinds) kind.known.push_back(to_string(known));
  kind.take = [command](std::size_t i) { command().kind = kinds[i]; };
  json::Integer before = json::integer_to(command, &Command::before_operation, 2 * json::largest_operation + 1);
  before.or_null = true;
  json::Object object;
  object.begin = [&target] {
    target.plan.commands.emplace_back();
    target.waits.waits.clear();
    target.offset.reset();
  };
  object.fields = {
      json::required("kind", std::move(kind)),
      json::required("tensor", json::integer_to(command, &Command::tensor, json::largest_tensor)),
      json::optional("offset", json::integer_to(target.offset)),
      json::optional("after", json::list_of(json::wait_fields(target.waits), limits::commands)),
      json::optional("before_operation", std::move(before)),
      json::optional("tier", json::Word{{"host"}, [](std::size_t) {}}),
      json::optional("range", json::Refused{"version 1 moves whole tensors only"}),
  };
  object.end = [&target] { return end_command(target); };
  return object;
}

json::Object prediction_fields(Prediction& prediction) {
  json::Object object;
  object.fields = {
      json::required("iteration_ns", json::integer_to(prediction.iteration, largest_number)),
      json::required("compute_ns", json::integer_to(prediction.compute, largest_number)),
      json::required("lower_bound_ns", json::integer_to(prediction.lower_bound, largest_number)),
      json::required("h2d_bytes", json::integer_to(prediction.h2d, largest_number)),
      json::required("d2h_bytes", json::integer_to(prediction.d2h, largest_number)),
      json::required("peak_bytes", json::integer_to(prediction.peak, largest_number)),
  };
  return object;
}

json::Object document(Target& target) {
  Plan& plan = target.plan;
  json::Object object;
  object.fields = {
      json::format("swapmm-plan"),
      json::version(),
      json::required("trace", json::Text{[&plan](std::string_view text) { plan.trace_digest = text; }}),
      json::required("planner", json::Text{[&plan](std::string_view text) { plan.planner = text; }}),
      json::required("machine", json::machine_fields(plan.machine, json::Field::Presence::optional)),
      json::required("initial", json::reserving(json::list_of(resident_fields(target), limits::tensors), plan.initial,
                                                R"({"tensor":0,"offset":0,"host_valid":true},)")),
      json::required("commands", json::reserving(json::list_of(command_fields(target), limits::commands), plan.commands,
                                                 R"({"kind":"release","tensor":0},)")),
      json::required("predicted", prediction_fields(plan.predicted)),
  };
  return object;
}

template <class Source>
Result<Plan> read_plan_from(Source&& source) {
  Target target;
  if (const Check check = json::read(source, document(target)); !check) return check.problem();
  if (const Check check = check_plan(target.plan); !check) return check.problem();
  return std::move(target.plan);
}

// Writing.

void append(std::string& line, const Resident& resident) {
  line += "{\"tensor\": ";
  json::append_number(line, index(resident.tensor));
  line += ", \"offset\": ";
  json::append_number(line, resident.offset.value);
  line += resident.host_valid ? ", \"host_valid\": true}" : ", \"host_valid\": false}";
}

void append(std::string& line, const Command& command) {
  line += "{\"kind\": ";
  json::append_text(line, to_string(command.kind));
  line += ", \"tensor\": ";
  json::append_number(line, index(command.tensor));
  if (has_place(command.kind)) {
    line += ", \"offset\": ";
    json::append_number(line, command.offset.value);
  }
  line += ", \"after\": ";
  json::append_waits(line, command.after);
  if (command.before_operation) {
    line += ", \"before_operation\": ";
    json::append_number(line, *command.before_operation);
  }
  line += '}';
}

void append(std::string& line, const Prediction& prediction) {
  const auto member = [&](std::string_view name, auto number) {
    line += name;
    json::append_number(line, number);
  };
  member("{\"iteration_ns\": ", prediction.iteration.count());
  member(", \"compute_ns\": ", prediction.compute.count());
  member(", \"lower_bound_ns\": ", prediction.lower_bound.count());
  member(", \"h2d_bytes\": ", prediction.h2d.value);
  member(", \"d2h_bytes\": ", prediction.d2h.value);
  member(", \"peak_bytes\": ", prediction.peak.value);
  line += '}';
}

}  // namespace

Result<Plan> read_plan(std::istream& in) { return read_plan_from(in); }
Result<Plan> read_plan(std::string_view text) { return read_plan_from(text); }

void write_plan(std::ostream& out, const Plan& plan) {
  const auto append_element = [](std::string& line, const auto& element) { append(line, element); };
  std::string text = "{\"format\": \"swapmm-plan\", \"version\": 1, \"trace\": ";
  json::append_text(text, plan.trace_digest);
  text += ", \"planner\": ";
  json::append_text(text, plan.planner);
  text += ",\n \"machine\": ";
  json::append_machine(text, plan.machine);
  out << text;
  json::write_list(out, "initial", plan.initial, append_element);
  json::write_list(out, "commands", plan.commands, append_element);
  text = ",\n \"predicted\": ";
  append(text, plan.predicted);
  out << text << "}\n";
}

}  // namespace swapmm
