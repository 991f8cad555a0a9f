// SPDX-License-Identifier: Apache-2.0
#pragma once

// A ProgramBook without a device: it is told what the iterations of a program were.

#include <doctest/doctest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <swapmm/interface/options.hpp>
#include <swapmm/interface/report.hpp>
#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/machine.hpp>
#include <swapmm/plan/plan.hpp>
#include <swapmm/plan/planners.hpp>
#include <swapmm/runtime/book/program_book.hpp>
#include <swapmm/runtime/observe/log.hpp>
#include <swapmm/runtime/observe/program.hpp>

namespace swapmm::test {

/// An iteration of one operation for each of `serials`, which updates the tensor of that serial number.
[[nodiscard]] inline runtime::IterationLog updates_of_tensors(const std::vector<std::uint64_t>& serials,
                                                              std::int64_t nanoseconds_each = 100) {
  runtime::IterationLog log;
  log.timed = true;
  for (const std::uint64_t serial : serials) {
    const auto number = static_cast<std::uint32_t>(log.operations.size());
    runtime::LogTensor tensor;
    tensor.serial = serial;
    tensor.record = static_cast<std::uint32_t>(serial);
    tensor.bytes = Bytes{64};
    tensor.name = "t" + std::to_string(serial);
    log.tensors.push_back(std::move(tensor));
    log.accesses.push_back({number, Access::update});
    log.operations.push_back({"update", number, 1, std::chrono::nanoseconds{nanoseconds_each}});
    log.events.push_back({runtime::LogEvent::What::operation, number});
  }
  return log;
}

/// `count` tensors, of which the first has that serial number. Four of them fill a budget of 256 bytes.
[[nodiscard]] inline runtime::IterationLog updates_from(std::uint64_t first_serial, std::size_t count = 6) {
  std::vector<std::uint64_t> serials;
  for (std::size_t i = 0; i < count; ++i) serials.push_back(first_serial + i);
  return updates_of_tensors(serials);
}

/// A book, and what a manager passes to it. Copies take one nanosecond for each byte.
struct ToldBook {
  explicit ToldBook(SchedulerOptions options = {}) : book(with_planner(std::move(options))) {
    machine.alignment = Bytes{16};
    machine.h2d.bytes_per_second = machine.d2h.bytes_per_second = 1'000'000'000;
    change_budget(Bytes{256});
  }

  /// New plans are kept without a trial.
  [[nodiscard]] static SchedulerOptions untried() {
    SchedulerOptions options;
    options.trial_iterations = 0;
    return options;
  }

  /// Returns the id of the sequence.
  std::uint64_t sees(const runtime::IterationLog& log, int times = 1, std::string_view name = "train") {
    std::uint64_t id = 0;
    for (int i = 0; i < times; ++i) id = book.observed(name, runtime::IterationLog(log), machine);
    return id;
  }
  /// An iteration fails.
  void fails(std::string_view name = "train") {
    runtime::IterationLog broken;
    broken.broken = true;
    (void)book.observed(name, std::move(broken), machine);
  }
  /// The first plan offered is followed for that many rounds of one iteration.
  void follows_rounds(int rounds, std::string_view name = "train") {
    const runtime::FollowablePtr started = first_offered(name);
    REQUIRE(started != nullptr);
    book.used(name, started);
    for (int i = 0; i < rounds; ++i) {
      book.followed(name, started, 0);
      book.round_ended(name, started, false);
    }
  }
  /// The first plan offered is started, and the program diverges from it into this iteration.
  void diverges_into(const runtime::IterationLog& log, std::string_view name = "train") {
    const runtime::FollowablePtr started = first_offered(name);
    if (started != nullptr) {
      book.used(name, started);
      book.diverged(name, started);
    }
    sees(log, 1, name);
  }
  [[nodiscard]] runtime::FollowablePtr first_offered(std::string_view name = "train") const {
    for (const runtime::PlanCase& known : book.cases(name)) {
      if (known.offered() != nullptr) return known.offered();
    }
    return nullptr;
  }
  /// Runs the pending task and installs its plan.
  void finish() {
    REQUIRE(book.pending_task() != nullptr);
    book.pending_task()->run();
    book.install_finished();
  }
  void change_budget(Bytes budget) {
    machine.device_budget = budget;
    book.prepare_budgets({budget});
    book.use_budget(budget);
  }
  void plan_for_budget(std::string_view name = "train") {
    book.plan_for_budget(
        name,
        [this] {
          ++machines_asked;
          return machine;
        },
        [](const runtime::Program&) { return true; });
  }
  /// A plan by another planner.
  [[nodiscard]] Plan plan_by(std::string_view maker, const runtime::IterationLog& log) const {
    const runtime::IterationLog* const logs = &log;
    Result<runtime::Program> program = runtime::make_program({&logs, 1}, "train");
    REQUIRE(program.has_value());
    Result<Plan> made = make_plan(maker, program->trace, machine);
    REQUIRE(made.has_value());
    return *std::move(made);
  }
  [[nodiscard]] runtime::FollowablePtr plan() const { return book.latest("train"); }
  /// Who made the plans, the last used first.
  [[nodiscard]] std::vector<std::string> makers(std::string_view name = "train") const {
    std::vector<std::string> names;
    for (const runtime::PlanCase& known : book.cases(name)) names.push_back(known.plan->plan.planner);
    return names;
  }
  [[nodiscard]] Report report() const {
    Report summary;
    book.summarize(summary);
    return summary;
  }

  Machine machine;
  std::function<Result<Plan>(const Trace&, const Machine&)> planner = [](const Trace& trace, const Machine& given) {
    return make_plan("belady", trace, given);
  };
  int planner_asked = 0;
  int machines_asked = 0;  ///< by plan_for_budget()
  runtime::ProgramBook book;

 private:
  [[nodiscard]] SchedulerOptions with_planner(SchedulerOptions options) {
    options.planner = [this](const Trace& trace, const Machine& given) {
      ++planner_asked;
      return planner(trace, given);
    };
    return options;
  }
};

}  // namespace swapmm::test
