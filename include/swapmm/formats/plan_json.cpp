// SPDX-License-Identifier: Apache-2.0
#include <swapmm/formats/plan_json.hpp>

#include <algorithm>
#include <array>
#include <limits>
#include <ostream>

#include <swapmm/formats/json/machine_fields.hpp>
#include <swapmm/formats/json/writer.hpp>

namespace swapmm {
namespace {

constexpr std::array kinds = {CommandKind::allocate, CommandKind::swap_in, CommandKind::swap_out, CommandKind::release};
constexpr auto largest_operation = static_cast<std::int64_t>(limits::operations - 1);
constexpr auto largest_command = static_cast<std::int64_t>(limits::commands - 1);
constexpr auto largest_tensor = static_cast<std::int64_t>(limits::tensors - 1);
constexpr auto largest_offset = static_cast<std::int64_t>(limits::magnitude - 1);
constexpr std::int64_t largest_number = std::numeric_limits<std::int64_t>::max();

// Reading.

/// The part of a plan that is being read. The required fields of a command or wait, which may come in any order, are
/// kept here until the object's end.
struct Target {
  Plan plan;
  std::vector<Wait> waits;  ///< waits of the current command; copied when complete, so that no memory is wasted
  std::optional<Bytes> offset;
  std::optional<std::int64_t> operation;
  std::optional<std::int64_t> command;
  bool previous = false;
};

template <class T>
json::Integer tensor_to(T element) {
  return {.least = 0, .most = largest_tensor, .take = [element](std::int64_t id) {
            element().tensor = id_at<TensorId>(static_cast<std::size_t>(id));
          }};
}

json::Object resident_fields(Target& target) {
  const auto resident = [&target]() -> Resident& { return target.plan.initial.back(); };
  json::Object object;
  object.begin = [&target] { target.plan.initial.emplace_back(); };
  object.fields = {
      json::required("tensor", tensor_to(resident)),
      json::required("offset", json::Integer{.least = 0,
                                             .most = largest_offset,
                                             .take =
                                                 [resident](std::int64_t offset) {
                                                   resident().offset = Bytes{static_cast<std::uint64_t>(offset)};
                                                 }}),
      json::required("host_valid", json::Boolean{[resident](bool valid) { resident().host_valid = valid; }}),
  };
  return object;
}

Check end_wait(Target& target) {
  if (target.operation.has_value() == target.command.has_value()) {
    return Problem{"a wait is for one operation or one command"};
  }
  if (target.operation && target.previous) {
    return Problem{"iteration is for commands, an operation of the iteration before has a negative number"};
  }
  Wait wait;
  wait.on = target.operation ? Wait::On::operation : Wait::On::command;
  wait.previous = target.previous;
  wait.index = static_cast<std::int32_t>(target.operation ? *target.operation : *target.command);
  target.waits.push_back(wait);
  return Done{};
}

json::Object wait_fields(Target& target) {
  json::Object object;
  object.begin = [&target] {
    target.operation.reset();
    target.command.reset();
    target.previous = false;
  };
  object.fields = {
      json::optional("operation", json::Integer{.least = -largest_operation - 1,
                                                .most = largest_operation,
                                                .take = [&target](std::int64_t i) { target.operation = i; }}),
      json::optional("command", json::Integer{.least = 0,
                                              .most = largest_command,
                                              .take = [&target](std::int64_t i) { target.command = i; }}),
      json::optional(
          "iteration",
          json::Integer{.least = -1, .most = -1, .take = [&target](std::int64_t) { target.previous = true; }}),
  };
  object.end = [&target] { return end_wait(target); };
  return object;
}

Check end_command(Target& target) {
  Command& command = target.plan.commands.back();
  if (has_place(command.kind)) {
    if (!target.offset)
      return Problem{"no offset, and a command of kind " + std::string(to_string(command.kind)) + " needs one"};
    command.offset = *target.offset;
  }
  command.after.assign(target.waits.begin(), target.waits.end());
  return Done{};
}

json::Object command_fields(Target& target) {
  const auto command = [&target]() -> Command& { return target.plan.commands.back(); };
  json::Word kind;
  for (const CommandKind known : kinds) kind.known.push_back(to_string(known));
  kind.take = [command](std::size_t i) { command().kind = kinds[i]; };
  json::Integer before{.least = 0, .most = 2 * largest_operation + 1, .take = [command](std::int64_t operation) {
                         command().before_operation = static_cast<std::uint32_t>(operation);
                       }};
  before.or_null = true;
  json::Object object;
  object.begin = [&target] {
    target.plan.commands.emplace_back();
    target.waits.clear();
    target.offset.reset();
  };
  object.fields = {
      json::required("kind", std::move(kind)),
      json::required("tensor", tensor_to(command)),
      json::optional("offset", json::Integer{.least = 0,
                                             .most = largest_offset,
                                             .take =
                                                 [&target](std::int64_t offset) {
                                                   target.offset = Bytes{static_cast<std::uint64_t>(offset)};
                                                 }}),
      json::optional("after", json::list_of(wait_fields(target), limits::commands)),
      json::optional("before_operation", std::move(before)),
      json::optional("tier", json::Word{{"host"}, [](std::size_t) {}}),
      json::optional("range", json::Refused{"version 1 moves whole tensors only"}),
  };
  object.end = [&target] { return end_command(target); };
  return object;
}

json::Object prediction_fields(Prediction& prediction) {
  const auto time = [](std::chrono::nanoseconds& to) {
    return json::Integer{.least = 0, .most = largest_number, .take = [&to](std::int64_t number) {
                           to = std::chrono::nanoseconds{number};
                         }};
  };
  const auto bytes = [](Bytes& to) {
    return json::Integer{.least = 0, .most = largest_number, .take = [&to](std::int64_t number) {
                           to = Bytes{static_cast<std::uint64_t>(number)};
                         }};
  };
  json::Object object;
  object.fields = {
      json::required("iteration_ns", time(prediction.iteration)),
      json::required("compute_ns", time(prediction.compute)),
      json::required("lower_bound_ns", time(prediction.lower_bound)),
      json::required("h2d_bytes", bytes(prediction.h2d)),
      json::required("d2h_bytes", bytes(prediction.d2h)),
      json::required("peak_bytes", bytes(prediction.peak)),
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

void append(std::string& line, const Wait& wait) {
  line += wait.on == Wait::On::operation ? "{\"operation\": " : "{\"command\": ";
  json::append_number(line, wait.index);
  line += wait.on == Wait::On::command && wait.previous ? ", \"iteration\": -1}" : "}";
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
  line += ", \"after\": [";
  for (std::size_t i = 0; i < command.after.size(); ++i) {
    if (i > 0) line += ", ";
    append(line, command.after[i]);
  }
  line += ']';
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
