// SPDX-License-Identifier: Apache-2.0
// Prints how far each planner is from the optimum on random tiny instances: of 1,000 (or as many as the argument says)
// the share of those at each ratio of planner / optimum. The optimum is that of tests/support/exact_search.hpp, in
// which bytes are free wherever they lie: a plan that packs may have to be slower. Takes a minute.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string_view>
#include <vector>

#include <swapmm/plan/planners.hpp>
#ifdef SWAPMM_BENCH_HAS_ILP
#include <swapmm/plan/ilp.hpp>
#endif

#include "support/exact_search.hpp"
#include "support/tiny_instance.hpp"

using namespace swapmm;

namespace {

constexpr std::array<double, 7> upper_ends{1.0, 1.02, 1.05, 1.1, 1.25, 1.5, 2.0};

struct Histogram {
  std::string_view name;
  std::array<int, upper_ends.size() + 1> counts{};
  double log_sum = 0;
  double worst = 1;

  void add(double ratio) {
    std::size_t box = 0;
    while (box < upper_ends.size() && ratio > upper_ends[box] + 1e-12) ++box;
    ++counts[box];
    log_sum += std::log(ratio);
    if (ratio > worst) worst = ratio;
  }
};

}  // namespace

int main(int argc, char** argv) {
  const int instances = argc > 1 ? std::atoi(argv[1]) : 1000;
  std::vector<NamedPlanner> known(planners().begin(), planners().end());
#ifdef SWAPMM_BENCH_HAS_ILP
  known.push_back(ilp_planner());
#endif
  std::mt19937_64 random(11);
  std::vector<Histogram> histograms;
  for (const NamedPlanner& planner : known) histograms.push_back({planner.name});
  int counted = 0;
  double bounds = 0;
  for (int i = 0; i < instances; ++i) {
    const test::TinyInstance tiny = test::random_tiny_instance(random);
    const auto exact = test::least_iteration(tiny.trace, tiny.machine, 300'000);
    if (!exact || exact->iteration.count() == 0) continue;
    const auto optimum = static_cast<double>(exact->iteration.count());
    double bound = 0;
    for (std::size_t p = 0; p < histograms.size(); ++p) {
      const Result<Plan> plan = known[p].make(tiny.trace, tiny.machine, {});
      if (!plan) continue;
      histograms[p].add(static_cast<double>(plan->predicted.iteration.count()) / optimum);
      bound = std::max(bound, static_cast<double>(plan->predicted.lower_bound.count()));
    }
    bounds += bound / optimum;
    ++counted;
  }
  std::printf("%d instances; the largest lower bound of any planner is %.3f of the optimum on average\n\n", counted,
              bounds / counted);
  std::printf("| planner | optimal |");
  for (std::size_t box = 1; box < upper_ends.size(); ++box) std::printf(" to %.2f |", upper_ends[box]);
  std::printf(" more | geometric mean | worst |\n|---|---|");
  for (std::size_t box = 1; box < upper_ends.size(); ++box) std::printf("---|");
  std::printf("---|---|---|\n");
  for (const Histogram& histogram : histograms) {
    std::printf("| %.*s |", static_cast<int>(histogram.name.size()), histogram.name.data());
    for (const int count : histogram.counts) std::printf(" %.1f %% |", 100.0 * count / counted);
    std::printf(" %.3f | %.2f |\n", std::exp(histogram.log_sum / counted), histogram.worst);
  }
  return 0;
}
