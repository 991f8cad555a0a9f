// SPDX-License-Identifier: Apache-2.0
#include <swapmm/answers/simulation.hpp>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <utility>

#include <swapmm/answers/disturbances.hpp>
#include <swapmm/plan/step_times.hpp>

namespace swapmm::answers {
namespace {

json::object to_json(const Simulation& simulation) {
  json::object answer;
  answer["iteration_ns"] = simulation.iteration.count();
  answer["compute_ns"] = simulation.compute.count();
  answer["h2d_bytes"] = simulation.h2d.value;
  answer["d2h_bytes"] = simulation.d2h.value;
  answer["peak_bytes"] = simulation.peak.value;
  return answer;
}

json::object to_json(const std::vector<Draw>& draws, const Summary& summary, const Disturbance& disturbance) {
  json::object answer;
  answer["noise"] = disturbance.noise;
  if (disturbance.slow_link) {
    answer["slow_link"] = json::object{{"speed", disturbance.slow_link->speed}, {"part", disturbance.slow_link->part}};
  }
  answer["seed"] = disturbance.seed;
  answer["mean_ns"] = summary.mean.count();
  answer["worst_ns"] = summary.worst.count();
  answer["mean_lost"] = json_number(summary.mean_lost);
  answer["worst_lost"] = json_number(summary.worst_lost);
  json::array list;
  for (const Draw& draw : draws) {
    list.push_back(json::object{{"iteration_ns", draw.iteration.count()}, {"compute_ns", draw.compute.count()}});
  }
  answer["draws"] = std::move(list);
  return answer;
}

}  // namespace

std::vector<Draw> disturbed(const Disturbance& disturbance, const Trace& trace, const Plan& plan,
                            const Simulation& calm, Watcher& watcher) {
  std::vector<Draw> draws;
  if (!(disturbance.noise > 0) && !disturbance.slow_link) return draws;
  std::mt19937_64 random(disturbance.seed);
  for (std::uint64_t i = 0; i < disturbance.draws; ++i) {
    watcher.begin("draw " + std::to_string(i + 1) + " of " + std::to_string(disturbance.draws));
    StepTimes times = step_times(trace, plan);
    if (disturbance.noise > 0) add_noise(times, disturbance.noise, random);
    if (disturbance.slow_link) {
      slow_down(times, *disturbance.slow_link, static_cast<double>(i) / static_cast<double>(disturbance.draws), plan,
                calm);
    }
    const Simulation simulation = simulate(trace, plan, times);
    draws.push_back({simulation.iteration, simulation.compute});
  }
  return draws;
}

Summary summarize(const std::vector<Draw>& draws, const Simulation& calm) {
  Summary summary;
  const std::optional<double> of_ideal = fraction_of_ideal(calm.compute, calm.iteration);
  double sum = 0;
  for (const Draw& draw : draws) {
    sum += static_cast<double>(draw.iteration.count());
    summary.worst = std::max(summary.worst, draw.iteration);
    if (!of_ideal) continue;
    const double lost = *of_ideal - fraction_of_ideal(draw.compute, draw.iteration).value_or(0);
    summary.mean_lost = summary.mean_lost.value_or(0) + lost / static_cast<double>(draws.size());
    summary.worst_lost = std::max(summary.worst_lost.value_or(lost), lost);
  }
  summary.mean = nanoseconds{std::llround(sum / static_cast<double>(draws.size()))};
  return summary;
}

json::object simulation_as_json(const Trace& trace, const Plan& plan, const Simulation& calm,
                                const Disturbance& disturbance, const std::vector<Draw>& draws) {
  json::object answer = to_json(calm);
  answer["trace"] = json_name(trace.name);
  answer["planner"] = json_name(plan.planner);
  if (!draws.empty()) answer["disturbed"] = to_json(draws, summarize(draws, calm), disturbance);
  return answer;
}

}  // namespace swapmm::answers
