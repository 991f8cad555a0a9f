// SPDX-License-Identifier: Apache-2.0
#pragma once

// Training runs of the network, each with a manager of its own, that all do the same steps.

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <swapmm/split.hpp>
#include <swapmm/swapmm.hpp>

#include "fashion_mnist/network.hpp"
#include "neural/fashion_mnist.hpp"
#include "neural/random.hpp"

namespace fashion {

/// Asked between two steps; where it is true, the run ends with Interrupted.
[[nodiscard]] bool interrupted();
struct Interrupted : std::runtime_error {
  Interrupted() : std::runtime_error("interrupted") {}
};

/// The steps of a training: which images when, and how fast it learns. The same for every run.
class Curriculum {
 public:
  Curriculum(const neural::Pictures& pictures, std::size_t batch, std::size_t epochs)
      : pictures_(&pictures), batch_(batch), per_epoch_(pictures.size() / batch), steps_(per_epoch_ * epochs) {
    if (steps_ == 0) throw std::invalid_argument("a batch has more images than there are");
  }

  [[nodiscard]] std::size_t steps() const { return steps_; }
  [[nodiscard]] float rate(std::size_t step) const { return neural::rate(step, steps_, peak_rate); }
  /// The batch of that step; valid until the next call.
  [[nodiscard]] std::span<const float> gather(std::size_t step) {
    const std::size_t epoch = step / per_epoch_;
    if (order_.empty() || epoch != epoch_)
      order_ = neural::shuffled(pictures_->size(), static_cast<std::uint32_t>(epoch));
    epoch_ = epoch;
    pictures_->gather(std::span(order_).subspan(step % per_epoch_ * batch_, batch_), images_, labels_);
    return images_;
  }
  [[nodiscard]] std::span<const std::uint8_t> labels() const { return labels_; }

 private:
  static constexpr float peak_rate = 0.05F;

  const neural::Pictures* pictures_;
  std::size_t batch_;
  std::size_t per_epoch_;
  std::size_t steps_;
  std::size_t epoch_ = 0;
  std::vector<std::uint32_t> order_;
  std::vector<float> images_;
  std::vector<std::uint8_t> labels_;
};

/// Bytes and time of some steps, per step.
struct StepCost {
  double milliseconds = 0;
  swapmm::Bytes h2d;
  swapmm::Bytes d2h;
};

/// The part of the pictures whose label the network says.
template <class Math>
[[nodiscard]] double accuracy(Network<Math>& network, const neural::Pictures& pictures) {
  std::size_t right = 0;
  const std::size_t batch = network.settings().evaluated();
  for (std::size_t first = 0; first < pictures.size(); first += batch) {
    if (interrupted()) throw Interrupted();
    const std::size_t count = std::min(batch, pictures.size() - first);
    constexpr std::size_t pixels = neural::Pictures::pixels;
    right += network.count_right(std::span(pictures.images).subspan(first * pixels, count * pixels),
                                 std::span(pictures.labels).subspan(first, count));
  }
  return static_cast<double>(right) / static_cast<double>(pictures.size());
}

/// A network under way. With `split`, in pieces of the batch.
template <class Math>
class Training {
 public:
  using Backend = typename Math::Backend;

  Training(Math& math, const Backend& backend, const Settings& settings, const swapmm::Options& memory,
           swapmm::SchedulerOptions scheduler, Curriculum& curriculum, std::optional<swapmm::SplitOptions> split = {})
      : manager_(backend, memory, swapmm::Scheduler(std::move(scheduler))),
        network_(math, manager_, settings),
        curriculum_(curriculum) {
    if (split) split_.emplace(manager_, "train", *std::move(split));
  }

  [[nodiscard]] std::size_t step() const { return step_; }
  [[nodiscard]] const swapmm::MemoryManager<Backend>& manager() const { return manager_; }
  [[nodiscard]] swapmm::MemoryManager<Backend>& manager() { return manager_; }
  [[nodiscard]] Network<Math>& network() { return network_; }
  [[nodiscard]] const std::optional<swapmm::Split<Backend>>& split() const { return split_; }
  [[nodiscard]] std::vector<float> weights() const { return network_.weights(); }

  /// The next `count` steps, together: the device need not wait between them. What they cost is counted to the end.
  StepCost run(std::size_t count) {
    if (count == 0) return {};
    const swapmm::Report before = manager_.report();
    const auto start = std::chrono::steady_clock::now();
    for (std::size_t i = 0; i < count; ++i) {
      if (interrupted()) throw Interrupted();
      const std::span<const float> images = curriculum_.gather(step_);
      if (split_) {
        network_.train(*split_, images, curriculum_.labels(), curriculum_.rate(step_));
      } else {
        network_.train(images, curriculum_.labels(), curriculum_.rate(step_));
      }
      ++step_;
    }
    manager_.synchronize();
    const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - start;
    const swapmm::Report after = manager_.report();
    return {time.count() / static_cast<double>(count), swapmm::Bytes{(after.h2d - before.h2d).value / count},
            swapmm::Bytes{(after.d2h - before.d2h).value / count}};
  }

  /// One iteration in the steady state, as the device sees it: the second of the next three steps.
  [[nodiscard]] swapmm::Profile profile() {
    manager_.start_profile();
    run(3);
    return swapmm::one_iteration(manager_.stop_profile(), 1);
  }

  /// See fashion::accuracy().
  [[nodiscard]] double accuracy(const neural::Pictures& pictures) { return fashion::accuracy(network_, pictures); }

 private:
  swapmm::MemoryManager<Backend> manager_;
  Network<Math> network_;
  std::optional<swapmm::Split<Backend>> split_;
  Curriculum& curriculum_;
  std::size_t step_ = 0;
};

}  // namespace fashion
