// SPDX-License-Identifier: Apache-2.0
#include "engine_instances.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

namespace swapmm::bench {
namespace {

/// Half of each group has twice the pressure of the other.
const std::vector<EngineInstance> instances = {
    {Sharing::pipeline, 16, 2, 1, false, 2, 0.5},  {Sharing::pipeline, 16, 2, 4, false, 3, 0.5},
    {Sharing::pipeline, 16, 2, 4, true, 2, 1},     {Sharing::pipeline, 24, 2, 8, true, 3, 1},
    {Sharing::pipeline, 24, 4, 4, false, 2, 0.5},  {Sharing::pipeline, 24, 4, 8, true, 2, 0.5},
    {Sharing::pipeline, 32, 4, 4, true, 3, 1},     {Sharing::pipeline, 32, 4, 8, false, 3, 1},
    {Sharing::streams, 12, 1, 1, false, 1.5, 0.5}, {Sharing::streams, 12, 1, 1, false, 2, 1},
    {Sharing::streams, 30, 1, 1, false, 2, 0.5},   {Sharing::streams, 30, 1, 1, false, 3, 1},
    {Sharing::streams, 60, 1, 1, false, 2, 0.5},   {Sharing::streams, 60, 1, 1, false, 4, 1},
    {Sharing::optimizer, 10, 1, 1, false, 2, 0.5}, {Sharing::optimizer, 10, 1, 1, false, 3, 1},
    {Sharing::optimizer, 24, 1, 1, false, 2, 1},   {Sharing::optimizer, 24, 1, 1, false, 4, 0.5},
    {Sharing::optimizer, 48, 1, 1, false, 2, 0.5}, {Sharing::optimizer, 48, 1, 1, false, 4, 1},
    {Sharing::weights, 16, 2, 1, false, 2, 0.5},   {Sharing::weights, 16, 2, 1, true, 3, 1},
    {Sharing::weights, 40, 2, 1, false, 3, 0.5},   {Sharing::weights, 40, 2, 1, true, 4, 1},
};

/// Layers have different sizes: the first ones have large activations, the last ones large weights.
class Builder {
 public:
  Builder(const EngineInstance& instance, Trace& trace) : instance_(instance), trace_(trace) {}

  void build() {
    switch (instance_.sharing) {
      case Sharing::pipeline: pipeline(); break;
      case Sharing::streams:
        for (std::uint32_t s = 0; s < 2; ++s) training(s, s, 0);
        in_turn();
        break;
      case Sharing::optimizer: training(0, 0, 1); break;
      case Sharing::weights: shared_weights(); break;
    }
  }

 private:
  [[nodiscard]] std::uint64_t weight(std::uint32_t layer) const { return 400 + 2400ULL * layer / instance_.layers; }
  [[nodiscard]] std::uint64_t activation(std::uint32_t layer) const {
    return (2400 - 1800ULL * layer / (instance_.layers + 1)) / instance_.parts;
  }
  TensorId add(std::uint64_t bytes, TensorKind kind) {
    trace_.tensors.push_back({"t" + std::to_string(trace_.tensors.size()), Bytes{bytes}, kind, 0});
    return id_at<TensorId>(trace_.tensors.size() - 1);
  }
  void run(std::uint32_t engine, std::int64_t time, std::vector<TensorId> reads, std::vector<TensorId> writes,
           std::vector<TensorId> updates = {}) {
    TraceOperation operation{"op", std::chrono::nanoseconds{time}, std::move(reads), std::move(writes),
                             std::move(updates)};
    operation.engine = engine;
    trace_.operations.push_back(std::move(operation));
  }

  /// A training step on one engine; the gradients go to another one if it is not the same.
  void training(std::uint32_t engine, std::uint32_t seed, std::uint32_t updates_on) {
    const bool is_other = instance_.sharing == Sharing::optimizer;
    std::vector<TensorId> weights;
    std::vector<TensorId> values{add(activation(0), TensorKind::transient)};
    for (std::uint32_t l = 0; l < instance_.layers; ++l) {
      weights.push_back(add(weight(l) + 100 * seed, TensorKind::persistent));
      values.push_back(add(activation(l + 1), TensorKind::transient));
    }
    run(engine, 100, {}, {values[0]});
    for (std::uint32_t l = 0; l < instance_.layers; ++l) run(engine, 1000, {weights[l], values[l]}, {values[l + 1]});
    TensorId gradient = add(activation(instance_.layers), TensorKind::transient);
    run(engine, 100, {values[instance_.layers]}, {gradient});
    for (std::uint32_t l = instance_.layers; l-- > 0;) {
      const TensorId next = add(activation(l), TensorKind::transient);
      if (!is_other) {
        run(engine, 2000, {values[l], gradient}, {next}, {weights[l]});
      } else {
        const TensorId of_weight = add(weight(l), TensorKind::transient);
        const TensorId moments = add(2 * weight(l), TensorKind::persistent);
        run(engine, 2000, {weights[l], values[l], gradient}, {next, of_weight});
        run(updates_on, 1000, {of_weight}, {}, {weights[l], moments});
      }
      gradient = next;
    }
  }

  /// Operations of two programs, one after the other, as if both had been observed at the same time.
  void in_turn() {
    const std::size_t half = trace_.operations.size() / 2;
    std::vector<TraceOperation> mixed;
    for (std::size_t i = 0; i < half; ++i) {
      mixed.push_back(trace_.operations[i]);
      mixed.push_back(trace_.operations[half + i]);
    }
    trace_.operations = std::move(mixed);
  }

  void pipeline() {
    const auto engine = [&](std::uint32_t l) { return l * instance_.gpus / instance_.layers; };
    const std::int64_t parts = instance_.parts;
    std::vector<TensorId> weights;
    for (std::uint32_t l = 0; l < instance_.layers; ++l) weights.push_back(add(weight(l), TensorKind::persistent));
    std::vector<std::vector<TensorId>> values(instance_.parts);
    for (std::vector<TensorId>& of_part : values) {
      for (std::uint32_t l = 0; l <= instance_.layers; ++l)
        of_part.push_back(add(activation(l), TensorKind::transient));
      run(0, 10, {}, {of_part[0]});
      for (std::uint32_t l = 0; l < instance_.layers; ++l) {
        run(engine(l), 4000 / parts, {weights[l], of_part[l]}, {of_part[l + 1]});
      }
    }
    for (const std::vector<TensorId>& of_part : values) {
      TensorId gradient = add(activation(instance_.layers), TensorKind::transient);
      run(instance_.gpus - 1, 10, {of_part[instance_.layers]}, {gradient});
      for (std::uint32_t l = instance_.layers; l-- > 0;) {
        const TensorId next = add(activation(l), TensorKind::transient);
        run(engine(l), 8000 / parts, {of_part[l], gradient}, {next}, {weights[l]});
        gradient = next;
      }
    }
  }

  void shared_weights() {
    std::vector<TensorId> weights;
    for (std::uint32_t l = 0; l < instance_.layers; ++l) weights.push_back(add(weight(l), TensorKind::persistent));
    std::vector<TensorId> values;
    for (std::uint32_t g = 0; g < 2; ++g) {
      values.push_back(add(activation(0), TensorKind::transient));
      run(g, 10, {}, {values[g]});
    }
    for (std::uint32_t l = 0; l < instance_.layers; ++l) {
      for (std::uint32_t g = 0; g < 2; ++g) {
        const TensorId next = add(activation(l + 1), TensorKind::transient);
        run(g, 1000, {weights[l], values[g]}, {next});
        values[g] = next;
      }
    }
  }

  const EngineInstance& instance_;
  Trace& trace_;
};

/// The most live bytes and the largest bundle of the operations in each memory: what others use is not there.
std::vector<std::pair<std::uint64_t, std::uint64_t>> needs(const Trace& trace,
                                                           const std::vector<std::uint32_t>& memory_of_engine) {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> result(*std::ranges::max_element(memory_of_engine) +
                                                              std::size_t{1});
  for (std::uint32_t m = 0; m < result.size(); ++m) {
    constexpr std::size_t unused = ~std::size_t{0};
    std::vector<std::pair<std::size_t, std::size_t>> used(trace.tensors.size(), {unused, 0});
    for (std::size_t i = 0; i < trace.operations.size(); ++i) {
      if (memory_of_engine[trace.operations[i].engine] != m) continue;
      std::uint64_t bundle = 0;
      for_each_access(trace.operations[i], [&](TensorId tensor, Access) {
        auto& [first, last] = used[index(tensor)];
        first = std::min(first, i);
        last = i;
        bundle += trace.tensors[index(tensor)].bytes.value;
      });
      result[m].second = std::max(result[m].second, bundle);
    }
    for (std::size_t i = 0; i < trace.operations.size(); ++i) {
      std::uint64_t live = 0;
      for (std::size_t t = 0; t < trace.tensors.size(); ++t) {
        const auto& [first, last] = used[t];
        const bool persists = trace.tensors[t].kind == TensorKind::persistent;
        if (first != unused && (persists || (first <= i && i <= last))) live += trace.tensors[t].bytes.value;
      }
      result[m].first = std::max(result[m].first, live);
    }
  }
  return result;
}

}  // namespace

std::string_view to_string(Sharing sharing) {
  switch (sharing) {
    case Sharing::pipeline: return "pipeline";
    case Sharing::streams: return "streams";
    case Sharing::optimizer: return "optimizer";
    case Sharing::weights: return "weights";
  }
  return "unknown";
}

const std::vector<EngineInstance>& engine_instances() { return instances; }

std::string name_of(const EngineInstance& instance) {
  std::string name = std::string(to_string(instance.sharing)) + "-" + std::to_string(instance.layers) + "-x" +
                     std::to_string(instance.gpus);
  if (instance.parts > 1) name += "-p" + std::to_string(instance.parts);
  if (instance.linked) name += "-linked";
  const auto tenths = static_cast<int>(std::lround(instance.oversubscribed * 10));
  return name + "-k" + std::to_string(tenths / 10) + "." + std::to_string(tenths % 10);
}

EngineProgram program_of(const EngineInstance& instance) {
  EngineProgram program;
  Trace& trace = program.trace;
  v2::Machine& machine = program.machine;
  trace.name = name_of(instance);
  machine.name = trace.name;
  const bool has_cpu = instance.sharing == Sharing::optimizer;
  const std::uint32_t engines = instance.sharing == Sharing::streams ? 2 : instance.gpus;
  std::vector<std::uint32_t> memory_of_engine;
  for (std::uint32_t e = 0; e < engines; ++e) {
    trace.engines.push_back("gpu" + std::to_string(e));
    memory_of_engine.push_back(std::min(e, instance.gpus - 1));
  }
  if (has_cpu) trace.engines.emplace_back("cpu");
  if (has_cpu) memory_of_engine.push_back(instance.gpus);
  Builder(instance, trace).build();
  const auto of_memories = needs(trace, memory_of_engine);
  for (std::uint32_t g = 0; g < instance.gpus; ++g) {
    const auto& [peak, bundle] = of_memories[g];
    const auto wanted = static_cast<std::uint64_t>(static_cast<double>(peak) / instance.oversubscribed);
    // Two streams use two bundles at a time.
    const std::uint64_t least = bundle * (instance.sharing == Sharing::streams ? 5 : 3) / 2;
    machine.memories.push_back({"gpu" + std::to_string(g), Bytes{std::max(wanted, least)}, Bytes{1}, std::nullopt});
  }
  machine.host = v2::MemoryId{instance.gpus};
  machine.memories.push_back({"host", std::nullopt, Bytes{1}, std::nullopt});
  for (std::size_t e = 0; e < trace.engines.size(); ++e) {
    machine.engines.push_back({trace.engines[e], v2::MemoryId{memory_of_engine[e]}});
  }
  std::uint64_t bytes = 0;
  for (const TraceTensor& tensor : trace.tensors) bytes += tensor.bytes.value;
  std::vector<double> times(trace.engines.size(), 0);
  for (const TraceOperation& operation : trace.operations) {
    times[operation.engine] += static_cast<double>(operation.duration.count());
  }
  const double seconds = *std::ranges::max_element(times) / 1e9 * instance.pressure;
  const auto rate = static_cast<std::uint64_t>(static_cast<double>(bytes) / instance.gpus / seconds);
  const auto link = [&](v2::MemoryId from, v2::MemoryId to, std::uint64_t speed) {
    machine.links.push_back(
        {"l" + std::to_string(machine.links.size()), from, to, speed, std::chrono::nanoseconds{0}, std::nullopt, {}});
  };
  for (std::uint32_t g = 0; g < instance.gpus; ++g) {
    link(machine.host, v2::MemoryId{g}, rate);
    link(v2::MemoryId{g}, machine.host, rate);
    for (std::uint32_t other = 0; other < instance.gpus && instance.linked; ++other) {
      if (other != g) link(v2::MemoryId{g}, v2::MemoryId{other}, 4 * rate);
    }
  }
  return program;
}

}  // namespace swapmm::bench
