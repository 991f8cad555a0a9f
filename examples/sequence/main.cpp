// SPDX-License-Identifier: Apache-2.0
// Trains a recurrent network with all memory that it wants, and again with a budget of a part of that: on demand, and
// by a plan. The weights must be equal bit for bit.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iomanip>
#include <iostream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <swapmm/ir/liveness.hpp>
#include <swapmm/swapmm.hpp>

#include "neural/arguments.hpp"
#include "neural/devices.hpp"
#include "neural/fashion_mnist.hpp"
#include "neural/random.hpp"
#include "neural/same_bits.hpp"
#include "sequence/recurrent.hpp"

namespace {

constexpr std::string_view usage =
    "sequence [--budget FRACTION|MIB] [--steps N] [--hidden N] [--batch N] [--device NAME]\n"
    "  --budget  on the device: up to 1 a part of the peak of live bytes, above that MiB; default 0.25\n"
    "  --steps   of training, 30 or more, default 60\n"
    "  --hidden  numbers that the LSTM remembers of each picture, default 128\n"
    "  --batch   pictures per step, default 256\n"
    "The environment variable SWAPMM_FASHION_MNIST names the folder with the pictures.\n";

// Steps at the beginning that are not timed, for kernels are compiled and the plan is made; and steps at the end, whose
// loss is shown.
constexpr std::size_t aside = 10;

// What all runs share.
template <class Math>
struct Task {
  const neural::FashionMnist& data;
  Math& math;
  sequence::Settings settings;
  std::size_t steps;
  std::vector<std::uint32_t> order;  // of the pictures
};

double mb(swapmm::Bytes bytes) { return static_cast<double>(bytes.value) / 1e6; }

// A network under way, with a manager of its own.
template <class Math>
class Training {
 public:
  using Manager = swapmm::MemoryManager<typename Math::Backend>;

  // `observe` 0: there is never a plan.
  Training(const Task<Math>& task, swapmm::Bytes budget, std::size_t observe)
      : task_(task),
        manager_(task.math.backend(), {.device_budget = budget}, swapmm::Scheduler({.observe = observe})),
        network_(task.math, manager_, task.settings) {}

  // Until so many steps are done, and the device has done them.
  void train(std::size_t steps) {
    const std::size_t batch = task_.settings.batch;
    const std::size_t batches = task_.data.train.size() / batch;
    for (; done_ < steps; ++done_) {
      task_.data.train.gather(std::span(task_.order).subspan(done_ % batches * batch, batch), images_, labels_);
      network_.train(images_, labels_, neural::rate(done_, task_.steps, peak_rate));
    }
    manager_.synchronize();
  }

  // The same, and begins a line of the table with what each step cost.
  void train_timed(std::size_t steps, std::string_view name) {
    const auto count = static_cast<double>(steps - done_);
    const swapmm::Report before = manager_.report();
    const auto start = std::chrono::steady_clock::now();
    train(steps);
    const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - start;
    const swapmm::Report after = manager_.report();
    std::cout << std::left << std::setw(12) << name << std::right << std::setw(13) << mb(after.device_peak)
              << std::setw(13) << time.count() / count << std::setw(9) << mb(after.h2d - before.h2d) / count
              << std::setw(9) << mb(after.d2h - before.d2h) / count << std::flush;
  }

  // The part of the test pictures that the network knows.
  [[nodiscard]] double accuracy() {
    const neural::Pictures& test = task_.data.test;
    constexpr std::size_t pixels = neural::Pictures::pixels;
    std::size_t right = 0;
    for (std::size_t first = 0; first < test.size(); first += task_.settings.batch) {
      const std::size_t count = std::min(task_.settings.batch, test.size() - first);
      right += network_.count_right(std::span(test.images).subspan(first * pixels, count * pixels),
                                    std::span(test.labels).subspan(first, count));
    }
    return static_cast<double>(right) / static_cast<double>(test.size());
  }

  [[nodiscard]] Manager& manager() { return manager_; }
  [[nodiscard]] sequence::Recurrent<Math>& network() { return network_; }

 private:
  static constexpr float peak_rate = 0.7F;

  const Task<Math>& task_;
  Manager manager_;
  sequence::Recurrent<Math> network_;
  std::size_t done_ = 0;
  std::vector<float> images_;
  std::vector<std::uint8_t> labels_;
};

// The weights after the first steps, and at the end.
struct Weights {
  std::vector<float> early;
  std::vector<float> last;
};

// All steps: a line of the table.
template <class Math>
Weights train_all(Training<Math>& training, std::size_t steps, std::string_view name) {
  Weights weights;
  training.train(aside);
  weights.early = training.network().weights();
  training.train_timed(steps - aside, name);
  (void)training.network().take_loss();  // of the steps so far
  training.train(steps);
  std::cout << std::setprecision(3) << std::setw(8) << training.network().take_loss() << std::setw(10)
            << training.accuracy() << std::setprecision(1) << "  " << std::flush;
  weights.last = training.network().weights();
  return weights;
}

// Ends a line of the table.
bool compare(const std::vector<float>& weights, const std::vector<float>& expected, const std::string& when = "") {
  const bool same = neural::same_bits(weights, expected);
  std::cout << (same ? "equal" : "DIFFERENT") << when << std::endl;
  return same;
}

// More than all tensors of an iteration and the work areas.
swapmm::Bytes enough_for_all(const sequence::Settings& settings) {
  const std::size_t per_step = settings.batch * settings.hidden * 6;
  const std::size_t weights = 4 * settings.hidden * (settings.hidden + sequence::filled_columns + 1);
  const std::size_t floats =
      2 * sequence::steps * (per_step + settings.batch * sequence::filled_columns) + 16 * weights;
  return swapmm::Bytes{floats * sizeof(float) + (std::size_t{16} << 20U)};
}

struct Wanted {
  sequence::Settings settings;
  std::size_t steps;
  double budget;  // up to 1 a part of the peak, above that MiB
};

template <class Math>
int run(Math& math, const Wanted& wanted) {
  const auto& [settings, steps, part] = wanted;
  const neural::FashionMnist data = neural::read_fashion_mnist();
  const Task<Math> task{data, math, settings, steps, neural::shuffled(data.train.size(), settings.seed)};

  std::cout << std::fixed << std::setprecision(1)
            << "            on device MB  ms per step    MB in   MB out    loss  accuracy  weights\n";
  Training<Math> unlimited(task, enough_for_all(settings), 2);
  const Weights expected = train_all(unlimited, steps, "unlimited");
  std::cout << '\n';

  const auto trace = unlimited.manager().scheduler().trace("train");
  const auto live = swapmm::analyze_liveness(trace.value(), unlimited.manager().machine().alignment);
  const double bytes = part <= 1 ? part * static_cast<double>(live.peak.value) : part * (1U << 20U);
  const swapmm::Bytes budget{static_cast<std::uint64_t>(bytes)};

  bool same = true;
  {
    Training<Math> on_demand(task, budget, 0);
    on_demand.train(aside / 3);
    on_demand.train_timed(aside, "on demand");
    std::cout << std::setw(8) << "-" << std::setw(10) << "-"
              << "  ";
    same = compare(on_demand.network().weights(), expected.early, " after " + std::to_string(aside) + " steps");
  }
  Training<Math> planned(task, budget, 2);
  same = compare(train_all(planned, steps, "by the plan").last, expected.last) && same;

  std::cout << "\nAn iteration has " << trace->operations.size() << " operations. At most " << mb(live.peak)
            << " MB are live at one time; the budget is " << mb(budget) << " MB, and the largest bundle takes "
            << mb(live.largest_bundle) << " MB.\n\n"
            << planned.manager().report();
  return same ? 0 : 1;
}

int start(const neural::Arguments& arguments) {
  Wanted wanted{};
  wanted.settings.batch = arguments.whole("--batch", wanted.settings.batch, 1, 10'000);
  wanted.settings.hidden = arguments.whole("--hidden", wanted.settings.hidden, 1, 10'000);
  wanted.steps = arguments.whole("--steps", 60, 3 * aside);
  wanted.budget = arguments.number("--budget", 0.25, 1'000'000);
  return neural::on_device(arguments.text("--device"), std::clog, [&](auto& math) { return run(math, wanted); });
}

}  // namespace

int main(int count, char** words) {
  const std::string all_usage = std::string(usage) + std::string(neural::device_usage);
  return neural::run_example(count, words, all_usage, {"--budget", "--steps", "--hidden", "--batch", "--device"},
                             start);
}
