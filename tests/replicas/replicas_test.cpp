// SPDX-License-Identifier: Apache-2.0
// Replicas on simulated devices: with the bits of one device that sums in the same order, under tight budgets.
#include <swapmm/replicas.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <swapmm/replicas/thread_exchange.hpp>
#include <swapmm/swapmm.hpp>

#include "support/replica_network.hpp"
#include "support/steady_plans.hpp"

namespace swapmm::test::replicas_test {
using namespace swapmm::literals;
using Device = simulated::Backend;
using Setting = SimulatedReplicas::Setting;

constexpr std::size_t all_steps = 7;  // observed ones, and some by the plan

/// Different sizes; layers without weights, at the ends and within.
std::vector<ReplicaLayer> layers() {
  return {{.weights = 0, .width = 200}, {.weights = 300, .bias = 7, .width = 180}, {.weights = 1, .width = 90},
          {.weights = 0, .width = 130}, {.weights = 220, .bias = 3, .width = 60},  {.weights = 77, .width = 10}};
}

std::vector<float> expected(std::size_t replicas, std::size_t steps = all_steps) {
  MemoryManager<Device> manager(Device(), {.device_budget = 1_MiB});
  ReplicaNetwork network(manager, layers());
  for (std::size_t step = 0; step < steps; ++step) learn_on_one_device(network, step, replicas);
  return network.weights();
}

/// Little more than the largest operation needs: nearly everything is swapped.
constexpr Bytes tight{3072};

Setting setting(std::size_t replicas, Bytes budget, std::size_t layers_per_chunk) {
  Setting made;
  made.replicas = replicas;
  made.budget = budget;
  made.options.layers_per_chunk = layers_per_chunk;
  made.scheduler = steady({.planner = "belady"});  // quick
  return made;
}

std::string refusal(const std::function<void()>& call) {
  try {
    call();
  } catch (const UsageError& error) {
    return error.what();
  }
  return "accepted";
}

TEST_CASE(
    "2 to 4 replicas have the bits of one device that sums in the same order, in small and large chunks and budgets") {
  for (std::size_t count = 2; count <= 4; ++count) {
    const std::vector<float> wanted = expected(count);
    REQUIRE(!same_bits(wanted, expected(count - 1)));
    for (const Bytes budget : {tight, Bytes{1U << 20U}}) {
      for (const std::size_t size : {1U, 2U, 4U, 6U}) {
        SimulatedReplicas replicas(layers(), setting(count, budget, size));
        for (std::size_t step = 0; step < all_steps; ++step) replicas.step();
        for (std::size_t i = 0; i < count; ++i) {
          CHECK(same_bits(replicas.weights(i), wanted));
          const Report report = replicas.manager(i).report();
          CHECK(report.device_peak <= budget);
          CHECK(report.iterations_followed > 0);
          CHECK(report.divergences == 0);
          CHECK(report.notes.empty());  // the sums' downloads are no evidence of a program that branches
          if (budget == tight) CHECK(report.swap_outs > 10 * all_steps);
          CHECK(replicas.device(i).violation_count() == 0);
        }
      }
    }
  }
}

TEST_CASE("on devices that run their queues in any order the bits are the same") {
  const std::vector<float> wanted = expected(2);
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    Setting random = setting(2, tight, 1 + seed % 4);
    random.device.order = simulated::Order::uniform;
    random.device.seed = seed;
    random.device.pieces = 3;
    SimulatedReplicas replicas(layers(), random);
    for (std::size_t step = 0; step < all_steps; ++step) replicas.step();
    for (std::size_t i = 0; i < 2; ++i) {
      CHECK(same_bits(replicas.weights(i), wanted));
      CHECK(replicas.device(i).violation_count() == 0);
    }
  }
}

/// Each process is a thread, with replicas of its own. Returns what each threw.
std::vector<std::string> in_processes(const std::vector<std::size_t>& spread,
                                      const std::function<void(SimulatedReplicas&, std::size_t)>& work,
                                      std::size_t layers_per_chunk = 2) {
  std::vector<std::unique_ptr<Exchange>> exchanges = exchanges_between_threads(spread.size());
  std::vector<std::string> thrown(spread.size());
  std::vector<std::jthread> threads;
  for (std::size_t rank = 0, first = 0; rank < spread.size(); first += spread[rank++]) {
    threads.emplace_back([&, rank, first] {
      Setting own = setting(spread[rank], tight, layers_per_chunk);
      own.first = first;
      own.options.exchange = std::move(exchanges[rank]);
      own.options.chunk_size = {.settle = 1, .timed = 1, .patience = 1};
      try {
        SimulatedReplicas replicas(layers(), own);
        work(replicas, rank);
      } catch (const std::exception& error) {
        thrown[rank] = error.what();
      }
    });
  }
  threads.clear();
  return thrown;
}

TEST_CASE("replicas in several processes have the same bits, also while the chunk size is searched for") {
  const std::vector<float> wanted = expected(4);
  for (const std::vector<std::size_t>& spread : {std::vector<std::size_t>{1, 3}, {2, 2}, {1, 1, 1, 1}}) {
    for (const std::size_t size : {std::size_t{4}, ReplicaOptions::search}) {
      const auto thrown = in_processes(
          spread,
          [&](SimulatedReplicas& replicas, std::size_t rank) {
            for (std::size_t step = 0; step < all_steps; ++step) replicas.step();
            for (std::size_t i = 0; i < spread[rank]; ++i) {
              if (!same_bits(replicas.weights(i), wanted)) throw Error("other bits");
            }
          },
          size);
      for (const std::string& text : thrown) CHECK(text == "");
    }
  }
}

TEST_CASE("what a replica throws ends the step, the next one runs, and other processes learn of it") {
  SimulatedReplicas replicas(layers(), setting(2, tight, 2));
  replicas.step();
  for (const std::size_t failing : {std::size_t{0}, std::size_t{1}}) {
    CHECK_THROWS_WITH(replicas.step([&](const SummedLayer<float>& sum) {
      if (sum.replica == failing && sum.layer == 3) throw std::runtime_error("mine");
    }),
                      "mine");
  }
  CHECK_THROWS_WITH(replicas.replicas().step(
                        [](std::size_t replica) {
                          if (replica == 0) throw std::runtime_error("in the body");
                        },
                        [](const SummedLayer<float>&) {}),
                    "in the body");
  replicas.step();

  const auto thrown = in_processes({1, 1, 1}, [&](SimulatedReplicas& own, std::size_t rank) {
    for (std::size_t step = 0; step < 3; ++step) {
      own.step([&](const SummedLayer<float>&) {
        if (rank == 1 && step == 2) throw std::runtime_error("out of luck");
      });
    }
    own.step();
  });
  CHECK(thrown[0] == "replica process 1 failed: out of luck");
  CHECK(thrown[1] == "out of luck");
  CHECK(thrown[2] == "replica process 1 failed: out of luck");
}

TEST_CASE("a process that runs fewer steps makes the others end") {
  const auto thrown = in_processes({1, 1}, [&](SimulatedReplicas& own, std::size_t rank) {
    for (std::size_t step = 0; step < 3 + rank; ++step) own.step();
  });
  CHECK(thrown[0] == "");
  CHECK(thrown[1] == "replica process 0 has ended");
}

TEST_CASE("a replica that misses a layer or has other gradients is an error that says which") {
  SimulatedReplicas all(layers(), setting(2, 1_MiB, 2));
  Replicas<float, Device>& replicas = all.replicas();
  auto one = all.manager(0).tensor<float>({4}, "g");
  auto other = all.manager(1).tensor<float>({5}, "g");
  one.upload(std::vector<float>(4));
  other.upload(std::vector<float>(5));
  const auto no_update = [](const SummedLayer<float>&) {};
  const auto step = [&](const std::function<void(std::size_t)>& body) {
    return refusal([&] { replicas.step(body, no_update); });
  };
  const auto all_done = [&](std::size_t replica, std::size_t layers) {
    for (std::size_t i = 0; i < layers; ++i) replicas.layer_done(replica);
  };
  const std::string begin = "replicas \"train\": ";
  CHECK(step([&](std::size_t replica) { all_done(replica, 6 - replica); }) ==
        begin + "replica 1 is done with 5 of 6 layers");
  CHECK(step([&](std::size_t replica) { all_done(replica, 7); }) ==
        begin + "replica 0 is done with more than 6 layers");
  CHECK(step([&](std::size_t replica) {
          if (replica == 0) replicas.layer_done(0, one);
          if (replica == 1) replicas.layer_done(1, other);
          all_done(replica, 5);
        }) == begin + "gradient 0 of layer 0 has 5 elements in replica 1, and 4 in replica 0");
  CHECK(step([&](std::size_t replica) {
          replicas.layer_done(replica, one);
          all_done(replica, 5);
        }) == begin + "gradient 0 of layer 0 is not a tensor of the manager of replica 1");
  CHECK(step([&](std::size_t replica) {
          if (replica == 0) replicas.layer_done(0, one);
          all_done(replica, 6 - (replica == 0 ? 1U : 0U));
        }) == begin + "layer 0 has 0 gradients in replica 1, and 1 in replica 0");
  CHECK(step([&](std::size_t) { replicas.layer_done(1); }) == begin + "layer_done() for replica 1 out of its turn");
  CHECK(refusal([&] { replicas.layer_done(0); }) == begin + "layer_done() for replica 0 out of its turn");
  all.step();  // nothing of these steps is left
}

TEST_CASE("a gradient without a value is an error of its download, and a step of nothing but views works") {
  SimulatedReplicas all(layers(), setting(2, 1_MiB, 6));
  Replicas<float, Device>& replicas = all.replicas();
  auto empty = all.manager(0).tensor<float>({4}, "never written");
  CHECK_THROWS_AS(replicas.step([&](std::size_t replica) { replicas.layer_done(replica, empty); },
                                [](const SummedLayer<float>&) {}),
                  UsageError);

  std::vector<Tensor<float, Device>> tensors;
  for (std::size_t i = 0; i < 2; ++i) {
    tensors.push_back(all.manager(i).tensor<float>({3, 4}, "rows"));
    tensors.back().upload(std::vector<float>(12, static_cast<float>(i) + 0.25F));
  }
  std::size_t updates = 0;
  replicas.step(
      [&](std::size_t replica) {
        replicas.layer_done(replica, tensors[replica].slice(1, 1), tensors[replica]);
        for (int i = 0; i < 5; ++i) replicas.layer_done(replica);
      },
      [&](const SummedLayer<float>& sum) {
        CHECK(sum.chunk == 0);
        CHECK(sum.layer == updates++ % 6);
        if (sum.layer != 0) {
          CHECK(sum.gradients.empty());
          return;
        }
        REQUIRE(sum.gradients.size() == 2);
        CHECK(std::vector(sum.gradients[0].begin(), sum.gradients[0].end()) == std::vector<float>(4, 1.5F));
        CHECK(std::vector(sum.gradients[1].begin(), sum.gradients[1].end()) == std::vector<float>(12, 1.5F));
      });
  CHECK(updates == 12);
}

TEST_CASE("options that make no sense are refused") {
  using All = Replicas<float, Device>;
  MemoryManager<Device> manager(Device(), {.device_budget = 1_KiB});
  const std::string begin = "replicas \"r\": ";
  CHECK(refusal([&] { All({}, "r", {.layers = 1}); }) == begin + "there are no managers");
  CHECK(refusal([&] { All({nullptr}, "r", {.layers = 1}); }) == begin + "manager 0 is null");
  CHECK(refusal([&] {
          All({&manager, &manager}, "r", {.layers = 1});
        }) == begin + "two replicas have the same manager");
  CHECK(refusal([&] { All({&manager}, "r", {}); }) == begin + "ReplicaOptions::layers is 0");
  CHECK(refusal([&] { All({&manager}, "r", {.layers = 3, .layers_per_chunk = 4}); }) ==
        begin + "chunks of 4 layers of 3");
  CHECK(refusal([&] { All({&manager}, "r", {.layers = 3, .sum_threads = 0}); }) ==
        begin + "ReplicaOptions::sum_threads is 0");
  CHECK(All({&manager}, "r", {.layers = 3, .layers_per_chunk = 3}).layers_per_chunk() == 3);
}

}  // namespace swapmm::test::replicas_test
