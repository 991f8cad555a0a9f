// SPDX-License-Identifier: Apache-2.0
#include "program_addresses.hpp"

#include <algorithm>

namespace swapmm::test {

std::string AddressHistory::check(const Report& report, std::string_view iteration) {
  const std::size_t current = iterations_.size() - 1;
  const bool followed = report.iterations_followed > last_report_.iterations_followed;
  if (!followed || report.plan_starts != last_report_.plan_starts) stable_from_ = current;
  last_report_ = report;
  if (!followed) return {};
  const auto plan = std::find_if(report.plans.begin(), report.plans.end(),
                                 [&](const PlanSummary& summary) { return summary.iteration == iteration; });
  const std::size_t period = plan == report.plans.end() ? 1 : plan->iterations_per_cycle;
  const bool stable = current < stable_from_ + period || iterations_[current] == iterations_[current - period];
  return stable ? std::string() : "a followed plan gives an operation other addresses than before";
}

}  // namespace swapmm::test
