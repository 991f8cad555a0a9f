// SPDX-License-Identifier: Apache-2.0
// How long a step of examples/fashion_mnist takes within a budget over the number of pieces of its batch: as predicted
// from pieces of two sizes, and as measured.
#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <string>
#include <vector>

#include <swapmm/ir/liveness.hpp>
#include <swapmm/plan/split/split.hpp>

#include "fashion_mnist/training.hpp"
#include "neural/devices.hpp"
#include "neural/fashion_mnist.hpp"

bool fashion::interrupted() { return false; }

namespace bench {
namespace {

constexpr std::string_view usage =
    "swapmm_bench_split [BATCH [PERCENT]]: a batch (default 512) within a part of its peak of live bytes (default "
    "15)\n";

constexpr swapmm::Bytes no_limit{std::uint64_t{4} << 30U};

double milliseconds(std::chrono::nanoseconds time) { return static_cast<double>(time.count()) / 1e6; }

/// The shortest of three times of four steps, after those that are observed and those that begin the plan.
template <class Math>
double measured(Math& math, fashion::Settings settings, swapmm::Bytes budget, std::size_t pieces,
                fashion::Curriculum& curriculum) {
  settings.pieces = pieces;
  fashion::Training<Math> training(math, math.backend(), settings, {.device_budget = budget}, {}, curriculum,
                                   swapmm::SplitOptions{.batch = settings.batch, .pieces = pieces});
  training.run(6);
  double least = training.run(4).milliseconds;
  for (int i = 0; i < 2; ++i) least = std::min(least, training.run(4).milliseconds);
  return least;
}

template <class Math>
void compare(Math& math, std::size_t batch, std::uint64_t percent) {
  const neural::FashionMnist data = neural::read_fashion_mnist();
  fashion::Settings settings;
  settings.batch = batch;
  fashion::Curriculum curriculum(data.train, batch, 8);
  swapmm::SplitStep step;
  swapmm::Machine machine;
  {
    settings.pieces = 16;
    const swapmm::SplitOptions once{.batch = batch, .planner = "belady", .choice = {.most_tries = 1}};
    fashion::Training<Math> probe(math, math.backend(), settings, {.device_budget = no_limit}, {}, curriculum, once);
    probe.run(3);
    step = probe.split()->observed().value();
    machine = probe.manager().machine();
  }
  const swapmm::Trace whole = swapmm::written_out(step, swapmm::piece_sizes(batch, 1)).value();
  const swapmm::Liveness live = swapmm::analyze_liveness(whole, machine.alignment);
  machine.device_budget = swapmm::Bytes{live.peak.value * percent / 100};
  std::printf("batch %zu: peak %.1f MB, largest bundle %.1f MB; budget %.1f MB\n\n", batch,
              static_cast<double>(live.peak.value) / 1e6, static_cast<double>(live.largest_bundle.value) / 1e6,
              static_cast<double>(machine.device_budget.value) / 1e6);
  const swapmm::PlannerChoice planner = swapmm::SchedulerOptions().planner;
  const swapmm::Result<swapmm::SplitChoice> choice = swapmm::choose_pieces(
      step, batch, machine,
      [&](const swapmm::Trace& trace, const swapmm::Machine& on) { return planner.plan(trace, on); });
  if (!choice) throw std::runtime_error(choice.problem().message);
  std::printf("| pieces | largest | predicted ms | measured ms | measured / predicted |\n|---|---|---|---|---|\n");
  for (const swapmm::SplitTry& tried : choice->tries) {
    if (!tried.predicted) continue;
    const double predicted = milliseconds(tried.predicted->iteration);
    const double took = measured(math, settings, machine.device_budget, tried.pieces, curriculum);
    std::printf("| %zu%s | %zu | %.1f | %.1f | %.2f |\n", static_cast<std::size_t>(tried.pieces),
                tried.pieces == choice->pieces ? " (chosen)" : "", static_cast<std::size_t>(tried.largest), predicted,
                took, took / predicted);
  }
}

}  // namespace
}  // namespace bench

int main(int count, char** words) {
  try {
    const long batch = count > 1 ? std::atol(words[1]) : 512;
    const long percent = count > 2 ? std::atol(words[2]) : 15;
    if (count > 3 || batch < 16 || batch > 2048 || batch % 4 != 0 || percent < 1 || percent > 100) {
      std::cerr << bench::usage;
      return 2;
    }
    return neural::on_device({}, std::cout, [&](auto& math) {
      bench::compare(math, static_cast<std::size_t>(batch), static_cast<std::uint64_t>(percent));
      return 0;
    });
  } catch (const std::exception& error) {
    std::cerr << "swapmm_bench_split: " << error.what() << '\n';
    return 1;
  }
}
