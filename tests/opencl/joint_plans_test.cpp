// SPDX-License-Identifier: Apache-2.0
// Managers on two devices of one context that share the way to the host.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <swapmm/error.hpp>
#include <swapmm/measure_shared_links.hpp>
#include <swapmm/opencl/backend.hpp>
#include <swapmm/opencl/devices.hpp>
#include <swapmm/opencl/program.hpp>
#include <swapmm/runtime/joint/turn_board.hpp>
#include <swapmm/shared_links.hpp>

#include "opencl/support.hpp"
#include "opencl/two_devices.hpp"
#include "support/numbers.hpp"
#include "support/side_by_side.hpp"
#include "support/steady_plans.hpp"

namespace {

using namespace swapmm;
using namespace swapmm::test;

/// One for each of two devices in one context.
std::vector<opencl::Backend> two_backends() {
  std::vector<opencl::Backend> both{backend_with_neighbour()};
  both.emplace_back(both.front().context(), second_device());
  return both;
}

/// Links of which a tensor takes 4 us, so that plans cannot hide all copies.
SchedulerOptions slow_links() {
  SchedulerOptions options;
  Machine machine;
  machine.h2d = machine.d2h = {1'000'000'000, std::chrono::nanoseconds{0}};
  options.machine = machine;
  return steady(options);
}

const SideProgram program{.layers = 10, .numbers = 1024};

/// A manager with a training step, in less than half of the memory that it needs.
class Learner {
 public:
  Learner(const opencl::Backend& backend, const std::shared_ptr<SharedLinks>& links)
      : manager(backend, options(links), Scheduler(slow_links())),
        compiled_(backend, Kernels::source),
        blend_(compiled_.kernel("blend")),
        grow_(compiled_.kernel("grow")),
        input_(manager.tensor<Number>({program.numbers}, "input")),
        model_(program) {
    for (std::size_t i = 0; i < program.layers; ++i) {
      weights_.push_back(manager.tensor<Number>({program.numbers}, "w" + std::to_string(i)));
      weights_.back().upload(numbers(program.numbers, static_cast<Number>(100 + i)));
      results_.push_back(manager.tensor<Number>({program.numbers}, "r" + std::to_string(i), transient));
    }
  }

  void iterate(Number seed) {
    model_.iterate(seed);
    const auto iteration = manager.iteration("train");
    input_.upload(numbers(program.numbers, seed));
    for (std::size_t i = 0; i < program.layers; ++i) {
      const auto& from = i == 0 ? input_ : results_[i - 1];
      manager.run("forward", reads(from, weights_[i]), writes(results_[i]), [&](auto& op) {
        blend_.set(op[from], op[weights_[i]], op[results_[i]]).enqueue(op.queue(), {program.numbers});
      });
    }
    for (std::size_t i = program.layers; i-- > 0;) {
      manager.run("backward", reads(results_[i]), updates(weights_[i]), [&](auto& op) {
        grow_.set(op[results_[i]], op[weights_[i]]).enqueue(op.queue(), {program.numbers});
      });
    }
  }
  void check_values() {
    for (std::size_t i = 0; i < program.layers; ++i) {
      Numbers seen(program.numbers);
      weights_[i].download(seen);
      CHECK(seen == model_.weights()[i]);
    }
  }
  void check_plan() {
    const Report report = manager.report();
    INFO(report);
    REQUIRE(report.plans.size() == 1);
    CHECK(report.plans[0].devices == 2);
    CHECK(report.iterations_followed > 20);
    CHECK(report.device_peak <= report.device_budget);
  }

  MemoryManager<opencl::Backend> manager;

 private:
  static Options options(const std::shared_ptr<SharedLinks>& links) {
    Options options{.device_budget = Bytes{program.need().value * 2 / 5}};
    options.shared_links = links;
    return options;
  }

  opencl::Program compiled_;
  opencl::Kernel blend_;
  opencl::Kernel grow_;
  Tensor<Number, opencl::Backend> input_;
  std::vector<Tensor<Number, opencl::Backend>> weights_;
  std::vector<Tensor<Number, opencl::Backend>> results_;
  SideModel model_;
};

void learn_in_turn(Learner& first, Learner& second, Number steps) {
  for (Number i = 0; i < steps; ++i) {
    first.iterate(i);
    second.iterate(i + 100);
  }
}

/// Both follow one plan, and have the right values, after enough steps.
void check_both(Learner& first, Learner& second) {
  learn_in_turn(first, second, 40);
  for (Learner* const learner : {&first, &second}) {
    learner->check_values();
    learner->check_plan();
  }
}

}  // namespace

TEST_CASE("joint plans: backends that are made together can wait for each other") {
  const std::vector<opencl::Device> all = opencl::devices();
  const auto position_of = [&](cl_device_id id) {
    const auto same = [&](const opencl::Device& device) { return device.id == id; };
    return static_cast<std::size_t>(std::ranges::find_if(all, same) - all.begin());
  };
  const std::size_t first = position_of(first_backend().device());
  const std::size_t second = position_of(second_device());
  const std::array<std::size_t, 3> positions{first, second, first};
  std::ostringstream said;
  const std::vector<opencl::Backend> made = opencl::Backend::on_devices(positions, said);
  REQUIRE(made.size() == 3);
  for (std::size_t i = 0; i < made.size(); ++i) {
    CHECK(made[i].device() == all[positions[i]].id);
    for (const opencl::Backend& other : made) CHECK(made[i].can_wait_for(other));
  }
  // Each device is named once.
  std::string expected = "swapmm: " + opencl::describe(all[first], first);
  CHECK(said.str().starts_with(expected));
  CHECK(std::ranges::count(said.str(), '\n') == (first == second ? 1 : 2));
  const std::array<std::size_t, 2> none{first, all.size()};
  CHECK_THROWS_AS((void)opencl::Backend::on_devices(none, said), UsageError);
}

TEST_CASE("joint plans: managers on two devices follow one plan, bit for bit") {
  const auto before = objects_at_rest();
  {
    const auto links = std::make_shared<SharedLinks>(LinkCapacities{.both_ways = 1'000'000'000});
    const std::vector<opencl::Backend> backends = two_backends();
    Learner first(backends[0], links);
    Learner second(backends[1], links);
    check_both(first, second);
    CHECK(links->joint_plans() >= 1);
    const auto missed = [&] { return second.manager.report().turns_missed; };
    const std::uint64_t at_first = missed();  // before both followed it
    learn_in_turn(first, second, 5);
    CHECK(missed() == at_first);
  }
  CHECK(objects_at_rest() == before);
}

TEST_CASE("joint plans: each manager in a thread of its own") {
  const auto links =
      std::make_shared<SharedLinks>(LinkCapacities{.to_devices = 500'000'000, .from_devices = 500'000'000});
  const std::vector<opencl::Backend> backends = two_backends();
  Learner first(backends[0], links);
  Learner second(backends[1], links);
  // Until both follow the plan for both, and on.
  const auto run = [&](Learner& learner, Number seed) {
    for (Number i = 0; i < 60; ++i) learner.iterate(seed + i);
  };
  std::thread other([&] { run(second, 100); });
  run(first, 0);
  other.join();
  learn_in_turn(first, second, 10);
  first.check_values();
  second.check_values();
  CHECK(links->joint_plans() >= 1);
}

TEST_CASE("joint plans: a copy waits for what another device's manager has published") {
  std::vector<opencl::Backend> backends = two_backends();
  REQUIRE(backends[0].can_wait_for(backends[1]));
  runtime::TurnBoard<opencl::Backend> board;
  board.add(1, backends[0]);
  board.add(2, backends[1]);
  REQUIRE(board.all_can_wait());
  board.start(1, 5, 1, backends[0]);
  board.begin_round(1);

  // The first device's queue stands still until the gate opens.
  cl_int status = CL_SUCCESS;
  const opencl::Handle<cl_event> gate(clCreateUserEvent(backends[0].context(), &status));
  REQUIRE(status == CL_SUCCESS);
  opencl::Event gate_event = backends[0].make_event();
  cl_event raw = gate.get();
  REQUIRE(clRetainEvent(raw) == CL_SUCCESS);
  backends[0].adopt(gate_event, opencl::NativeEvent(raw));
  const opencl::Event* const wait = &gate_event;
  backends[0].wait(QueueKind::h2d, {&wait, 1});
  board.publish(1, 0, QueueKind::h2d, backends[0]);

  CHECK(!board.wait_for(1, 4, 1, 0, QueueKind::h2d, backends[1]));
  CHECK(!board.wait_for(1, 5, 2, 0, QueueKind::h2d, backends[1]));
  REQUIRE(board.wait_for(1, 5, 1, 0, QueueKind::h2d, backends[1]));
  opencl::Event after = backends[1].make_event();
  backends[1].record(QueueKind::h2d, after);
  backends[1].flush(QueueKind::h2d);
  CHECK(backends[1].status(after) == EventStatus::running);
  REQUIRE(clSetUserEventStatus(gate.get(), CL_COMPLETE) == CL_SUCCESS);
  backends[1].wait(after);
  CHECK(backends[1].status(after) == EventStatus::complete);
  board.stop(1);
  CHECK(!board.wait_for(1, 5, 1, 0, QueueKind::h2d, backends[1]));
}

TEST_CASE("joint plans: devices in contexts of their own cannot wait for each other, and are planned together") {
  const opencl::Backend one = backend_with_neighbour();
  const opencl::Backend other = backend_with_neighbour();
  CHECK(!one.can_wait_for(other));
  const auto links = std::make_shared<SharedLinks>(LinkCapacities{.both_ways = 1'000'000'000});
  Learner first(one, links);
  Learner second(other, links);
  check_both(first, second);
  CHECK(second.manager.report().turns_taken + second.manager.report().turns_missed == 0);
}

TEST_CASE("joint plans: what the devices share can be measured") {
  std::vector<opencl::Backend> backends = two_backends();
  const LinkCapacities seen = measure_shared_links(std::span(backends), Bytes{1U << 20U});
  // Devices that are one processor share its memory, or its copies take so little that it does not show.
  for (const std::uint64_t rate : {seen.to_devices, seen.from_devices, seen.both_ways}) {
    if (rate != 0) CHECK(rate > 10'000'000);
  }
}
