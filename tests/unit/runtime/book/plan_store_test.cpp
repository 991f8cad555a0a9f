// SPDX-License-Identifier: Apache-2.0
// Plans that outlive their manager: what the next one finds, and that nothing in a store can harm a program.
#include <doctest/doctest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <swapmm/backend/testing/simulated.hpp>
#include <swapmm/plan/planners.hpp>
#include <swapmm/swapmm.hpp>

#include "support/small_program.hpp"

using namespace swapmm;
using namespace swapmm::test;
using namespace swapmm::literals;

namespace {

/// A store in memory, and a planner that counts its calls.
struct Shelf {
  std::map<std::string, std::string> texts;
  std::vector<std::string> refused;
  std::size_t looked = 0;
  std::size_t kept = 0;
  std::size_t planned = 0;

  [[nodiscard]] SchedulerOptions options(std::size_t observe = 3) {
    SchedulerOptions options;
    options.observe = observe;
    options.trial_iterations = 0;
    options.planner = {"counting", [this](const Trace& trace, const Machine& machine) {
                         ++planned;
                         return make_plan("belady", trace, machine);
                       }};
    options.plan_store.find = [this](const std::string& key) -> std::optional<std::string> {
      ++looked;
      const auto found = texts.find(key);
      return found == texts.end() ? std::nullopt : std::optional(found->second);
    };
    options.plan_store.keep = [this](const std::string& key, const std::string& text) {
      ++kept;
      texts[key] = text;
    };
    options.plan_store.refused = [this](const std::string&, const std::string& why) { refused.push_back(why); };
    return options;
  }
};

/// What a program did: its values say whether a plan harmed it.
struct Outcome {
  Report report;
  std::shared_ptr<const Plan> plan;
};

/// By operations: iterations that begin with uploads are others.
std::vector<Tensor<int, Simulated>> written_tensors(MemoryManager<Simulated>& manager) {
  std::vector<Tensor<int, Simulated>> tensors;
  for (int i = 0; i < 6; ++i) {
    tensors.push_back(manager.tensor<int>({length}, "w" + std::to_string(i)));
    set(manager, tensors.back(), i + 1);
  }
  return tensors;
}

/// Six tensors of which four fit into 256 bytes, in iterations of `period` kinds, which use the tensors from `first`
/// on, from the next one on, and so on. Checks every value at the end.
Outcome run(SchedulerOptions options, int iterations, Bytes budget = 256_bytes, std::size_t period = 1,
            std::size_t first = 0) {
  Simulated device;
  Outcome outcome;
  {
    MemoryManager<Simulated> manager(device, {.device_budget = budget}, Scheduler(std::move(options)));
    auto weights = written_tensors(manager);
    std::vector<int> expected{1, 2, 3, 4, 5, 6};
    for (int i = 0; i < iterations; ++i) {
      auto iteration = manager.iteration("train");
      for (std::size_t w = first + static_cast<std::size_t>(i) % period; w < 6; ++w) {
        increase(manager, weights[w], 1);
        ++expected[w];
      }
      if (std::optional<PlanningJob> job = manager.scheduler().planning_job()) job->run();
    }
    outcome = {manager.report(), manager.scheduler().plan("train")};
    for (std::size_t w = 0; w < 6; ++w) CHECK(holds(weights[w], expected[w]));
  }
  check_clean(device);
  return outcome;
}

Machine named_machine(std::string name) {
  Machine machine;
  machine.name = std::move(name);
  machine.h2d.bytes_per_second = 1'000'000'000;
  machine.d2h.bytes_per_second = 1'000'000'000;
  return machine;
}

}  // namespace

TEST_CASE("the next manager follows the plan of the one before after one observed iteration, and makes none") {
  Shelf shelf;
  const Outcome first = run(shelf.options(), 10);
  CHECK(first.report.iterations_followed == 7);
  CHECK(first.report.plans_found == 0);
  CHECK(shelf.planned == 1);
  REQUIRE(shelf.texts.size() == 1);
  CHECK(shelf.texts.begin()->first.size() == 64);

  const Outcome second = run(shelf.options(), 10);
  CHECK(second.report.iterations_followed == 9);
  CHECK(second.report.plans_found == 1);
  CHECK(second.report.notes.empty());
  CHECK(shelf.planned == 1);
  CHECK(shelf.kept == 1);
  REQUIRE(second.plan != nullptr);
  CHECK(second.plan->commands == first.plan->commands);
  CHECK(second.plan->initial == first.plan->initial);
}

TEST_CASE("a plan of the store is followed at once, whoever makes plans, and its promise is for this run's times") {
  Shelf shelf;
  (void)run(shelf.options(), 10);
  std::string& text = shelf.texts.begin()->second;
  const std::string member = "\"iteration_ns\": ";
  const std::size_t at = text.find(member) + member.size();
  text.replace(at, text.find(',', at) - at, "987654321");
  SchedulerOptions options = shelf.options();
  options.planning = Planning::deferred;
  const Outcome second = run(std::move(options), 10);
  CHECK(second.report.iterations_followed == 9);
  REQUIRE(second.plan != nullptr);
  CHECK(second.plan->predicted.iteration.count() > 0);
  CHECK(second.plan->predicted.iteration.count() < 1'000'000);
  CHECK(shelf.planned == 1);
}

TEST_CASE("the plan of a cycle of several iterations is found when the cycle was seen once") {
  Shelf shelf;
  const Outcome first = run(shelf.options(2), 20, 256_bytes, 3);
  CHECK(first.report.iterations_followed == 14);
  const Outcome second = run(shelf.options(2), 20, 256_bytes, 3);
  CHECK(second.report.iterations_followed == 17);
  CHECK(second.report.plans_found == 1);
  CHECK(shelf.planned == 1);
}

TEST_CASE("a plan for one iteration of a longer cycle is found first, and gives way to the cycle's plan") {
  Shelf shelf;
  (void)run(shelf.options(2), 10);
  const Outcome cycle = run(shelf.options(2), 20, 256_bytes, 2);
  CHECK(cycle.report.plans_found == 1);
  CHECK(shelf.planned == 2);
  REQUIRE(cycle.plan != nullptr);
  REQUIRE(!cycle.report.plans.empty());
  CHECK(cycle.report.plans.front().iterations_per_cycle == 2);
  CHECK(cycle.report.iterations_followed >= 16);
}

TEST_CASE("another budget, planner, program or device does not find the plan") {
  Shelf shelf;
  (void)run(shelf.options(), 10);
  CHECK(run(shelf.options(), 10, 320_bytes).report.plans_found == 0);
  CHECK(shelf.planned == 2);
  CHECK(run(shelf.options(), 10, 256_bytes, 1, 1).report.plans_found == 0);
  CHECK(shelf.planned == 3);
  SchedulerOptions named = shelf.options();
  named.planner = "belady";
  CHECK(run(std::move(named), 10).report.plans_found == 0);
  SchedulerOptions on_another = shelf.options();
  on_another.machine = named_machine("another");
  CHECK(run(std::move(on_another), 10).report.plans_found == 0);
  CHECK(shelf.texts.size() == 5);
  SchedulerOptions unnamed = shelf.options();
  unnamed.planner = [](const Trace& trace, const Machine& machine) { return make_plan("belady", trace, machine); };
  const std::size_t looked = shelf.looked;
  CHECK(run(std::move(unnamed), 10).report.iterations_followed == 7);
  CHECK(shelf.looked == looked);
  CHECK(shelf.texts.size() == 5);
}

TEST_CASE("the speed of links and the durations of operations are no part of the key") {
  Shelf shelf;
  (void)run(shelf.options(), 10);
  SchedulerOptions faster = shelf.options();
  Simulated device;
  faster.machine = named_machine(std::string(device.capabilities().device_name));
  faster.machine->h2d.bytes_per_second = 77'000'000'000;
  faster.machine->d2h = {3'000'000, std::chrono::nanoseconds{20}};
  const Outcome second = run(std::move(faster), 10);
  CHECK(second.report.plans_found == 1);
  REQUIRE(second.plan != nullptr);
  CHECK(second.plan->machine.h2d.bytes_per_second == 77'000'000'000);
  CHECK(shelf.planned == 1);
}

TEST_CASE("what is no valid plan for the program is refused once, planned anew, and replaced") {
  Shelf whole;
  (void)run(whole.options(), 10);
  const std::string good = whole.texts.begin()->second;
  Shelf other;  // with other sizes in the way: a valid plan, but for another program
  (void)run(other.options(), 10, 256_bytes, 2);
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    const std::size_t at = text.find(from);
    REQUIRE(at != std::string::npos);
    return text.replace(at, from.size(), to);
  };
  const std::map<std::string, std::string> bad{
      {"empty", ""},
      {"no plan", "{\"format\": \"swapmm-trace\", \"version\": 1}"},
      {"bytes", std::string("\0\xff\x80{", 4)},
      {"truncated", good.substr(0, good.size() / 2)},
      {"foreign", other.texts.begin()->second},
      {"no such command", changed("\"kind\": \"swap_in\"", "\"kind\": \"swop_in\"")},
      {"a value that never goes to the host", changed("\"kind\": \"swap_out\"", "\"kind\": \"release\"")},
      {"a version of the future", changed("\"version\": 1", "\"version\": 2")},
  };
  for (const auto& each : bad) {
    for (const Planning planning : {Planning::immediate, Planning::deferred}) {
      CAPTURE(each.first);
      CAPTURE(planning == Planning::deferred);
      Shelf shelf;
      shelf.texts[whole.texts.begin()->first] = each.second;
      SchedulerOptions options = shelf.options();
      options.planning = planning;
      const Outcome outcome = run(std::move(options), 10);
      CHECK(outcome.report.iterations_followed >= 6);
      CHECK(outcome.report.plans_found == 0);
      CHECK(shelf.planned == 1);
      CHECK(shelf.refused.size() == 1);
      REQUIRE(outcome.report.notes.size() == 1);
      CHECK(says(outcome.report.notes[0], {"a plan of the store is ignored"}));
      CHECK(run(shelf.options(), 10).report.plans_found == 1);  // it was replaced
      CHECK(shelf.planned == 1);
    }
  }
}

TEST_CASE("functions of a store that throw, or that use the scheduler, are notes") {
  Shelf shelf;
  SchedulerOptions options = shelf.options();
  options.plan_store.find = [](const std::string&) -> std::optional<std::string> { throw std::runtime_error("gone"); };
  options.plan_store.keep = [](const std::string&, const std::string&) { throw 7; };
  const Outcome outcome = run(std::move(options), 10);
  CHECK(outcome.report.iterations_followed == 7);
  REQUIRE(outcome.report.notes.size() == 2);
  CHECK(says(outcome.report.notes[0], {"cannot be read", "gone"}));
  CHECK(says(outcome.report.notes[1], {"was not kept"}));
}

TEST_CASE("a store of which a function is missing does the rest") {
  Shelf shelf;
  SchedulerOptions only_keeps = shelf.options();
  only_keeps.plan_store.find = nullptr;
  CHECK(run(std::move(only_keeps), 10).report.iterations_followed == 7);
  REQUIRE(shelf.texts.size() == 1);
  SchedulerOptions only_finds = shelf.options();
  only_finds.plan_store.keep = nullptr;
  only_finds.plan_store.refused = nullptr;
  CHECK(run(std::move(only_finds), 10).report.iterations_followed == 9);
  shelf.texts.begin()->second = "nonsense";
  SchedulerOptions silent = shelf.options();
  silent.plan_store.refused = nullptr;
  CHECK(run(std::move(silent), 10).report.iterations_followed == 7);
}

TEST_CASE("plans for other budgets of one manager are found, too") {
  Shelf shelf;
  const auto program = [&] {
    Simulated device;
    MemoryManager<Simulated> manager(device, {.device_budget = 256_bytes}, Scheduler(shelf.options()));
    auto weights = written_tensors(manager);
    for (int i = 0; i < 12; ++i) {
      if (i == 6) manager.set_budget(320_bytes);
      auto iteration = manager.iteration("train");
      for (auto& weight : weights) increase(manager, weight, 1);
    }
    for (std::size_t w = 0; w < 6; ++w) CHECK(holds(weights[w], static_cast<int>(w) + 13));
    return manager.report();
  };
  CHECK(program().plans_found == 0);
  CHECK(shelf.planned == 2);
  CHECK(program().plans_found == 2);
  CHECK(shelf.planned == 2);
}

TEST_CASE("a program of more sequences than a book knows, which repeat for a while, does not ask the store for ever") {
  Shelf shelf;
  Simulated device;
  SchedulerOptions options = shelf.options(2);
  options.max_period = 32;
  MemoryManager<Simulated> manager(device, {.device_budget = 256_bytes}, Scheduler(options));
  auto tensors = written_tensors(manager);
  const auto round_the_ring = [&](int times) {
    for (int i = 0; i < times; ++i) {
      for (int j = 0; j < 4; ++j) {
        auto iteration = manager.iteration("step");
        for (int k = 0; k <= (i + j) % 24; ++k) increase(manager, tensors[static_cast<std::size_t>(k % 6)], 1);
      }
    }
  };
  round_the_ring(240);
  const std::size_t looked = shelf.looked;
  CHECK(looked > 256);
  const std::size_t planned = shelf.planned;
  round_the_ring(240);
  CHECK(shelf.looked - looked <= shelf.planned - planned);  // for cycles that came again
}
