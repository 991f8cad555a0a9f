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
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <swapmm/swapmm.hpp>

#include "fashion_mnist/arguments.hpp"
#include "fashion_mnist/results.hpp"
#include "fashion_mnist/training.hpp"
#include "neural/same_bits.hpp"

namespace fashion {

template <class Math>
class Demo {
 public:
  using Backend = typename Math::Backend;

  /// `say` gets the progress; it, `math` and `data` outlive the demo.
  Demo(Math& math, Backend backend, const neural::FashionMnist& data, Arguments arguments, std::ostream& say)
      : math_(math), backend_(std::move(backend)), data_(data), arguments_(std::move(arguments)), say_(say) {
    if (arguments_.batch != 0) settings_.batch = arguments_.batch;
  }

  [[nodiscard]] DemoResult run() {
    Curriculum curriculum(data_.train, settings_.batch, arguments_.epochs);
    curriculum_ = &curriculum;
    result_.batch = settings_.batch;
    result_.steps = curriculum.steps();
    if (result_.steps < some_steps + profile_steps) {
      throw std::invalid_argument("a training has " + std::to_string(result_.steps) +
                                  " iterations, and the demo needs " + std::to_string(some_steps + profile_steps) +
                                  ": take a smaller batch or more epochs");
    }
    if (arguments_.pieces) divide_batch();
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
  // All runs are timed over the same iterations, in pieces: not the first ones, which are observed, find memory
  // untouched and see the plan begin.
  static constexpr std::size_t first_steps = 5;
  static constexpr std::size_t piece_steps = 6;
  static constexpr std::size_t pieces = 3;
  static constexpr std::size_t profile_steps = 3;
  static constexpr std::size_t some_steps = first_steps + pieces * piece_steps + profile_steps;
  // On demand an iteration may take long.
  static constexpr std::size_t first_on_demand_steps = 3;
  static constexpr std::size_t on_demand_piece_steps = 2;
  static constexpr std::size_t on_demand_steps = first_on_demand_steps + pieces * on_demand_piece_steps + profile_steps;
  static constexpr std::size_t probe_steps = 3;      // two are observed, the third one knows them
  static constexpr std::size_t progress_steps = 20;  // of a training to the end: a line of progress each
  static_assert(first_steps <= on_demand_steps && on_demand_steps < some_steps);

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

  // Without a limit nothing moves, and nothing is encoded.
  [[nodiscard]] swapmm::Options memory_of(swapmm::Bytes budget) const {
    swapmm::Options options{.device_budget = budget};
    if (arguments_.codec && budget != no_limit()) {
      const Budget& codec = *arguments_.codec;
      const double part = codec.fraction * static_cast<double>(budget.value);
      options.codec_staging = codec.fraction == 0 ? codec.bytes : swapmm::Bytes{static_cast<std::uint64_t>(part)};
    }
    return options;
  }

  // A training in the pieces that were chosen, if the batch is divided. `again`: operations may run again.
  [[nodiscard]] Training<Math> training(swapmm::Bytes budget, swapmm::SchedulerOptions scheduler, bool again = false) {
    std::optional<swapmm::SplitOptions> split;
    if (arguments_.pieces) split = {.batch = settings_.batch, .pieces = settings_.pieces};
    Settings settings = settings_;
    settings.replayable = again;
    return Training<Math>(math_, backend_, settings, memory_of(budget), std::move(scheduler), *curriculum_,
                          std::move(split));
  }

  // With links that are as fast as the user says.
  [[nodiscard]] swapmm::Machine planned_for(swapmm::Machine machine) const {
    if (arguments_.link != 0) machine.h2d.bytes_per_second = machine.d2h.bytes_per_second = arguments_.link;
    return machine;
  }
  [[nodiscard]] swapmm::SchedulerOptions scheduler_within() const {
    swapmm::SchedulerOptions options = scheduler();
    if (arguments_.link != 0) options.machine = planned_for(machine_);
    return options;
  }

  // Learns the step from pieces of two sizes, and takes the number of pieces that is given, or the one that is
  // predicted to be fastest within the budget. What this trains is thrown away.
  void divide_batch() {
    say_ << "pieces of two sizes, to learn the step from" << std::endl;
    settings_.pieces = std::min<std::size_t>(16, settings_.batch);  // how many do not matter yet
    const swapmm::SplitOptions once{.batch = settings_.batch, .planner = "belady", .choice = {.most_tries = 1}};
    Training<Math> probe(math_, backend_, settings_, memory_of(no_limit()), scheduler(), *curriculum_, once);
    probe.run(probe_steps);
    const swapmm::SplitStep& step = probe.split()->observed().value();
    swapmm::Machine machine = planned_for(probe.manager().machine());
    const swapmm::Trace whole = swapmm::written_out(step, swapmm::piece_sizes(settings_.batch, 1)).value();
    result_.memory = memory_at_peak(whole, machine.alignment);
    machine.device_budget = size_of(*arguments_.budget);
    const swapmm::SchedulerOptions options = scheduler();
    const auto plan = [&](const swapmm::Trace& trace, const swapmm::Machine& on) {
      return options.planner.plan(trace, on);
    };
    swapmm::SplitChoiceOptions which;
    if (*arguments_.pieces != swapmm::SplitOptions::choose) {
      which = {.most_tries = 1, .least_pieces = *arguments_.pieces, .most_pieces = *arguments_.pieces};
    }
    const swapmm::Result<swapmm::SplitChoice> choice =
        swapmm::choose_pieces(step, settings_.batch, machine, plan, which);
    if (!choice) throw std::runtime_error(choice.problem().message);
    settings_.pieces = choice->pieces;
    result_.pieces = choice->pieces;
    for (const swapmm::SplitTry& tried : choice->tries) {
      PiecesTried one{tried.pieces, {}};
      if (tried.predicted) one.predicted_ms = milliseconds(tried.predicted->iteration);
      result_.pieces_tried.push_back(one);
    }
    say_ << "the batch of " << settings_.batch << " in " << choice->pieces << " pieces" << std::endl;
  }

  // Minutes of training are no use where the budget cannot work.
  void check_budget() const {
    if (!arguments_.budget || arguments_.pieces) return;
    const swapmm::Bytes budget = size_of(*arguments_.budget);
    const MemoryAtPeak& memory = result_.memory;
    if (budget >= memory.largest_bundle) return;
    throw swapmm::BundleTooLarge(
        "operation \"" + memory.largest_bundle_operation + "\" needs " + std::to_string(memory.largest_bundle.value) +
            " bytes at once, the budget is " + std::to_string(budget.value),
        {.operation = memory.largest_bundle_operation},
        {.need = memory.largest_bundle, .budget = budget, .largest_allocation = budget, .scratch = {}});
  }

  void run_unlimited() {
    say_ << "without a limit:" << std::endl;
    Training<Math> training = this->training(no_limit(), scheduler());
    training.run(first_steps);
    machine_ = training.manager().machine();
    if (!arguments_.pieces) {
      result_.memory = memory_at_peak(*training.manager().scheduler().trace("train"), machine_.alignment);
    }
    check_budget();
    std::vector<double> times;
    times.push_back(training.run(on_demand_steps - training.step()).milliseconds);
    after_on_demand_steps_ = training.weights();
    while (training.step() < some_steps) {
      times.push_back(training.run(std::min(piece_steps, some_steps - training.step())).milliseconds);
    }
    after_some_steps_ = training.weights();
    result_.loss_of_some = training.network().take_loss();
    result_.loss = train_to_the_end(training, times);
    result_.profile = training.profile();
    result_.profile.title = "Fashion-MNIST without a limit";
    result_.unlimited_ms = median(times);
    result_.unlimited_stall_ms = milliseconds(swapmm::idle_time(result_.profile));
    after_all_steps_ = training.weights();
    result_.test_accuracy = training.accuracy(data_.test);
    const swapmm::Report report = training.manager().report();
    result_.device = report.device;
    result_.host_shares_memory = report.host_shares_memory;
  }

  void run_within(swapmm::Bytes budget, std::string name, bool to_the_end) {
    RunResult run;
    run.name = std::move(name);
    run.budget = budget;
    say_ << "budget " << run.name << " (" << budget.value / 1'000'000 << " MB), on demand" << std::endl;
    const bool same_on_demand = measure_on_demand(run);
    say_ << "budget " << run.name << ", by a plan:" << std::endl;
    Training<Math> training = this->training(budget, scheduler_within(), arguments_.recompute);
    training.run(first_steps);
    std::vector<double> times;
    swapmm::Bytes in;
    swapmm::Bytes out;
    for (std::size_t piece = 0; piece < pieces; ++piece) {
      const StepCost cost = training.run(piece_steps);
      times.push_back(cost.milliseconds);
      in += cost.h2d;
      out += cost.d2h;
    }
    run.h2d = swapmm::Bytes{in.value / pieces};
    run.d2h = swapmm::Bytes{out.value / pieces};
    if (to_the_end) {
      run.loss = train_to_the_end(training, times);
      run.profile = training.profile();
    } else {
      run.profile = training.profile();
      run.loss = training.network().take_loss();
    }
    run.profile.title = "Fashion-MNIST, budget: " + run.name;
    run.stall_ms = milliseconds(swapmm::idle_time(run.profile));
    run.scheduled_ms = median(times);
    run.steps = training.step();
    const std::vector<float>& expected = to_the_end ? after_all_steps_ : after_some_steps_;
    run.weights_identical = same_on_demand && neural::same_bits(training.weights(), expected);
    const swapmm::Report report = training.manager().report();
    run.notes = report.notes;
    if (report.iterations_followed > 0) {
      for (const swapmm::PlanSummary& plan : report.plans) {
        if (plan.iteration != "train") continue;
        const auto iterations = static_cast<double>(plan.iterations_per_cycle);
        run.predicted_ms = milliseconds(plan.predicted.iteration) / iterations;
        run.lower_bound_ms = milliseconds(plan.predicted.lower_bound) / iterations;
        if (plan.replays > 0) run.notes.push_back(note_on_replays(plan));
        break;  // the one followed last
      }
    }
    if (report.codec_staging.value != 0) {
      run.notes.push_back("values of " + std::to_string(report.encoded_out.value / 1'000'000) +
                          " MB were encoded on their way to the host, of " +
                          std::to_string(report.encoded_in.value / 1'000'000) + " MB decoded on their way back");
    }
    if (to_the_end) run.accuracy = training.accuracy(data_.test);
    result_.runs.push_back(std::move(run));
  }

  static std::string note_on_replays(const swapmm::PlanSummary& plan) {
    std::ostringstream note;
    note << "by the plan, " << plan.replays << " operations run again instead of copies, for " << std::fixed
         << std::setprecision(1) << milliseconds(plan.replay_time) << " ms";
    return note.str();
  }

  // True if the weights are as without a limit.
  bool measure_on_demand(RunResult& run) {
    swapmm::SchedulerOptions never;
    never.observe = 0;
    Training<Math> training = this->training(run.budget, never);
    training.run(first_on_demand_steps);
    std::vector<double> times;
    for (std::size_t piece = 0; piece < pieces; ++piece) {
      times.push_back(training.run(on_demand_piece_steps).milliseconds);
    }
    run.on_demand_ms = median(times);
    run.on_demand_profile = training.profile();
    run.on_demand_profile.title = "Fashion-MNIST, budget: " + run.name + ", on demand";
    run.on_demand_stall_ms = milliseconds(swapmm::idle_time(run.on_demand_profile));
    return neural::same_bits(training.weights(), after_on_demand_steps_);
  }

  // All steps but those of the profile. The loss of the last of them.
  float train_to_the_end(Training<Math>& training, std::vector<double>& times) {
    const std::size_t end = result_.steps - profile_steps;
    float loss = 0;
    (void)training.network().take_loss();
    while (training.step() < end) {
      const StepCost cost = training.run(std::min(progress_steps, end - training.step()));
      times.push_back(cost.milliseconds);
      loss = training.network().take_loss();
      say_ << "  iteration " << std::setw(4) << training.step() << " of " << result_.steps << ", loss " << std::fixed
           << std::setprecision(3) << loss << ", " << std::setprecision(0) << cost.milliseconds << " ms per iteration"
           << std::endl;
    }
    return loss;
  }

  static double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    const std::size_t half = values.size() / 2;
    return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
  }
  static double milliseconds(std::chrono::nanoseconds time) { return static_cast<double>(time.count()) / 1e6; }

  Math& math_;
  Backend backend_;
  const neural::FashionMnist& data_;
  Arguments arguments_;
  std::ostream& say_;
  Settings settings_;
  Curriculum* curriculum_ = nullptr;
  DemoResult result_;
  swapmm::Machine machine_;                   // without a limit
  std::vector<float> after_on_demand_steps_;  // weights without a limit
  std::vector<float> after_some_steps_;
  std::vector<float> after_all_steps_;
};

}  // namespace fashion
