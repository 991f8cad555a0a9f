// SPDX-License-Identifier: Apache-2.0
// What the network holds and when, at the sizes of the demo. On a device that does nothing, with a Math that queues
// nothing: the network's own text is the same.
#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <swapmm/ir/liveness.hpp>
#include <swapmm/swapmm.hpp>

#include "fashion_mnist/network.hpp"
#include "neural/null_math.hpp"
#include "neural/pictures.hpp"

namespace {

using namespace swapmm;
using namespace swapmm::literals;

using test::NullMath;
using NullNetwork = fashion::Network<NullMath>;

// As it was observed at the default settings, in an iteration before which nothing but its input was uploaded.
Trace default_trace() {
  NullMath math;
  MemoryManager manager(test::NullBackend(), {.device_budget = 256_MiB});
  NullNetwork network(math, manager, {});
  const test::Batch batch = test::batch(network.settings().batch, 1);
  for (int step = 0; step < 3; ++step) network.train(batch.images, batch.labels, 0.1F);
  return manager.scheduler().trace("train").value();
}

}  // namespace

TEST_CASE("at the default settings the largest bundle is at most a fifth of the peak of live bytes") {
  const Trace trace = default_trace();
  const Liveness live = analyze_liveness(trace, 128_bytes);
  CAPTURE(trace.operations[index(live.largest_bundle_operation)].name);
  CAPTURE(live.largest_bundle.value);
  CAPTURE(live.peak.value);
  CHECK(live.peak > 128_MiB);
  CHECK(live.largest_bundle.value * 5 <= live.peak.value);
}

TEST_CASE("at the default settings activations are nearly all of the peak") {
  NullMath math;
  MemoryManager manager(test::NullBackend(), {.device_budget = 256_MiB});
  const NullNetwork network(math, manager, {});
  const NullNetwork::Memory memory = network.memory();
  // Per channel pair of conv1 to conv5, then dense1 and dense2; each with its bias, each twice.
  const std::size_t parameters = (9 + 1) * 32 + 3 * (32 + 1) * 32 + (288 + 1) * 32 + (1568 + 1) * 128 + (128 + 1) * 10;
  CHECK(memory.parameters.value == 2 * sizeof(float) * parameters);
  CHECK(memory.inputs.value == 512 * (784 * sizeof(float) + 1));
  CHECK((memory.parameters + memory.inputs).value * 20 < (160_MiB).value);
}

TEST_CASE("no tensor outlives its last use: where all fits, no more is ever held than lives") {
  NullMath math;
  MemoryManager manager(test::NullBackend(), {.device_budget = 256_MiB});
  NullNetwork network(math, manager, {});
  const test::Batch batch = test::batch(network.settings().batch, 1);
  for (int step = 0; step < 3; ++step) network.train(batch.images, batch.labels, 0.1F);
  const Liveness live = analyze_liveness(manager.scheduler().trace("train").value(), 64_bytes);
  // But for the labels, a byte per image: their values have ended by then, the tensors are the next batch's.
  CHECK(manager.report().device_peak.value == live.peak.value + network.settings().batch);
  CHECK(manager.report().swap_outs == 0);

  // Between iterations there are parameters and inputs, two counters, and nothing else.
  const NullNetwork::Memory memory = network.memory();
  constexpr std::size_t parameters = std::size_t{7} * 2 * 2;  // layers, weights and bias, with their momenta
  CHECK(manager.report().tensors == parameters + 2 * network.settings().parts + 2);
  CHECK(manager.report().device_used <= memory.parameters + memory.inputs + Bytes{64 * manager.report().tensors});
}

TEST_CASE("an evaluation holds one layer's input and output at a time") {
  NullMath math;
  MemoryManager manager(test::NullBackend(), {.device_budget = 256_MiB});
  NullNetwork network(math, manager, {});
  const test::Batch batch = test::batch(network.settings().batch, 1);
  (void)network.count_right(batch.images, batch.labels);
  (void)network.count_right(batch.images, batch.labels);
  const Liveness live = analyze_liveness(manager.scheduler().trace("evaluate").value(), 128_bytes);
  CHECK(live.peak < 32_MiB);
}
