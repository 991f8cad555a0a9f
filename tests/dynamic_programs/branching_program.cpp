// SPDX-License-Identifier: Apache-2.0
#include "dynamic_programs/branching_program.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <random>
#include <span>

#include <swapmm/swapmm.hpp>

namespace swapmm::test {
namespace {

using simulated::Touch;
using Words = std::vector<std::uint32_t>;
using Device = simulated::Backend;

constexpr std::size_t elements = 16;  // 64 bytes a tensor
constexpr std::chrono::nanoseconds step_time{1000};

/// Numbers below a limit, from a seed, the same with every standard library.
class Draw {
 public:
  explicit Draw(std::uint64_t seed) : engine_(seed) {}
  std::size_t below(std::size_t limit) { return engine_() % limit; }
  std::size_t between(std::size_t first, std::size_t last) { return first + below(last - first + 1); }

 private:
  std::mt19937_64 engine_;
};

void apply(const BranchingStep& step, std::span<const std::uint32_t> from, std::span<std::uint32_t> to) {
  for (std::size_t i = 0; i < to.size(); ++i) {
    switch (step.kind) {
      case StepKind::set: to[i] = step.value + static_cast<std::uint32_t>(i); break;
      case StepKind::convert: to[i] = 3 * from[i] + step.value; break;
      case StepKind::add: to[i] += 5 * from[i]; break;
    }
  }
}

BranchingStep random_step(Draw& draw, std::size_t tensors) {
  BranchingStep step;
  step.kind = static_cast<StepKind>(draw.below(3));
  step.from = draw.below(tensors);
  step.to = draw.below(tensors - 1);
  if (step.to >= step.from) ++step.to;
  step.value = static_cast<std::uint32_t>(draw.below(1000));
  return step;
}

/// Some iterations alike, then others: so that there are plans, and then reasons to leave them.
std::vector<std::vector<std::size_t>> random_iterations(Draw& draw, std::size_t primitives, std::size_t count) {
  std::vector<std::vector<std::size_t>> iterations;
  while (iterations.size() < count) {
    std::vector<std::size_t> list(draw.between(1, 4));
    for (std::size_t& primitive : list) primitive = draw.below(primitives);
    iterations.insert(iterations.end(), draw.between(1, 6), list);
  }
  return iterations;
}

class Runner {
 public:
  Runner(const BranchingProgram& program, const SchedulerOptions& scheduler)
      : program_(program), device_(program.device), manager_(device_, program.manager, Scheduler(scheduler)) {
    for (std::size_t i = 0; i < program.tensors; ++i) {
      tensors_.push_back(manager_.tensor<std::uint32_t>({elements}, "t" + std::to_string(i), program.lifetimes[i]));
      do_step({.kind = StepKind::set, .to = i, .value = static_cast<std::uint32_t>(i)});
    }
  }

  BranchingRun run() {
    BranchingRun result;
    try {
      for (const auto& iteration : program_.iterations) run_iteration(iteration);
      for (const auto& tensor : tensors_) result.values.push_back(tensor.download());
    } catch (const DroppedValue& error) {
      result.dropped = error.what();
    }
    manager_.synchronize();
    result.time = device_.now();
    result.report = manager_.report();
    result.violations = device_.violations();
    return result;
  }

 private:
  void run_iteration(const std::vector<std::size_t>& primitives) {
    const auto iteration = manager_.iteration("interpret");
    for (const std::size_t primitive : primitives) {
      if (program_.host_reads) (void)tensors_.front().download();
      for (const BranchingStep& step : program_.primitives[primitive]) do_step(step);
    }
  }

  void do_step(const BranchingStep& step) {
    const auto& from = tensors_[step.from];
    const auto& to = tensors_[step.to];
    const auto kernel = [&](auto& op, std::span<const std::uint32_t> in, std::vector<Touch> touched) {
      const auto out = op[to];
      op.queue().launch("step", step_time, std::move(touched), [step, in, out] { apply(step, in, out); });
    };
    if (step.kind == StepKind::set) {
      manager_.run("set", writes(to), [&](auto& op) { kernel(op, {}, {Touch::write(op[to])}); });
    } else if (step.kind == StepKind::convert) {
      manager_.run("convert", reads(from), writes(to), [&](auto& op) {
        kernel(op, op[from], {Touch::read(op[from]), Touch::write(op[to])});
      });
    } else {
      manager_.run("add", reads(from), updates(to), [&](auto& op) {
        kernel(op, op[from], {Touch::read(op[from]), Touch::read(op[to]), Touch::write(op[to])});
      });
    }
  }

  const BranchingProgram& program_;
  Device device_;
  MemoryManager<Device> manager_;
  std::vector<Tensor<std::uint32_t, Device>> tensors_;
};

}  // namespace

BranchingProgram branching_program(std::uint64_t seed, bool host_reads, BranchingSize size, std::size_t iterations) {
  const bool is_large = size == BranchingSize::large;
  Draw draw(seed);
  BranchingProgram program;
  program.tensors = is_large ? draw.between(30, 80) : draw.between(5, 9);
  for (std::size_t i = 0; i < program.tensors; ++i) {
    program.lifetimes.push_back(draw.below(8) == 0 ? Lifetime::kept : Lifetime::observed);
  }
  program.primitives.resize(draw.between(2, 5));
  for (Primitive& primitive : program.primitives) {
    primitive.resize(is_large ? draw.between(5, 25) : draw.between(1, 5));
    for (BranchingStep& step : primitive) step = random_step(draw, program.tensors);
  }
  if (iterations == 0) iterations = is_large ? 60 : 30;
  program.iterations = random_iterations(draw, program.primitives.size(), iterations);
  program.host_reads = host_reads;
  program.device.seed = seed;
  if (draw.below(2) == 0) program.device.order = simulated::Order::uniform;
  const std::size_t places =
      is_large ? draw.between(program.tensors / 4, 3 * program.tensors / 4) : draw.between(2, program.tensors);
  program.manager.device_budget = Bytes{64 * places};
  return program;
}

BranchingRun run(const BranchingProgram& program, const SchedulerOptions& scheduler) {
  return Runner(program, scheduler).run();
}

std::vector<std::vector<std::uint32_t>> values_by_loops(const BranchingProgram& program) {
  std::vector<Words> values(program.tensors, Words(elements));
  const auto do_step = [&](const BranchingStep& step) { apply(step, values[step.from], values[step.to]); };
  for (std::size_t i = 0; i < program.tensors; ++i) {
    do_step({.kind = StepKind::set, .to = i, .value = static_cast<std::uint32_t>(i)});
  }
  for (const auto& iteration : program.iterations) {
    for (const std::size_t primitive : iteration) std::ranges::for_each(program.primitives[primitive], do_step);
  }
  return values;
}

}  // namespace swapmm::test
