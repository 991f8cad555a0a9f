// SPDX-License-Identifier: Apache-2.0
#include "support/program/addresses.hpp"

#include <algorithm>

namespace swapmm::test {
namespace {

/// How many iterations the cycles of an iteration's plans have.
std::vector<std::size_t> periods_of(const Report& report, std::string_view iteration) {
  std::vector<std::size_t> periods;
  for (const PlanSummary& plan : report.plans) {
    if (plan.iteration == iteration) periods.push_back(plan.iterations_per_cycle);
  }
  if (periods.empty()) periods.push_back(1);
  return periods;
}

}  // namespace

std::string AddressHistory::check(const Report& report, std::string_view iteration) {
  const std::size_t current = iterations_.size() - 1;
  const bool followed = report.iterations_followed > last_report_.iterations_followed;
  if (!followed || report.plan_starts != last_report_.plan_starts) {
    stable_from_ = current;
    // Plans of that name that are made from here on are not the one that is followed.
    periods_ = periods_of(report, iteration);
  }
  last_report_ = report;
  if (!followed) return {};
  std::erase_if(periods_, [&](std::size_t period) {
    return current >= stable_from_ + period && iterations_[current] != iterations_[current - period];
  });
  return periods_.empty() ? "a followed plan gives an operation other addresses than before" : std::string();
}

}  // namespace swapmm::test
