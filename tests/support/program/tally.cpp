// SPDX-License-Identifier: Apache-2.0
#include "support/program/tally.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <ostream>
#include <type_traits>

#include <swapmm/plan/planners.hpp>

namespace swapmm::test {

static_assert(std::is_trivially_copyable_v<ProgramTally> && sizeof(ProgramTally) % sizeof(std::uint64_t) == 0);

void ProgramTally::add(const TestProgram& program, const Scrutiny& scrutiny, const Verdict& verdict) {
  const RunResult& run = verdict.run;
  ++programs;
  with_plans += run.iterations_followed != 0 ? 1 : 0;
  that_drop += run.dropped != 0 ? 1 : 0;
  operations += run.operations;
  swaps += run.swaps;
  iterations_on_demand += run.iterations_on_demand;
  iterations_followed += run.iterations_followed;
  divergences += run.divergences;
  budget_changes += run.budget_changes;
  sampled_rounds += run.sampled_rounds;
  plans_remade += run.plans_remade;
  with_files += run.file_bytes != 0 ? 1 : 0;
  that_tell_files += run.tells_file ? 1 : 0;
  that_replay += run.replays ? 1 : 0;
  with_neighbours += run.neighbour_bytes != 0 ? 1 : 0;
  that_tell_neighbours += run.tells_neighbours ? 1 : 0;
  with_encodings += run.encoded_bytes != 0 ? 1 : 0;
  that_plan_encodings += run.plans_encodings ? 1 : 0;
  with_host_views += run.host_views != 0 ? 1 : 0;
  that_follow_beside_views += run.host_views != 0 && run.iterations_followed != 0 ? 1 : 0;
  view_faults += run.view_faults;
  view_bytes_in += run.view_bytes_in;
  view_bytes_out += run.view_bytes_out;
  outlived_looks += run.outlived_looks;
  with_company += program.beside.empty() ? 0 : 1;
  that_share_plans += run.joint_plans != 0 ? 1 : 0;
  turns_taken += run.turns_taken;
  turns_missed += run.turns_missed;
  refused += run.refused;
  outlived_refused += run.outlived_refused;
  too_large += run.too_large;
  too_large_inside += run.too_large_inside;
  too_large_followed += run.too_large_followed;
  too_large_in_flight += run.too_large_in_flight;
  repeated += scrutiny.again ? 1 : 0;
  without_plans += scrutiny.on_demand ? 1 : 0;
  plans_advised += verdict.plans_advised;
  plans_mutated += verdict.plans_mutated;
  mutated_refused += verdict.mutated_refused;
  iterations_changed += verdict.iterations_changed;
  ++orders[std::min<std::size_t>(static_cast<std::size_t>(program.device.order), orders.size() - 1)];
  for (const std::string& name : run.planners) {
    const auto known = swapmm::planners();
    const auto at = std::find_if(known.begin(), known.end(), [&](const NamedPlanner& p) { return p.name == name; });
    if (at != known.end()) ++planners[std::min<std::size_t>(static_cast<std::size_t>(at - known.begin()), 11)];
  }
}

void ProgramTally::add(const ProgramTally& other) {
  constexpr std::size_t count = sizeof(ProgramTally) / sizeof(std::uint64_t);
  std::array<std::uint64_t, count> sum{};
  std::array<std::uint64_t, count> more{};
  std::memcpy(sum.data(), this, sizeof(ProgramTally));
  std::memcpy(more.data(), &other, sizeof(ProgramTally));
  for (std::size_t i = 0; i < count; ++i) sum[i] += more[i];
  std::memcpy(this, sum.data(), sizeof(ProgramTally));
}

std::ostream& operator<<(std::ostream& out, const ProgramTally& tally) {
  out << tally.programs << " programs, " << tally.with_plans << " of them with plans: " << tally.operations
      << " operations, " << tally.swaps << " swaps\n"
      << "iterations: " << tally.iterations_on_demand << " on demand, " << tally.iterations_followed << " followed, "
      << tally.divergences << " divergences; " << tally.sampled_rounds << " rounds sampled, " << tally.plans_remade
      << " plans made anew\nplans in the end, by planner:";
  const auto known = planners();
  for (std::size_t i = 0; i < known.size(); ++i) {
    out << (i == 0 ? " " : ", ") << known[i].name << " " << tally.planners[i];
  }
  out << "\nplans loaded from text: " << tally.plans_advised << " as they were saved, " << tally.plans_mutated
      << " changed (" << tally.mutated_refused << " refused at once; with the others " << tally.iterations_changed
      << " iterations followed)\norders of steps:";
  for (std::size_t i = 0; i < tally.orders.size(); ++i) {
    out << (i == 0 ? " " : ", ") << to_string(static_cast<simulated::Order>(i)) << " " << tally.orders[i];
  }
  return out << "\n"
             << tally.repeated << " programs run twice, " << tally.without_plans << " without plans too; "
             << tally.budget_changes << " budget changes; " << tally.with_files << " with values in a file, "
             << tally.that_tell_files << " of them with a plan that tells which; " << tally.with_neighbours
             << " with values on a neighbour, " << tally.that_tell_neighbours << " of them with such a plan; "
             << tally.that_replay << " with plans that run operations again; " << tally.with_encodings
             << " with encoded values, " << tally.that_plan_encodings << " of them with such a plan\n"
             << tally.with_host_views << " with host views, " << tally.that_follow_beside_views
             << " of them with plans: " << tally.view_faults << " faults, " << tally.view_bytes_in
             << " bytes from views to tensors, " << tally.view_bytes_out << " back, " << tally.outlived_looks
             << " accesses through views that outlived their tensor\n"
             << tally.with_company << " on several devices, " << tally.that_share_plans
             << " of them with joint plans: " << tally.turns_taken << " copies waited for one of another device, "
             << tally.turns_missed << " could not\n"
             << tally.refused << " calls refused as they must be; " << tally.outlived_refused
             << " of them uses of views that outlived their tensor, " << tally.too_large
             << " operations that can never fit, before anything was queued or waited for: " << tally.too_large_inside
             << " in iterations, " << tally.too_large_followed << " of those in followed ones, "
             << tally.too_large_in_flight << " with other work under way\n";
}

}  // namespace swapmm::test
