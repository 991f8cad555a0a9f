// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/v2/simulation/elements.hpp>

#include <cassert>

#include <swapmm/plan/v2/engines.hpp>

namespace swapmm::v2::simulation {
namespace {

Bytes rounded(const Memory& memory, Bytes size) { return round_up(size, memory.alignment); }

void set_copy(Element& element, const Command& command, const Machine& machine, const Parts& parts) {
  const Link& link = machine.links[index(command.link)];
  element.time = link.latency.count();
  element.engine = engine_of(machine, command.link);
  element.link = command.link;
  element.flow = parts.size(command.tensor, command.piece, command.form);
  if (command.form == FormId::plain) return;
  if (const TensorForm* const form = parts.encoding(command.tensor, command.form)) element.flow = form->expected;
}

void set_coding(Element& element, const Command& command, const Parts& parts) {
  element.engine = command.engine;
  const TensorForm* const form = parts.encoding(command.tensor, command.form);
  assert(form != nullptr && "a valid plan uses forms that the trace has");
  if (form == nullptr) return;
  element.time = (command.kind == CommandKind::encode ? form->encode : form->decode).count();
}

/// The memory in which a command takes a place or gives one back.
std::optional<MemoryId> memory_of(const Command& command, const Machine& machine) {
  switch (command.kind) {
    case CommandKind::allocate:
    case CommandKind::release: return command.memory;
    case CommandKind::run: return std::nullopt;
    case CommandKind::copy: return command.offset ? std::optional{machine.links[index(command.link)].to} : std::nullopt;
    case CommandKind::encode:
    case CommandKind::decode: return command.offset ? machine.engines[index(command.engine)].memory : std::nullopt;
  }
  return std::nullopt;
}

void set_place(Element& element, const Command& command, const Machine& machine, const Parts& parts) {
  const std::optional<MemoryId> memory = memory_of(command, machine);
  if (!memory || !machine.memories[index(*memory)].bytes) return;
  const FormId form = command.kind == CommandKind::decode ? FormId::plain : command.form;
  const Bytes size = rounded(machine.memories[index(*memory)], parts.size(command.tensor, command.piece, form));
  element.memory = memory;
  element.occupied = command.kind == CommandKind::release ? Bytes{0} - size : size;
}

}  // namespace

std::vector<Element> elements_of(const Trace& trace, const Plan& plan, const Parts& parts) {
  const detail::Engines engines(trace, plan.machine);
  std::vector<Element> elements;
  elements.reserve(trace.operations.size() + plan.commands.size());
  for (std::size_t i = 0; i < trace.operations.size(); ++i) {
    Element& element = elements.emplace_back();
    element.time = trace.operations[i].duration.count();
    element.engine = engines.engine(id_at<OperationId>(i));
  }
  for (const Command& command : plan.commands) {
    Element& element = elements.emplace_back();
    switch (command.kind) {
      case CommandKind::allocate:
      case CommandKind::release: break;
      case CommandKind::copy: set_copy(element, command, plan.machine, parts); break;
      case CommandKind::run:
        element.time = elements[index(command.operation)].time;
        element.engine = elements[index(command.operation)].engine;
        break;
      case CommandKind::encode:
      case CommandKind::decode: set_coding(element, command, parts); break;
    }
    set_place(element, command, plan.machine, parts);
  }
  elements.emplace_back();  // the end of the iteration
  return elements;
}

std::vector<Bytes> initially_occupied(const Plan& plan, const Parts& parts) {
  std::vector<Bytes> occupied(plan.machine.memories.size());
  for (const Place& place : plan.initial) {
    const Memory& memory = plan.machine.memories[index(place.memory)];
    if (!memory.bytes) continue;
    occupied[index(place.memory)] += rounded(memory, parts.size(place.tensor, place.piece, place.form));
  }
  return occupied;
}

}  // namespace swapmm::v2::simulation
