// SPDX-License-Identifier: Apache-2.0
// Tensors that are made anew in each iteration, identified by the place where they first appear.
#include <doctest/doctest.h>

#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include <swapmm/runtime/observe/program.hpp>

namespace {

using namespace swapmm;
using namespace swapmm::runtime;

/// An iteration of operations on tensors that are known by their producers.
class YoungLog {
 public:
  std::uint32_t handle(std::uint64_t serial) { return add({.serial = serial, .bytes = Bytes{64}, .name = "h"}); }
  /// Made in this iteration.
  std::uint32_t made(std::uint64_t serial) {
    const auto index = static_cast<std::uint32_t>(log.tensors.size());
    return add({.serial = serial, .bytes = Bytes{64}, .name = "made", .created_inside = true, .producer = {0, index}});
  }
  /// Made `age` iterations ago, where it was entry `index` of the log.
  std::uint32_t old(std::uint64_t serial, std::uint32_t age, std::uint32_t index) {
    return add({.serial = serial, .bytes = Bytes{64}, .name = "old", .producer = {age, index}});
  }
  YoungLog& run(std::initializer_list<std::pair<std::uint32_t, Access>> accesses) {
    LogOperation operation;
    operation.name = "run";
    operation.first_access = static_cast<std::uint32_t>(log.accesses.size());
    for (const auto& [tensor, access] : accesses) log.accesses.push_back({tensor, access});
    operation.access_count = static_cast<std::uint32_t>(accesses.size());
    log.operations.push_back(operation);
    log.events.push_back({LogEvent::What::operation, static_cast<std::uint32_t>(log.operations.size() - 1)});
    return *this;
  }
  IterationLog log;

 private:
  std::uint32_t add(LogTensor tensor) {
    tensor.record = static_cast<std::uint32_t>(tensor.serial);
    log.tensors.push_back(tensor);
    return static_cast<std::uint32_t>(log.tensors.size() - 1);
  }
};

/// state' = f(state): a new tensor takes the place of the old one in each iteration. `before` and `now` are serials.
/// `apart`: the old one is last used before the new one is written.
IterationLog step(std::uint64_t before, std::uint64_t now, bool apart) {
  YoungLog log;
  const auto old = log.old(before, 1, apart ? 2 : 1);
  if (!apart) {
    const auto next = log.made(now);
    log.run({{old, Access::read}, {next, Access::write}});
    return log.log;
  }
  const auto between = log.made(now + 1000);
  log.run({{old, Access::read}, {between, Access::write}});
  const auto next = log.made(now);
  log.run({{between, Access::read}, {next, Access::write}});
  return log.log;
}

Result<Program> program_of(const std::vector<IterationLog>& logs) {
  std::vector<const IterationLog*> all;
  for (const IterationLog& log : logs) all.push_back(&log);
  return make_program(all, "test");
}
bool overlap(const std::vector<IterationLog>& logs) {
  std::vector<const IterationLog*> all;
  for (const IterationLog& log : logs) all.push_back(&log);
  return generations_overlap(all);
}

}  // namespace

TEST_CASE("iterations on other handles are the same if their tensors were made in the same places") {
  CHECK(identity(step(10, 11, true)) == identity(step(11, 12, true)));
  CHECK(identity(step(10, 11, false)) == identity(step(11, 12, false)));
  CHECK(identity(step(10, 11, true)) != identity(step(10, 11, false)));
  YoungLog a;
  a.run({{a.old(1, 1, 0), Access::read}});
  YoungLog b;
  b.run({{b.old(1, 2, 0), Access::read}});
  YoungLog c;
  c.run({{c.old(1, 1, 3), Access::read}});
  YoungLog handle;
  handle.run({{handle.handle(1), Access::read}});
  CHECK(identity(a.log) != identity(b.log));
  CHECK(identity(a.log) != identity(c.log));
  CHECK(identity(a.log) != identity(handle.log));
}

TEST_CASE("a tensor that is released late but not used again is local to its iteration") {
  YoungLog log;
  const auto weight = log.handle(1);
  const auto loss = log.made(2);
  log.run({{weight, Access::update}, {loss, Access::write}});
  const Result<Program> program = program_of({log.log});
  REQUIRE(program.has_value());
  CHECK(program->by_producer);
  CHECK(program->roles[1].kind == Role::Kind::local);
  CHECK(program->roles[1].carried == 0);
  CHECK(program->roles[1].appeared == 1);
  CHECK(program->trace.tensors[0].kind == TensorKind::persistent);
  CHECK(program->trace.tensors[1].kind == TensorKind::transient);
  CHECK(program->trace.host_reads.empty());
}

TEST_CASE("a state that is made anew has one role if its generations do not meet") {
  REQUIRE(!overlap({step(10, 11, true)}));
  const Result<Program> program = program_of({step(10, 11, true)});
  REQUIRE(program.has_value());
  REQUIRE(program->roles.size() == 2);
  const Role& state = program->roles[0];
  CHECK(state.kind == Role::Kind::local);
  CHECK(state.carried == 1);
  CHECK(state.appeared == 2);
  CHECK(program->roles[1].carried == 0);
  CHECK(program->trace.tensors[0].kind == TensorKind::persistent);
  CHECK(program->accesses[3].role == 0);  // the next generation is written in the place of the first
  CHECK(check_trace(program->trace));
}

TEST_CASE("generations that meet need a cycle of two iterations, in which they change places") {
  CHECK(overlap({step(10, 11, false)}));
  CHECK(!program_of({step(10, 11, false)}).has_value());
  const std::vector<IterationLog> two{step(10, 11, false), step(11, 12, false)};
  REQUIRE(!overlap(two));
  const Result<Program> program = program_of(two);
  REQUIRE(program.has_value());
  REQUIRE(program->roles.size() == 2);
  CHECK(program->roles[0].carried == 1);
  CHECK(program->roles[1].carried == 0);
  CHECK(program->accesses[0].role == 0);
  CHECK(program->accesses[1].role == 1);
  CHECK(program->accesses[2].role == 1);
  CHECK(program->accesses[3].role == 0);
  CHECK(program->trace.tensors[0].kind == TensorKind::persistent);
  CHECK(program->trace.tensors[1].kind == TensorKind::transient);
}

TEST_CASE("generations meet if the old one is used once more after the new one was written") {
  const auto used_again = [](std::uint64_t old_serial, std::uint64_t new_serial) {
    YoungLog log;
    const auto old = log.old(old_serial, 1, 1);
    const auto next = log.made(new_serial);
    log.run({{old, Access::update}}).run({{next, Access::write}}).run({{old, Access::read}, {next, Access::update}});
    return log.log;
  };
  CHECK(overlap({used_again(10, 11)}));
  CHECK(!program_of({used_again(10, 11)}).has_value());
  const std::vector<IterationLog> two{used_again(10, 11), used_again(11, 12)};
  REQUIRE(!overlap(two));
  const Result<Program> program = program_of(two);
  REQUIRE(program.has_value());
  REQUIRE(program->roles.size() == 2);
  CHECK(program->accesses[0].role == program->accesses[2].role);
  CHECK(program->accesses[1].role == program->accesses[3].role);
  CHECK(program->accesses[4].role == program->accesses[1].role);
}

TEST_CASE("the same log twice is a cycle of two iterations, too") {
  const IterationLog log = step(10, 11, false);
  const std::vector<IterationLog> two{log, log};
  CHECK(!overlap(two));
  CHECK(program_of(two).has_value());
}

TEST_CASE("a value that is used two iterations later needs a cycle of two") {
  const auto delayed = [](std::uint64_t serial) {
    YoungLog log;
    const auto old = log.old(serial, 2, 1);
    const auto next = log.made(serial + 2);
    log.run({{old, Access::read}}).run({{next, Access::write}});
    return log.log;
  };
  CHECK(overlap({delayed(1)}));
  CHECK(!overlap({delayed(1), delayed(2)}));
  const Result<Program> program = program_of({delayed(1), delayed(2)});
  REQUIRE(program.has_value());
  REQUIRE(program->roles.size() == 2);
  CHECK(program->roles[0].carried == 2);
  CHECK(program->roles[1].carried == 1);
}

TEST_CASE("a tensor that no iteration of the cycle makes is refused") {
  YoungLog log;
  const auto old = log.old(5, 1, 7);
  log.run({{old, Access::read}});
  CHECK(!program_of({log.log}).has_value());
}
