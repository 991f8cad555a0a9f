// SPDX-License-Identifier: Apache-2.0
// From what an iteration did to the trace that planners see, and the events that the executor expects.
#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include <swapmm/runtime/observe/program.hpp>

namespace {

using namespace swapmm;
using namespace swapmm::runtime;

// Writes logs as a program would. Tensors are known by their serial.
class LogWriter {
 public:
  std::uint32_t tensor(std::uint64_t serial, Bytes bytes = Bytes{64}) {
    LogTensor tensor;
    tensor.serial = serial;
    tensor.record = static_cast<std::uint32_t>(serial);
    tensor.bytes = bytes;
    tensor.name = "t" + std::to_string(serial);
    log.tensors.push_back(tensor);
    return static_cast<std::uint32_t>(log.tensors.size() - 1);
  }
  std::uint32_t local(std::uint64_t serial, Bytes bytes = Bytes{64}) {
    const std::uint32_t id = tensor(serial, bytes);
    log.tensors[id].created_inside = true;
    log.tensors[id].destroyed = true;
    return id;
  }
  LogWriter& operation(std::string name, std::initializer_list<std::pair<std::uint32_t, Access>> accesses,
                       Bytes scratch = {}) {
    LogOperation operation;
    operation.name = std::move(name);
    operation.duration = std::chrono::nanoseconds{100};
    operation.first_access = static_cast<std::uint32_t>(log.accesses.size());
    for (const auto& [tensor, access] : accesses) log.accesses.push_back({tensor, access});
    if (scratch.value != 0) {
      log.accesses.push_back({static_cast<std::uint32_t>(log.tensors.size()), Access::write});
      log.tensors.push_back({.bytes = scratch, .name = "scratch"});
    }
    operation.access_count = static_cast<std::uint32_t>(log.accesses.size()) - operation.first_access;
    log.operations.push_back(std::move(operation));
    log.events.push_back({LogEvent::What::operation, static_cast<std::uint32_t>(log.operations.size() - 1)});
    return *this;
  }
  LogWriter& upload(std::uint32_t tensor) {
    log.events.push_back({LogEvent::What::upload, tensor});
    return *this;
  }
  LogWriter& download(std::uint32_t tensor) {
    log.events.push_back({LogEvent::What::download, tensor});
    return *this;
  }

  IterationLog log;
};

Result<Program> program_of(const IterationLog& log) {
  const IterationLog* const logs[] = {&log};
  return make_program(logs, "test");
}
Result<Program> program_of(const IterationLog& first, const IterationLog& second) {
  const IterationLog* const logs[] = {&first, &second};
  return make_program(logs, "test");
}
// A program whose trace is one that planners take.
Program valid(Result<Program> program) {
  REQUIRE(program.has_value());
  const Check check = check_trace(program->trace);
  if (!check) FAIL_CHECK(check.problem().message);
  return *std::move(program);
}
TensorId id(std::size_t position) { return id_at<TensorId>(position); }
HostRead host_read(std::size_t tensor, std::size_t operation) { return {id(tensor), id_at<OperationId>(operation)}; }

}  // namespace

TEST_CASE("a tensor of the iteration that has its value from outside has no place in a plan") {
  LogWriter writer;
  const std::uint32_t batch = writer.local(7);
  writer.operation("first", {{writer.tensor(1), Access::update}}).operation("use", {{batch, Access::read}});
  const IterationLog* const logs[] = {&writer.log};
  const auto program = make_program(logs, "loop");
  REQUIRE(!program);
  CHECK(program.problem().message.find("\"t7\" is made anew for each iteration") != std::string::npos);
}

TEST_CASE("what an iteration reads before it writes is persistent, what it writes first is transient") {
  LogWriter w;
  const auto weight = w.tensor(1);
  const auto hidden = w.tensor(2);
  w.operation("forward", {{weight, Access::read}, {hidden, Access::write}});
  w.operation("backward", {{hidden, Access::read}, {weight, Access::update}});
  const Program program = valid(program_of(w.log));
  CHECK(program.trace.name == "test");
  REQUIRE(program.trace.tensors.size() == 2);
  CHECK(program.trace.tensors[0].kind == TensorKind::persistent);
  CHECK(program.trace.tensors[0].name == "t1");
  CHECK(program.trace.tensors[1].kind == TensorKind::transient);
  REQUIRE(program.trace.operations.size() == 2);
  CHECK(program.trace.operations[0].name == "forward");
  CHECK(program.trace.operations[1].name == "backward");
  CHECK(program.trace.operations[0].reads == std::vector{id(0)});
  CHECK(program.trace.operations[0].writes == std::vector{id(1)});
  CHECK(program.trace.operations[1].updates == std::vector{id(0)});
  CHECK(program.trace.operations[0].duration == std::chrono::nanoseconds{100});
  CHECK(program.trace.host_reads.empty());
  CHECK(program.roles[0].kind == Role::Kind::handle);
  CHECK(program.roles[0].serial == 1);
  REQUIRE(program.events.size() == 3);
  CHECK(program.events[2].what == Event::What::end_of_iteration);
}

TEST_CASE("an uploaded tensor is an input, available where the host filled it") {
  LogWriter w;
  const auto x = w.tensor(1);
  const auto y = w.tensor(2);
  const auto sum = w.tensor(3);
  w.upload(x);
  w.operation("first", {{x, Access::read}, {sum, Access::update}});
  w.upload(y);
  w.operation("second", {{y, Access::update}, {sum, Access::update}});
  const Program program = valid(program_of(w.log));
  CHECK(program.trace.tensors[0].kind == TensorKind::input);
  CHECK(program.trace.tensors[0].available_from == 0);
  const std::size_t second = program.events[2].index;
  CHECK(program.trace.tensors[second].name == "t2");
  CHECK(program.trace.tensors[second].kind == TensorKind::input);
  CHECK(program.trace.tensors[second].available_from == 1);
  CHECK(program.roles[second].input);
}

TEST_CASE("an upload behind the last operation is one of a value that is there for the last") {
  LogWriter w;
  const auto x = w.tensor(1);
  w.operation("only", {{w.tensor(2), Access::update}}).upload(x);
  const Result<Program> program = program_of(w.log);
  REQUIRE(program.has_value());
  CHECK(program->trace.tensors[1].name == "t1");
  CHECK(program->trace.tensors[1].kind == TensorKind::input);
  CHECK(program->trace.tensors[1].available_from == 0);
}

TEST_CASE("a tensor that the host fills twice is two tensors to the planner, and one to the program") {
  LogWriter w;
  const auto x = w.tensor(1);
  const auto sum = w.tensor(2);
  w.upload(x).operation("first", {{x, Access::read}, {sum, Access::update}});
  w.upload(x).operation("second", {{x, Access::read}, {sum, Access::update}});
  const Program program = valid(program_of(w.log));
  REQUIRE(program.trace.tensors.size() == 3);
  CHECK(program.trace.operations[0].reads != program.trace.operations[1].reads);
  CHECK(program.roles[0].serial == program.roles[2].serial);
}

TEST_CASE("a tensor used before and after its upload cannot be planned, and the reason names it") {
  LogWriter w;
  const auto x = w.tensor(1);
  w.operation("early", {{x, Access::read}});
  w.upload(x).operation("late", {{x, Access::read}});
  const Result<Program> program = program_of(w.log);
  REQUIRE(!program.has_value());
  CHECK(program.problem().message.find("\"t1\"") != std::string::npos);
}

TEST_CASE("a tensor that one iteration uses and the next one uploads cannot be planned as two either") {
  LogWriter first;
  first.operation("early", {{first.tensor(1), Access::read}});
  LogWriter second;
  const auto x = second.tensor(1);
  second.upload(x).operation("late", {{x, Access::read}});
  const Result<Program> program = program_of(first.log, second.log);
  REQUIRE(!program.has_value());
  CHECK(program.problem().message.find("\"t1\"") != std::string::npos);
}

TEST_CASE("an upload of a tensor that was written whole before it in the iteration is another value") {
  LogWriter w;
  const auto x = w.tensor(1);
  w.operation("fill", {{x, Access::write}}).operation("use", {{x, Access::read}});
  w.upload(x).operation("use again", {{x, Access::read}});
  const Program program = valid(program_of(w.log));
  CHECK(program.trace.tensors[0].kind == TensorKind::transient);
  CHECK(program.trace.tensors[1].kind == TensorKind::input);
}

TEST_CASE("a download is a host read of the value that the tensor has then") {
  LogWriter w;
  const auto a = w.tensor(1);
  const auto b = w.tensor(2);
  w.operation("first", {{a, Access::update}});
  w.download(a);
  w.operation("second", {{a, Access::update}, {b, Access::write}});
  w.download(b).download(b);
  const Program program = valid(program_of(w.log));
  CHECK(program.trace.host_reads == std::vector{host_read(0, 0), host_read(1, 1)});
}

TEST_CASE("a download before the iteration changes the value reads what the iteration before left") {
  LogWriter w;
  const auto a = w.tensor(1);
  const auto constant = w.tensor(2);
  w.download(a).download(constant);
  w.operation("first", {{a, Access::update}, {constant, Access::read}}).operation("second", {{a, Access::update}});
  const Program program = valid(program_of(w.log));
  // The constant is never changed: it reaches the host once, on the side.
  REQUIRE(program.trace.host_reads.size() == 1);
  CHECK(program.trace.host_reads[0].after_operation == id_at<OperationId>(1));
}

TEST_CASE("a download of what no operation changes is no copy in each iteration, wherever it comes") {
  LogWriter w;
  const auto constant = w.tensor(1);
  w.operation("first", {{constant, Access::read}}).download(constant).operation("second", {{constant, Access::read}});
  w.download(constant);
  CHECK(valid(program_of(w.log)).trace.host_reads.empty());
}

TEST_CASE("a download before the upload of a tensor reads what operations made of the upload before") {
  LogWriter w;
  const auto x = w.tensor(1);
  w.download(x).upload(x);
  w.operation("grow", {{x, Access::update}}).operation("read", {{x, Access::read}});
  const Program program = valid(program_of(w.log));
  REQUIRE(program.trace.host_reads.size() == 1);
  const HostRead& seen = program.trace.host_reads[0];
  CHECK(program.trace.tensors[index(seen.tensor)].kind == TensorKind::input);
  CHECK(seen.after_operation == id_at<OperationId>(1));
}

TEST_CASE("the host has what it uploaded: reading it back needs no copy") {
  LogWriter w;
  const auto x = w.tensor(1);
  w.upload(x).download(x).operation("use", {{x, Access::read}}).download(x);
  CHECK(valid(program_of(w.log)).trace.host_reads.empty());
  w.operation("change", {{x, Access::update}});
  CHECK(valid(program_of(w.log)).trace.host_reads.empty());
}

TEST_CASE("a value that must outlive its iteration and is written whole in it is kept by a copy on the host") {
  for (const bool by_lifetime : {true, false}) {
    LogWriter w;
    const auto a = w.tensor(1);
    w.log.tensors[a].lifetime = by_lifetime ? Lifetime::kept : Lifetime::observed;
    w.log.tensors[a].outlives = by_lifetime ? 0 : 1;
    w.operation("fill", {{a, Access::write}}).operation("use", {{a, Access::read}});
    const Program program = valid(program_of(w.log));
    CHECK(program.trace.tensors[0].kind == TensorKind::transient);
    CHECK(program.trace.host_reads == std::vector{host_read(0, 0)});
  }
}

TEST_CASE("a value that gets lost under the next one is kept behind its last use, if it must outlive its iteration") {
  // Written whole, used, and written whole again; the host may have read it in between.
  const auto host_reads = [](bool must_outlive, bool uses, bool downloads) {
    LogWriter w;
    const auto a = w.tensor(1);
    if (must_outlive) w.log.tensors[a].lifetime = Lifetime::kept;
    w.operation("fill", {{a, Access::write}});
    if (downloads) w.download(a);
    if (uses) w.operation("use", {{a, Access::read}});
    w.operation("fill again", {{a, Access::write}});
    return valid(program_of(w.log)).trace.host_reads;
  };
  using Reads = std::vector<HostRead>;
  CHECK(host_reads(true, false, false) == Reads{host_read(0, 0), host_read(0, 1)});
  CHECK(host_reads(true, true, false) == Reads{host_read(0, 1), host_read(0, 2)});
  CHECK(host_reads(true, true, true) == Reads{host_read(0, 0), host_read(0, 2)});
  CHECK(host_reads(false, true, true) == Reads{host_read(0, 0)});
  CHECK(host_reads(false, true, false).empty());
}

TEST_CASE("a value that gets lost under an upload is kept in the same way, where operations had changed it") {
  const auto host_reads = [](bool must_outlive) {
    LogWriter w;
    const auto x = w.tensor(1);
    if (must_outlive) w.log.tensors[x].lifetime = Lifetime::kept;
    w.upload(x).operation("grow", {{x, Access::update}}).operation("use", {{x, Access::read}});
    w.upload(x).operation("use again", {{x, Access::read}});
    return valid(program_of(w.log)).trace.host_reads;
  };
  CHECK(host_reads(true) == std::vector{host_read(0, 1)});
  CHECK(host_reads(false).empty());
}

TEST_CASE("what no operation of the iteration has touched is not kept by it") {
  LogWriter w;
  const auto a = w.tensor(1);
  const auto aside = w.tensor(2);
  for (const auto tensor : {a, aside}) w.log.tensors[tensor].lifetime = Lifetime::kept;
  w.download(a).download(aside).operation("fill", {{a, Access::write}});
  // The host reads what the last iteration left of a; of the other there is nothing to copy.
  const Result<Program> program = program_of(w.log);
  REQUIRE(program.has_value());
  CHECK(program->trace.host_reads == std::vector{host_read(0, 0)});
}

TEST_CASE(
    "a tensor that ends in its iteration is kept if it was declared so, for the host may read it before its end") {
  LogWriter w;
  const auto hidden = w.local(1);
  w.log.tensors[hidden].outlives = 1;
  w.operation("fill", {{hidden, Access::write}}).operation("use", {{hidden, Access::read}});
  CHECK(valid(program_of(w.log)).trace.host_reads.empty());
  w.log.tensors[hidden].lifetime = Lifetime::kept;
  CHECK(valid(program_of(w.log)).trace.host_reads == std::vector{host_read(0, 0)});
}

TEST_CASE("what the host read in another iteration like this one is copied only if a plan would drop it") {
  const auto made = [](bool earlier, bool now) {
    LogWriter w;
    const auto weight = w.tensor(1);
    const auto loss = w.tensor(2);
    w.operation("step", {{weight, Access::update}, {loss, Access::write}});
    if (now) w.download(loss);
    w.operation("next", {{weight, Access::update}});
    if (earlier) w.download(weight).download(loss);
    return w.log;
  };
  IterationLog log = made(false, false);
  add_downloads(log, made(true, false));
  REQUIRE(log.events.size() == 4);
  const Result<Program> seldom = program_of(log);
  REQUIRE(seldom.has_value());
  CHECK(seldom->trace.host_reads == std::vector{host_read(1, 1)});
  // An iteration after it has that from the log, and the one in which it reads itself reads both.
  IterationLog next = made(false, true);
  add_downloads(next, log);
  const Result<Program> both = program_of(next);
  REQUIRE(both.has_value());
  CHECK(both->trace.host_reads == std::vector{host_read(1, 0)});
  IterationLog reads = made(true, false);
  add_downloads(reads, log);
  CHECK(reads.events.size() == 4);
  const Result<Program> often = program_of(reads);
  REQUIRE(often.has_value());
  CHECK(often->trace.host_reads == std::vector{host_read(0, 1), host_read(1, 1)});
}

TEST_CASE("a value that the host read once, and that is overwritten although the tensor is persistent, is copied") {
  const auto made = [](bool reads) {
    LogWriter w;
    const auto tensor = w.tensor(1);
    w.operation("use", {{tensor, Access::read}}).operation("fill", {{tensor, Access::write}});
    if (reads) w.download(tensor);
    w.operation("fill again", {{tensor, Access::write}});
    if (reads) w.download(tensor);
    return w.log;
  };
  IterationLog log = made(false);
  add_downloads(log, made(true));
  const Result<Program> program = program_of(log);
  REQUIRE(program.has_value());
  CHECK(program->trace.tensors[0].kind == TensorKind::persistent);
  CHECK(program->trace.host_reads == std::vector{host_read(0, 1)});
}

TEST_CASE("an uploaded value that operations change and that must outlive its iteration is kept in the same way") {
  LogWriter w;
  const auto x = w.tensor(1);
  w.log.tensors[x].lifetime = Lifetime::kept;
  w.upload(x).operation("grow", {{x, Access::update}});
  CHECK(valid(program_of(w.log)).trace.host_reads == std::vector{host_read(0, 0)});
}

TEST_CASE("tensors made and destroyed inside have a role by place, handles by identity, work areas by operation") {
  LogWriter w;
  const auto weight = w.tensor(1);
  const auto hidden = w.local(2);
  w.operation("forward", {{weight, Access::read}, {hidden, Access::write}}, Bytes{32});
  const Program program = valid(program_of(w.log));
  REQUIRE(program.roles.size() == 3);
  CHECK(program.roles[0].kind == Role::Kind::handle);
  CHECK(program.roles[0].record == 1);
  CHECK(program.roles[1].kind == Role::Kind::local);
  CHECK(program.roles[2].kind == Role::Kind::scratch);
  for (const std::size_t nobody : {1U, 2U}) {  // which tensor it was says nothing of the next iteration
    CHECK(program.roles[nobody].record == runtime::none);
    CHECK(program.roles[nobody].serial == 0);
  }
  CHECK(program.roles[2].bytes == Bytes{32});
  CHECK(program.scratch_roles == std::vector<std::uint32_t>{2});
  CHECK(program.first_access == std::vector<std::uint32_t>{0, 3});
  CHECK(program.trace.operations[0].writes == std::vector{id(1), id(2)});
}

TEST_CASE("a tensor made or destroyed inside alone is known by its identity") {
  for (const bool made : {false, true}) {
    LogWriter w;
    const auto a = w.local(5);
    (made ? w.log.tensors[a].destroyed : w.log.tensors[a].created_inside) = false;
    w.operation("fill", {{a, Access::write}});
    const Program program = valid(program_of(w.log));
    CHECK(program.roles[0].kind == Role::Kind::handle);
    CHECK(program.roles[0].serial == 5);
    LogWriter other;
    other.local(6);
    other.log.tensors[0].created_inside = w.log.tensors[a].created_inside;
    other.log.tensors[0].destroyed = w.log.tensors[a].destroyed;
    other.operation("fill", {{0, Access::write}});
    CHECK(identity(other.log) != identity(w.log));
  }
}

TEST_CASE("of two iterations, handles are the same tensors in both, and locals are not") {
  LogWriter first;
  const auto u = first.tensor(1);
  const auto v = first.tensor(2);
  const auto h = first.local(7);
  first.operation("step", {{u, Access::read}, {v, Access::write}, {h, Access::write}});
  LogWriter second;
  const auto v2 = second.tensor(2);
  const auto u2 = second.tensor(1);
  const auto h2 = second.local(8);
  second.operation("step", {{v2, Access::read}, {u2, Access::write}, {h2, Access::write}});
  const Program program = valid(program_of(first.log, second.log));
  CHECK(program.trace.tensors.size() == 4);
  REQUIRE(program.trace.operations.size() == 2);
  CHECK(program.trace.operations[1].reads == std::vector{id(1)});
  CHECK(program.trace.operations[1].writes == std::vector{id(0), id(3)});
  CHECK(program.trace.tensors[0].kind == TensorKind::persistent);  // what the second leaves, the first reads
  CHECK(program.trace.tensors[1].kind == TensorKind::transient);
  REQUIRE(program.events.size() == 4);
  CHECK(program.events[1].what == Event::What::end_of_iteration);
}

TEST_CASE("what outlives one iteration needs no copy in a plan of two that both see") {
  LogWriter first;
  const auto a = first.tensor(1);
  first.log.tensors[a].outlives = 1;
  first.operation("fill", {{a, Access::write}});
  LogWriter second;
  const auto b = second.tensor(1);
  second.log.tensors[b].outlives = 1;
  second.operation("use", {{b, Access::read}});
  CHECK(valid(program_of(first.log, second.log)).trace.host_reads.empty());
}

TEST_CASE("an iteration without an operation, or one that broke, makes no program") {
  LogWriter empty;
  empty.upload(empty.tensor(1));
  CHECK(!program_of(empty.log).has_value());
  LogWriter broken;
  broken.operation("op", {{broken.tensor(1), Access::write}});
  broken.log.broken = true;
  CHECK(!program_of(broken.log).has_value());
}

TEST_CASE("iterations are the same if sizes, bundles, uploads and handles are, whatever names and times say") {
  const auto log = [](std::uint64_t handle, std::uint64_t local, Bytes bytes, Access access, bool uploads) {
    LogWriter w;
    const auto a = w.tensor(handle);
    const auto b = w.local(local, bytes);
    if (uploads) w.upload(a);
    w.operation("op", {{a, access}, {b, Access::write}});
    return w.log;
  };
  const auto key = identity(log(1, 2, Bytes{8}, Access::read, false));
  CHECK(identity(log(1, 99, Bytes{8}, Access::read, false)) == key);
  CHECK(identity(log(3, 2, Bytes{8}, Access::read, false)) != key);
  CHECK(identity(log(1, 2, Bytes{9}, Access::read, false)) != key);
  CHECK(identity(log(1, 2, Bytes{8}, Access::update, false)) != key);
  CHECK(identity(log(1, 2, Bytes{8}, Access::read, true)) != key);
  IterationLog renamed = log(1, 2, Bytes{8}, Access::read, false);
  renamed.operations[0].name = "other";
  renamed.operations[0].duration = std::chrono::nanoseconds{7};
  renamed.events.push_back({LogEvent::What::download, 0});
  CHECK(identity(renamed) == key);
}

TEST_CASE("iterations with the same accesses in other operations are not the same") {
  LogWriter one;
  one.operation("both", {{one.tensor(1), Access::read}, {one.tensor(2), Access::write}});
  LogWriter two;
  two.operation("first", {{two.tensor(1), Access::read}}).operation("second", {{two.tensor(2), Access::write}});
  CHECK(identity(one.log) != identity(two.log));
}
