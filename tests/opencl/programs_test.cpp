// SPDX-License-Identifier: Apache-2.0
// Programs whose tensors come and go, change places, or follow a plan from a file, on a real device.

#include <doctest/doctest.h>

#include <cstddef>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "opencl/support.hpp"
#include "support/chain.hpp"
#include "support/steady_plans.hpp"

using namespace swapmm;
using namespace swapmm::test;

namespace {

using Manager = MemoryManager<opencl::Backend>;
using NumberTensor = Tensor<Number, opencl::Backend>;

constexpr std::size_t six_layers = 6;
constexpr Bytes half_of_six{chain_bytes(six_layers).value / 2};

/// A scheduler that has loaded the plan of a manager with half_of_six of the chain's memory.
Scheduler with_a_saved_plan() {
  std::stringstream file;
  Manager manager(shared_backend(), {.device_budget = half_of_six}, steady_plans());
  Chain<opencl::Backend> chain(manager, six_layers);
  for (Number seed = 0; seed < 5; ++seed) chain.iterate(seed);
  manager.scheduler().save_plan("train", file);
  Scheduler scheduler = steady_plans();
  scheduler.load_plan("train", file);
  return scheduler;
}

}  // namespace

TEST_CASE("tensors made and dropped inside iterations take places of a plan") {
  for (const Form form : {Form::plain, Form::with_event}) {
    Manager manager(shared_backend(), {.device_budget = Bytes{4 * chain_tensor.value}}, steady_plans());
    std::vector<NumberTensor> weights;
    ChainModel model(six_layers);
    for (std::size_t i = 0; i < six_layers; ++i) {
      weights.push_back(manager.tensor<Number>({chain_length}, "w" + std::to_string(i)));
      weights.back().upload(model.weights[i]);
    }
    for (Number seed = 0; seed < 8; ++seed) {
      const auto iteration = manager.iteration("train");
      std::vector<NumberTensor> hidden;
      const auto make = [&](const std::string& name) -> NumberTensor& {
        hidden.push_back(manager.tensor<Number>({chain_length}, name, transient));
        return hidden.back();
      };
      auto input = manager.tensor<Number>({chain_length}, "x");
      input.upload(numbers(chain_length, seed));
      run_affine(manager, form, "input", input, make("h0"), 1);
      for (std::size_t i = 0; i < six_layers; ++i) {
        NumberTensor& out = make("h" + std::to_string(i + 1));
        run_blend(manager, form, "forward", hidden[i], weights[i], out);
      }
      Numbers output(chain_length);
      auto pending = hidden.back().download_async(output);
      for (std::size_t i = six_layers; i-- > 0;) {
        run_grow(manager, form, "backward", hidden[i], weights[i]);
        hidden.pop_back();
      }
      pending.wait();
      model.iterate(seed);
      CHECK(output == model.output());
    }
    const Report report = manager.report();
    CHECK(report.iterations_followed == 5);
    CHECK(report.tensors == six_layers);
    for (std::size_t i = 0; i < six_layers; ++i) CHECK(weights[i].download() == model.weights[i]);
  }
}

TEST_CASE("handles that change places make a plan of two iterations") {
  Manager manager(shared_backend(), {.device_budget = Bytes{3 * chain_tensor.value}}, steady_plans());
  std::vector<NumberTensor> fields;
  std::vector<Numbers> expected;
  for (Number i = 0; i < 5; ++i) {
    fields.push_back(manager.tensor<Number>({chain_length}, "field" + std::to_string(i)));
    expected.push_back(numbers(chain_length, i));
    fields.back().upload(expected.back());
  }
  for (Number step = 0; step < 14; ++step) {
    const auto iteration = manager.iteration("step");
    for (std::size_t i = 2; i < 5; ++i) {
      run_grow(manager, Form::with_event, "field", fields[0], fields[i]);
      grow(expected[0], expected[i]);
    }
    run_affine(manager, Form::with_event, "next", fields[0], fields[1], step);
    affine(expected[0], expected[1], step);
    std::swap(fields[0], fields[1]);
    std::swap(expected[0], expected[1]);
  }
  const Report report = manager.report();
  REQUIRE_FALSE(report.plans.empty());
  CHECK(report.plans.back().iterations_per_cycle == 2);
  CHECK(report.iterations_followed >= 6);
  for (std::size_t i = 0; i < 5; ++i) {
    if (i != 1) CHECK(fields[i].download() == expected[i]);  // the next step gives that one a new value: it is dead
  }
}

TEST_CASE("a saved plan is followed by another manager behind the first iteration that is like it") {
  const Scheduler scheduler = with_a_saved_plan();
  Manager manager(shared_backend(), {.device_budget = half_of_six}, scheduler);
  Chain<opencl::Backend> chain(manager, six_layers);
  ChainModel model(six_layers);
  for (Number seed = 0; seed < 6; ++seed) {
    chain.iterate(seed);
    model.iterate(seed);
  }
  const Report report = manager.report();
  CHECK(report.notes.empty());
  CHECK(report.iterations_followed == 4);  // the first iteration has the weights' uploads, the second one is like it
  CHECK(report.divergences == 0);
  CHECK(chain.output().download() == model.output());
  CHECK(same_weights(chain, model));
}

TEST_CASE("a saved plan for another budget is refused with a note, and the manager makes its own") {
  const Scheduler scheduler = with_a_saved_plan();
  Manager manager(shared_backend(), {.device_budget = Bytes{3 * chain_tensor.value}}, scheduler);
  Chain<opencl::Backend> chain(manager, six_layers);
  ChainModel model(six_layers);
  for (Number seed = 0; seed < 8; ++seed) {
    chain.iterate(seed);
    model.iterate(seed);
  }
  const Report report = manager.report();
  CHECK_FALSE(report.notes.empty());
  CHECK(report.iterations_followed >= 4);
  CHECK(report.device_peak.value <= 3 * chain_tensor.value);
  CHECK(chain.output().download() == model.output());
  CHECK(same_weights(chain, model));
}

TEST_CASE("work areas are places of their own under the budget") {
  Manager manager(shared_backend(), {.device_budget = Bytes{4 * chain_tensor.value}}, steady_plans());
  std::vector<NumberTensor> tensors;
  std::vector<Numbers> expected;
  for (Number i = 0; i < 5; ++i) {
    tensors.push_back(manager.tensor<Number>({chain_length}, "t" + std::to_string(i)));
    expected.push_back(numbers(chain_length, i));
    tensors.back().upload(expected.back());
  }
  for (Number round = 0; round < 8; ++round) {
    const auto iteration = manager.iteration("areas");
    for (std::size_t i = 0; i < 5; ++i) {
      const std::size_t next = (i + 1) % 5;
      manager.run("through the area", reads(tensors[i]), updates(tensors[next]), scratch(chain_tensor), [&](auto& op) {
        const opencl::View<std::byte> area = op.scratch();
        CHECK(area.bytes() == chain_tensor.value);
        kernels().affine.set(op[tensors[i]], area, round).enqueue(op.queue(), {chain_length});
        kernels().grow.set(area, op[tensors[next]]).enqueue(op.queue(), {chain_length});
      });
      Numbers between(chain_length);
      affine(expected[i], between, round);
      grow(between, expected[next]);
    }
  }
  CHECK(manager.report().iterations_followed == 5);
  for (std::size_t i = 0; i < 5; ++i) CHECK(tensors[i].download() == expected[i]);
}

TEST_CASE("two managers on one device do not touch each other's values") {
  const opencl::Backend backend = shared_backend();
  std::optional<Manager> first(std::in_place, backend, Options{.device_budget = half_of_six}, steady_plans());
  Manager second(backend, {.device_budget = half_of_six}, steady_plans());
  std::optional<Chain<opencl::Backend>> one(std::in_place, *first, six_layers);
  Chain<opencl::Backend> two(second, six_layers, Form::with_event);
  ChainModel model_one(six_layers);
  ChainModel model_two(six_layers);
  for (Number seed = 0; seed < 8; ++seed) {
    one->iterate(seed);
    model_one.iterate(seed);
    two.iterate(seed + 100);
    model_two.iterate(seed + 100);
  }
  CHECK(same_weights(*one, model_one));
  CHECK(first->report().iterations_followed > 0);
  one.reset();
  first.reset();
  two.iterate(7);
  model_two.iterate(7);
  CHECK(second.report().iterations_followed > 0);
  CHECK(two.output().download() == model_two.output());
  CHECK(same_weights(two, model_two));
}
