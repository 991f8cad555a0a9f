// SPDX-License-Identifier: Apache-2.0
#include <swapmm/formats/v2/plan_json.hpp>

#include <array>
#include <limits>
#include <optional>
#include <utility>

#include <swapmm/formats/json/integer_fields.hpp>
#include <swapmm/formats/plan_json.hpp>
#include <swapmm/formats/v2/plan_target.hpp>
#include <swapmm/ir/limits.hpp>

namespace swapmm::v2 {
namespace formats {
namespace {

constexpr std::array kinds = {CommandKind::allocate, CommandKind::release, CommandKind::copy,
                              CommandKind::run,      CommandKind::encode,  CommandKind::decode};
constexpr std::int64_t largest_number = std::numeric_limits<std::int64_t>::max();

FormId form_of(PlanTarget& target, std::string_view name) {
  return name == "plain" ? FormId::plain : id_at<FormId>(target.forms.number_of(name) + 1);
}

json::Object division_fields(PlanTarget& target) {
  const auto division = [&target]() -> Division& { return target.plan.pieces.back(); };
  json::Integer position{.least = 0, .most = json::largest_magnitude, .take = [&target](std::int64_t bytes) {
                           target.at.push_back(json::integer_as<Bytes>(bytes));
                         }};
  json::List at = json::list_of(std::move(position), limits::tensors);
  at.begin = [&target](auto) { target.at.clear(); };
  at.end = [&target, division] { division().at.assign(target.at.begin(), target.at.end()); };
  json::Object object;
  object.begin = [&target] { target.plan.pieces.emplace_back(); };
  object.fields = {
      json::required("tensor", json::integer_to(division, &Division::tensor, json::largest_tensor)),
      json::required("at", std::move(at)),
  };
  return object;
}

json::Object place_fields(PlanTarget& target) {
  const auto place = [&target]() -> Place& { return target.plan.initial.back(); };
  json::Object object;
  object.begin = [&target] { target.plan.initial.emplace_back().offset = no_offset; };
  object.fields = {
      json::required("tensor", json::integer_to(place, &Place::tensor, json::largest_tensor)),
      json::optional("piece", json::integer_to(place, &Place::piece, json::largest_tensor)),
      json::optional("form",
                     json::Name{[&target, place](std::string_view name) { place().form = form_of(target, name); }}),
      json::required("memory", json::Name{[&target, place](std::string_view name) {
                       place().memory = id_at<MemoryId>(target.memories.number_of(name));
                     }}),
      json::optional("offset", json::integer_to(place, &Place::offset)),
      json::optional("valid", json::Boolean{[place](bool valid) { place().valid = valid; }}),
  };
  return object;
}

/// The field of a command with its value, which `take` stores.
json::Field command_integer(PlanTarget& target, CommandField field, std::string_view name, json::Integer integer) {
  integer.take = [&target, field, take = std::move(integer.take)](std::int64_t value) {
    target.fields.add(field);
    take(value);
  };
  return json::optional(name, std::move(integer));
}

template <class Take>
json::Field command_name(PlanTarget& target, CommandField field, std::string_view name, Take take) {
  return json::optional(name, json::Name{[&target, field, take](std::string_view text) {
                          target.fields.add(field);
                          take(target.plan.commands.back(), text);
                        }});
}

Check end_command(PlanTarget& target) {
  Command& command = target.plan.commands.back();
  command.after.assign(target.waits.waits.begin(), target.waits.waits.end());
  command.before_operations.reserve(target.before.size());
  for (; !target.before.empty(); target.before.pop_front()) command.before_operations.push_back(target.before.front());
  return complete_command(command, target.fields);
}

/// One operation that waits for the command, or a list of them.
json::OneOf before_operation(PlanTarget& target) {
  json::Integer operation{.least = 0, .most = 2 * json::largest_operation + 1, .take = [&target](std::int64_t id) {
                            target.before.push_back(static_cast<std::uint32_t>(id));
                          }};
  json::List list = json::list_of(operation, 2 * limits::operations);
  operation.or_null = true;
  return json::one_of({std::move(operation), std::move(list)});
}

json::Object command_fields(PlanTarget& target) {
  const auto command = [&target]() -> Command& { return target.plan.commands.back(); };
  json::Word kind;
  for (const CommandKind known : kinds) kind.known.push_back(to_string(known));
  kind.take = [command](std::size_t i) { command().kind = kinds[i]; };
  const auto integer = [&target, command](CommandField field, std::string_view name, auto member, std::int64_t most) {
    return command_integer(target, field, name, json::integer_to(command, member, most));
  };
  json::Object object;
  object.begin = [&target] {
    target.plan.commands.emplace_back();
    target.waits.waits.clear();
    target.before.clear();
    target.fields = {};
  };
  object.fields = {
      json::required("kind", std::move(kind)),
      integer(CommandField::tensor, "tensor", &Command::tensor, json::largest_tensor),
      integer(CommandField::piece, "piece", &Command::piece, json::largest_tensor),
      command_name(target, CommandField::form, "form",
                   [&target](Command& c, std::string_view name) { c.form = form_of(target, name); }),
      command_name(target, CommandField::memory, "memory",
                   [&target](Command& c, std::string_view name) {
                     c.memory = id_at<MemoryId>(target.memories.number_of(name));
                   }),
      command_name(
          target, CommandField::link, "link",
          [&target](Command& c, std::string_view name) { c.link = id_at<LinkId>(target.links.number_of(name)); }),
      command_name(
          target, CommandField::engine, "engine",
          [&target](Command& c, std::string_view name) { c.engine = id_at<EngineId>(target.engines.number_of(name)); }),
      integer(CommandField::operation, "operation", &Command::operation, json::largest_operation),
      integer(CommandField::offset, "offset", &Command::offset, json::largest_magnitude),
      integer(CommandField::position, "position", &Command::position, json::largest_operation + 1),
      json::optional("after", json::list_of(json::wait_fields(target.waits), limits::commands)),
      json::optional("before_operation", before_operation(target)),
  };
  object.end = [&target] { return end_command(target); };
  return object;
}

/// An entry of predicted.links or predicted.memories.
json::Object predicted_fields(std::vector<PredictedBytes>& entries, json::NameTable& names, std::string_view of,
                              std::string_view bytes) {
  const auto entry = [&entries]() -> PredictedBytes& { return entries.back(); };
  json::Object object;
  object.begin = [&entries] { entries.emplace_back(); };
  object.fields = {
      json::required(of, json::Name{[entry, &names](std::string_view name) { entry().name = names.number_of(name); }}),
      json::required(bytes, json::integer_to(entry, &PredictedBytes::bytes, largest_number)),
  };
  return object;
}

json::Object prediction_fields(PlanTarget& target) {
  Prediction& prediction = target.plan.predicted;
  json::Object object;
  object.fields = {
      json::optional("iteration_ns", json::integer_to(prediction.iteration, largest_number)),
      json::optional("compute_ns", json::integer_to(prediction.compute, largest_number)),
      json::optional("lower_bound_ns", json::integer_to(prediction.lower_bound, largest_number)),
      json::optional("links", json::list_of(predicted_fields(target.predicted_links, target.links, "link", "bytes"),
                                            limits::links)),
      json::optional("memories",
                     json::list_of(predicted_fields(target.predicted_peaks, target.memories, "memory", "peak_bytes"),
                                   limits::memories)),
  };
  return object;
}

json::Object document(PlanTarget& target) {
  Plan& plan = target.plan;
  json::Object object;
  object.fields = {
      json::format("swapmm-plan"),
      json::version(1, 2),
      json::required("trace", json::Text{[&plan](std::string_view text) { plan.trace_digest = text; }}),
      json::required("planner", json::Text{[&plan](std::string_view text) { plan.planner = text; }}),
      json::required("machine", machine_in_plan(target.machine)),
      json::optional("pieces", json::reserving(json::list_of(division_fields(target), limits::tensors), plan.pieces,
                                               R"({"tensor":0,"at":[1]},)")),
      json::required("initial", json::reserving(json::list_of(place_fields(target), limits::commands), plan.initial,
                                                R"({"tensor":0,"memory":"a"},)")),
      json::required("commands", json::reserving(json::list_of(command_fields(target), limits::commands), plan.commands,
                                                 R"({"kind":"run","operation":0},)")),
      json::optional("predicted", prediction_fields(target)),
  };
  return object;
}

template <class Source>
Result<Plan> read_version_2(Source& source) {
  PlanTarget target;
  if (const Check check = json::read(source, document(target)); !check) return check.problem();
  if (const Check check = complete_plan(target); !check) return check.problem();
  if (const Check check = check_plan(target.plan); !check) return check.problem();
  return std::move(target.plan);
}

template <class Source>
Result<Plan> read_plan_from(Source&& source) {
  return json::read_by_version(source, [](auto&& text, std::optional<std::int64_t> version) -> Result<Plan> {
    if (version != 1) return read_version_2(text);
    const Result<swapmm::Plan> plan = swapmm::read_plan(text);
    if (!plan) return plan.problem();
    return from_version_1(*plan);
  });
}

}  // namespace
}  // namespace formats

Result<Plan> read_plan(std::istream& in) { return formats::read_plan_from(in); }
Result<Plan> read_plan(std::string_view text) { return formats::read_plan_from(text); }

}  // namespace swapmm::v2
