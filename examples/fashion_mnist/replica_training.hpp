// SPDX-License-Identifier: Apache-2.0
#pragma once

// Replicas of the network that learn parts of each batch, and one device that does the same.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include <swapmm/replicas.hpp>
#include <swapmm/swapmm.hpp>

#include "fashion_mnist/network.hpp"
#include "fashion_mnist/training.hpp"

namespace fashion {

/// Where replicas learn.
struct ReplicaPlaces {
  std::size_t first = 0;                                ///< number of the first one here, among those of all processes
  std::vector<swapmm::Bytes> budgets;                   ///< of each one here
  std::shared_ptr<swapmm::SharedLinks> shared_links{};  ///< that these have in common; null: they plan alone
};

/// The replicas of this process. Settings::pieces is the number of those of all processes.
template <class Math>
class ReplicaTraining {
 public:
  using Backend = typename Math::Backend;

  ReplicaTraining(const std::vector<Math*>& maths, const Settings& settings, ReplicaPlaces places,
                  const swapmm::SchedulerOptions& scheduler, swapmm::ReplicaOptions options, Curriculum& curriculum)
      : places_(std::move(places)), curriculum_(curriculum) {
    std::vector<swapmm::MemoryManager<Backend>*> managers;
    for (std::size_t i = 0; i < maths.size(); ++i) {
      managers.push_back(&managers_.emplace_back(maths[i]->backend(), options_of(i), swapmm::Scheduler(scheduler)));
      networks_.emplace_back(*maths[i], managers_.back(), settings);
    }
    options.layers = networks_.front().layers();
    replicas_.emplace(managers, "train", std::move(options));
  }

  /// The next `count` steps; the time is that of one.
  std::chrono::duration<double, std::milli> run(std::size_t count) {
    const auto begin = std::chrono::steady_clock::now();
    for (std::size_t i = 0; i < count; ++i) {
      if (interrupted()) throw Interrupted();
      const std::span<const float> images = curriculum_.gather(step_);
      train(images, curriculum_.labels(), curriculum_.rate(step_));
      ++step_;
    }
    for (auto& manager : managers_) manager.synchronize();
    return (std::chrono::steady_clock::now() - begin) / static_cast<double>(count);
  }

  /// One step with a whole batch, of which this process learns its parts.
  void train(std::span<const float> images, std::span<const std::uint8_t> labels, float rate) {
    const Settings& settings = networks_.front().settings();
    if (labels.size() != settings.batch) throw std::invalid_argument("train() takes a whole batch");
    const auto sizes = swapmm::piece_sizes(labels.size(), settings.pieces);
    replicas_->step(
        [&](std::size_t replica) {
          const std::size_t part = places_.first + replica;
          std::size_t first = 0;
          for (std::size_t i = 0; i < part; ++i) first += static_cast<std::size_t>(sizes[i]);
          const auto count = static_cast<std::size_t>(sizes[part]);
          constexpr std::size_t pixels = neural::Pictures::pixels;
          networks_[replica].train_part(
              images.subspan(first * pixels, count * pixels), labels.subspan(first, count),
              [&](const auto& weights, const auto& bias) { replicas_->layer_done(replica, weights, bias); });
        },
        [&](const swapmm::SummedLayer<float>& sum) {
          networks_[sum.replica].learn_sums(sum.layer, sum.gradients[0], sum.gradients[1], rate);
        });
  }

  [[nodiscard]] std::size_t step() const { return step_; }
  [[nodiscard]] std::size_t size() const { return networks_.size(); }
  [[nodiscard]] Network<Math>& network(std::size_t replica) { return networks_[replica]; }
  [[nodiscard]] swapmm::MemoryManager<Backend>& manager(std::size_t replica) { return managers_[replica]; }
  [[nodiscard]] const swapmm::Replicas<float, Backend>& replicas() const { return *replicas_; }

 private:
  [[nodiscard]] swapmm::Options options_of(std::size_t replica) const {
    swapmm::Options options;
    options.device_budget = places_.budgets[replica];
    options.shared_links = places_.shared_links;
    return options;
  }

  ReplicaPlaces places_;
  Curriculum& curriculum_;
  std::deque<swapmm::MemoryManager<Backend>> managers_;  // neither moves
  std::deque<Network<Math>> networks_;
  std::optional<swapmm::Replicas<float, Backend>> replicas_;
  std::size_t step_ = 0;
};

/// One device on which all replicas learn in turn, and their gradients are added up in the same order.
template <class Math>
class OneDeviceTraining {
 public:
  using Backend = typename Math::Backend;

  OneDeviceTraining(Math& math, const Settings& settings, swapmm::Bytes budget, Curriculum& curriculum)
      : manager_(math.backend(), {.device_budget = budget}),
        network_(math, manager_, settings),
        curriculum_(curriculum) {}

  void run(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      if (interrupted()) throw Interrupted();
      const std::span<const float> images = curriculum_.gather(step_);
      network_.train_in_turn(images, curriculum_.labels(), curriculum_.rate(step_));
      ++step_;
    }
    manager_.synchronize();
  }
  [[nodiscard]] Network<Math>& network() { return network_; }

 private:
  swapmm::MemoryManager<Backend> manager_;
  Network<Math> network_;
  Curriculum& curriculum_;
  std::size_t step_ = 0;
};

}  // namespace fashion
