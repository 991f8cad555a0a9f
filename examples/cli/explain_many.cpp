// SPDX-License-Identifier: Apache-2.0
// swapmm explain, for plans with many memories.
#include <algorithm>
#include <chrono>
#include <iostream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <swapmm/base/text/figures.hpp>
#include <swapmm/plan/v2/bound.hpp>
#include <swapmm/plan/v2/explain.hpp>

#include "many_memories.hpp"
#include "output.hpp"
#include "printable.hpp"
#include "quantities.hpp"

namespace swapmm::cli {
namespace {

using std::chrono::nanoseconds;
using v2::CommandKind;
using v2::Explanation;
using v2::FormId;

/// An operation that runs again, how often, and what that takes.
struct Again {
  OperationId operation{};
  std::size_t times = 0;
  nanoseconds time{0};
};

/// A form of a tensor that the plan uses.
struct UsedForm {
  TensorId tensor{};
  std::string form;
  std::size_t encoded = 0;
  std::size_t decoded = 0;
  Bytes expected;
  nanoseconds time{0};
};

constexpr auto by_time = [](const auto& a, const auto& b) { return a.time > b.time; };

std::vector<Again> find_again(const Trace& trace, const v2::Plan& plan) {
  std::map<OperationId, Again> known;
  for (const v2::Command& command : plan.commands) {
    if (command.kind != CommandKind::run) continue;
    Again& again = known[command.operation];
    again.operation = command.operation;
    ++again.times;
    again.time += trace.operations[index(command.operation)].duration;
  }
  std::vector<Again> list;
  for (const auto& [operation, again] : known) list.push_back(again);
  std::ranges::stable_sort(list, by_time);
  return list;
}

std::vector<UsedForm> find_forms(const Trace& trace, const v2::Plan& plan) {
  std::map<std::pair<TensorId, FormId>, UsedForm> known;
  for (const v2::Command& command : plan.commands) {
    if (command.kind != CommandKind::encode && command.kind != CommandKind::decode) continue;
    UsedForm& used = known[{command.tensor, command.form}];
    used.tensor = command.tensor;
    used.form = v2::name_of(plan, command.form);
    const TensorForm* const form = find_form(trace, command.tensor, used.form);
    if (form == nullptr) continue;
    const bool encodes = command.kind == CommandKind::encode;
    ++(encodes ? used.encoded : used.decoded);
    used.time += encodes ? form->encode : form->decode;
    used.expected = form->expected;
  }
  std::vector<UsedForm> list;
  for (const auto& [key, used] : known) list.push_back(used);
  std::ranges::stable_sort(list, by_time);
  return list;
}

std::string tensor_text(const Trace& trace, TensorId tensor, const std::optional<std::uint32_t>& piece = {}) {
  std::string text = "tensor " + numbered(index(tensor), trace.tensors[index(tensor)].name);
  if (piece) text += " piece " + std::to_string(*piece);
  return text;
}

std::string operation_text(const Trace& trace, OperationId operation) {
  return "operation " + numbered(index(operation), trace.operations[index(operation)].name);
}

/// How a value comes back.
std::string back_text(const Trace& trace, const v2::Plan& plan, CommandId back) {
  const v2::Command& command = plan.commands[index(back)];
  switch (command.kind) {
    case CommandKind::copy: return "back over link " + plan.machine.links[index(command.link)].name;
    case CommandKind::run: return "made again by " + operation_text(trace, command.operation);
    default: return "decoded from form " + std::string(v2::name_of(plan, command.form));
  }
}

/// "3 things, 12 ms in all; the longest:", then the first lines of a list.
template <class T, class Line>
void print_list(const std::vector<T>& list, std::string_view one, std::string_view many, std::size_t most, Line line) {
  nanoseconds total{0};
  for (const T& entry : list) total += entry.time;
  std::cout << '\n' << list.size() << ' ' << (list.size() == 1 ? one : many);
  if (list.empty()) {
    std::cout << '\n';
    return;
  }
  std::cout << ", " << text::time_text(total) << " in all; the longest:\n";
  for (std::size_t i = 0; i < std::min(most, list.size()); ++i) {
    std::string time = text::time_text(list[i].time);
    time.insert(0, time.size() < 12 ? 12 - time.size() : 0, ' ');
    std::cout << time << "  " << printable(line(list[i])) << '\n';
  }
}

std::string share(nanoseconds part, nanoseconds whole) { return percent(ratio(part, whole)); }

void print_engines(const v2::Machine& machine, const Explanation& explanation) {
  std::vector<std::vector<std::string>> rows{{"engine", "operations", "again", "coding", "copies", "waits", "done"}};
  for (std::size_t e = 0; e < machine.engines.size(); ++e) {
    const v2::EngineUse& use = explanation.engines[e];
    std::vector<std::string> row{printable(machine.engines[e].name)};
    nanoseconds sum{0};
    for (const nanoseconds time : {use.operations, use.again, use.coding, use.copies, use.waits, use.done}) {
      row.push_back(share(time, explanation.examined));
      sum += time;
    }
    if (sum != nanoseconds{0}) rows.push_back(std::move(row));
  }
  std::cout << '\n';
  print_table(rows);
}

void print_links(const v2::Machine& machine, const Explanation& explanation) {
  std::vector<std::vector<std::string>> rows{{"link", "bytes", "copies", "busy", "slowed by sharing"}};
  for (std::size_t l = 0; l < machine.links.size(); ++l) {
    const v2::LinkUse& use = explanation.links[l];
    if (use.copies == 0) continue;
    rows.push_back({printable(machine.links[l].name), decimal_size(use.bytes), std::to_string(use.copies),
                    share(use.busy, explanation.iteration), share(use.slowed, explanation.iteration)});
  }
  if (rows.size() > 1) std::cout << '\n';
  if (rows.size() > 1) print_table(rows);
  rows = {{"capacity", "bytes", "full"}};
  for (std::size_t c = 0; c < machine.capacities.size(); ++c) {
    const v2::CapacityUse& use = explanation.capacities[c];
    if (use.bytes == Bytes{0}) continue;
    rows.push_back(
        {printable(machine.capacities[c].name), decimal_size(use.bytes), share(use.full, explanation.iteration)});
  }
  if (rows.size() > 1) std::cout << '\n';
  if (rows.size() > 1) print_table(rows);
}

void print_memories(const v2::Machine& machine, const Explanation& explanation) {
  std::vector<std::vector<std::string>> rows{
      {"memory", "size", "peak", "copied in", "copied out", "kept values", "kept bytes", "places taken"}};
  for (std::size_t m = 0; m < machine.memories.size(); ++m) {
    const v2::Memory& memory = machine.memories[m];
    const v2::MemoryUse& use = explanation.memories[m];
    rows.push_back({printable(memory.name), memory.bytes ? decimal_size(*memory.bytes) : "no limit",
                    memory.bytes ? decimal_size(use.peak) : "", decimal_size(use.in), decimal_size(use.out),
                    std::to_string(use.kept), decimal_size(use.kept_bytes),
                    memory.bytes ? std::to_string(use.taken) : ""});
  }
  std::cout << '\n';
  print_table(rows);
}

void print_pieces(const Trace& trace, const v2::Plan& plan, std::size_t most) {
  if (plan.pieces.empty()) return;
  std::cout << '\n'
            << plan.pieces.size() << (plan.pieces.size() == 1 ? " tensor is" : " tensors are") << " in pieces:\n";
  for (std::size_t i = 0; i < std::min(most, plan.pieces.size()); ++i) {
    const v2::Division& division = plan.pieces[i];
    std::cout << "  " << tensor_text(trace, division.tensor) << " ("
              << decimal_size(trace.tensors[index(division.tensor)].bytes) << "): " << division.at.size() + 1
              << " pieces\n";
  }
}

void print_explanation(const Trace& trace, const v2::Plan& plan, const Explanation& explanation, std::size_t most) {
  const v2::Machine& machine = plan.machine;
  print_title(trace, plan);
  print_prediction(plan);
  print_engines(machine, explanation);
  print_links(machine, explanation);
  print_memories(machine, explanation);
  print_list(explanation.stalls, "time an engine waits", "times an engine waits", most, [&](const v2::Stall& stall) {
    return machine.engines[index(stall.engine)].name + ": " + describe(stall, trace, plan);
  });
  print_list(explanation.absences, "time a value is away from a memory between two uses",
             "times a value is away from a memory between two uses", most, [&](const v2::PlannedAbsence& absence) {
               std::string text = machine.memories[index(absence.memory)].name + ": " +
                                  tensor_text(trace, absence.tensor, absence.piece) + (absence.piece ? " (of " : " (") +
                                  decimal_size(trace.tensors[index(absence.tensor)].bytes) + ")";
               if (absence.last_use) text += ", after " + operation_text(trace, *absence.last_use);
               if (absence.next_use) text += ", until " + operation_text(trace, *absence.next_use);
               if (absence.next_iteration) text += " of the next iteration";
               return text + ", " + back_text(trace, plan, absence.back);
             });
  if (const std::vector<Again> again = find_again(trace, plan); !again.empty()) {
    print_list(again, "operation runs again", "operations run again", most, [&](const Again& one) {
      return operation_text(trace, one.operation) + (one.times == 1 ? "" : ", " + std::to_string(one.times) + " times");
    });
  }
  if (const std::vector<UsedForm> forms = find_forms(trace, plan); !forms.empty()) {
    print_list(forms, "encoded form", "encoded forms", most, [&](const UsedForm& used) {
      return tensor_text(trace, used.tensor) + " (" + decimal_size(trace.tensors[index(used.tensor)].bytes) + ") as " +
             used.form + " (" + decimal_size(used.expected) + " expected), encoded " + std::to_string(used.encoded) +
             " and decoded " + std::to_string(used.decoded) + " times";
    });
  }
  print_pieces(trace, plan, most);
}

json::object to_json(const Trace& trace, const v2::Plan& plan, const v2::Stall& stall) {
  json::object entry;
  const auto step = [&](const char* name, const v2::PlanStep& of) {
    entry[name] = json::object{{of.is_command ? "command" : "operation", of.index}};
  };
  step("step", stall.step);
  entry["engine"] = plan.machine.engines[index(stall.engine)].name;
  entry["time_ns"] = stall.time.count();
  if (stall.cause) step("waits_for", *stall.cause);
  if (stall.room) entry["room_of"] = index(*stall.room);
  if (stall.capacity) entry["capacity"] = plan.machine.capacities[index(*stall.capacity)].name;
  entry["slowed_ns"] = stall.slowed.count();
  entry["busy_ns"] = stall.busy.count();
  entry["text"] = json_name(describe(stall, trace, plan));
  return entry;
}

json::object to_json(const Trace& trace, const v2::Plan& plan, const v2::PlannedAbsence& absence) {
  json::object entry;
  entry["tensor"] = index(absence.tensor);
  entry["tensor_name"] = json_name(trace.tensors[index(absence.tensor)].name);
  if (absence.piece) entry["piece"] = *absence.piece;
  entry["memory"] = plan.machine.memories[index(absence.memory)].name;
  entry["time_ns"] = absence.time.count();
  entry["release"] = index(absence.release);
  entry["back"] = index(absence.back);
  entry["back_kind"] = std::string(to_string(plan.commands[index(absence.back)].kind));
  if (absence.last_use) entry["last_use"] = index(*absence.last_use);
  if (absence.next_use) entry["next_use"] = index(*absence.next_use);
  entry["next_iteration"] = absence.next_iteration;
  return entry;
}

template <class T, class ToJson>
json::array first_of(const std::vector<T>& list, std::size_t most, ToJson entry) {
  json::array array;
  for (std::size_t i = 0; i < std::min(most, list.size()); ++i) array.push_back(entry(list[i]));
  return array;
}

json::object machine_to_json(const v2::Machine& machine, const Explanation& explanation) {
  json::array engines;
  for (std::size_t e = 0; e < machine.engines.size(); ++e) {
    const v2::EngineUse& use = explanation.engines[e];
    engines.push_back({{"engine", machine.engines[e].name},
                       {"operations_ns", use.operations.count()},
                       {"again_ns", use.again.count()},
                       {"coding_ns", use.coding.count()},
                       {"copies_ns", use.copies.count()},
                       {"waits_ns", use.waits.count()},
                       {"done_ns", use.done.count()}});
  }
  json::array links;
  for (std::size_t l = 0; l < machine.links.size(); ++l) {
    const v2::LinkUse& use = explanation.links[l];
    links.push_back({{"link", machine.links[l].name},
                     {"bytes", use.bytes.value},
                     {"copies", use.copies},
                     {"busy_ns", use.busy.count()},
                     {"slowed_ns", use.slowed.count()}});
  }
  json::array capacities;
  for (std::size_t c = 0; c < machine.capacities.size(); ++c) {
    const v2::CapacityUse& use = explanation.capacities[c];
    capacities.push_back(
        {{"capacity", machine.capacities[c].name}, {"bytes", use.bytes.value}, {"full_ns", use.full.count()}});
  }
  json::array memories;
  for (std::size_t m = 0; m < machine.memories.size(); ++m) {
    const v2::MemoryUse& use = explanation.memories[m];
    memories.push_back({{"memory", machine.memories[m].name},
                        {"peak_bytes", use.peak.value},
                        {"in_bytes", use.in.value},
                        {"out_bytes", use.out.value},
                        {"kept", use.kept},
                        {"kept_bytes", use.kept_bytes.value},
                        {"taken", use.taken}});
  }
  return {{"engines", std::move(engines)},
          {"links", std::move(links)},
          {"capacities", std::move(capacities)},
          {"memories", std::move(memories)}};
}

void print_as_json(const Trace& trace, const v2::Plan& plan, const Explanation& explanation, std::size_t most) {
  json::object answer = machine_to_json(plan.machine, explanation);
  answer["trace"] = json_name(trace.name);
  answer["planner"] = json_name(plan.planner);
  answer["machine"] = json_name(plan.machine.name);
  answer["predicted"] = cli::to_json(plan);
  answer["examined_ns"] = explanation.examined.count();
  answer["stalls_found"] = explanation.stalls.size();
  answer["stalls"] =
      first_of(explanation.stalls, most, [&](const v2::Stall& stall) { return to_json(trace, plan, stall); });
  answer["absences_found"] = explanation.absences.size();
  answer["absences"] = first_of(explanation.absences, most,
                                [&](const v2::PlannedAbsence& absence) { return to_json(trace, plan, absence); });
  answer["again"] = first_of(find_again(trace, plan), most, [&](const Again& again) {
    return json::object{{"operation", index(again.operation)}, {"times", again.times}, {"time_ns", again.time.count()}};
  });
  answer["forms"] = first_of(find_forms(trace, plan), most, [&](const UsedForm& used) {
    return json::object{
        {"tensor", index(used.tensor)}, {"form", used.form},       {"expected_bytes", used.expected.value},
        {"encoded", used.encoded},      {"decoded", used.decoded}, {"time_ns", used.time.count()}};
  });
  answer["pieces"] = first_of(plan.pieces, most, [&](const v2::Division& division) {
    return json::object{{"tensor", index(division.tensor)}, {"pieces", division.at.size() + 1}};
  });
  print_json(answer);
}

}  // namespace

void explain_many(const Trace& trace, v2::Plan plan, std::size_t most, bool json) {
  const Explanation explanation = explain(trace, plan);
  // Everything is looked at anew, as for plans of version 1.
  v2::Prediction& predicted = plan.predicted;
  predicted.iteration = explanation.iteration;
  predicted.compute = explanation.compute;
  const Result<nanoseconds> bound = lower_bound(trace, plan.machine);
  predicted.lower_bound = bound ? *bound : explanation.compute;
  predicted.links.clear();
  for (const v2::LinkUse& link : explanation.links) predicted.links.push_back(link.bytes);
  predicted.peaks.clear();
  for (const v2::MemoryUse& memory : explanation.memories) predicted.peaks.push_back(memory.peak);
  if (json) {
    print_as_json(trace, plan, explanation, most);
  } else {
    print_explanation(trace, plan, explanation, most);
  }
}

}  // namespace swapmm::cli
