// SPDX-License-Identifier: Apache-2.0
#include <swapmm/formats/v2/plan_target.hpp>

#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace swapmm::v2::formats {
namespace {

/// In the order of CommandField.
constexpr std::array<std::string_view, 9> field_names = {"tensor", "piece",     "form",   "memory",  "link",
                                                         "engine", "operation", "offset", "position"};

/// The table of docs/formats.md.
struct FieldsOfKind {
  CommandFields required;
  CommandFields optional;
};

constexpr FieldsOfKind fields_of(CommandKind kind) {
  using enum CommandField;
  switch (kind) {
    case CommandKind::allocate: return {{tensor, memory, offset}, {piece, form}};
    case CommandKind::release: return {{tensor, memory}, {piece, form}};
    case CommandKind::copy: return {{tensor, link}, {piece, form, offset, position}};
    case CommandKind::run: return {{operation}, {position}};
    case CommandKind::encode:
    case CommandKind::decode: return {{tensor, form, engine}, {offset, position}};
  }
  return {};
}

/// Gives the field its default.
void reset(Command& command, CommandField field) {
  using enum CommandField;
  switch (field) {
    case tensor: command.tensor = {}; return;
    case piece: command.piece = {}; return;
    case form: command.form = {}; return;
    case memory: command.memory = {}; return;
    case link: command.link = {}; return;
    case engine: command.engine = {}; return;
    case operation: command.operation = {}; return;
    case offset: command.offset = {}; return;
    case position: command.position = {}; return;
  }
}

std::string element(std::string_view list, std::size_t position) {
  return std::string(list) + '[' + std::to_string(position) + ']';
}

class PlanCompletion {
 public:
  explicit PlanCompletion(PlanTarget& target)
      : target_(target),
        plan_(target.plan),
        machine_(plan_.machine),
        memories_(target.memories, machine_.memories, "memory"),
        links_(target.links, machine_.links, "link"),
        engines_(target.engines, machine_.engines, "engine") {}

  Check run() {
    for (std::size_t i = 0; i < plan_.initial.size(); ++i) {
      if (Check check = place(plan_.initial[i], element("initial", i)); !check) return check;
    }
    for (std::size_t i = 0; i < plan_.commands.size(); ++i) {
      if (Check check = command(plan_.commands[i], i); !check) return check;
    }
    number_forms();
    if (Check check = predicted_links(); !check) return check;
    return predicted_peaks();
  }

 private:
  Check place(Place& place, const std::string& where) const {
    if (auto unknown = memories_.resolve(place.memory)) return Problem{where + ".memory: " + *unknown};
    const Memory& memory = machine_.memories[index(place.memory)];
    const bool has_offset = place.offset != no_offset;
    if (memory.bytes.has_value() == has_offset) {
      if (!has_offset) place.offset = Bytes{0};
      return Done{};
    }
    if (has_offset) return Problem{where + ".offset: memory " + memory.name + " is without limit, and has no offsets"};
    return Problem{where + ": no offset, and memory " + memory.name + " has a limit"};
  }

  Check command(Command& command, std::size_t i) const {
    const auto problem = [i](std::string_view field, const std::string& what) {
      return Problem{element("commands", i) + '.' + std::string(field) + ": " + what};
    };
    switch (command.kind) {
      case CommandKind::allocate:
      case CommandKind::release:
        if (auto unknown = memories_.resolve(command.memory)) return problem("memory", *unknown);
        break;
      case CommandKind::copy:
        if (auto unknown = links_.resolve(command.link)) return problem("link", *unknown);
        break;
      case CommandKind::encode:
      case CommandKind::decode:
        if (auto unknown = engines_.resolve(command.engine)) return problem("engine", *unknown);
        break;
      case CommandKind::run: break;
    }
    return Done{};
  }

  /// Forms are numbered in the order of `initial` and `commands`, even if the text has these in another order. So a
  /// plan comes back from its own text.
  void number_forms() {
    std::vector<FormId> numbered(target_.forms.size(), FormId::plain);
    const auto number = [&](FormId& form) {
      if (form == FormId::plain) return;
      FormId& final_id = numbered[index(form) - 1];
      if (final_id == FormId::plain) {
        plan_.forms.push_back(target_.forms.name(index(form) - 1));
        final_id = id_at<FormId>(plan_.forms.size());
      }
      form = final_id;
    };
    for (Place& place : plan_.initial) number(place.form);
    for (Command& command : plan_.commands) number(command.form);
  }

  Check predicted_links() {
    std::vector<bool> seen(machine_.links.size());
    if (!target_.predicted_links.empty()) plan_.predicted.links.resize(machine_.links.size());
    for (std::size_t i = 0; i < target_.predicted_links.size(); ++i) {
      const PredictedBytes& entry = target_.predicted_links[i];
      const std::string where = element("predicted.links", i) + ".link: ";
      auto link = id_at<LinkId>(entry.name);
      if (auto unknown = links_.resolve(link)) return Problem{where + *unknown};
      if (seen[index(link)]) return Problem{where + machine_.links[index(link)].name + " stands twice"};
      seen[index(link)] = true;
      plan_.predicted.links[index(link)] = entry.bytes;
    }
    return Done{};
  }

  Check predicted_peaks() {
    std::vector<bool> seen(machine_.memories.size());
    if (!target_.predicted_peaks.empty()) plan_.predicted.peaks.resize(machine_.memories.size());
    for (std::size_t i = 0; i < target_.predicted_peaks.size(); ++i) {
      const PredictedBytes& entry = target_.predicted_peaks[i];
      const std::string where = element("predicted.memories", i);
      auto id = id_at<MemoryId>(entry.name);
      if (auto unknown = memories_.resolve(id)) return Problem{where + ".memory: " + *unknown};
      const Memory& memory = machine_.memories[index(id)];
      if (seen[index(id)]) return Problem{where + ".memory: " + memory.name + " stands twice"};
      if (!memory.bytes && entry.bytes != Bytes{0}) {
        return Problem{where + ".peak_bytes: memory " + memory.name + " is without limit, and has no peak"};
      }
      seen[index(id)] = true;
      plan_.predicted.peaks[index(id)] = entry.bytes;
    }
    return Done{};
  }

  PlanTarget& target_;
  Plan& plan_;
  const Machine& machine_;
  json::NameResolver memories_;
  json::NameResolver links_;
  json::NameResolver engines_;
};

}  // namespace

Check complete_command(Command& command, CommandFields fields) {
  const FieldsOfKind known = fields_of(command.kind);
  for (std::size_t i = 0; i < field_names.size(); ++i) {
    const auto field = static_cast<CommandField>(i);
    if (known.required.has(field) && !fields.has(field)) {
      return Problem{"no " + std::string(field_names[i]) + ", and a command of kind " +
                     std::string(to_string(command.kind)) + " needs one"};
    }
    if (fields.has(field) && !known.required.has(field) && !known.optional.has(field)) reset(command, field);
  }
  return Done{};
}

Check complete_plan(PlanTarget& target) {
  target.plan.machine = std::move(target.machine.machine);
  return PlanCompletion(target).run();
}

}  // namespace swapmm::v2::formats
