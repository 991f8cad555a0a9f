// SPDX-License-Identifier: Apache-2.0
#include <swapmm/answers/fit.hpp>

#include <algorithm>
#include <utility>

#include <swapmm/ir/limits.hpp>
#include <swapmm/plan/explain.hpp>

namespace swapmm::answers {
namespace {

json::array tensors_as_json(const std::vector<TensorId>& tensors, const Trace& trace, std::size_t top) {
  json::array list;
  for (const TensorId id : tensors) {
    if (list.size() == top) break;
    const TraceTensor& tensor = trace.tensors[index(id)];
    list.push_back(
        json::object{{"tensor", index(id)}, {"name", json_name(tensor.name)}, {"bytes", tensor.bytes.value}});
  }
  return list;
}

json::object to_json(const Need& need, const Trace& trace, std::size_t top) {
  json::object answer;
  answer["peak_bytes"] = need.liveness.peak.value;
  answer["peak_operation"] = need.peak_operation;
  answer["peak_operation_name"] = json_name(trace.operations[need.peak_operation].name);
  json::object bundle;
  bundle["bytes"] = need.liveness.largest_bundle.value;
  bundle["operation"] = need.largest_operation;
  bundle["operation_name"] = json_name(trace.operations[need.largest_operation].name);
  bundle["largest_tensors"] = tensors_as_json(need.largest, trace, top);
  answer["largest_bundle"] = std::move(bundle);
  return answer;
}

json::object to_json(const StallEnd& end) {
  json::object answer;
  answer["budget_bytes"] = end.budget ? json::value(end.budget->value) : nullptr;
  answer["least_that_fits"] = end.first_that_fits;
  answer["always_ns"] = end.always.count();
  answer["plans_made"] = end.plans;
  return answer;
}

}  // namespace

Need find_need(const Trace& trace, const Machine& machine) {
  Need need{analyze_liveness(trace, machine.alignment), 0, 0, {}, {}};
  const std::vector<Bytes>& live = need.liveness.live;
  need.peak_operation = static_cast<std::size_t>(std::max_element(live.begin(), live.end()) - live.begin());
  need.largest_operation = index(need.liveness.largest_bundle_operation);
  for_each_access(trace.operations[need.largest_operation], [&](TensorId id, Access) { need.largest.push_back(id); });
  const auto bytes = [&](TensorId id) { return trace.tensors[index(id)].bytes; };
  const auto larger = [&](TensorId a, TensorId b) { return bytes(a) > bytes(b); };
  std::stable_sort(need.largest.begin(), need.largest.end(), larger);
  for (std::size_t t = 0; machine.max_allocation && t < trace.tensors.size(); ++t) {
    const bool fits = round_up(trace.tensors[t].bytes, machine.alignment) <= *machine.max_allocation;
    if (!fits && !need.liveness.uses[t].empty()) need.above_allocation.push_back(id_at<TensorId>(t));
  }
  std::stable_sort(need.above_allocation.begin(), need.above_allocation.end(), larger);
  return need;
}

Bytes shortfall_of(const Need& need, const Machine& machine) {
  const Bytes largest = need.liveness.largest_bundle;
  return largest > machine.device_budget ? largest - machine.device_budget : Bytes{0};
}

json::object misfit_as_json(const Trace& trace, const Machine& machine, const Need& need, std::string_view problem,
                            std::size_t top) {
  json::object answer;
  answer["fits"] = false;
  answer["trace"] = json_name(trace.name);
  answer["machine"] = answers::to_json(machine);
  answer["needs"] = to_json(need, trace, top);
  answer["problem"] = json_name(problem);
  answer["shortfall_bytes"] = shortfall_of(need, machine).value;
  answer["above_max_allocation"] = tensors_as_json(need.above_allocation, trace, top);
  return answer;
}

json::object fit_as_json(const Trace& trace, const Plan& plan, const Need& need, std::string_view planner,
                         const std::optional<StallEnd>& end, const std::vector<Stall>& stalls, std::size_t top) {
  json::object answer;
  answer["fits"] = true;
  answer["trace"] = json_name(trace.name);
  answer["machine"] = answers::to_json(plan.machine);
  answer["planner"] = json_name(planner);
  answer["needs"] = to_json(need, trace, top);
  answer["predicted"] = answers::to_json(plan.predicted);
  answer["host_bytes"] = host_bytes(trace, plan).value;
  answer["stalls_end"] = end ? json::value(to_json(*end)) : nullptr;
  answer["stalls_found"] = stalls.size();
  answer["stalls"] = answers::to_json(stalls, top, trace, plan);
  return answer;
}

}  // namespace swapmm::answers
