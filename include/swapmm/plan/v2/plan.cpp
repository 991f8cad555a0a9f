// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/v2/plan.hpp>

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include <swapmm/ir/limits.hpp>
#include <swapmm/ir/trace.hpp>

namespace swapmm::v2 {
namespace {

using Finding = std::optional<Problem>;

std::string list_element(std::string_view list, std::size_t position) {
  return std::string(list) + '[' + std::to_string(position) + ']';
}

class PlanCheck {
 public:
  explicit PlanCheck(const Plan& plan) : plan_(plan), machine_(plan.machine) {}

  Finding run() {
    if (const Check machine = check_machine(machine_); !machine) {
      return Problem{"machine: " + machine.problem().message};
    }
    const std::string& digest = plan_.trace_digest;
    if (digest.size() != 64 || digest.find_first_not_of("0123456789abcdef") != std::string::npos) {
      return Problem{"trace: not a digest, which is 64 lower-case hexadecimal digits"};
    }
    if (auto finding = forms()) return finding;
    if (auto finding = pieces()) return finding;
    for (std::size_t i = 0; i < plan_.initial.size(); ++i) {
      if (auto finding = place(plan_.initial[i], list_element("initial", i))) return finding;
    }
    if (plan_.commands.size() > limits::commands) return Problem{"commands: more than a plan may have"};
    for (std::size_t i = 0; i < plan_.commands.size(); ++i) {
      if (auto finding = command(plan_.commands[i], list_element("commands", i))) return finding;
    }
    return predicted();
  }

 private:
  Finding predicted() const {
    const std::vector<Bytes>& links = plan_.predicted.links;
    if (!links.empty() && links.size() != machine_.links.size()) {
      return Problem{"predicted.links: not one for each link"};
    }
    const std::vector<Bytes>& peaks = plan_.predicted.peaks;
    if (!peaks.empty() && peaks.size() != machine_.memories.size()) {
      return Problem{"predicted.memories: not one for each memory"};
    }
    return std::nullopt;
  }

  Finding forms() const {
    std::set<std::string_view> names;
    for (std::size_t i = 0; i < plan_.forms.size(); ++i) {
      const std::string& name = plan_.forms[i];
      if (!is_name(name) || name == "plain") return Problem{list_element("forms", i) + ": not the name of an encoding"};
      if (!names.insert(name).second) return Problem{list_element("forms", i) + ": " + name + " stands twice"};
    }
    return std::nullopt;
  }

  Finding pieces() {
    std::size_t parts = 0;
    for (std::size_t i = 0; i < plan_.pieces.size(); ++i) {
      const Division& division = plan_.pieces[i];
      const std::string where = list_element("pieces", i);
      if (auto finding = tensor(division.tensor, where)) return finding;
      if (pieces_.size() <= index(division.tensor)) pieces_.resize(index(division.tensor) + 1);
      std::size_t& count = pieces_[index(division.tensor)];
      if (count != 0) return Problem{where + ": tensor " + std::to_string(index(division.tensor)) + " stands twice"};
      if (division.at.empty()) return Problem{where + ".at: empty"};
      const bool ascending = std::ranges::adjacent_find(division.at, std::greater_equal{}) == division.at.end();
      if (!ascending || division.at.front() == Bytes{0}) return Problem{where + ".at: not ascending from above 0"};
      count = division.at.size() + 1;
      parts += count;
      if (parts > limits::tensors) return Problem{"pieces: more than " + std::to_string(limits::tensors) + " in total"};
    }
    return std::nullopt;
  }

  static Finding tensor(TensorId id, const std::string& where) {
    if (index(id) < limits::tensors) return std::nullopt;
    return Problem{where + ".tensor: " + std::to_string(index(id)) + " is above " +
                   std::to_string(limits::tensors - 1)};
  }

  Finding part(TensorId id, const std::optional<std::uint32_t>& piece, FormId form, const std::string& where) const {
    if (auto finding = tensor(id, where)) return finding;
    if (index(form) > plan_.forms.size()) return Problem{where + ".form: not one of the plan's forms"};
    const std::size_t count = index(id) < pieces_.size() ? pieces_[index(id)] : 0;
    if (count == 0) {
      if (piece) return Problem{where + ".piece: tensor " + std::to_string(index(id)) + " is not divided"};
      return std::nullopt;
    }
    if (!piece) return Problem{where + ": no piece, and tensor " + std::to_string(index(id)) + " is divided"};
    if (*piece >= count) {
      return Problem{where + ".piece: " + std::to_string(*piece) + " is not one of the " + std::to_string(count)};
    }
    if (form != FormId::plain) return Problem{where + ".form: a tensor that is divided has no forms"};
    return std::nullopt;
  }

  Finding offset(MemoryId memory, Bytes offset, const std::string& where) const {
    const Memory& in = machine_.memories[index(memory)];
    const std::string text = where + ".offset: " + std::to_string(offset.value);
    if (!in.bytes) return Problem{text + ", but memory " + in.name + " is without limit"};
    if (offset.value % in.alignment.value != 0) {
      return Problem{text + " is not a multiple of the alignment, " + std::to_string(in.alignment.value)};
    }
    // A tensor of 0 bytes may be at the very end.
    if (offset > *in.bytes) {
      return Problem{text + " is beyond the " + std::to_string(in.bytes->value) + " bytes of memory " + in.name};
    }
    return std::nullopt;
  }

  Finding place(const Place& place, const std::string& where) {
    if (auto finding = part(place.tensor, place.piece, place.form, where)) return finding;
    if (index(place.memory) >= machine_.memories.size()) return Problem{where + ".memory: does not exist"};
    const auto key = std::tuple(place.tensor, place.piece.value_or(0), place.form, place.memory);
    if (!seen_.insert(key).second) return Problem{where + ": stands twice"};
    if (machine_.memories[index(place.memory)].bytes) return offset(place.memory, place.offset, where);
    if (place.offset == Bytes{0}) return std::nullopt;
    return Problem{where + ".offset: memory " + machine_.memories[index(place.memory)].name + " is without limit"};
  }

  Finding engine(EngineId id, const std::string& where) const {
    if (index(id) < machine_.engines.size() && machine_.engines[index(id)].memory) return std::nullopt;
    return Problem{where + ".engine: not an engine with a memory"};
  }

  Finding command(const Command& command, const std::string& where) const {
    for (std::size_t i = 0; i < command.after.size(); ++i) {
      const Wait& wait = command.after[i];
      if (wait.on != Wait::On::command) continue;
      if (wait.index >= 0 && static_cast<std::size_t>(wait.index) < plan_.commands.size()) continue;
      return Problem{where + '.' + list_element("after", i) + ".command: " + std::to_string(wait.index) +
                     " is not one of the " + std::to_string(plan_.commands.size()) + " commands"};
    }
    if (command.position && !has_engine(command.kind)) {
      return Problem{where + ".position: a command of kind " + std::string(to_string(command.kind)) + " has none"};
    }
    if (command.kind == CommandKind::run) {
      return command.offset ? Finding{Problem{where + ".offset: run takes no place"}} : std::nullopt;
    }
    if (auto finding = part(command.tensor, command.piece, command.form, where)) return finding;
    const bool codes = command.kind == CommandKind::encode || command.kind == CommandKind::decode;
    if (codes && command.form == FormId::plain) return Problem{where + ".form: not the name of an encoding"};
    if (codes && command.piece) return Problem{where + ".piece: only tensors that are not divided can be encoded"};
    switch (command.kind) {
      case CommandKind::allocate:
      case CommandKind::release: {
        if (index(command.memory) >= machine_.memories.size()) return Problem{where + ".memory: does not exist"};
        const Memory& memory = machine_.memories[index(command.memory)];
        if (!memory.bytes) {
          return Problem{where + ".memory: " + memory.name + " is without limit, so it has no " +
                         std::string(to_string(command.kind))};
        }
        if (command.kind == CommandKind::release) {
          return command.offset ? Finding{Problem{where + ".offset: release has none"}} : std::nullopt;
        }
        if (!command.offset) return Problem{where + ": no offset, and a command of kind allocate needs one"};
        return offset(command.memory, *command.offset, where);
      }
      case CommandKind::copy:
        if (index(command.link) >= machine_.links.size()) return Problem{where + ".link: does not exist"};
        if (!command.offset) return std::nullopt;
        return offset(machine_.links[index(command.link)].to, *command.offset, where);
      case CommandKind::encode:
      case CommandKind::decode:
        if (auto finding = engine(command.engine, where)) return finding;
        if (!command.offset) return std::nullopt;
        return offset(*machine_.engines[index(command.engine)].memory, *command.offset, where);
      case CommandKind::run: break;
    }
    return std::nullopt;
  }

  const Plan& plan_;
  const Machine& machine_;
  std::vector<std::size_t> pieces_;  // of each tensor; 0: not divided
  std::set<std::tuple<TensorId, std::uint32_t, FormId, MemoryId>> seen_;
};

}  // namespace

Check check_plan(const Plan& plan) {
  if (auto finding = PlanCheck(plan).run()) return *finding;
  return Done{};
}

Plan from_version_1(const swapmm::Plan& plan) {
  const auto device = MemoryId{0};
  const auto host = MemoryId{1};
  const auto h2d = LinkId{0};
  const auto d2h = LinkId{1};
  Plan result;
  result.trace_digest = plan.trace_digest;
  result.planner = plan.planner;
  result.machine = from_version_1(plan.machine);
  for (const Resident& resident : plan.initial) {
    result.initial.push_back({resident.tensor, std::nullopt, FormId::plain, device, resident.offset, true});
    if (resident.host_valid) continue;
    result.initial.push_back({resident.tensor, std::nullopt, FormId::plain, host, Bytes{0}, false});
  }
  result.commands.reserve(plan.commands.size());
  for (const swapmm::Command& old : plan.commands) {
    Command& command = result.commands.emplace_back();
    command.tensor = old.tensor;
    command.after = old.after;
    if (old.before_operation) command.before_operations = {*old.before_operation};
    if (has_place(old.kind)) command.offset = old.offset;
    switch (old.kind) {
      case swapmm::CommandKind::allocate:
      case swapmm::CommandKind::release:
        command.kind = old.kind == swapmm::CommandKind::allocate ? CommandKind::allocate : CommandKind::release;
        command.memory = device;
        break;
      case swapmm::CommandKind::swap_in:
      case swapmm::CommandKind::swap_out:
        command.kind = CommandKind::copy;
        command.link = old.kind == swapmm::CommandKind::swap_in ? h2d : d2h;
    }
  }
  result.predicted.iteration = plan.predicted.iteration;
  result.predicted.compute = plan.predicted.compute;
  result.predicted.lower_bound = plan.predicted.lower_bound;
  result.predicted.links = {plan.predicted.h2d, plan.predicted.d2h};
  result.predicted.peaks = {plan.predicted.peak, Bytes{0}};
  return result;
}

}  // namespace swapmm::v2
