// SPDX-License-Identifier: Apache-2.0
#pragma once

// A plan executor of its own, with programs and plans that are written down by hand.

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

#include <swapmm/runtime/book/compiled_plan.hpp>
#include <swapmm/runtime/moves/demand.hpp>
#include <swapmm/runtime/moves/plan_executor.hpp>

#include "support/null_backend.hpp"

namespace swapmm::test {

inline constexpr Bytes place_bytes{64};  ///< of each tensor and each work area

/// Writes a program down, event by event. Roles are numbered from 0 in the order in which they are made.
class WrittenProgram {
 public:
  WrittenProgram() { program_.first_access = {0}; }
  template <class Record>
  WrittenProgram& handle(const Record& record) {
    return role({runtime::Role::Kind::handle, record.id, record.tensor.serial, record.bytes, false}, record.name);
  }
  WrittenProgram& local(const std::string& name) {
    return role({runtime::Role::Kind::local, runtime::none, 0, place_bytes, false}, name);
  }
  WrittenProgram& scratch(const std::string& name) {
    return role({runtime::Role::Kind::scratch, runtime::none, 0, place_bytes, false}, name);
  }

  /// Operation i takes i + 1 microseconds. If it has a work area, that is the last access.
  WrittenProgram& operation(const std::string& name, const std::vector<runtime::RoleAccess>& bundle) {
    const std::size_t number = program_.trace.operations.size();
    TraceOperation described;
    described.name = name;
    described.duration = std::chrono::microseconds(number + 1);
    program_.trace.operations.push_back(described);
    program_.accesses.insert(program_.accesses.end(), bundle.begin(), bundle.end());
    program_.first_access.push_back(static_cast<std::uint32_t>(program_.accesses.size()));
    const std::uint32_t last = bundle.back().role;
    const bool works = program_.roles[last].kind == runtime::Role::Kind::scratch;
    program_.scratch_roles.push_back(works ? last : runtime::none);
    return event(runtime::Event::What::operation, static_cast<std::uint32_t>(number));
  }
  WrittenProgram& upload(std::uint32_t role) { return event(runtime::Event::What::upload, role); }
  WrittenProgram& download(std::uint32_t role) { return event(runtime::Event::What::download, role); }
  WrittenProgram& end() { return event(runtime::Event::What::end_of_iteration, 0); }

  [[nodiscard]] const runtime::Program& program() const { return program_; }

 private:
  WrittenProgram& role(runtime::Role role, const std::string& name) {
    program_.roles.push_back(role);
    program_.trace.tensors.push_back({name, role.bytes, TensorKind::transient, 0});
    return *this;
  }
  WrittenProgram& event(runtime::Event::What what, std::uint32_t index) {
    program_.events.push_back({what, index});
    return *this;
  }

  runtime::Program program_;
};

[[nodiscard]] inline Wait after_op(std::uint32_t operation) { return after_operation(id_at<OperationId>(operation)); }

[[nodiscard]] inline Command written_command(CommandKind kind, std::uint32_t role, Bytes offset,
                                             std::vector<Wait> after) {
  Command command;
  command.kind = kind;
  command.tensor = id_at<TensorId>(role);
  command.offset = offset;
  command.after = std::move(after);
  return command;
}

/// An executor and what it works on. Four places fit.
template <Backend B = NullBackend>
struct ExecutorDesk {
  using Rec = runtime::Record<B>;
  using Item = runtime::BundleItem<B>;

  explicit ExecutorDesk(std::size_t run_ahead = 2, B backend = B(true))
      : store(std::move(backend), Options{.device_budget = Bytes{256}}),
        demand(store),
        executor(store, demand, run_ahead) {
    demand.reserve(8);
  }

  /// A tensor that no operation has used.
  Rec& tensor(std::string_view name) { return store.records.add(name, place_bytes, persistent, store.iteration); }
  /// A tensor whose value is on the host.
  Rec& on_host(std::string_view name) {
    Rec& record = tensor(name);
    store.ensure_block(record);
    record.host.valid = true;
    return record;
  }

  using Change = std::function<void(runtime::CompiledPlan&)>;
  /// Starts to follow a plan, changed as a fault of the library would change it.
  void start(const WrittenProgram& program, std::vector<Resident> initial, std::vector<Command> commands,
             const Change& change = nullptr) {
    Plan plan;
    plan.initial = std::move(initial);
    plan.commands = std::move(commands);
    Result<runtime::CompiledPlan> compiled = runtime::compile(program.program(), std::move(plan));
    if (!compiled) FAIL(compiled.problem().message);
    auto followed = std::make_shared<runtime::CompiledPlan>(*std::move(compiled));
    if (change) change(*followed);
    executor.start(std::move(followed));
  }

  runtime::Grant<B> bring(const std::vector<Item>& items) {
    runtime::Grant<B> grant;
    executor.bring({"asked for", items, Bytes{}, false}, grant);
    return grant;
  }
  /// The operation that was brought is queued, and what comes behind it.
  void complete(const std::vector<Item>& items, const runtime::Clock& needs) {
    const auto waits = store.timeline.waits(QueueKind::compute, needs);
    store.timeline.gained(QueueKind::compute, waits);
    const runtime::QueuePoint point = executor.current_point();
    if (executor.current_is_recorded()) store.timeline.mark(QueueKind::compute);
    for (const Item& item : items) {
      item.record->device.busy.set(QueueKind::compute, point);
      if (item.access == Access::read) continue;
      item.record->device.ready.set(QueueKind::compute, point);
      item.record->device.valid = true;
      item.record->host.valid = false;
    }
    executor.complete();
  }
  void run(const std::vector<Item>& items) { complete(items, bring(items).needs); }

  /// Leaves the plan.
  std::exception_ptr stop() {
    return executor.stop([&](Rec& record) { reclaimed.push_back(&record); });
  }
  /// What is logged of the iteration so far.
  runtime::IterationLog log() {
    runtime::IterationLog log;
    executor.write_log(log, ++epoch_);
    return log;
  }

  runtime::Store<B> store;
  runtime::Demand<B> demand;
  runtime::PlanExecutor<B> executor;
  std::vector<Rec*> reclaimed;

 private:
  std::uint64_t epoch_ = 0;
};

}  // namespace swapmm::test
