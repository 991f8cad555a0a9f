// SPDX-License-Identifier: Apache-2.0
#include <swapmm/answers/as_json.hpp>

#include <string>

#include <swapmm/base/text/utf8.hpp>
#include <swapmm/ir/limits.hpp>

namespace swapmm::answers {

std::optional<double> ratio(std::chrono::nanoseconds part, std::chrono::nanoseconds whole) {
  if (whole.count() == 0) return std::nullopt;
  return static_cast<double>(part.count()) / static_cast<double>(whole.count());
}

std::optional<double> fraction_of_ideal(std::chrono::nanoseconds compute, std::chrono::nanoseconds iteration) {
  return compute.count() == 0 ? std::nullopt : ratio(compute, iteration);
}

json::value json_number(std::optional<double> ratio) { return ratio ? json::value(*ratio) : json::value(nullptr); }

json::array json_names(const std::vector<std::string>& names) {
  json::array list;
  for (const std::string& name : names) list.emplace_back(json_name(name));
  return list;
}

json::string json_name(std::string_view name) {
  const std::string text = text::to_valid_utf8(name, limits::name_bytes);
  return json::string(text.data(), text.size());
}

json::object to_json(const Machine& machine) {
  json::object result;
  result["name"] = json_name(machine.name);
  result["device_budget_bytes"] = machine.device_budget.value;
  result["alignment_bytes"] = machine.alignment.value;
  result["max_allocation_bytes"] = machine.max_allocation ? json::value(machine.max_allocation->value) : nullptr;
  result["h2d_bytes_per_second"] = machine.h2d.bytes_per_second;
  result["d2h_bytes_per_second"] = machine.d2h.bytes_per_second;
  result["h2d_latency_ns"] = machine.h2d.latency.count();
  result["d2h_latency_ns"] = machine.d2h.latency.count();
  result["duplex"] = machine.duplex == Duplex::full ? "full" : "half";
  return result;
}

json::object to_json(const Prediction& predicted) {
  json::object result;
  result["iteration_ns"] = predicted.iteration.count();
  result["compute_ns"] = predicted.compute.count();
  result["lower_bound_ns"] = predicted.lower_bound.count();
  result["h2d_bytes"] = predicted.h2d.value;
  result["d2h_bytes"] = predicted.d2h.value;
  result["peak_bytes"] = predicted.peak.value;
  return result;
}

json::array to_json(const std::vector<Stall>& stalls, std::size_t most, const Trace& trace, const Plan& plan) {
  json::array list;
  for (const Stall& stall : stalls) {
    if (list.size() == most) break;
    json::object entry;
    entry["operation"] = index(stall.operation);
    entry["operation_name"] = json_name(trace.operations[index(stall.operation)].name);
    entry["time_ns"] = stall.time.count();
    if (stall.copy) {
      const Command& copy = plan.commands[index(*stall.copy)];
      entry["waits_for"] = copy.kind == CommandKind::swap_in ? "swap_in" : "room";
      entry["command"] = index(*stall.copy);
      entry["tensor"] = index(copy.tensor);
      entry["tensor_name"] = json_name(trace.tensors[index(copy.tensor)].name);
      entry["tensor_bytes"] = trace.tensors[index(copy.tensor)].bytes.value;
    }
    list.push_back(std::move(entry));
  }
  return list;
}

}  // namespace swapmm::answers
