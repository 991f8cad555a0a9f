// SPDX-License-Identifier: Apache-2.0
// A plan that puts two tensors into the same device bytes, which no valid plan does, and what the program is told.
#include <doctest/doctest.h>

#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include <swapmm/runtime/book/compiled_plan.hpp>
#include <swapmm/runtime/book/program_book.hpp>
#include <swapmm/scheduler.hpp>

#include "support/small_program.hpp"
#include "support/tensor_names.hpp"
#include "support/weight_desk.hpp"

using namespace swapmm;
using namespace swapmm::test;
using namespace swapmm::literals;

namespace {

/// A desk whose plan brings one tensor to the place of another one that is on the device.
struct SharedBytesDesk : WeightDesk {
  SharedBytesDesk()
      : WeightDesk({}, {.device_budget = 256_bytes},
                   Scheduler({.planner = "on-demand", .sample_every = 0, .trial_iterations = 0})) {
    for (int i = 0; i < 2; ++i) increase_all("train");
    {
      const auto iteration = manager.iteration("train");  // learns from the last one
    }
    const auto cases = SchedulerAccess::book(manager.scheduler())->cases("train");
    REQUIRE(cases.size() == 1);
    auto& known = const_cast<runtime::PlanCase&>(cases.front());
    auto damaged = std::make_shared<runtime::CompiledPlan>(*known.plan);
    move_an_arrival(*damaged);
    known.plan = std::move(damaged);
  }

  /// The first tensor that arrives goes to the place of one that is there.
  void move_an_arrival(runtime::CompiledPlan& plan) {
    REQUIRE(plan.plan.initial.size() == 1);
    const Resident& there = plan.plan.initial[0];
    runtime::Step& arrival = plan.steps.at(0);
    REQUIRE(arrival.kind == CommandKind::swap_in);
    REQUIRE(arrival.offset != there.offset);
    arrival.offset = there.offset;
    arriving = plan.program.trace.tensors[arrival.role].name;
    staying = plan.program.trace.tensors[index(there.tensor)].name;
  }

  std::string arriving;
  std::string staying;
};

}  // namespace

TEST_CASE("two tensors in the same bytes are told by name when their plan is left, and the plan is given up") {
  SharedBytesDesk desk;
  desk.manager.synchronize();
  {
    const auto iteration = desk.manager.iteration("train");
    CHECK(desk.arriving == "w0");
    CHECK_THROWS_AS(desk.manager.run("increase", updates(desk.weights[0]), [](auto&) { throw 7; }), int);
    CHECK(desk.report().plan_starts == 1);
    CHECK(desk.report().last_divergence == "an operation threw");
  }
  const auto error = thrown<InternalError>([&] { desk.manager.synchronize(); });
  REQUIRE(error);
  CHECK(has_name(error->tensors(), desk.arriving));
  CHECK(has_name(error->tensors(), desk.staying));
  CHECK(names_are(error->lost(), {desk.staying}));  // the other one was lost with the operation
  desk.manager.synchronize();
  const Report report = desk.report();
  CHECK(report.plans.empty());
  REQUIRE(report.notes.size() == 1);
  CHECK(says(report.notes[0], {"\"train\"", "given up", "internal error"}));
  for (std::size_t i = 0; i < desk.weights.size(); ++i) {
    const auto& weight = desk.weights[i];
    if (weight.name() == desk.arriving || weight.name() == desk.staying) {
      CHECK_THROWS_AS((void)weight.download(), WorkFailed);
    } else {
      CHECK(holds(weight, static_cast<int>(i) + 2));
    }
  }
}
