// SPDX-License-Identifier: Apache-2.0
// What was followed, written down as if it had been observed.
#include <doctest/doctest.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include <swapmm/runtime/moves/followed_log.hpp>

#include "support/executor_desk.hpp"

namespace {

using namespace swapmm;
using namespace swapmm::test;
using namespace swapmm::literals;
using namespace std::chrono_literals;
using FollowedRecord = runtime::Record<NullBackend>;

/// An event as text: what, and the name of its operation or tensor.
std::vector<std::string> events_told(const runtime::IterationLog& log) {
  std::vector<std::string> lines;
  for (const runtime::LogEvent& event : log.events) {
    switch (event.what) {
      case runtime::LogEvent::What::operation: lines.push_back("run " + log.operations.at(event.index).name); break;
      case runtime::LogEvent::What::upload: lines.push_back("upload " + log.tensors.at(event.index).name); break;
      case runtime::LogEvent::What::download: lines.push_back("download " + log.tensors.at(event.index).name); break;
    }
  }
  return lines;
}

}  // namespace

TEST_CASE("followed events are logged one by one, with the bundles, the times and what is known of the tensors") {
  ExecutorDesk<> desk;
  FollowedRecord& x = desk.on_host("x");
  FollowedRecord& a = desk.on_host("a");
  a.value.outlives = 3;
  WrittenProgram program;
  program.handle(x).handle(a).local("local").scratch("second.scratch");
  program.upload(0).operation("first", {{0, Access::read}, {2, Access::write}}).download(0);
  program.operation("second", {{2, Access::read}, {1, Access::update}, {3, Access::write}}).download(1).end();
  FollowedRecord& local = desk.tensor("temporary");
  runtime::Drops<NullBackend> drops(desk.store, nullptr, false);
  runtime::RoleBinding<NullBackend> roles(desk.store, drops);
  runtime::BoundRoles<NullBackend> bound(4);
  bound.records = {&x, &a, &local, nullptr};
  roles.start(program.program(), std::move(bound));
  desk.store.records.end(local);

  runtime::IterationLog log;
  runtime::FollowedLog<NullBackend>(program.program(), roles, desk.store.iteration, log, 9).write(0, 6);

  CHECK(events_told(log) ==
        std::vector<std::string>{"upload x", "run first", "download x", "run second", "download a"});
  REQUIRE(log.operations.size() == 2);
  CHECK(log.operations[0].duration == 1us);
  CHECK(log.operations[1].duration == 2us);
  CHECK(log.operations[0].first_access == 0);
  CHECK(log.operations[0].access_count == 2);
  CHECK(log.operations[1].first_access == 2);
  CHECK(log.operations[1].access_count == 3);
  std::vector<std::string> accesses;
  for (const runtime::LogAccess& access : log.accesses) accesses.push_back(log.tensors.at(access.tensor).name);
  CHECK(accesses == std::vector<std::string>{"x", "temporary", "temporary", "a", "second.scratch"});
  CHECK(log.accesses[1].access == Access::write);
  CHECK(log.accesses[3].access == Access::update);
  REQUIRE(log.tensors.size() == 4);  // each of them once
  const runtime::LogTensor& first = log.tensors[0];
  CHECK(first.serial == x.tensor.serial);
  CHECK(first.record == x.id);
  CHECK(!first.created_inside);
  CHECK(!first.destroyed);
  const runtime::LogTensor& second = log.tensors[1];
  CHECK(second.serial == local.tensor.serial);
  CHECK(second.created_inside);
  CHECK(second.destroyed);
  CHECK(log.tensors[2].outlives == 3);
  CHECK(log.tensors[3].scratch());
  CHECK(log.tensors[3].bytes == place_bytes);
}

TEST_CASE("only the events that are asked for are logged, behind those that were logged before") {
  ExecutorDesk<> desk;
  FollowedRecord& a = desk.on_host("a");
  WrittenProgram program;
  program.handle(a).operation("first", {{0, Access::update}}).operation("second", {{0, Access::update}}).end();
  runtime::Drops<NullBackend> drops(desk.store, nullptr, false);
  runtime::RoleBinding<NullBackend> roles(desk.store, drops);
  runtime::BoundRoles<NullBackend> bound(1);
  bound.records = {&a};
  roles.start(program.program(), std::move(bound));
  runtime::IterationLog log;
  runtime::FollowedLog<NullBackend> writer(program.program(), roles, desk.store.iteration, log, 1);
  writer.write(1, 2);
  CHECK(events_told(log) == std::vector<std::string>{"run second"});
  writer.write(0, 1);
  CHECK(events_told(log) == std::vector<std::string>{"run second", "run first"});
  CHECK(log.operations[1].first_access == 1);
  CHECK(log.tensors.size() == 1);
}
