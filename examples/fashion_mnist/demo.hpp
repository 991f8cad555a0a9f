// SPDX-License-Identifier: Apache-2.0
#pragma once

// The same training without a limit and within several budgets, on any backend that `Math` knows.

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iomanip>
#include <ostream>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <swapmm/swapmm.hpp>

#include "fashion_mnist/arguments.hpp"
#include "fashion_mnist/results.hpp"
#include "fashion_mnist/training.hpp"

namespace fashion {

template <class Math>
class Demo {
 public:
  using Backend = typename Math::Backend;

  /// `say` gets the progress.
  Demo(Math& math, const Backend& backend, const neural::FashionMnist& data, const Arguments& arguments,
       std::ostream& say)
      : math_(math), backend_(backend), data_(data), arguments_(arguments), say_(say) {
    if (arguments.batch != 0) settings_.batch = arguments.batch;
  }

  [[nodiscard]] DemoResult run() {
    Curriculum curriculum(data_.train, settings_.batch, arguments_.epochs);
    curriculum_ = &curriculum;
    result_.batch = settings_.batch;
    result_.steps = curriculum.steps();
    run_unlimited();
    if (arguments_.budget) {
      run_within(size_of(*arguments_.budget), "the given budget", true);
    } else {
      const MemoryAtPeak& memory = result_.memory;
      run_within(memory.total, "100 %", false);
      run_within(size_of({0.5, {}}), "50 %", false);
      run_within(size_of({0.25, {}}), "25 %", true);
      run_within(memory.largest_bundle, "the smallest", false);
    }
    return std::move(result_);
  }

 private:
  // Iterations after which all runs' weights are compared; few on demand, where an iteration may take long.
  static constexpr std::size_t first_steps = 3;  // observed, or otherwise not as all the others
  static constexpr std::size_t on_demand_steps = 7;
  static constexpr std::size_t some_steps = 25;
  static constexpr std::size_t chunk_steps = 20;  // of a training to the end: a line of progress each
  static constexpr std::size_t profile_steps = 3;

  [[nodiscard]] swapmm::Bytes size_of(const Budget& budget) const {
    if (budget.fraction == 0) return budget.bytes;
    return swapmm::Bytes{static_cast<std::uint64_t>(static_cast<double>(result_.memory.total.value) * budget.fraction)};
  }

  // More than an iteration can ever have at a time: each output, and its gradient.
  [[nodiscard]] swapmm::Bytes no_limit() const {
    std::size_t numbers = 0;
    for (const Layer& layer : architecture(settings_)) {
      numbers += 2 * settings_.parts * layer.outputs() + 4 * layer.weights();
    }
    return swapmm::Bytes{numbers * sizeof(float) + settings_.batch * neural::Pictures::pixels * sizeof(float) +
                         (std::uint64_t{64} << 20U)};
  }

  [[nodiscard]] swapmm::SchedulerOptions scheduler() const {
    swapmm::SchedulerOptions options;
    if (!arguments_.planner.empty()) options.planner = arguments_.planner;
    return options;
  }

  void run_unlimited() {
    say_ << "without a limit:\n";
    Training<Math> training(math_, backend_, settings_, no_limit(), scheduler(), *curriculum_);
    training.run(first_steps);
    const swapmm::Machine machine = training.manager().machine();
    result_.memory = memory_at_peak(*training.manager().scheduler().trace("train"), machine.alignment);
    std::vector<double> times;
    times.push_back(training.run(std::min(on_demand_steps, result_.steps) - training.step()).milliseconds);
    after_on_demand_steps_ = training.weights();
    const std::size_t some = std::min(some_steps, result_.steps);
    if (training.step() < some) times.push_back(training.run(some - training.step()).milliseconds);
    after_some_steps_ = training.weights();
    train_to_the_end(training, times);
    result_.profile = training.profile();
    result_.profile.title = "Fashion-MNIST without a limit";
    result_.unlimited_ms = median(times);
    result_.unlimited_stall_ms = milliseconds(swapmm::idle_time(result_.profile));
    after_all_steps_ = training.weights();
    result_.loss = last_loss_;
    result_.test_accuracy = training.accuracy(data_.test);
    const swapmm::Report report = training.manager().report();
    result_.device = report.device;
    result_.host_shares_memory = report.host_shares_memory;
  }

  void run_within(swapmm::Bytes budget, std::string name, bool to_the_end) {
    say_ << name << " (" << budget.value / 1'000'000 << " MB), on demand:\n";
    RunResult run;
    run.name = std::move(name);
    run.budget = budget;
    const bool same_on_demand = measure_on_demand(run);
    say_ << run.name << ", scheduled:\n";
    Training<Math> training(math_, backend_, settings_, budget, scheduler(), *curriculum_);
    training.run(std::min(first_steps, result_.steps));
    std::vector<double> times;
    const std::size_t end = to_the_end ? result_.steps : std::min(some_steps, result_.steps);
    StepCost cost = training.run((std::min(some_steps, result_.steps) - training.step()) / 2);
    times.push_back(cost.milliseconds);
    run.h2d = cost.h2d;
    run.d2h = cost.d2h;
    if (to_the_end) {
      train_to_the_end(training, times);
    } else {
      times.push_back(training.run(end - profile_steps - training.step()).milliseconds);
      last_loss_ = training.network().take_loss();
    }
    run.profile = training.profile();
    run.profile.title = "Fashion-MNIST in " + run.name + " of the memory";
    run.stall_ms = milliseconds(swapmm::idle_time(run.profile));
    run.scheduled_ms = median(times);
    run.loss = last_loss_;
    run.steps = training.step();
    const std::vector<float>& expected = to_the_end ? after_all_steps_ : after_some_steps_;
    run.weights_identical = same_on_demand && training.weights() == expected;
    const swapmm::Report report = training.manager().report();
    if (report.iterations_followed > 0) {
      const swapmm::Prediction& predicted = training.manager().scheduler().plan("train")->predicted;
      run.predicted_ms = milliseconds(predicted.iteration);
      run.lower_bound_ms = milliseconds(predicted.lower_bound);
    }
    run.notes = report.notes;
    if (to_the_end) run.accuracy = training.accuracy(data_.test);
    result_.runs.push_back(std::move(run));
  }

  // The first iterations have first touches in them: they are not counted. True if the weights are as without a limit.
  bool measure_on_demand(RunResult& run) {
    swapmm::SchedulerOptions never;
    never.observe = 0;
    Training<Math> training(math_, backend_, settings_, run.budget, never, *curriculum_);
    const std::size_t all = std::min(on_demand_steps, result_.steps);
    training.run(std::min(first_steps, all - 1));
    run.on_demand_ms = training.run(all - training.step()).milliseconds;
    return training.weights() == after_on_demand_steps_;
  }

  // All steps but those of the profile.
  void train_to_the_end(Training<Math>& training, std::vector<double>& times) {
    (void)training.network().take_loss();
    const std::size_t end = result_.steps - profile_steps;
    while (training.step() < end) {
      const StepCost cost = training.run(std::min(chunk_steps, end - training.step()));
      times.push_back(cost.milliseconds);
      last_loss_ = training.network().take_loss();
      say_ << "  iteration " << std::setw(4) << training.step() << " of " << result_.steps << ", loss " << std::fixed
           << std::setprecision(3) << last_loss_ << ", " << std::setprecision(0) << cost.milliseconds
           << " ms per iteration" << std::endl;
    }
  }

  static double median(std::vector<double> values) {
    std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
    return values[values.size() / 2];
  }
  static double milliseconds(std::chrono::nanoseconds time) { return static_cast<double>(time.count()) / 1e6; }

  Math& math_;
  const Backend& backend_;
  const neural::FashionMnist& data_;
  const Arguments& arguments_;
  std::ostream& say_;
  Settings settings_;
  Curriculum* curriculum_ = nullptr;
  DemoResult result_;
  std::vector<float> after_on_demand_steps_;  // weights without a limit
  std::vector<float> after_some_steps_;
  std::vector<float> after_all_steps_;
  float last_loss_ = 0;
};

}  // namespace fashion
