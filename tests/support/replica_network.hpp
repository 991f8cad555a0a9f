// SPDX-License-Identifier: Apache-2.0
#pragma once

// A network on the simulated device that several replicas learn: each by a manager of its own, or all on one manager,
// which sums on the device. Its numbers are such that another order of a sum gives other bits.

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <swapmm/backend/testing/simulated.hpp>
#include <swapmm/replicas.hpp>
#include <swapmm/swapmm.hpp>

namespace swapmm::test {

struct ReplicaLayer {
  std::size_t weights = 0;  ///< elements; 0: the layer has no gradient
  std::size_t bias = 0;     ///< elements; 0: it has no second gradient
  std::size_t width = 1;    ///< elements of its output
  std::chrono::nanoseconds forward{100};
  std::chrono::nanoseconds backward{200};
};

[[nodiscard]] inline bool same_bits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size_bytes()) == 0);
}

/// Different in each step and replica.
[[nodiscard]] inline std::vector<float> replica_input(std::size_t size, std::size_t step, std::size_t replica) {
  std::vector<float> values(size);
  auto seed = static_cast<std::uint32_t>(step * 977 + replica * 31 + 1);
  for (float& value : values) {
    seed = seed * 1664525U + 1013904223U;
    value = static_cast<float>(seed >> 8U) / 16777216.0F * 3 - 1.5F;
  }
  return values;
}

class ReplicaNetwork {
 public:
  using Device = simulated::Backend;
  using Manager = MemoryManager<Device>;
  using Floats = Tensor<float, Device>;
  /// Of one layer.
  using Gradients = std::vector<Floats>;

  ReplicaNetwork(Manager& manager, std::vector<ReplicaLayer> layers)
      : manager_(manager), layers_(std::move(layers)), input_(manager.tensor<float>({input_size}, "x")) {
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      for (const std::size_t size : sizes(i)) {
        weights_[i].push_back(manager.tensor<float>({size}, "w" + std::to_string(i)));
        weights_[i].back().upload(replica_input(size, 1000 + i, size));
      }
    }
  }

  void forward(std::size_t step, std::size_t replica) {
    input_.upload(replica_input(input_size, step, replica));
    outputs_.clear();
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      outputs_.push_back(manager_.tensor<float>({layers_[i].width}, "h" + std::to_string(i), transient));
      run("forward", layers_[i].forward, reads_of(i, i == 0 ? input_ : outputs_[i - 1]), outputs_[i],
          [](const Values& in, std::span<float> out) {
            for (std::size_t k = 0; k < out.size(); ++k) {
              out[k] = 0.5F * at(in[0], k);
              for (std::size_t w = 1; w < in.size(); ++w) out[k] += at(in[0], 3 * k + 1) * at(in[w], k) * 0.3F;
            }
          });
    }
  }

  /// From the last layer on. What comes back are the gradients of weights and bias.
  [[nodiscard]] Gradients backward(std::size_t layer) {
    const Floats& x = layer == 0 ? input_ : outputs_[layer - 1];
    const Floats& from = gradient_ ? *gradient_ : outputs_[layer];
    Gradients made;
    for (const std::size_t size : sizes(layer)) {
      made.push_back(manager_.tensor<float>({size}, "g" + std::to_string(layer), transient));
      run("gradient", layers_[layer].backward / 2, {&x, &from}, made.back(),
          [](const Values& in, std::span<float> out) {
            for (std::size_t k = 0; k < out.size(); ++k) out[k] = at(in[1], k) * at(in[0], 5 * k + 2) + at(in[0], k);
          });
    }
    Floats next = manager_.tensor<float>({x.size()}, "dx" + std::to_string(layer), transient);
    run("backward", layers_[layer].backward / 2, reads_of(layer, from), next,
        [](const Values& in, std::span<float> out) {
          for (std::size_t k = 0; k < out.size(); ++k) {
            out[k] = at(in[0], k) * 0.7F;
            for (std::size_t w = 1; w < in.size(); ++w) out[k] += at(in[w], 2 * k) * 0.1F;
          }
        });
    gradient_.reset();
    if (layer > 0) gradient_.emplace(std::move(next));  // nothing of an iteration is left after it
    outputs_.resize_down(layer);
    return made;
  }

  /// From sums that the host has.
  void learn(std::size_t layer, std::span<const std::span<const float>> sums) {
    for (std::size_t i = 0; i < sums.size(); ++i) {
      Floats sum = manager_.tensor<float>({sums[i].size()}, "s" + std::to_string(layer), transient);
      sum.upload(sums[i]);
      update(layer, i, sum);
    }
  }
  void learn(std::size_t layer, const Gradients& gradients) {
    for (std::size_t i = 0; i < gradients.size(); ++i) update(layer, i, gradients[i]);
  }
  /// On the device: to += more.
  void add(const Floats& to, const Floats& more) {
    manager_.run("add", updates(to), reads(more), [&](auto& op) {
      const auto sum = op[to];
      const auto part = op[more];
      op.queue().launch("add", std::chrono::nanoseconds{10},
                        {simulated::Touch::read(part), simulated::Touch::read(sum), simulated::Touch::write(sum)},
                        [sum, part] {
                          for (std::size_t k = 0; k < sum.size(); ++k) sum[k] += part[k];
                        });
    });
  }

  [[nodiscard]] std::vector<float> weights() const {
    std::vector<float> all;
    for (const auto& layer : weights_) {
      for (const Floats& tensor : layer) {
        const std::vector<float> values = tensor.download();
        all.insert(all.end(), values.begin(), values.end());
      }
    }
    return all;
  }
  [[nodiscard]] const std::vector<ReplicaLayer>& layers() const { return layers_; }
  [[nodiscard]] Manager& manager() { return manager_; }

 private:
  static constexpr std::size_t input_size = 24;

  using Values = std::vector<std::span<const float>>;

  // Tensors cannot be assigned to an index of a vector without a default.
  struct Outputs : std::vector<Floats> {
    void resize_down(std::size_t size) {
      while (this->size() > size) pop_back();
    }
  };

  [[nodiscard]] static float at(std::span<const float> values, std::size_t i) { return values[i % values.size()]; }

  [[nodiscard]] std::vector<std::size_t> sizes(std::size_t layer) const {
    std::vector<std::size_t> all;
    if (layers_[layer].weights > 0) all.push_back(layers_[layer].weights);
    if (layers_[layer].bias > 0) all.push_back(layers_[layer].bias);
    return all;
  }

  [[nodiscard]] std::vector<const Floats*> reads_of(std::size_t layer, const Floats& values) const {
    std::vector<const Floats*> all{&values};
    for (const Floats& weights : weights_[layer]) all.push_back(&weights);
    return all;
  }

  // One kernel that writes `to` from the others.
  template <class Kernel>
  void run(const char* name, std::chrono::nanoseconds time, const std::vector<const Floats*>& from, const Floats& to,
           Kernel kernel) {
    Bundle<Device> bundle;
    for (const Floats* tensor : from) bundle.reads(*tensor);
    bundle.writes(to);
    manager_.run(name, bundle, [&](auto& op) {
      std::vector<simulated::View<float>> views;
      std::vector<simulated::Touch> touches;
      for (const Floats* tensor : from) {
        views.push_back(op[*tensor]);
        touches.push_back(simulated::Touch::read(views.back()));
      }
      const auto out = op[to];
      touches.push_back(simulated::Touch::write(out));
      op.queue().launch(name, time, touches, [views, out, kernel] {
        Values in;
        for (const auto& view : views) in.emplace_back(view.data(), view.size());
        kernel(in, std::span(out.data(), out.size()));
      });
    });
  }

  void update(std::size_t layer, std::size_t which, const Floats& gradient) {
    const Floats& weights = weights_[layer][which];
    manager_.run("learn", updates(weights), reads(gradient), [&](auto& op) {
      const auto w = op[weights];
      const auto g = op[gradient];
      op.queue().launch("learn", std::chrono::nanoseconds{20},
                        {simulated::Touch::read(g), simulated::Touch::read(w), simulated::Touch::write(w)}, [w, g] {
                          for (std::size_t k = 0; k < w.size(); ++k) w[k] -= 0.01F * g[k];
                        });
    });
  }

  Manager& manager_;
  std::vector<ReplicaLayer> layers_;
  std::array<std::vector<Floats>, 64> weights_;
  Floats input_;
  Outputs outputs_;
  std::optional<Floats> gradient_;
};

/// One step of all replicas on one device, which sums in the order of replicas.
inline void learn_on_one_device(ReplicaNetwork& network, std::size_t step, std::size_t replicas) {
  const auto iteration = network.manager().iteration("train");
  const std::size_t layers = network.layers().size();
  std::vector<std::vector<ReplicaNetwork::Gradients>> gradients(replicas);
  for (std::size_t replica = 0; replica < replicas; ++replica) {
    network.forward(step, replica);
    for (std::size_t layer = layers; layer-- > 0;) gradients[replica].push_back(network.backward(layer));
  }
  for (std::size_t i = 0; i < layers; ++i) {
    for (std::size_t replica = 1; replica < replicas; ++replica) {
      for (std::size_t g = 0; g < gradients[0][i].size(); ++g)
        network.add(gradients[0][i][g], gradients[replica][i][g]);
    }
    network.learn(layers - 1 - i, gradients[0][i]);
  }
}

/// Replicas on devices of their own.
class SimulatedReplicas {
 public:
  using Device = simulated::Backend;

  struct Setting {
    std::size_t replicas = 2;  ///< in this process
    std::size_t first = 0;     ///< number of the first one among those of all processes
    Bytes budget{1U << 20U};   ///< of each device
    ReplicaOptions options{};  ///< `layers` is set here
    simulated::Options device{};
    SchedulerOptions scheduler{};
  };

  SimulatedReplicas(const std::vector<ReplicaLayer>& layers, Setting setting) : setting_(std::move(setting)) {
    std::vector<MemoryManager<Device>*> managers;
    for (std::size_t i = 0; i < setting_.replicas; ++i) {
      devices_.emplace_back(setting_.device);
      managers_.push_back(std::make_unique<MemoryManager<Device>>(
          devices_.back(), Options{.device_budget = setting_.budget}, Scheduler(setting_.scheduler)));
      networks_.push_back(std::make_unique<ReplicaNetwork>(*managers_.back(), layers));
      managers.push_back(managers_.back().get());
    }
    ReplicaOptions options = setting_.options;
    options.layers = layers.size();
    if (!options.clock) options.clock = [this] { return devices_[0].now(); };
    replicas_.emplace(managers, "train", std::move(options));
  }

  /// `before_update` is called with each summed layer before the replica learns it.
  template <class BeforeUpdate>
  void step(BeforeUpdate&& before_update) {
    std::vector<std::vector<ReplicaNetwork::Gradients>> gradients(networks_.size());
    replicas_->step(
        [&](std::size_t replica) {
          ReplicaNetwork& network = *networks_[replica];
          network.forward(step_, setting_.first + replica);
          for (std::size_t layer = network.layers().size(); layer-- > 0;) {
            gradients[replica].push_back(network.backward(layer));
            done(replica, gradients[replica].back());
          }
        },
        [&](const SummedLayer<float>& sum) {
          before_update(sum);
          ReplicaNetwork& network = *networks_[sum.replica];
          network.learn(network.layers().size() - 1 - sum.layer, sum.gradients);
          gradients[sum.replica][sum.layer].clear();
        });
    ++step_;
  }
  void step() {
    step([](const SummedLayer<float>&) {});
  }

  /// Tells the replicas that a layer with these gradients is done.
  void done(std::size_t replica, const ReplicaNetwork::Gradients& gradients) {
    std::vector<View<float, Device>> views;
    for (const auto& gradient : gradients) views.push_back(gradient.view());
    replicas_->layer_done(replica, std::span<const View<float, Device>>(views));
  }

  [[nodiscard]] std::vector<float> weights(std::size_t replica) const { return networks_[replica]->weights(); }
  [[nodiscard]] Device& device(std::size_t replica) { return devices_[replica]; }
  [[nodiscard]] MemoryManager<Device>& manager(std::size_t replica) { return *managers_[replica]; }
  [[nodiscard]] ReplicaNetwork& network(std::size_t replica) { return *networks_[replica]; }
  [[nodiscard]] Replicas<float, Device>& replicas() { return *replicas_; }
  [[nodiscard]] const Replicas<float, Device>& replicas() const { return *replicas_; }

 private:
  Setting setting_;
  std::vector<Device> devices_;
  std::vector<std::unique_ptr<MemoryManager<Device>>> managers_;
  std::vector<std::unique_ptr<ReplicaNetwork>> networks_;
  std::optional<Replicas<float, Device>> replicas_;
  std::size_t step_ = 0;
};

}  // namespace swapmm::test
