// SPDX-License-Identifier: Apache-2.0
// Programs on a CUDA device, in little memory: their results are those of plain loops, bit for bit.

#include <doctest/doctest.h>

#include <cstddef>
#include <string>
#include <vector>

#include "cuda/support.hpp"
#include "support/steady_plans.hpp"

using namespace swapmm;
using namespace swapmm::test;

namespace {

using Manager = MemoryManager<cuda::Backend>;
using NumberTensor = Tensor<Number, cuda::Backend>;

constexpr std::size_t layers = 6;

}  // namespace

TEST_CASE("a chain is right on demand and by every planner, in all, half and a quarter of its memory") {
  for (const std::string planner : {"per-operation", "on-demand", "belady", "excess-overlap"}) {
    for (const std::uint64_t part : {1U, 2U, 4U}) {
      for (const Form form : {Form::plain, Form::with_event}) {
        SchedulerOptions options;
        options.planner = planner;
        Manager manager(cuda_backend({.nvtx = true}), {.device_budget = Bytes{chain_bytes(layers).value / part}},
                        steady_plans(options));
        Chain<cuda::Backend> chain(manager, layers, form);
        ChainModel model(layers);
        for (Number seed = 0; seed < 10; ++seed) {
          chain.iterate(seed);
          model.iterate(seed);
        }
        CHECK(manager.report().iterations_followed > 0);
        CHECK(manager.report().device_peak.value <= chain_bytes(layers).value / part);
        CHECK(chain.output().download() == model.output());
        CHECK(same_weights(chain, model));
      }
    }
  }
}

TEST_CASE("a captured iteration computes what the queued one does, however often it runs") {
  constexpr std::size_t count = 8;
  for (const std::uint64_t part : {1U, 2U}) {
    Manager manager(cuda_backend(), {.device_budget = Bytes{count / part * chain_tensor.value}}, steady_plans());
    std::vector<NumberTensor> fields;
    std::vector<Numbers> expected;
    for (Number i = 0; i < count; ++i) {
      fields.push_back(manager.tensor<Number>({chain_length}, "field" + std::to_string(i)));
      expected.push_back(numbers(chain_length, i));
      fields.back().upload(expected.back());
    }
    const auto body = [&] {
      for (std::size_t i = 0; i < count; ++i)
        run_grow(manager, Form::plain, "grow", fields[i], fields[(i + 1) % count]);
    };
    const auto model = [&] {
      for (std::size_t i = 0; i < count; ++i) grow(expected[i], expected[(i + 1) % count]);
    };
    const auto check = [&] {
      for (std::size_t i = 0; i < count; ++i) CHECK(fields[i].download() == expected[i]);
    };
    const auto iterate = [&] {
      const auto iteration = manager.iteration("grow");
      body();
    };
    for (int i = 0; i < 5; ++i) {
      iterate();
      model();
    }
    REQUIRE(manager.report().iterations_followed > 0);
    auto captured = manager.capture("grow", body);
    model();
    check();
    for (int i = 0; i < 20; ++i) {
      captured.launch();
      model();
    }
    check();
    iterate();
    model();
    captured.launch();
    model();
    check();
  }
}

TEST_CASE("a launch that the API refuses is the operation's error, and the manager works on") {
  Manager manager(cuda_backend(), {.device_budget = Bytes{std::uint64_t{1} << 20U}});
  auto a = manager.tensor<Number>({chain_length}, "a");
  a.upload(numbers(chain_length, 1));
  CHECK_THROWS_AS(manager.run("wrong", updates(a), [&](auto& op) { launch_wrongly(op.stream(), op[a].data()); }),
                  BackendError);
  CHECK(cudaPeekAtLastError() == cudaSuccess);
  a.upload(numbers(chain_length, 2));
  CHECK(a.download() == numbers(chain_length, 2));
}

TEST_CASE("links are measured") {
  cuda::Backend backend = cuda_backend();
  const cuda::Links links = backend.measure_links();
  MESSAGE("h2d " << links.h2d << ", d2h " << links.d2h << ", both " << links.h2d_with_d2h << " + " << links.d2h_with_h2d
                 << " bytes/s, " << links.copy_engines << " engines, kernel beside copies " << links.kernel_beside_h2d
                 << " " << links.kernel_beside_d2h << " " << links.kernel_beside_both);
  CHECK(links.h2d > 0);
  CHECK(links.d2h > 0);
  CHECK((links.copy_engines == 1 || links.copy_engines == 2));
}
