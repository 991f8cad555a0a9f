// SPDX-License-Identifier: Apache-2.0
// Programs larger than their budget on a real device: the same bits as with all of the memory, and as plain loops give.

#include <doctest/doctest.h>

#include <cstddef>
#include <initializer_list>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <swapmm/plan/planners.hpp>

#include "opencl/support.hpp"
#include "support/chain.hpp"
#include "support/steady_plans.hpp"

using namespace swapmm;
using namespace swapmm::test;
using namespace swapmm::literals;

namespace {

using Manager = MemoryManager<opencl::Backend>;
using NumberTensor = Tensor<Number, opencl::Backend>;

constexpr std::size_t layers = 8;
constexpr Bytes all = chain_bytes(layers);
constexpr Bytes half{all.value / 2};
constexpr Bytes quarter{all.value / 4};

SchedulerOptions planned_by(std::string_view planner) {
  SchedulerOptions options;
  options.planner = std::string(planner);
  return options;
}

/// All that a run of the chain gives: the output of each iteration, and the weights at the end.
struct Results {
  std::vector<Numbers> outputs;
  std::vector<Numbers> weights;
  friend bool operator==(const Results&, const Results&) = default;
};

constexpr Number iterations = 9;

Results run_chain(const Options& options, const SchedulerOptions& scheduler, Form form, Report& report) {
  Manager manager(shared_backend(), options, steady_plans(scheduler));
  Chain<opencl::Backend> chain(manager, layers, form);
  Results results;
  results.outputs.assign(iterations, Numbers(chain_length));
  std::vector<PendingDownload<opencl::Backend>> pending;
  for (Number seed = 0; seed < iterations; ++seed) {
    const auto iteration = manager.iteration("train");
    chain.forward(seed);
    pending.push_back(chain.output().download_async(results.outputs[seed]));
    chain.backward();
  }
  for (auto& each : pending) each.wait();
  for (const NumberTensor& weight : chain.weights) results.weights.push_back(weight.download());
  report = manager.report();
  return results;
}

Results run_model() {
  ChainModel model(layers);
  Results results;
  for (Number seed = 0; seed < iterations; ++seed) {
    model.iterate(seed);
    results.outputs.push_back(model.output());
  }
  results.weights = model.weights;
  return results;
}

}  // namespace

TEST_CASE("every planner gives the bits of unlimited memory at a half and a quarter of it, in both forms") {
  const Results expected = run_model();
  Report report;
  CHECK(run_chain({.device_budget = Bytes{2 * all.value}}, {}, Form::plain, report) == expected);
  CHECK(report.swap_ins == layers + iterations);  // what the host gave, each value once
  for (const NamedPlanner& planner : planners()) {
    for (const Bytes budget : {half, quarter}) {
      for (const Form form : {Form::plain, Form::with_event}) {
        CAPTURE(std::string(planner.name));
        CAPTURE(budget.value);
        CAPTURE(form == Form::plain);
        CHECK(run_chain({.device_budget = budget}, planned_by(planner.name), form, report) == expected);
        CHECK(report.iterations_followed == iterations - 3);
        CHECK(report.divergences == 0);
        CHECK(report.notes.empty());
        REQUIRE(report.plans.size() == 1);
        CHECK(report.plans[0].planner == planner.name);
        CHECK(report.device_peak <= budget);
        CHECK(report.swap_ins > iterations * layers / 2);
        CHECK(report.swap_outs > iterations * layers / 2);
      }
    }
  }
}

TEST_CASE("without a plan both ways of moving on demand give the bits of unlimited memory") {
  const Results expected = run_model();
  SchedulerOptions never;
  never.observe = 0;
  for (const DemandMode mode : {DemandMode::least_recently_used, DemandMode::per_operation}) {
    for (const Bytes budget : {half, quarter}) {
      for (const Form form : {Form::plain, Form::with_event}) {
        Report report;
        CHECK(run_chain({.device_budget = budget, .demand_mode = mode}, never, form, report) == expected);
        CHECK(report.iterations_on_demand == iterations);
        CHECK(report.iterations_followed == 0);
        CHECK(report.device_peak <= budget);
      }
    }
  }
  Report report;  // observed per operation, then planned
  CHECK(run_chain({.device_budget = half, .demand_mode = DemandMode::per_operation}, {}, Form::plain, report) ==
        expected);
  CHECK(report.iterations_followed == iterations - 3);
}

TEST_CASE("each setting of the run-ahead gives the same bits, and so do pageable memory and a short queue") {
  const Results expected = run_model();
  Report report;
  for (const std::size_t run_ahead : {1U, 2U, 3U}) {
    CHECK(run_chain({.device_budget = half, .run_ahead = run_ahead}, {}, Form::with_event, report) == expected);
    CHECK(report.iterations_followed == iterations - 3);
  }
  CHECK(run_chain({.device_budget = half, .pinned_budget = Bytes{0}, .queue_depth = 8}, {}, Form::plain, report) ==
        expected);
  CHECK(report.pinned_used.value == 0);
}

TEST_CASE("a driver that takes the bytes of pageable memory while it queues a copy gives the same bits") {
  const Results expected = run_model();
  for (const bool planned : {true, false}) {
    for (const Form form : {Form::plain, Form::with_event}) {
      CAPTURE(planned);
      SchedulerOptions scheduler;
      if (!planned) scheduler.observe = 0;
      Report report;
      const EagerWrites eager;
      CHECK(run_chain({.device_budget = half, .pinned_budget = Bytes{0}}, scheduler, form, report) == expected);
      CHECK(report.pinned_used.value == 0);
      CHECK(report.swap_ins > 0);
    }
  }
}

TEST_CASE("checked accesses find nothing wrong with a program that declares what it does") {
  Report report;
  CHECK(run_chain({.device_budget = half, .check_access = true}, {}, Form::plain, report) == run_model());
  CHECK(report.iterations_followed == 0);
}

TEST_CASE("an undeclared write is found and names operation and tensor") {
  Manager manager(shared_backend(), {.device_budget = half, .check_access = true}, steady_plans());
  auto read = manager.tensor<Number>({chain_length}, "only read");
  auto written = manager.tensor<Number>({chain_length}, "written");
  read.upload(numbers(chain_length, 1));
  const std::string text = text_of<AccessViolation>([&] {
    run_kernel(
        manager, "wrong", Form::plain, kernels().affine, chain_length,
        [&](auto& op) { kernels().affine.set(op[written], op[read], Number{1}); }, reads(read), writes(written));
  });
  CHECK(says(text, {"\"wrong\""}));
  CHECK(says(text, {"only read"}));
}

TEST_CASE("parts of tensors are read and written in place") {
  constexpr std::size_t rows = 8;
  constexpr std::size_t columns = 256;
  Manager manager(shared_backend(), {.device_budget = Bytes{3 * rows * columns * sizeof(Number)}}, steady_plans());
  std::vector<NumberTensor> tensors;
  std::vector<Numbers> expected;
  for (Number i = 0; i < 4; ++i) {
    tensors.push_back(manager.tensor<Number>({rows, columns}, "t" + std::to_string(i)));
    expected.push_back(numbers(rows * columns, i));
    tensors.back().upload(expected.back());
  }
  for (Number round = 0; round < 8; ++round) {
    const auto iteration = manager.iteration("parts");
    for (std::size_t i = 0; i < 4; ++i) {
      // Rows 0 to 3 of one tensor make rows 4 to 7 of the next one; the other rows stay.
      const auto from = tensors[i].slice(0, 4);
      const auto to = tensors[(i + 1) % 4].slice(4, 4);
      run_affine(manager, i % 2 == 0 ? Form::plain : Form::with_event, "move", from, to, round);
      const auto flat = tensors[i].reshape({rows * columns});
      const auto arguments = [&](auto& op) { kernels().affine.set(op[flat], op[flat], round); };
      run_kernel(manager, "all", Form::plain, kernels().affine, flat.size(), arguments, updates(flat));
      for (std::size_t k = 0; k < 4 * columns; ++k) {
        expected[(i + 1) % 4][4 * columns + k] = 3 * expected[i][k] + round;
      }
      for (Number& number : expected[i]) number = 3 * number + round;
    }
  }
  CHECK(manager.report().iterations_followed > 3);
  CHECK(manager.report().swap_ins > 8);
  for (std::size_t i = 0; i < 4; ++i) CHECK(tensors[i].download() == expected[i]);
  const Numbers part = tensors[0].slice(2, 3).download();
  CHECK(std::equal(part.begin(), part.end(), expected[0].begin() + 2 * columns));
}

TEST_CASE("two kinds of iterations take turns, each by its own plan") {
  Manager manager(shared_backend(), {.device_budget = half}, steady_plans());
  Chain<opencl::Backend> chain(manager, layers, Form::with_event);
  ChainModel model(layers);
  std::vector<Numbers> outputs;
  std::vector<Numbers> expected;
  for (Number seed = 0; seed < 10; ++seed) {
    chain.iterate(seed);
    model.iterate(seed);
    {
      const auto iteration = manager.iteration("evaluate");
      chain.forward(1000 + seed);
      outputs.push_back(chain.output().download());
    }
    model.forward(1000 + seed);
    expected.push_back(model.output());
  }
  const Report report = manager.report();
  CHECK(outputs == expected);
  CHECK(same_weights(chain, model));
  CHECK(report.divergences == 0);
  CHECK(report.plans.size() == 2);
  CHECK(report.iterations_followed >= 12);
}

TEST_CASE("a program that does something else in mid-iteration goes on right, and is planned again") {
  Manager manager(shared_backend(), {.device_budget = half}, steady_plans());
  Chain<opencl::Backend> chain(manager, layers);
  ChainModel model(layers);
  auto extra = manager.tensor<Number>({chain_length}, "extra");
  Numbers expected_extra(chain_length);
  Number seed = 0;
  const auto usual = [&](Number until) {
    for (; seed < until; ++seed) {
      chain.iterate(seed);
      model.iterate(seed);
    }
  };
  const auto surprise = [&](std::size_t weight) {
    run_blend(manager, Form::plain, "surprise", chain.hidden[1], chain.weights[weight], extra);
    blend(model.hidden[1], model.weights[weight], expected_extra);
  };
  usual(6);
  const std::uint64_t followed = manager.report().iterations_followed;
  CHECK(followed == 3);
  {  // an operation between the forward and the backward part
    const auto iteration = manager.iteration("train");
    chain.forward(seed);
    model.forward(seed);
    surprise(layers - 1);
    chain.backward();
    model.backward();
  }
  CHECK(manager.report().divergences == 1);
  CHECK(says(manager.report().last_divergence, {"surprise"}));
  CHECK(extra.download() == expected_extra);
  usual(12);
  CHECK(manager.report().iterations_followed > followed + 2);
  {  // an iteration that ends early
    const auto iteration = manager.iteration("train");
    chain.forward(seed);
    model.forward(seed);
  }
  CHECK(manager.report().divergences == 2);
  surprise(0);  // outside any iteration
  usual(18);
  {  // the callable throws
    const auto iteration = manager.iteration("train");
    chain.forward(seed);
    model.forward(seed);
    CHECK_THROWS_AS(manager.run("backward7", reads(chain.hidden[7]), updates(chain.weights[7]),
                                [](auto&) { throw std::runtime_error("the program's own"); }),
                    std::runtime_error);
    model.weights[7] = numbers(chain_length, 3);
    chain.weights[7].upload(model.weights[7]);
    chain.backward();
    model.backward();
  }
  usual(24);
  CHECK(extra.download() == expected_extra);
  CHECK(chain.output().download() == model.output());
  CHECK(same_weights(chain, model));
}
