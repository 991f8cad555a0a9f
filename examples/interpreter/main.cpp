// SPDX-License-Identifier: Apache-2.0
// A neural programmer-interpreter learns to add, digit by digit, on a device that has room for a part of its data. What
// it does next depends on the digits. All its weights and answers are compared, bit for bit, with those of the same
// networks in ordinary memory.
//
//   interpreter [--practice N] [--additions N] [--digits N] [--tests N] [--longer N] [--right PERCENT] [--budget BYTES]
//               [--observe N] [--seed N]
//
// --observe 0 makes no plans: for comparison. The exit code is 1 if anything differs, or if fewer than --right percent
// of the tests are right.
#include <algorithm>
#include <chrono>
#include <iostream>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "simulated_networks/options.hpp"
#include "student.hpp"

namespace {

using namespace interpreter;

struct Settings {
  std::uint64_t practice = 1000;  // steps of training of the primitive SUM; the others need fewer
  std::uint64_t additions = 400;  // that the interpreter learns from
  std::uint64_t digits = 3;       // of the longest of these
  std::uint64_t tests = 100;      // additions that it does by itself, for each of two groups of lengths
  std::uint64_t longer = 20;      // digits of the longest of these
  std::uint64_t right = 0;        // percent of the tests
  std::uint64_t budget = 0;       // bytes; 0: little more than the largest operation needs
  std::uint64_t observe = 2;      // SchedulerOptions::observe; 0: no plans
  std::uint64_t seed = 1;
};

/// Throws std::exception if the words make no sense.
Settings settings_of(const std::vector<std::string>& words) {
  Settings settings;
  networks::set_options(words, {{"--practice", &settings.practice},
                                {"--additions", &settings.additions},
                                {"--digits", &settings.digits},
                                {"--tests", &settings.tests},
                                {"--longer", &settings.longer},
                                {"--right", &settings.right},
                                {"--budget", &settings.budget},
                                {"--observe", &settings.observe},
                                {"--seed", &settings.seed}});
  if (settings.digits == 0 || settings.longer <= settings.digits) {
    throw std::invalid_argument("there must be a digit, and --longer must be more than --digits");
  }
  return settings;
}

/// The same student in both memories, which must stay the same.
class Class {
 public:
  Class(SwappedMemory& swapped, const Settings& settings)
      : settings_(settings),
        random_(settings.seed),
        swapped_(swapped, settings.seed),
        by_loops_(ordinary_, settings.seed) {}

  void practise(Program program, std::size_t steps) {
    auto& primitive = swapped_.primitive(program);
    auto& by_loops = by_loops_.primitive(program);
    const std::size_t cases = primitive.task().cases.size();
    for (std::size_t i = 0; i < steps; ++i) {
      std::vector<std::size_t> numbers(Primitive<SwappedMemory>::batch);
      for (std::size_t& number : numbers) number = networks::below(random_, cases);
      primitive.practise(numbers, rate_of(i, steps));
      by_loops.practise(numbers, rate_of(i, steps));
    }
    const std::size_t right = primitive.count_right();
    equal_ = by_loops.count_right() == right && equal_;
    iterations_ += steps + cases;
    std::cout << primitive.task().name << ": " << right << " of " << cases << " cases right\n";
  }

  void learn() {
    const std::uint64_t part = std::max<std::uint64_t>(1, settings_.additions / 5);
    std::vector<float> before(3, 0.0F);
    for (std::uint64_t i = 0; i < settings_.additions; ++i) {
      const Addition addition = random_addition(random_, 1 + networks::below(random_, settings_.digits));
      swapped_.learn(addition, rate_of(i, settings_.additions));
      by_loops_.learn(addition, rate_of(i, settings_.additions));
      if ((i + 1) % part != 0) continue;
      const std::vector<float> totals = swapped_.totals();
      const float choices = totals[1] - before[1];
      std::cout << "additions " << i + 1 << ": cross entropy of a choice " << (totals[0] - before[0]) / choices
                << ", right " << 100 * (totals[2] - before[2]) / choices << " %\n";
      before = totals;
    }
    iterations_ += settings_.additions;
  }

  /// Additions by the interpreter itself.
  void test(std::size_t fewest_digits, std::size_t most_digits) {
    std::uint64_t right = 0;
    std::size_t steps = 0;
    std::size_t deepest = 0;
    for (std::uint64_t i = 0; i < settings_.tests; ++i) {
      const std::size_t digits = fewest_digits + networks::below(random_, most_digits - fewest_digits + 1);
      const Addition addition = random_addition(random_, digits);
      const Answer answer = swapped_.add(addition);
      equal_ = by_loops_.add(addition) == answer && equal_;
      right += answer.is_right(addition) ? 1 : 0;
      steps = std::max(steps, answer.run.steps);
      deepest = std::max(deepest, answer.run.deepest);
    }
    enough_right_ = 100 * right >= settings_.right * settings_.tests && enough_right_;
    iterations_ += settings_.tests;
    std::cout << "by itself, " << fewest_digits << " to " << most_digits << " digits: " << right << " of "
              << settings_.tests << " sums right; at most " << steps << " steps, " << deepest << " open calls\n";
  }

  /// Whether weights, totals and answers are equal, bit for bit. Waits for the device.
  [[nodiscard]] bool is_equal() const {
    return equal_ && swapped_.weights() == by_loops_.weights() && swapped_.totals() == by_loops_.totals();
  }
  [[nodiscard]] bool has_enough_right() const { return enough_right_; }
  [[nodiscard]] std::uint64_t iterations() const { return iterations_; }

 private:
  const Settings& settings_;
  std::mt19937_64 random_;
  OrdinaryMemory ordinary_;
  Student<SwappedMemory> swapped_;
  Student<OrdinaryMemory> by_loops_;
  bool equal_ = true;
  bool enough_right_ = true;
  std::uint64_t iterations_ = 0;
};

/// Trains, tests and compares. Returns whether all is as it should be.
bool run(const Settings& settings) {
  const std::size_t least = Core<SwappedMemory>::largest_bundle();
  const swapmm::Bytes budget{settings.budget != 0 ? settings.budget : least + least / 8 + 4096};

  swapmm::simulated::Options of_device;
  of_device.device_bytes = budget;
  of_device.h2d.bytes_per_second = of_device.d2h.bytes_per_second = 12'000'000'000;
  SwappedMemory::Device device(of_device);
  swapmm::SchedulerOptions scheduling;
  scheduling.observe = settings.observe;
  SwappedMemory::Manager manager{device, {.device_budget = budget}, swapmm::Scheduler(scheduling)};
  SwappedMemory memory(manager);

  Class both(memory, settings);
  both.practise(Program::sum, settings.practice);
  both.practise(Program::increment, settings.practice / 4);
  both.practise(Program::move, settings.practice / 4);
  both.learn();
  both.test(1, settings.digits);
  both.test(settings.digits + 1, settings.longer);

  const bool equal = both.is_equal();
  const swapmm::Report report = manager.report();
  std::cout << "budget " << budget.value << " bytes, at most used " << report.device_peak.value << ", all tensors "
            << memory.bytes() << '\n'
            << "iterations by a plan: " << report.iterations_followed << " of " << both.iterations()
            << "; waits of the host: " << report.host_waits << '\n'
            << "operations " << report.operations << "; time of the device "
            << std::chrono::duration<double, std::milli>(device.now()).count() << " ms\n"
            << "bytes to the device " << report.h2d.value << ", to the host " << report.d2h.value << '\n'
            << "the weights and answers are " << (equal ? "" : "NOT ") << "those of the host's loops, bit for bit\n";
  return equal && both.has_enough_right() && report.device_peak <= budget;
}

}  // namespace

int main(int count, char** words) {
  return networks::exit_code("interpreter", count, words,
                             [](const std::vector<std::string>& options) { return run(settings_of(options)); });
}
