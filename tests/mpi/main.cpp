// SPDX-License-Identifier: Apache-2.0
// What each process does in the tests of replicas under mpirun: `main WAY`, where WAY says what process 1 does.
#include <algorithm>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <swapmm/mpi/exchange.hpp>
#include <swapmm/mpi/run.hpp>
#include <swapmm/replicas/chain.hpp>

#include "support/replica_network.hpp"

namespace {

using namespace swapmm;
using namespace swapmm::test;

constexpr std::size_t steps = 4;

// The second one's gradient is longer than a segment, and than what MPI sends without asking the receiver.
std::vector<ReplicaLayer> layers() {
  return {{.weights = 40, .bias = 3, .width = 30},
          {.weights = 300'000, .width = 20},
          {.weights = 0, .width = 10},
          {.weights = 90, .width = 5}};
}

SimulatedReplicas::Setting setting(const std::shared_ptr<Exchange>& exchange) {
  SimulatedReplicas::Setting made;
  made.replicas = 1 + exchange->rank() % 2;
  for (std::size_t rank = 0; rank < exchange->rank(); ++rank) made.first += 1 + rank % 2;
  made.device.device_bytes = Bytes{4U << 20U};
  made.device.check = false;  // other tests do
  made.budget = made.device.device_bytes;
  made.options.exchange = exchange;
  made.options.chunk_size = {.settle = 1, .timed = 1, .patience = 1};
  return made;
}

/// The weights of one device that does what all replicas do.
std::vector<float> expected(std::size_t replicas) {
  simulated::Options options;
  options.device_bytes = Bytes{16U << 20U};
  MemoryManager<simulated::Backend> manager(simulated::Backend(options), {.device_budget = options.device_bytes});
  ReplicaNetwork network(manager, layers());
  for (std::size_t step = 0; step < steps; ++step) learn_on_one_device(network, step, replicas);
  return network.weights();
}

int compare(SimulatedReplicas& replicas, std::size_t all, std::size_t here) {
  const std::vector<float> wanted = expected(all);
  for (std::size_t i = 0; i < here; ++i) {
    if (!same_bits(replicas.weights(i), wanted)) {
      throw std::runtime_error("the weights differ from those of one device");
    }
  }
  std::printf("%zu replicas, and these %zu have the bits of one device\n", all, here);
  return 0;
}

int process(const std::string& way, const std::shared_ptr<Exchange>& exchange) {
  const auto own = setting(exchange);
  SimulatedReplicas replicas(layers(), own);
  const bool first = exchange->rank() == 1;
  for (std::size_t step = 0; step < steps; ++step) {
    if (first && step == 2 && way == "is killed") std::raise(SIGKILL);
    if (first && step == 2 && way == "exits") std::_Exit(0);
    if (first && step == 2 && way == "ends") return 0;
    replicas.step([&](const SummedLayer<float>& sum) {
      if (first && step == 2 && sum.layer == 1 && way == "throws") throw std::runtime_error("out of luck");
    });
  }
  std::size_t all = 0;
  for (std::size_t rank = 0; rank < exchange->processes(); ++rank) all += 1 + rank % 2;
  return compare(replicas, all, own.replicas);
}

/// A process that learns that another has ended returns, as a program does that tells its user.
int handle(const std::shared_ptr<Exchange>& exchange) {
  try {
    return process("ends", exchange);
  } catch (const ReplicaFailed& failure) {
    std::printf("handled: %s\n", failure.what());
    return 3;
  }
}

/// Sums that are longer than what MPI sends without asking the receiver; only process 0 begins a second one.
int sum_long(const std::shared_ptr<Exchange>& exchange) {
  const std::size_t elements = replicas::segment_elements + 1;
  std::vector<float> values(elements);
  for (std::uint64_t step = 1; step <= (exchange->rank() == 0 ? 2U : 1U); ++step) {
    std::fill(values.begin(), values.end(), 1.F);
    const std::span<float> part(values);
    replicas::sum_of_all<float>(exchange.get(), {.step = step, .layers = 1, .elements = elements}, {{part}}, 1);
    const auto wanted = static_cast<float>(exchange->processes());
    if (std::count(values.begin(), values.end(), wanted) != std::ssize(values)) {
      throw std::runtime_error("the sum is wrong");
    }
  }
  return 0;
}

}  // namespace

int main(int count, char** words) {
  const std::string way = count > 1 ? words[1] : "";
  return mpi::run(count, words, [&](std::shared_ptr<Exchange> exchange) {
    if (way == "ends before a long sum") return sum_long(exchange);
    return way == "ends, and that is handled" ? handle(exchange) : process(way, exchange);
  });
}
