// SPDX-License-Identifier: Apache-2.0
#include <swapmm/answers/ways/ways.hpp>

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include <swapmm/answers/quantities.hpp>
#include <swapmm/ir/liveness.hpp>
#include <swapmm/plan/ways/program/history.hpp>
#include <swapmm/plan/ways/program/pieces.hpp>

namespace swapmm::answers {
namespace {

const TensorForm* form_of(const Trace& trace, const v2::Plan& plan, const v2::Command& command) {
  return command.form == v2::FormId::plain ? nullptr
                                           : find_form(trace, command.tensor, v2::name_of(plan, command.form));
}

}  // namespace

Result<Ways> parse_ways(std::string_view text) {
  const Result<std::vector<std::string_view>> names = parse_list(text);
  if (!names) return names.problem();
  Ways ways{.recompute = false, .compress = false, .pieces = false};
  bool swap = false;
  for (const std::string_view name : *names) {
    if (name == "swap") {
      swap = true;
    } else if (name == "recompute") {
      ways.recompute = true;
    } else if (name == "compress") {
      ways.compress = true;
    } else if (name == "pieces") {
      ways.pieces = true;
    } else {
      return Problem{"no way is called \"" + std::string(name) + "\"; there are swap, recompute, compress and pieces"};
    }
  }
  if (!swap) return Problem{"swap is missing: values that nothing else brings back have to be copied"};
  return ways;
}

Bytes largest_bundle(const Trace& trace, const Ways& ways, Bytes alignment) {
  const Bytes whole = analyze_liveness(trace, alignment).largest_bundle;
  if (!ways.pieces || !trace.engines.empty()) return whole;
  Machine machine;
  machine.device_budget = Bytes{0};  // pieces as small as they may be
  machine.alignment = alignment;
  // A tensor that is divided uses none of its forms.
  const Trace plain = planning::only_ways(trace, {.compress = false});
  const Result<planning::DividedTrace> divided =
      planning::with_pieces(plain, planning::possible_pieces(plain, machine));
  return divided ? std::min(whole, analyze_liveness(divided->trace, alignment).largest_bundle) : whole;
}

WaysUsed ways_used(const Trace& trace, const v2::Plan& plan) {
  WaysUsed used;
  for (const v2::Command& command : plan.commands) {
    if (command.kind == v2::CommandKind::run) {
      const TraceOperation& operation = trace.operations[index(command.operation)];
      ++used.again;
      used.again_time += operation.duration;
      for (const TensorId made : operation.writes) used.again_bytes += trace.tensors[index(made)].bytes;
      continue;
    }
    const TensorForm* const form = form_of(trace, plan, command);
    if (form == nullptr) continue;
    if (command.kind == v2::CommandKind::encode) used.coding_time += form->encode;
    if (command.kind == v2::CommandKind::decode) {
      ++used.decoded;
      used.coding_time += form->decode;
    }
    if (command.kind == v2::CommandKind::copy) {
      ++used.encoded_copies;
      used.encoded_bytes += form->expected;
      used.plain_bytes += trace.tensors[index(command.tensor)].bytes;
    }
  }
  return used;
}

json::object to_json(const WaysUsed& used) {
  return {{"again", used.again},
          {"again_ns", used.again_time.count()},
          {"again_bytes", used.again_bytes.value},
          {"decoded", used.decoded},
          {"coding_ns", used.coding_time.count()},
          {"encoded_copies", used.encoded_copies},
          {"encoded_bytes", used.encoded_bytes.value},
          {"plain_bytes", used.plain_bytes.value}};
}

}  // namespace swapmm::answers
