// SPDX-License-Identifier: Apache-2.0
// A plan that is not what the validator has seen: the library finds out, says so, gives the plan up, and goes on
// without it. The tests change compiled plans behind the library's back, as a fault of its own would.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <swapmm/backend/testing/simulated.hpp>
#include <swapmm/runtime/book/program_book.hpp>
#include <swapmm/runtime/moves/demand.hpp>
#include <swapmm/swapmm.hpp>

#include "support/small_program.hpp"
#include "support/tensor_names.hpp"
#include "support/weight_desk.hpp"

using namespace swapmm;
using namespace swapmm::test;
using namespace swapmm::literals;

namespace {

using runtime::CompiledPlan;
using runtime::Step;

/// Takes a step out, as if it had never been there.
void erase_step(CompiledPlan& plan, std::size_t position) {
  plan.steps.erase(plan.steps.begin() + static_cast<std::ptrdiff_t>(position));
  for (std::uint32_t& first : plan.first_step) first -= first > position ? 1 : 0;
}

/// The first step of that kind, of any role or of that one.
std::size_t find_step(const CompiledPlan& plan, CommandKind kind, std::uint32_t role = runtime::none) {
  const auto found = std::find_if(plan.steps.begin(), plan.steps.end(), [&](const Step& step) {
    return step.kind == kind && (role == runtime::none || step.role == role);
  });
  REQUIRE(found != plan.steps.end());
  return static_cast<std::size_t>(found - plan.steps.begin());
}

/// Six weights, of which four fit. Each round increases all of them by 1.
class BrokenPlanDesk {
 public:
  /// Observes, has a plan made, changes it, and follows it for some rounds. An operation that throws InternalError is
  /// asked for once more, as a value that was lost is given anew.
  explicit BrokenPlanDesk(const std::function<void(CompiledPlan&)>& damage) {
    for (int i = 0; i < 6; ++i) round(i == 2 ? damage : nullptr);
  }

  void round(const std::function<void(CompiledPlan&)>& damage = nullptr) {
    const auto iteration = desk_.manager.iteration("train");
    if (damage) replace_plan(damage);
    for (std::size_t i = 0; i < desk_.weights.size(); ++i) increase_one(i);
    ++rounds_;
  }

  /// Everything is as if nothing had happened, and the plan is gone.
  void check_on_demand() {
    for (std::size_t i = 0; i < desk_.weights.size(); ++i) {
      CHECK(holds(desk_.weights[i], static_cast<int>(i) + rounds_));
    }
    const Report report = desk_.report();
    CHECK(report.plans.empty());
    REQUIRE(report.notes.size() == 1);
    CHECK(says(report.notes[0], {"\"train\"", "given up", "internal error"}));
    REQUIRE(report.on_demand.size() == 1);
    CHECK(report.on_demand[0].iteration == "train");
    CHECK(report.on_demand[0].reason == OnDemandReason::no_plan);
    CHECK(says(report.on_demand[0].why, {"given up", "internal error"}));
    CHECK(report.device_used <= report.device_budget);
    const std::uint64_t on_demand = report.iterations_on_demand;
    round();
    round();
    CHECK(desk_.report().iterations_on_demand == on_demand + 2);
    for (std::size_t i = 0; i < desk_.weights.size(); ++i) {
      CHECK(holds(desk_.weights[i], static_cast<int>(i) + rounds_));
    }
    CHECK(probe(desk_.manager));  // another program, with a plan of its own
    CHECK(desk_.report().iterations_followed > report.iterations_followed);
  }

  [[nodiscard]] const std::vector<InternalError>& errors() const { return errors_; }
  [[nodiscard]] std::uint64_t id(std::size_t weight) const { return desk_.weights[weight].id(); }

 private:
  void replace_plan(const std::function<void(CompiledPlan&)>& damage) {
    const auto cases = SchedulerAccess::book(desk_.manager.scheduler())->cases("train");
    REQUIRE(cases.size() == 1);
    auto& known = const_cast<runtime::PlanCase&>(cases.front());
    auto damaged = std::make_shared<CompiledPlan>(*known.plan);
    damage(*damaged);
    known.plan = std::move(damaged);
  }

  void increase_one(std::size_t weight) {
    const auto before = queued_operations();
    try {
      increase(desk_.manager, desk_.weights[weight], 1);
      return;
    } catch (const InternalError& error) {
      errors_.push_back(error);
    }
    CHECK(queued_operations() == before);
    for (const TensorName& lost : errors_.back().lost()) {
      const std::size_t number = static_cast<std::size_t>(lost.name.at(1) - '0');
      const int value = static_cast<int>(number) + rounds_ + (number < weight ? 1 : 0);
      CHECK(lost.id == desk_.weights[number].id());
      CHECK_THROWS_AS((void)desk_.weights[number].download(), WorkFailed);
      desk_.weights[number].upload(std::vector<int>(length, value));
    }
    increase(desk_.manager, desk_.weights[weight], 1);
  }
  [[nodiscard]] std::uint64_t queued_operations() { return desk_.report().operations; }

  WeightDesk desk_{
      {}, {.device_budget = 256_bytes}, Scheduler({.planner = "on-demand", .sample_every = 0, .trial_iterations = 0})};
  int rounds_ = 0;
  std::vector<InternalError> errors_;
};

}  // namespace

TEST_CASE("a plan that does not bring a tensor fails that operation by name, and the rest runs without it") {
  std::string missing;
  BrokenPlanDesk desk([&](CompiledPlan& plan) {
    const std::size_t step = find_step(plan, CommandKind::swap_in);
    missing = plan.program.trace.tensors[plan.steps[step].role].name;
    erase_step(plan, step);
  });
  REQUIRE(desk.errors().size() == 1);
  const InternalError& error = desk.errors()[0];
  CHECK(error.operation() == "increase");
  CHECK(names_are(error.tensors(), {missing}));
  CHECK(error.lost().empty());
  CHECK(says(error.what(), {"\"increase\"", "internal error", missing, "no value is lost"}));
  desk.check_on_demand();
}

TEST_CASE("a plan that drops a value which is needed loses that one, by name") {
  std::string dropped;
  BrokenPlanDesk desk([&](CompiledPlan& plan) {
    const std::size_t step = find_step(plan, CommandKind::swap_out);
    dropped = plan.program.trace.tensors[plan.steps[step].role].name;
    plan.steps[step].kind = CommandKind::release;
  });
  REQUIRE(!desk.errors().empty());
  const InternalError& error = desk.errors()[0];
  CHECK(names_are(error.tensors(), {dropped}));
  CHECK(names_are(error.lost(), {dropped}));
  CHECK(says(error.what(), {"internal error", "undefined from now on", dropped}));
  desk.check_on_demand();
}

TEST_CASE("bytes above the budget are refused before they are booked, and the tensor is named") {
  using Backend = simulated::Backend;
  runtime::Store<Backend> store(Backend(), {.device_budget = 256_bytes});
  auto& tensor = store.records.add("large", 128_bytes, persistent, 1);
  store.book(192_bytes, runtime::Clock{});
  const auto error = thrown<InternalError>(
      [&] { store.book(tensor.bytes, runtime::Clock{}, runtime::Store<Backend>::When::after_clock, tensor.id); });
  REQUIRE(error);
  CHECK(names_are(error->tensors(), {"large"}));
  CHECK(says(error->what(), {"internal error", "128 bytes", "192", "256"}));
  CHECK(store.used() == 192_bytes);
}

TEST_CASE("a plan that swaps in what is on the device already fails before it books the bytes twice") {
  BrokenPlanDesk desk([&](CompiledPlan& plan) {
    const std::size_t step = find_step(plan, CommandKind::release);
    plan.steps[step] = plan.steps[find_step(plan, CommandKind::swap_in)];
    plan.steps.at(step).kind = CommandKind::swap_in;
  });
  REQUIRE(!desk.errors().empty());
  for (const InternalError& error : desk.errors()) CHECK(error.lost().empty());
  desk.check_on_demand();
}

TEST_CASE("a plan whose first places are not free is not begun") {
  BrokenPlanDesk desk([&](CompiledPlan& plan) {
    REQUIRE(!plan.plan.initial.empty());
    Resident second = plan.plan.initial[0];
    second.tensor = id_at<TensorId>((index(second.tensor) + 1) % 6);
    plan.plan.initial.push_back(second);
  });
  REQUIRE(desk.errors().size() == 1);
  CHECK(desk.errors()[0].operation() == "increase");
  CHECK(desk.errors()[0].tensors().size() == 1);
  CHECK(desk.errors()[0].lost().empty());
  desk.check_on_demand();
}

TEST_CASE("tensors in the same device bytes are both given up, and those that are nowhere else are lost by name") {
  using Backend = simulated::Backend;
  runtime::Store<Backend> store(Backend(), {.device_budget = 256_bytes});
  runtime::Demand<Backend> demand(store);
  demand.reserve(4);
  const auto settled = [&](const char* name, Bytes offset, bool on_host) -> runtime::Record<Backend>& {
    auto& record = store.records.add(name, 64_bytes, persistent, 1);
    store.assign_place(record, offset, store.addresses.at(offset, 64_bytes), runtime::Clock{});
    record.device.valid = true;
    record.host.valid = on_host;
    return record;
  };
  auto& alone = settled("alone", 0_bytes, false);
  auto& under = settled("under", 64_bytes, false);
  auto& over = settled("over", 96_bytes, true);
  const std::exception_ptr disorder = demand.rebuild_residents();
  REQUIRE(disorder != nullptr);
  const auto error = thrown<InternalError>([&] { std::rethrow_exception(disorder); });
  REQUIRE(error);
  CHECK(has_name(error->tensors(), "under"));
  CHECK(has_name(error->tensors(), "over"));
  CHECK(!has_name(error->tensors(), "alone"));
  CHECK(names_are(error->lost(), {"under"}));
  CHECK(alone.device.valid);
  CHECK(!under.has_value());
  CHECK(under.value.missing_reason == runtime::MissingReason::lost);
  CHECK(!over.device.valid);
  CHECK(over.host.valid);
  // What is left is booked once: the next call finds no disorder.
  CHECK(store.used() == 128_bytes);
  CHECK(demand.rebuild_residents() == nullptr);
  CHECK(error->details().tensors.size() == 2);
}
