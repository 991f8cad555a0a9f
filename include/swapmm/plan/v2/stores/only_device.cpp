// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/v2/stores/only_device.hpp>

#include <algorithm>
#include <utility>

#include <swapmm/plan/v2/baselines/uses.hpp>
#include <swapmm/plan/v2/schedule/prediction.hpp>
#include <swapmm/plan/v2/validate.hpp>

namespace swapmm::v2::planning {

Result<OnlyDevice> find_only_device(const Trace& trace, const Machine& machine) {
  Result<std::vector<EnginePart>> parts = engine_parts(trace, machine);
  if (!parts) return parts.problem();
  if (parts->size() != 1) return Problem{"several engines compute"};
  OnlyDevice only;
  only.part = std::move(parts->front());
  const Trace& part = only.part.trace;
  only.in_host.assign(part.tensors.size(), false);
  for (std::size_t t = 0; t < part.tensors.size(); ++t) only.in_host[t] = part.tensors[t].kind == TensorKind::input;
  for (const HostRead& read : part.host_reads) only.in_host[index(read.tensor)] = true;
  only.routes = find_routes(part, machine, only.part.memory, only.in_host);
  if (only.routes.stores.empty()) return Problem{"no memory can be reached from the device and back"};
  const auto host = std::ranges::find(only.routes.stores, machine.host, &RoutedStore::memory);
  if (host != only.routes.stores.end()) {
    only.host_store = static_cast<std::size_t>(host - only.routes.stores.begin());
  } else if (std::ranges::count(only.in_host, true) != 0) {
    return Problem{"there is no way between the host and the device"};
  }
  return only;
}

Result<Plan> for_whole_trace(const OnlyDevice& only, const Trace& trace, Plan plan) {
  for (Place& place : plan.initial) place.tensor = only.part.tensors[index(place.tensor)];
  for (Command& command : plan.commands) command.tensor = only.part.tensors[index(command.tensor)];
  plan.trace_digest = digest(trace);
  if (const auto violations = validate(trace, plan); !violations.empty()) {
    if (changes_input_that_host_reads(trace)) {
      return Problem{"the host has one place for an input and for what it reads"};
    }
    return Problem{"the plan is not valid, which is a mistake of swapmm: " + violations.front().message};
  }
  predict(trace, plan);
  return plan;
}

}  // namespace swapmm::v2::planning
