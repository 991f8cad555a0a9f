// SPDX-License-Identifier: Apache-2.0
#include "devices.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <deque>
#include <iostream>
#include <memory>
#include <vector>

#include "fashion_mnist/replica_training.hpp"
#include "neural/devices.hpp"
#include "neural/fashion_mnist.hpp"

bool fashion::interrupted() { return false; }

namespace bench {
namespace {

constexpr swapmm::Bytes no_limit{std::uint64_t{2} << 30U};
constexpr std::size_t first_steps = 6;  // observed ones, and the first by the plan
constexpr std::size_t steps = 3;
constexpr std::size_t rounds = 25;

/// The same work without sums: each replica learns from its own gradients.
template <class Math>
class Apart {
 public:
  Apart(const std::vector<Math*>& maths, fashion::Settings settings, fashion::Curriculum& curriculum)
      : curriculum_(curriculum), images_(settings.batch / maths.size()) {
    settings.batch = images_;
    settings.pieces = 1;
    for (Math* math : maths) {
      managers_.emplace_back(math->backend(), swapmm::Options{.device_budget = no_limit});
      networks_.emplace_back(*math, managers_.back(), settings);
    }
  }
  double run(std::size_t count) {
    const auto begin = std::chrono::steady_clock::now();
    for (std::size_t i = 0; i < count; ++i) {
      const std::span<const float> images = curriculum_.gather(step_);
      for (std::size_t replica = 0; replica < networks_.size(); ++replica) {
        constexpr std::size_t pixels = neural::Pictures::pixels;
        networks_[replica].train(images.subspan(replica * images_ * pixels, images_ * pixels),
                                 curriculum_.labels().subspan(replica * images_, images_), curriculum_.rate(step_));
      }
      ++step_;
    }
    for (auto& manager : managers_) manager.synchronize();
    const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - begin;
    return time.count() / static_cast<double>(count);
  }

 private:
  fashion::Curriculum& curriculum_;
  std::size_t images_;
  std::deque<swapmm::MemoryManager<typename Math::Backend>> managers_;
  std::deque<fashion::Network<Math>> networks_;
  std::size_t step_ = 0;
};

/// The lower quartile (1), the median (2) or the upper quartile (3).
double quantile(std::vector<double> values, std::size_t quarters) {
  std::sort(values.begin(), values.end());
  return values[(values.size() - 1) * quarters / 4];
}

template <class Math>
void compare(const std::vector<Math*>& maths, std::size_t batch) {
  const neural::FashionMnist data = neural::read_fashion_mnist();
  fashion::Settings settings;
  settings.batch = batch;
  settings.pieces = maths.size();
  fashion::Curriculum curriculum(data.train, batch, 8);
  const std::size_t layers = fashion::architecture(settings).size();

  Apart<Math> apart(maths, settings, curriculum);
  (void)apart.run(first_steps);
  std::deque<fashion::ReplicaTraining<Math>> trainings;
  for (std::size_t size = 1; size <= layers; ++size) {
    fashion::ReplicaPlaces places{0, std::vector<swapmm::Bytes>(maths.size(), no_limit)};
    swapmm::ReplicaOptions options;
    options.layers_per_chunk = size;
    trainings.emplace_back(maths, settings, places, swapmm::SchedulerOptions{}, options, curriculum);
    (void)trainings.back().run(first_steps);
  }
  // In turns, so that what else the machine does is the same for all; each compared with the run without sums of its
  // round.
  std::vector<double> alone;
  std::vector<std::vector<double>> times(layers);
  std::vector<std::vector<double>> exposed(layers);
  for (std::size_t round = 0; round < rounds; ++round) {
    alone.push_back(apart.run(steps));
    for (std::size_t i = 0; i < layers; ++i) {
      times[i].push_back(trainings[i].run(steps).count());
      exposed[i].push_back(times[i].back() - alone.back());
    }
  }
  std::printf(
      "\nFashion-MNIST, %zu replicas, batch %zu; without sums %.1f ms per step (medians of %zu rounds of %zu "
      "steps)\n\n",
      maths.size(), batch, quantile(alone, 2), rounds, steps);
  std::printf("| layers per chunk | ms per step | exposed ms | half of the rounds lie between |\n|---|---|---|---|\n");
  for (std::size_t i = 0; i < layers; ++i) {
    std::printf("| %zu%s | %.1f | %.1f | %.1f and %.1f |\n", i + 1, i + 1 == layers ? " (at the end)" : "",
                quantile(times[i], 2), quantile(exposed[i], 2), quantile(exposed[i], 1), quantile(exposed[i], 3));
  }
}

}  // namespace

int on_real_devices(std::size_t batch) {
  return neural::on_devices({}, 0, 2, std::cout, [&](const auto& maths, const neural::ReplicaDevices&) {
    compare(maths, batch);
    return 0;
  });
}

}  // namespace bench
