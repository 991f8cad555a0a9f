// SPDX-License-Identifier: Apache-2.0
#include "memory_instances.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <random>
#include <utility>

#include <swapmm/ir/liveness.hpp>

#include "measuring.hpp"
#include "table.hpp"
#include "training_trace.hpp"

namespace swapmm::bench {
namespace {

/// Drawn once, by a design in which each value of each column occurs about equally often in each shape.
const std::vector<MemoryInstance> instances = {
    {Shape::step, 40, 1, 2, Near::neighbour, 8, 0.5, 4},
    {Shape::step, 60, 2, 4, Near::pinned, 2, 0.1, 1},
    {Shape::step, 140, 3, 6, Near::neighbour, 6, 0.4, 0.5},
    {Shape::step, 100, 4, 8, Near::pinned, 12, 0.3, 2},
    {Shape::step, 140, 5, 3, Near::neighbour, 3, 0.6, 2},
    {Shape::step, 100, 6, 5, Near::pinned, 4, 0.2, 1},
    {Shape::step, 60, 7, 1.5, Near::neighbour, 6, 0.1, 0.5},
    {Shape::step, 40, 8, 2.5, Near::pinned, 12, 0.5, 4},
    {Shape::step, 100, 9, 1.5, Near::neighbour, 2, 0.3, 0.5},
    {Shape::step, 40, 10, 2.5, Near::pinned, 3, 0.2, 1},
    {Shape::step, 140, 11, 4, Near::neighbour, 8, 0.4, 4},
    {Shape::stack, 200, 1, 1.5, Near::neighbour, 4, 0.4, 0.5},
    {Shape::stack, 80, 2, 2.5, Near::pinned, 3, 0.6, 2},
    {Shape::stack, 50, 3, 4, Near::neighbour, 2, 0.5, 1},
    {Shape::stack, 120, 4, 6, Near::pinned, 6, 0.3, 4},
    {Shape::stack, 50, 5, 8, Near::neighbour, 8, 0.1, 0.5},
    {Shape::stack, 80, 6, 5, Near::pinned, 12, 0.2, 2},
    {Shape::stack, 200, 7, 2, Near::neighbour, 4, 0.2, 4},
    {Shape::stack, 120, 8, 3, Near::pinned, 2, 0.3, 1},
    {Shape::stack, 120, 9, 1.5, Near::neighbour, 8, 0.4, 0.5},
    {Shape::stack, 50, 10, 6, Near::pinned, 12, 0.1, 2},
    {Shape::stack, 200, 11, 3, Near::neighbour, 6, 0.6, 4},
    {Shape::random, 400, 1, 2.5, Near::neighbour, 4, 0.3, 4},
    {Shape::random, 150, 2, 5, Near::pinned, 2, 0.6, 0.5},
    {Shape::random, 80, 3, 1.5, Near::neighbour, 3, 0.2, 2},
    {Shape::random, 250, 4, 3, Near::pinned, 12, 0.5, 1},
    {Shape::random, 150, 5, 4, Near::neighbour, 8, 0.1, 2},
    {Shape::random, 80, 6, 8, Near::pinned, 6, 0.4, 0.5},
    {Shape::random, 400, 7, 2, Near::neighbour, 2, 0.3, 4},
    {Shape::random, 250, 8, 6, Near::pinned, 4, 0.1, 1},
    {Shape::random, 80, 9, 6, Near::neighbour, 6, 0.4, 4},
    {Shape::random, 150, 10, 8, Near::pinned, 8, 0.6, 1},
    {Shape::random, 250, 11, 5, Near::neighbour, 12, 0.2, 0.5},
    {Shape::inference, 60, 1, 3, Near::neighbour, 8, 0.3, 0.5},
    {Shape::inference, 120, 2, 8, Near::pinned, 12, 0.5, 2},
    {Shape::inference, 200, 3, 2, Near::neighbour, 2, 0.6, 1},
    {Shape::inference, 300, 4, 2.5, Near::pinned, 6, 0.4, 4},
    {Shape::inference, 120, 5, 1.5, Near::neighbour, 3, 0.1, 1},
    {Shape::inference, 300, 6, 4, Near::pinned, 4, 0.2, 2},
    {Shape::inference, 200, 7, 5, Near::neighbour, 3, 0.5, 0.5},
    {Shape::inference, 60, 8, 6, Near::pinned, 2, 0.3, 4},
    {Shape::inference, 120, 9, 5, Near::neighbour, 8, 0.4, 4},
    {Shape::inference, 300, 10, 8, Near::pinned, 6, 0.2, 2},
    {Shape::inference, 60, 11, 6, Near::neighbour, 12, 0.1, 0.5},
    {Shape::recorded, 0, 0, 2, Near::neighbour, 4, 0.3, 1},
    {Shape::recorded, 0, 0, 4, Near::pinned, 3, 0.5, 2},
    {Shape::recorded, 1, 0, 2, Near::pinned, 6, 0.2, 1},
    {Shape::recorded, 1, 0, 3, Near::neighbour, 8, 0.4, 2},
};

constexpr std::uint64_t disk_bytes_per_second = 6'000'000'000;
constexpr std::array recorded = {"tests/data/traces/g10/VIT_b512.json", "tests/data/traces/g10/BERT_Base_b256.json"};
constexpr Bytes alignment{256};

class Generator {
 public:
  explicit Generator(std::uint64_t seed) : random_(seed) {}

  Trace stack(std::uint32_t layers) {
    std::vector<TensorId> weights;
    std::vector<TensorId> values{add("first", 16, TensorKind::transient)};
    for (std::uint32_t i = 0; i < layers; ++i) weights.push_back(add("weight", 6, TensorKind::persistent));
    trace_.operations.push_back({"load", duration(), {}, {values[0]}, {}});
    for (std::uint32_t i = 0; i < layers; ++i) {
      values.push_back(add("value", 16, TensorKind::transient));
      TraceOperation operation{"forward", duration(), {values[i], weights[i]}, {values[i + 1]}, {}};
      // Some layers also read what an earlier one gave.
      if (i > 2 && even() < 0.25) operation.reads.push_back(values[i - 1 - random_() % 2]);
      trace_.operations.push_back(std::move(operation));
    }
    TensorId gradient = values.back();
    for (std::uint32_t i = layers; i-- > 0;) {
      const TensorId next = add("gradient", 8, TensorKind::transient);
      TraceOperation operation{"backward", duration(), {values[i]}, {next}, {weights[i]}};
      operation.reads.push_back(gradient);
      trace_.operations.push_back(std::move(operation));
      gradient = next;
    }
    return std::move(trace_);
  }

  Trace random(std::uint32_t operations) {
    std::vector<TensorId> kept;
    for (std::uint32_t i = 0; i < operations / 8; ++i) kept.push_back(add("kept", 16, TensorKind::persistent));
    std::vector<TensorId> values;
    for (std::uint32_t i = 0; i < operations; ++i) {
      TraceOperation operation{"operation", duration(), {}, {}, {}};
      const auto take = [&](const std::vector<TensorId>& from, std::vector<TensorId>& list) {
        const TensorId tensor = from[random_() % from.size()];
        const auto has = [&](const std::vector<TensorId>& in) { return std::ranges::count(in, tensor) != 0; };
        if (!has(operation.reads) && !has(operation.updates)) list.push_back(tensor);
      };
      for (std::size_t reads = 1 + random_() % 3; reads > 0 && !values.empty(); --reads) take(values, operation.reads);
      if (even() < 0.3) take(kept, operation.reads);
      if (even() < 0.15) take(kept, operation.updates);
      values.push_back(add("value", 12, TensorKind::transient));
      operation.writes.push_back(values.back());
      trace_.operations.push_back(std::move(operation));
    }
    return std::move(trace_);
  }

  Trace inference(std::uint32_t layers) {
    std::vector<TensorId> weights;
    for (std::uint32_t i = 0; i < 2 * layers; ++i) weights.push_back(add("weight", 24, TensorKind::persistent));
    TensorId value = add("first", 2, TensorKind::transient);
    trace_.operations.push_back({"load", duration(), {}, {value}, {}});
    for (std::uint32_t i = 0; i < layers; ++i) {
      const TensorId next = add("value", 2, TensorKind::transient);
      trace_.operations.push_back({"layer", duration(), {value, weights[2 * i], weights[2 * i + 1]}, {next}, {}});
      value = next;
    }
    return std::move(trace_);
  }

 private:
  double even() { return static_cast<double>(random_() >> 11U) * 0x1.0p-53; }
  /// Between 1 / spread and spread.
  double around_one(double spread) { return std::exp((2 * even() - 1) * std::log(spread)); }
  std::chrono::nanoseconds duration() { return std::chrono::nanoseconds{std::llround(1e6 * around_one(4))}; }
  TensorId add(const std::string& name, double megabytes, TensorKind kind) {
    const auto bytes = static_cast<std::uint64_t>(megabytes * 1e6 * around_one(3));
    trace_.tensors.push_back({name + std::to_string(trace_.tensors.size()), Bytes{bytes}, kind, 0});
    return static_cast<TensorId>(trace_.tensors.size() - 1);
  }

  std::mt19937_64 random_;
  Trace trace_;
};

Trace made(const MemoryInstance& instance) {
  switch (instance.shape) {
    case Shape::step: return training_trace(3 * std::size_t{instance.size}, instance.seed);
    case Shape::stack: return Generator(instance.seed).stack(instance.size);
    case Shape::random: return Generator(instance.seed).random(instance.size);
    case Shape::inference: return Generator(instance.seed).inference(instance.size);
    case Shape::recorded: return load_trace(recorded[instance.size]);
  }
  return {};
}

Bytes budget_of(const MemoryInstance& instance, const Trace& trace) {
  return std::max(part_of(peak_of(trace), 1 / instance.oversubscribed),
                  analyze_liveness(trace, alignment).largest_bundle);
}
double leaving_of(const MemoryInstance& instance, const Trace& trace) {
  return static_cast<double>(peak_of(trace).value) - static_cast<double>(budget_of(instance, trace).value);
}

std::string short_number(double value) { return fixed(value, value == std::floor(value) ? 0 : 1); }

}  // namespace

std::string_view to_string(Shape shape) {
  switch (shape) {
    case Shape::step: return "step";
    case Shape::stack: return "stack";
    case Shape::random: return "random";
    case Shape::inference: return "inference";
    case Shape::recorded: return "recorded";
  }
  return "unknown";
}

const std::vector<MemoryInstance>& memory_instances() { return instances; }

std::string name_of(const MemoryInstance& instance) {
  std::string name = std::string(to_string(instance.shape)) + "-" + std::to_string(instance.size);
  if (instance.shape != Shape::recorded) name += "-" + std::to_string(instance.seed);
  return name + " k" + short_number(instance.oversubscribed) +
         (instance.near == Near::pinned ? " pinned" : " neighbour") + " x" + short_number(instance.link_ratio) + " " +
         fixed(100 * instance.near_share, 0) + "% p" + short_number(instance.pressure);
}

Trace trace_of(const MemoryInstance& instance) {
  Trace trace = made(instance);
  double compute = 0;
  for (const TraceOperation& operation : trace.operations) compute += static_cast<double>(operation.duration.count());
  const double copies = leaving_of(instance, trace) / static_cast<double>(disk_bytes_per_second) * 1e9;
  return with_scaled_durations(std::move(trace), copies / instance.pressure / compute);
}

v2::Machine machine_of(const MemoryInstance& instance, const Trace& trace) {
  constexpr v2::MemoryId device{0};
  constexpr v2::MemoryId near{1};
  constexpr v2::MemoryId disk{2};
  const bool pinned = instance.near == Near::pinned;
  const auto near_rate = static_cast<std::uint64_t>(instance.link_ratio * static_cast<double>(disk_bytes_per_second));
  v2::Machine machine;
  machine.name = name_of(instance);
  machine.memories.push_back({"gpu", budget_of(instance, trace), alignment, std::nullopt});
  double near_bytes = instance.near_share * leaving_of(instance, trace);
  if (pinned) {  // it holds what the program gives and reads in any case
    std::vector<bool> of_host(trace.tensors.size(), false);
    for (std::size_t t = 0; t < trace.tensors.size(); ++t) of_host[t] = trace.tensors[t].kind == TensorKind::input;
    for (const HostRead& read : trace.host_reads) of_host[index(read.tensor)] = true;
    for (std::size_t t = 0; t < trace.tensors.size(); ++t) {
      if (of_host[t]) near_bytes += static_cast<double>(trace.tensors[t].bytes.value + alignment.value);
    }
  }
  machine.memories.push_back(
      {pinned ? "host" : "neighbour", Bytes{static_cast<std::uint64_t>(near_bytes)}, alignment, std::nullopt});
  machine.memories.push_back({"disk", std::nullopt, Bytes{1}, std::nullopt});
  machine.engines.push_back({"compute", device});
  machine.host = pinned ? near : disk;
  if (pinned) {
    for (const char* const direction : {"pcie.in", "pcie.out"}) machine.capacities.push_back({direction, near_rate});
  }
  const auto add = [&](v2::MemoryId memory, std::uint64_t rate) {
    const std::string& name = machine.memories[index(memory)].name;
    std::vector<v2::CapacityId> in;
    std::vector<v2::CapacityId> out;
    if (pinned) {
      in.push_back(v2::CapacityId{0});
      out.push_back(v2::CapacityId{1});
    }
    machine.links.push_back({"from." + name, memory, device, rate, std::chrono::nanoseconds{0}, std::nullopt, in});
    machine.links.push_back({"to." + name, device, memory, rate, std::chrono::nanoseconds{0}, std::nullopt, out});
  };
  add(near, near_rate);
  add(disk, disk_bytes_per_second);
  return machine;
}

v2::Machine with_disk_behind(v2::Machine machine) {
  constexpr v2::MemoryId near{1};
  constexpr v2::MemoryId disk{2};
  for (v2::Link& link : machine.links) {
    if (link.from != disk && link.to != disk) continue;
    (link.from == disk ? link.to : link.from) = near;
    link.capacities.clear();
  }
  return machine;
}

}  // namespace swapmm::bench
