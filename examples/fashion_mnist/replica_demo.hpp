// SPDX-License-Identifier: Apache-2.0
#pragma once

// The demo with replicas: they train, then one device does the same, and the weights are compared bit for bit.

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iomanip>
#include <memory>
#include <ostream>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <swapmm/ir/liveness.hpp>
#include <swapmm/measure_shared_links.hpp>
#include <swapmm/replicas.hpp>
#include <swapmm/swapmm.hpp>

#include "fashion_mnist/arguments.hpp"
#include "fashion_mnist/replica_training.hpp"
#include "neural/devices.hpp"
#include "neural/fashion_mnist.hpp"
#include "neural/same_bits.hpp"

namespace fashion {

template <class Math>
class ReplicaDemo {
 public:
  /// `exchange`: null if there is one process. `say` gets what the demo tells; all outlive it.
  ReplicaDemo(std::vector<Math*> maths, neural::ReplicaDevices devices, const neural::FashionMnist& data,
              Arguments arguments, std::shared_ptr<swapmm::Exchange> exchange, std::ostream& say)
      : maths_(std::move(maths)),
        devices_(std::move(devices)),
        data_(data),
        arguments_(std::move(arguments)),
        exchange_(std::move(exchange)),
        say_(say) {
    if (arguments_.batch != 0) settings_.batch = arguments_.batch;
    settings_.pieces = maths_.size() * processes();
    if (settings_.batch < settings_.pieces * settings_.parts) {
      throw std::invalid_argument("a batch of " + std::to_string(settings_.batch) + " images is too small for " +
                                  std::to_string(settings_.pieces) + " replicas with " +
                                  std::to_string(settings_.parts) + " parts each");
    }
  }

  /// True if the weights of all replicas are those of one device.
  [[nodiscard]] bool run() {
    Curriculum curriculum(data_.train, settings_.batch, arguments_.epochs);
    const std::shared_ptr<swapmm::SharedLinks> links = shared_links();
    ReplicaTraining<Math> training(maths_, settings_, {first(), budgets(), links}, scheduler(), options(), curriculum);
    say_ << settings_.pieces << " replicas in " << processes() << " processes, " << settings_.batch / settings_.pieces
         << " images each; budget of each replica here:";
    for (const swapmm::Bytes budget : budgets_) say_ << ' ' << budget.value / 1'000'000 << " MB";
    say_ << std::endl;
    train(training, curriculum.steps());
    tell(training);
    return compare(training, curriculum);
  }

 private:
  static constexpr std::size_t progress_steps = 20;

  [[nodiscard]] std::size_t processes() const { return exchange_ ? exchange_->processes() : 1; }
  [[nodiscard]] std::size_t rank() const { return exchange_ ? exchange_->rank() : 0; }
  [[nodiscard]] std::size_t first() const { return rank() * maths_.size(); }

  [[nodiscard]] swapmm::SchedulerOptions scheduler() const {
    swapmm::SchedulerOptions options;
    if (!arguments_.planner.empty()) options.planner = arguments_.planner;
    return options;
  }
  [[nodiscard]] swapmm::ReplicaOptions options() const {
    swapmm::ReplicaOptions options;
    options.layers_per_chunk = arguments_.chunk;
    options.exchange = exchange_;
    return options;
  }

  [[nodiscard]] std::shared_ptr<swapmm::SharedLinks> shared_links() const {
    if (!arguments_.share_links) return nullptr;
    swapmm::LinkCapacities capacities{.both_ways = *arguments_.share_links};
    if (capacities.empty()) {
      std::vector<typename Math::Backend> devices;
      for (Math* const math : maths_) devices.push_back(math->backend());
      capacities = swapmm::measure_shared_links(std::span(devices), swapmm::Bytes{8U << 20U});
    }
    say_ << "bytes per second that the devices share: " << capacities.to_devices << " to them, "
         << capacities.from_devices << " from them, " << capacities.both_ways << " both ways (0: nothing)\n";
    return capacities.empty() ? nullptr : std::make_shared<swapmm::SharedLinks>(capacities);
  }

  // Of one device with all parts: more than any replica, or one device in turn, can ever have.
  [[nodiscard]] swapmm::Bytes no_limit() const {
    std::size_t numbers = 0;
    for (const Layer& layer : architecture(settings_)) {
      numbers += 2 * settings_.parts * layer.outputs() + (4 + 2 * settings_.pieces) * layer.weights();
    }
    return swapmm::Bytes{(numbers + settings_.batch * neural::Pictures::pixels) * sizeof(float) +
                         (std::uint64_t{64} << 20U)};
  }

  // A part of the peak is one of what a replica needs; a size is that of a device, which its replicas share.
  [[nodiscard]] std::vector<swapmm::Bytes> budgets() {
    budgets_.assign(maths_.size(), no_limit());
    if (!arguments_.budget) return budgets_;
    const Budget& wanted = *arguments_.budget;
    const double peak = wanted.fraction == 0 ? 0 : static_cast<double>(peak_of_a_replica().value);
    for (std::size_t i = 0; i < maths_.size(); ++i) {
      budgets_[i] = wanted.fraction == 0 ? swapmm::Bytes{wanted.bytes.value / devices_.sharing(i)}
                                         : swapmm::Bytes{static_cast<std::uint64_t>(peak * wanted.fraction)};
    }
    return budgets_;
  }

  // Live bytes of a step, from one that is thrown away.
  [[nodiscard]] swapmm::Bytes peak_of_a_replica() {
    Curriculum curriculum(data_.train, settings_.batch, 1);
    swapmm::ReplicaOptions whole = options();
    whole.layers_per_chunk = architecture(settings_).size();
    ReplicaTraining<Math> probe(maths_, settings_, {first(), budgets_}, {}, whole, curriculum);
    probe.run(3);
    const auto alignment = probe.manager(0).machine().alignment;
    return swapmm::analyze_liveness(probe.manager(0).scheduler().trace("train").value(), alignment).peak;
  }

  void train(ReplicaTraining<Math>& training, std::size_t steps) {
    while (training.step() < steps) {
      const auto time = training.run(std::min(progress_steps, steps - training.step()));
      say_ << "  iteration " << std::setw(4) << training.step() << " of " << steps << ", loss " << std::fixed
           << std::setprecision(3) << training.network(0).take_loss() << ", " << std::setprecision(0) << time.count()
           << " ms per iteration, " << training.replicas().layers_per_chunk() << " layers per chunk" << std::endl;
    }
  }

  void tell(ReplicaTraining<Math>& training) {
    if (const auto& search = training.replicas().search()) {
      say_ << "layers per chunk: " << training.replicas().layers_per_chunk()
           << (search->done() ? "; timed:" : ", and the search goes on; timed:");
      for (const auto& one : search->tries()) {
        const std::chrono::duration<double, std::milli> step = one.step;
        say_ << ' ' << one.layers << " (" << std::setprecision(1) << step.count() << " ms)";
      }
      say_ << '\n';
    }
    for (std::size_t i = 0; arguments_.share_links && i < training.size(); ++i) {
      const swapmm::Report report = training.manager(i).report();
      std::size_t devices = 1;
      for (const swapmm::PlanSummary& plan : report.plans) devices = std::max(devices, plan.devices);
      say_ << "replica " << first() + i << ": plans for " << devices << " devices, " << report.turns_taken
           << " copies waited for another device's\n";
    }
    say_ << "test accuracy " << std::setprecision(1) << 100 * accuracy(training.network(0), data_.test) << " %\n";
  }

  // Process 0 trains on one device, and has the weights of all others.
  [[nodiscard]] bool compare(ReplicaTraining<Math>& training, Curriculum& curriculum) {
    bool identical = true;
    const std::vector<float> own = training.network(0).weights();
    for (std::size_t i = 1; i < training.size(); ++i) {
      identical = identical && neural::same_bits(training.network(i).weights(), own);
    }
    if (rank() > 0) {
      exchange_->send(0, std::as_bytes(std::span(own)));
      return identical;
    }
    for (std::size_t process = 1; process < processes(); ++process) {
      std::vector<float> theirs(own.size());
      exchange_->receive(process, std::as_writable_bytes(std::span(theirs)));
      identical = identical && neural::same_bits(theirs, own);
    }
    say_ << "the replicas have " << (identical ? "identical" : "DIFFERENT") << " weights" << std::endl;
    OneDeviceTraining<Math> one(*maths_[0], settings_, no_limit(), curriculum);
    one.run(training.step());
    const bool as_one = neural::same_bits(own, one.network().weights());
    say_ << "and one device that adds up in the same order: " << (as_one ? "identical" : "DIFFERENT") << " after "
         << training.step() << " iterations" << std::endl;
    return identical && as_one;
  }

  std::vector<Math*> maths_;
  neural::ReplicaDevices devices_;
  const neural::FashionMnist& data_;
  Arguments arguments_;
  std::shared_ptr<swapmm::Exchange> exchange_;
  std::ostream& say_;
  Settings settings_;
  std::vector<swapmm::Bytes> budgets_;
};

}  // namespace fashion
