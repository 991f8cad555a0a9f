// SPDX-License-Identifier: Apache-2.0
// What a manager takes of the device and of the host, as the API saw it, and that a program that repeats itself takes
// nothing more.

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "opencl/support.hpp"
#include "support/chain.hpp"
#include "support/steady_plans.hpp"

using namespace swapmm;
using namespace swapmm::test;
using namespace swapmm::literals;

namespace {

using Manager = MemoryManager<opencl::Backend>;

constexpr std::size_t layers = 8;
const Bytes half{chain_bytes(layers).value / 2};

Bytes rounded_down(Bytes size, Bytes to) { return Bytes{size.value / to.value * to.value}; }

/// Operations behind which the runtime needs a point when it follows the plan: those that a command of the plan waits
/// for, and the last one, where the host's run-ahead is counted (runtime/book/compiled_plan.cpp).
std::size_t recorded_operations(const Plan& plan, std::size_t operations) {
  const auto n = static_cast<std::int32_t>(operations);
  std::set<std::int32_t> recorded{n - 1};
  for (const Command& command : plan.commands) {
    for (const Wait& wait : command.after) {
      if (wait.on == Wait::On::operation) recorded.insert(wait.index < 0 ? wait.index + n : wait.index);
    }
  }
  return recorded.size();
}

/// Operations before which the plan has something that they must wait for.
std::size_t waiting_operations(const Plan& plan, std::size_t operations) {
  std::set<std::size_t> waiting;
  for (const Command& command : plan.commands) {
    if (command.before_operation) waiting.insert(*command.before_operation % operations);
  }
  return waiting.size();
}

}  // namespace

TEST_CASE("a manager takes its budget from the device at once, rounded down to the alignment, and no byte more") {
  const opencl::Backend backend = shared_backend();
  const Bytes alignment = backend.capabilities().alignment;
  constexpr std::uint64_t mebibyte = Bytes{1_MiB}.value;
  for (const Bytes budget : {alignment, Bytes{alignment.value + 1}, Bytes{mebibyte - 1}, Bytes{mebibyte + 77}}) {
    reset_api_calls();
    Manager manager(backend, {.device_budget = budget});
    CHECK(api_calls().device_bytes == rounded_down(budget, alignment).value);
    CHECK(api_calls().buffers_made == 1);
    CHECK(manager.report().device_budget == rounded_down(budget, alignment));
  }
  reset_api_calls();
  Manager manager(backend, {.device_budget = half}, steady_plans());
  Chain<opencl::Backend> chain(manager, layers);
  for (Number seed = 0; seed < 8; ++seed) chain.iterate(seed);
  CHECK(manager.report().iterations_followed > 0);
  CHECK(manager.report().device_peak <= half);
  CHECK(api_calls().device_bytes == half.value);
}

TEST_CASE("a budget above the largest allocation is taken in arenas of that size") {
  const Bytes alignment = first_backend().capabilities().alignment;
  const std::uint64_t most = 3 * chain_tensor.value + alignment.value + 1;  // an arena holds three tensors
  const PretendedDeviceValue largest(CL_DEVICE_MAX_MEM_ALLOC_SIZE, most);
  const Bytes arena = rounded_down(Bytes{most}, alignment);
  for (const std::uint64_t budget : {arena.value, arena.value + alignment.value, 3 * arena.value - 1, half.value}) {
    reset_api_calls();
    Manager manager(shared_backend(), {.device_budget = Bytes{budget}});
    const Bytes taken = rounded_down(Bytes{budget}, alignment);
    CHECK(manager.report().device_budget == taken);
    CHECK(api_calls().device_bytes == taken.value);
    CHECK(api_calls().buffers_made == (taken.value + arena.value - 1) / arena.value);
  }
  Manager manager(shared_backend(), {.device_budget = half}, steady_plans());
  Chain<opencl::Backend> chain(manager, layers);
  ChainModel model(layers);
  for (Number seed = 0; seed < 8; ++seed) {
    chain.iterate(seed);
    model.iterate(seed);
  }
  CHECK(manager.report().iterations_followed == 5);
  CHECK(manager.report().swap_ins > 0);
  CHECK(chain.output().download() == model.output());
  CHECK(same_weights(chain, model));
}

TEST_CASE("the pinned host bytes that the API made are those of the report, and never above their budget") {
  for (const std::uint64_t budget :
       {std::uint64_t{0}, chain_tensor.value - 1, 5 * chain_tensor.value, ~std::uint64_t{0}}) {
    CAPTURE(budget);
    Manager manager(shared_backend(), {.device_budget = half, .pinned_budget = Bytes{budget}});
    reset_api_calls();
    Chain<opencl::Backend> chain(manager, layers);
    ChainModel model(layers);
    bool kept_to_it = true;
    for (Number seed = 0; seed < 8; ++seed) {
      chain.iterate(seed);
      model.iterate(seed);
      kept_to_it = kept_to_it && api_calls().host_bytes == manager.report().pinned_used.value &&
                   api_calls().host_bytes <= budget;
    }
    CHECK(kept_to_it);
    CHECK((api_calls().host_bytes > 0) == (budget >= chain_tensor.value));
    CHECK(manager.report().host_used.value > 5 * chain_tensor.value);
    CHECK(chain.output().download() == model.output());
    CHECK(same_weights(chain, model));
  }
}

TEST_CASE(
    "while a plan is followed the API makes no object, and is asked for no marker and barrier beyond the plan's") {
  for (const Form form : {Form::with_event, Form::plain}) {
    CAPTURE(form == Form::plain);
    const Number rounds = device_is_slow() ? 20 : 300;
    constexpr std::uint64_t operations = 2 * layers + 1;
    Manager manager(shared_backend(), {.device_budget = half, .queue_depth = 8}, steady_plans());
    Chain<opencl::Backend> chain(manager, layers, form);
    ChainModel model(layers);
    Number seed = 0;
    // Until each slot of the rings of events has been used once: from then on an event takes the place of another one.
    for (; seed < 100; ++seed) {
      chain.iterate(seed);
      model.iterate(seed);
    }
    const Report before = manager.report();
    const ApiObjects objects = api_objects();
    reset_api_calls();
    for (; seed < 100 + rounds; ++seed) {
      chain.iterate(seed);
      model.iterate(seed);
    }
    const ApiCalls calls = api_calls();
    const Report after = manager.report();
    CHECK(api_objects().memories == objects.memories);
    CHECK(api_objects().queues == objects.queues);
    // One more at most, however many rounds: the second host slot of x keeps its last use, and takes part from whatever
    // round on the host is far enough ahead of the device.
    CHECK(api_objects().events >= objects.events);
    CHECK(api_objects().events <= objects.events + 1);
    CHECK(after.iterations_followed == before.iterations_followed + rounds);
    CHECK(after.divergences == 0);
    CHECK(calls.buffers_made == 0);
    CHECK(calls.sub_buffers_made == 0);
    CHECK(calls.queues_made == 0);
    CHECK(calls.kernels == rounds * operations);
    CHECK(calls.writes == after.swap_ins - before.swap_ins);
    CHECK(calls.reads == after.swap_outs - before.swap_outs);
    CHECK(calls.writes > rounds);
    CHECK(calls.reads > rounds);

    const std::shared_ptr<const Plan> plan = manager.scheduler().plan("train");
    REQUIRE(plan != nullptr);
    if (form == Form::with_event) {
      // The operation takes the waits as a list and gives its event, and copies do the same.
      CHECK(calls.markers == 0);
      CHECK(calls.barriers == 0);
    } else {
      // One marker behind each operation that something waits for, and one barrier at most before one that waits: none
      // where the host has seen the end of what it would wait for.
      CHECK(calls.markers == rounds * recorded_operations(*plan, operations));
      CHECK(calls.barriers <= rounds * waiting_operations(*plan, operations));
      CHECK(calls.barriers <= after.queue_waits - before.queue_waits);
    }
    CHECK(chain.output().download() == model.output());
    CHECK(same_weights(chain, model));
  }
}

TEST_CASE("a followed iteration with uploads, downloads and parts of tensors makes no object either") {
  Manager manager(shared_backend(), {.device_budget = half, .queue_depth = 8}, steady_plans());
  Chain<opencl::Backend> chain(manager, layers, Form::with_event);
  Numbers target(chain_length);
  const std::size_t rows = chain_length / 4;
  auto parts = manager.tensor<Number>({chain_length}, "parts");
  parts.upload(numbers(chain_length, 5));
  Numbers expected = numbers(chain_length, 5);
  const auto iterate = [&](Number seed) {
    const auto iteration = manager.iteration("train");
    chain.forward(seed);
    for (std::size_t part = 0; part < 4; ++part) {
      const auto slice = parts.slice(part * rows, rows);
      const auto arguments = [&](auto& op) { kernels().affine.set(op[slice], op[slice], seed); };
      run_kernel(manager, "part", Form::with_event, kernels().affine, rows, arguments, updates(slice));
    }
    chain.backward();
    auto pending = chain.output().download_async(target);
    pending.wait();
    for (Number& number : expected) number = 3 * number + seed;
  };
  Number seed = 0;
  for (; seed < 100; ++seed) iterate(seed);
  const Report before = manager.report();
  const ApiObjects objects = api_objects();
  reset_api_calls();
  for (; seed < 150; ++seed) iterate(seed);
  CHECK(manager.report().iterations_followed == before.iterations_followed + 50);
  CHECK(api_objects() == objects);
  CHECK(api_calls().sub_buffers_made == 0);
  CHECK(api_calls().buffers_made == 0);
  CHECK(api_calls().barriers == 0);
  CHECK(api_calls().markers == 0);
  CHECK(parts.download() == expected);
}

TEST_CASE("sub-buffers that overlap are released in the opposite order in which they were made") {
  reset_api_calls();
  {
    Manager manager(shared_backend(), {.device_budget = half});
    auto whole = manager.tensor<Number>({chain_length}, "whole");
    whole.upload(numbers(chain_length, 5));
    const std::size_t rows = chain_length / 8;
    for (std::size_t part = 0; part < 8; ++part) {
      const auto slice = whole.slice(part * rows, rows);
      const auto arguments = [&](auto& op) { kernels().set.set(op[slice], static_cast<Number>(part)); };
      run_kernel(manager, "part", Form::plain, kernels().set, rows, arguments, writes(slice));
    }
    const auto arguments = [&](auto& op) { kernels().affine.set(op[whole], op[whole], Number{1}); };
    run_kernel(manager, "whole", Form::plain, kernels().affine, chain_length, arguments, updates(whole));
    Numbers expected(chain_length);
    for (std::size_t i = 0; i < chain_length; ++i) expected[i] = 3 * static_cast<Number>(i / rows) + 1;
    CHECK(whole.download() == expected);
  }
  CHECK(api_calls().sub_buffers_made > 8);
  CHECK(api_calls().sub_buffers_out_of_order == 0);
}

TEST_CASE("sub-buffers of thousands of places go in that order, too, and do not become ever more") {
  Manager manager(shared_backend(), {.device_budget = 1_MiB});
  auto stays = manager.tensor<Number>({chain_length}, "stays");
  stays.upload(numbers(chain_length, 5));
  const std::size_t step = static_cast<std::size_t>(shared_backend().capabilities().alignment.value) / sizeof(Number);
  reset_api_calls();
  std::int64_t most = 0;
  std::vector<std::optional<Tensor<Number, opencl::Backend>>> others(24);
  std::mt19937 random(1);
  for (std::size_t i = 0; i < 6000; ++i) {
    const std::size_t length = step * (1 + random() % 160);
    auto& passes = others[random() % others.size()];
    passes.reset();
    passes.emplace(manager.tensor<Number>({length}, "passes"));
    const auto arguments = [&](auto& op) { kernels().set.set(op[*passes], static_cast<Number>(i)); };
    run_kernel(manager, "pass", Form::plain, kernels().set, length, arguments, writes(*passes));
    if (i % 8 == 0) {
      const auto more = [&](auto& op) { kernels().affine.set(op[stays], op[stays], Number{1}); };
      run_kernel(manager, "stay", Form::plain, kernels().affine, chain_length, more, updates(stays));
    }
    most = std::max(most, api_objects().memories);
  }
  Numbers expected = numbers(chain_length, 5);
  for (int i = 0; i < 750; ++i) {
    for (Number& each : expected) each = 3 * each + 1;
  }
  CHECK(stays.download() == expected);
  CHECK(api_calls().sub_buffers_made > 4096);
  CHECK(api_calls().sub_buffers_out_of_order == 0);
  CHECK(most < 4400);
}

TEST_CASE("a place in the device's memory becomes a sub-buffer once") {
  Manager manager(shared_backend(), {.device_budget = Bytes{2 * chain_tensor.value}});
  std::vector<Tensor<Number, opencl::Backend>> tensors;
  for (const char* const name : {"a", "b", "c", "d"}) {
    tensors.push_back(manager.tensor<Number>({chain_length}, name));
    tensors.back().upload(numbers(chain_length, 1));
  }
  reset_api_calls();
  for (int round = 0; round < 50; ++round) {  // outside iterations: on demand, at whatever places are free
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      run_grow(manager, Form::plain, "move", tensors[i], tensors[(i + 1) % tensors.size()]);
    }
  }
  CHECK(api_calls().kernels == 200);
  CHECK(api_calls().writes >= 200);
  CHECK(api_calls().sub_buffers_made == 2);  // the budget has room for two
}

TEST_CASE("a tensor that fills the budget is the buffer itself, and no sub-buffer of it") {
  const ApiObjects at_rest = objects_at_rest();
  {
    Manager manager(shared_backend(), {.device_budget = chain_tensor});
    auto first = manager.tensor<Number>({chain_length}, "first");
    auto second = manager.tensor<Number>({chain_length}, "second");
    reset_api_calls();
    first.upload(numbers(chain_length, 1));
    second.upload(numbers(chain_length, 2));
    Numbers expected = numbers(chain_length, 1);
    for (Number round = 0; round < 20; ++round) {
      for (auto* const tensor : {&first, &second}) {
        const auto arguments = [&](auto& op) { kernels().affine.set(op[*tensor], op[*tensor], round); };
        run_kernel(manager, "in place", Form::plain, kernels().affine, chain_length, arguments, updates(*tensor));
      }
      for (Number& number : expected) number = 3 * number + round;
    }
    CHECK(first.download() == expected);
    CHECK(api_calls().sub_buffers_made == 0);
    CHECK(api_calls().writes == 40);
  }
  CHECK(api_objects() == at_rest);
}

TEST_CASE("when manager, tensors and backend are gone every object has ended, in any order") {
  const ApiObjects at_rest = objects_at_rest();
  for (int order = 0; order < 4; ++order) {
    CAPTURE(order);
    std::optional<opencl::Backend> backend(shared_backend());
    std::optional<Manager> manager(std::in_place, *backend, Options{.device_budget = half});
    std::optional<Chain<opencl::Backend>> chain(std::in_place, *manager, layers);
    Numbers target(chain_length);
    for (Number seed = 0; seed < 5; ++seed) chain->iterate(seed);
    std::optional pending(chain->output().download_async(target));  // work is still queued
    CHECK(api_objects() != at_rest);
    if (order % 2 == 0) backend.reset();
    if (order == 3) pending.reset();
    if (order >= 2) {
      chain.reset();
      manager.reset();
    } else {
      manager.reset();
      chain.reset();
    }
    pending.reset();
    backend.reset();
    CHECK(api_objects() == at_rest);
  }
}

TEST_CASE("a backend on its own context gives it back") {
  const ApiObjects at_rest = objects_at_rest();
  {
    const opencl::Backend backend = test::backend();
    CHECK(api_objects().contexts == at_rest.contexts + 1);
    const Manager manager(backend, {.device_budget = 1_MiB});
  }
  CHECK(api_objects() == at_rest);
}
