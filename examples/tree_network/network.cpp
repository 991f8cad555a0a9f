// SPDX-License-Identifier: Apache-2.0
#include "network.hpp"

#include <algorithm>
#include <utility>

namespace trees {
namespace {

using swapmm::reads;
using swapmm::updates;
using swapmm::writes;
using swapmm::simulated::Touch;

constexpr std::size_t smallest_bucket = 8;

/// How long a kernel takes on the simulated device.
std::chrono::nanoseconds time_of(std::size_t nodes) { return std::chrono::nanoseconds{1000 + 100 * nodes}; }

std::size_t capacity_for(std::size_t nodes) {
  std::size_t capacity = smallest_bucket;
  while (capacity < nodes) capacity *= 2;
  return capacity;
}

/// The nodes of the tree among those of its bucket.
template <class View>
Nodes first(const View& nodes, std::size_t count) {
  return Nodes(nodes.data(), count);
}

}  // namespace

Network::Network(Manager& manager, std::uint64_t seed)
    : manager_(manager),
      pooled_(manager.tensor<float>({width}, "pooled", swapmm::transient)),
      where_(manager.tensor<std::int32_t>({width}, "where", swapmm::transient)),
      by_pooled_(manager.tensor<float>({width}, "pooled.gradient", swapmm::transient)),
      error_(manager.tensor<float>({1}, "error", swapmm::transient)),
      totals_(manager.tensor<float>({2}, "totals")) {
  const std::vector<std::vector<float>> first = first_weights(seed);
  for (const ParameterShape& shape : parameter_shapes()) {
    Parameter parameter{manager.tensor<float>({shape.size()}, shape.name),
                        manager.tensor<float>({shape.size()}, shape.name + ".velocity"),
                        manager.tensor<float>({shape.size()}, shape.name + ".gradient", swapmm::transient)};
    parameter.weights.upload(first[parameters_.size()]);
    parameter.velocity.upload(std::vector<float>(shape.size(), 0.0F));
    parameters_.push_back(std::move(parameter));
  }
  totals_.upload(std::vector<float>(2, 0.0F));
}

void Network::train(const Tree& tree) {
  const std::size_t nodes = tree.nodes.size();
  Bucket& bucket = bucket_for(nodes);
  const auto iteration = manager_.iteration(bucket.name);
  std::vector<Node> padded = tree.nodes;
  padded.resize(bucket.capacity);
  bucket.nodes.upload(padded);
  run_forward(bucket, nodes);
  run_judge(tree.target);
  run_backward(bucket, nodes);
  run_learn();
}

std::vector<std::vector<float>> Network::weights() const {
  std::vector<std::vector<float>> all;
  for (const Parameter& parameter : parameters_) all.push_back(parameter.weights.download());
  return all;
}

Network::Bucket Network::make_bucket(std::size_t capacity) {
  const std::string name = "trees of up to " + std::to_string(capacity) + " nodes";
  const auto floats = [&](const std::string& what) {
    return manager_.tensor<float>({capacity * width}, what + " of " + std::to_string(capacity), swapmm::transient);
  };
  Bucket bucket{capacity,
                name,
                manager_.tensor<Node>({capacity}, "nodes of " + std::to_string(capacity), swapmm::transient),
                {},
                {floats("gradient 0"), floats("gradient 1")}};
  for (std::size_t i = 0; i <= convolutions; ++i) bucket.features.push_back(floats("features " + std::to_string(i)));
  return bucket;
}

Network::Bucket& Network::bucket_for(std::size_t nodes) {
  const std::size_t capacity = capacity_for(nodes);
  const auto known = std::ranges::find(buckets_, capacity, &Bucket::capacity);
  if (known != buckets_.end()) return *known;
  buckets_.push_back(make_bucket(capacity));
  return buckets_.back();
}

void Network::run_forward(const Bucket& bucket, std::size_t nodes) {
  const auto& table = parameters_.front().weights;
  manager_.run("embed", reads(bucket.nodes, table), writes(bucket.features[0]), [&](auto& op) {
    const auto of_tree = op[bucket.nodes];
    const auto symbols = op[table];
    const auto out = op[bucket.features[0]];
    op.queue().launch("embed", time_of(nodes), {Touch::read(of_tree), Touch::read(symbols), Touch::write(out)},
                      [=] { embed(first(of_tree, nodes), symbols, out); });
  });
  for (std::size_t i = 0; i < convolutions; ++i) {
    const auto& x = bucket.features[i];
    const auto& y = bucket.features[i + 1];
    const auto& weights = parameters_[i + 1].weights;
    manager_.run("convolve", reads(bucket.nodes, x, weights), writes(y), [&](auto& op) {
      const auto of_tree = op[bucket.nodes];
      const auto in = op[x];
      const auto by = op[weights];
      const auto out = op[y];
      op.queue().launch("convolve", time_of(nodes),
                        {Touch::read(of_tree), Touch::read(in), Touch::read(by), Touch::write(out)},
                        [=] { convolve(first(of_tree, nodes), in, by, out); });
    });
  }
  manager_.run("pool", reads(bucket.features.back()), writes(pooled_, where_), [&](auto& op) {
    const auto in = op[bucket.features.back()];
    const auto largest = op[pooled_];
    const auto where = op[where_];
    op.queue().launch("pool", time_of(nodes), {Touch::read(in), Touch::write(largest), Touch::write(where)},
                      [=] { pool(nodes, in, largest, where); });
  });
}

void Network::run_judge(float target) {
  const auto& weights = parameters_.back().weights;
  manager_.run("judge", reads(pooled_, weights), writes(error_), [&](auto& op) {
    const auto pooled = op[pooled_];
    const auto by = op[weights];
    const auto error = op[error_];
    op.queue().launch("judge", time_of(1), {Touch::read(pooled), Touch::read(by), Touch::write(error)},
                      [=] { judge(pooled, by, target, error); });
  });
  manager_.run("add up", reads(error_), updates(totals_), [&](auto& op) {
    const auto error = op[error_];
    const auto totals = op[totals_];
    op.queue().launch("add up", time_of(1), {Touch::read(error), Touch::read(totals), Touch::write(totals)},
                      [=] { add_up(error, totals); });
  });
}

void Network::run_backward(const Bucket& bucket, std::size_t nodes) {
  const Parameter& last = parameters_.back();
  manager_.run(
      "judge.backward", reads(pooled_, last.weights, error_), writes(by_pooled_, last.gradient), [&](auto& op) {
        const auto pooled = op[pooled_];
        const auto by = op[last.weights];
        const auto error = op[error_];
        const auto by_pooled = op[by_pooled_];
        const auto gradient = op[last.gradient];
        op.queue().launch(
            "judge.backward", time_of(1),
            {Touch::read(pooled), Touch::read(by), Touch::read(error), Touch::write(by_pooled), Touch::write(gradient)},
            [=] { judge_backward(pooled, by, error, by_pooled, gradient); });
      });
  const auto& by_last = bucket.by_features[convolutions % 2];
  manager_.run("pool.backward", reads(by_pooled_, where_), writes(by_last), [&](auto& op) {
    const auto by_pooled = op[by_pooled_];
    const auto where = op[where_];
    const auto out = op[by_last];
    op.queue().launch("pool.backward", time_of(nodes), {Touch::read(by_pooled), Touch::read(where), Touch::write(out)},
                      [=] { pool_backward(nodes, by_pooled, where, out); });
  });
  for (std::size_t i = convolutions; i-- > 0;) {
    const auto& x = bucket.features[i];
    const auto& y = bucket.features[i + 1];
    const auto& by_y = bucket.by_features[(i + 1) % 2];
    const auto& by_x = bucket.by_features[i % 2];
    const Parameter& parameter = parameters_[i + 1];
    manager_.run("convolve.weights", reads(bucket.nodes, x, y, by_y), writes(parameter.gradient), [&](auto& op) {
      const auto of_tree = op[bucket.nodes];
      const auto in = op[x];
      const auto out = op[y];
      const auto by_out = op[by_y];
      const auto gradient = op[parameter.gradient];
      op.queue().launch(
          "convolve.weights", time_of(nodes),
          {Touch::read(of_tree), Touch::read(in), Touch::read(out), Touch::read(by_out), Touch::write(gradient)},
          [=] { convolve_backward_weights(first(of_tree, nodes), in, out, by_out, gradient); });
    });
    manager_.run("convolve.x", reads(bucket.nodes, y, by_y, parameter.weights), writes(by_x), [&](auto& op) {
      const auto of_tree = op[bucket.nodes];
      const auto out = op[y];
      const auto by_out = op[by_y];
      const auto weights = op[parameter.weights];
      const auto by_in = op[by_x];
      op.queue().launch(
          "convolve.x", time_of(nodes),
          {Touch::read(of_tree), Touch::read(out), Touch::read(by_out), Touch::read(weights), Touch::write(by_in)},
          [=] { convolve_backward_x(first(of_tree, nodes), out, by_out, weights, by_in); });
    });
  }
  const auto& table = parameters_.front();
  manager_.run("embed.backward", reads(bucket.nodes, bucket.by_features[0]), writes(table.gradient), [&](auto& op) {
    const auto of_tree = op[bucket.nodes];
    const auto by_out = op[bucket.by_features[0]];
    const auto gradient = op[table.gradient];
    op.queue().launch("embed.backward", time_of(nodes),
                      {Touch::read(of_tree), Touch::read(by_out), Touch::write(gradient)},
                      [=] { embed_backward(first(of_tree, nodes), by_out, gradient); });
  });
}

void Network::run_learn() {
  for (const Parameter& parameter : parameters_) {
    manager_.run("learn", reads(parameter.gradient), updates(parameter.velocity, parameter.weights), [&](auto& op) {
      const auto gradient = op[parameter.gradient];
      const auto velocity = op[parameter.velocity];
      const auto weights = op[parameter.weights];
      op.queue().launch("learn", time_of(rows),
                        {Touch::read(gradient), Touch::read(velocity), Touch::write(velocity), Touch::read(weights),
                         Touch::write(weights)},
                        [=] { learn(gradient, velocity, weights); });
    });
  }
}

std::uint64_t largest_bundle(std::size_t nodes) {
  const std::uint64_t capacity = capacity_for(nodes);
  return capacity * (sizeof(Node) + 3 * width * sizeof(float)) + rows * width * sizeof(float);
}

}  // namespace trees
