// SPDX-License-Identifier: Apache-2.0
// Plans that tell host and file apart: the machine they are made for, and how the executor sees them.
#include <doctest/doctest.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/v2/plan.hpp>
#include <swapmm/runtime/book/tiered_plan.hpp>

#include "support/update_program.hpp"

namespace {

using namespace swapmm;
using namespace swapmm::runtime;
using namespace std::chrono_literals;

constexpr std::size_t staged_h2d = index(QueueKind::staged_h2d);
constexpr v2::MemoryId on_device{0};
constexpr v2::MemoryId in_host{1};
constexpr v2::MemoryId in_file{2};
constexpr v2::LinkId host_in{0};
constexpr v2::LinkId host_out{1};
constexpr v2::LinkId file_in{2};
constexpr v2::LinkId file_out{3};

/// Each operation takes 1 us.
Program timed_updates(std::size_t n) { return test::updates_of(n, 1us); }

/// Two tensors fit on the device. The host's link carries 64 bytes in 640 ns, the file's in 6,400 ns.
KnownMachine machine_with(std::uint64_t host_bytes) {
  KnownMachine machine;
  machine.device_budget = Bytes{128};
  machine.alignment = Bytes{64};
  machine.h2d = machine.d2h = {100'000'000, 0ns};
  Tiers& tiers = machine.tiers.emplace();
  tiers.host = Bytes{host_bytes};
  tiers.host_alignment = Bytes{64};
  tiers.file = AwayMemory{Bytes{1 << 20}, Bytes{4096}, {10'000'000, 0ns}, {10'000'000, 20ns}};
  return machine;
}

v2::Command copy(std::uint32_t tensor, v2::LinkId link, std::vector<Wait> after) {
  v2::Command command;
  command.kind = v2::CommandKind::copy;
  command.tensor = id_at<TensorId>(tensor);
  command.link = link;
  command.after = std::move(after);
  return command;
}
v2::Command to_place(v2::Command command, std::uint64_t offset) {
  command.offset = Bytes{offset};
  return command;
}
v2::Command before(v2::Command command, std::vector<std::uint32_t> operations) {
  command.before_operations = std::move(operations);
  return command;
}
v2::Command release(std::uint32_t tensor, v2::MemoryId memory, std::vector<Wait> after) {
  v2::Command command;
  command.tensor = id_at<TensorId>(tensor);
  command.memory = memory;
  command.after = std::move(after);
  return command;
}
Wait op(std::uint32_t i) { return after_operation(id_at<OperationId>(i)); }
Wait cmd(std::uint32_t i) { return after_command(id_at<CommandId>(i)); }
Wait previous(std::uint32_t i) {
  Wait wait = cmd(i);
  wait.previous = true;
  return wait;
}

/// Tensors 0 and 1 take turns in one place of the device, and go to the file and to the host. Tensor 2 stays.
v2::Plan turns(const Program& program, const KnownMachine& machine) {
  v2::Plan plan;
  plan.trace_digest = digest(program.trace);
  plan.machine = tiered_machine(machine);
  plan.initial = {{TensorId{0}, std::nullopt, v2::FormId::plain, on_device, Bytes{0}, true},
                  {TensorId{2}, std::nullopt, v2::FormId::plain, on_device, Bytes{64}, true},
                  {TensorId{1}, std::nullopt, v2::FormId::plain, in_host, Bytes{0}, true}};
  plan.commands = {
      to_place(copy(0, file_out, {op(0)}), 0),                       // 0
      release(0, on_device, {cmd(0)}),                               // 1
      before(to_place(copy(1, host_in, {cmd(1)}), 0), {1}),          // 2
      release(1, in_host, {cmd(2)}),                                 // 3
      to_place(copy(1, host_out, {op(1), cmd(3)}), 0),               // 4
      release(1, on_device, {cmd(4)}),                               // 5
      before(to_place(copy(0, file_in, {cmd(5), cmd(0)}), 0), {3}),  // 6
      release(0, in_file, {cmd(6)}),                                 // 7
  };
  plan.commands[0].after.push_back(previous(7));
  return plan;
}

std::string refusal(v2::Plan plan) {
  const Result<CompiledPlan> adopted = adopt_tiered_plan(timed_updates(3), std::move(plan), machine_with(64));
  return adopted ? std::string() : adopted.problem().message;
}

}  // namespace

TEST_CASE("the machine of a manager with a file has three memories, whose links share the host's") {
  const v2::Machine machine = tiered_machine(machine_with(256));
  REQUIRE(v2::check_machine(machine));
  REQUIRE(machine.memories.size() == 3);
  CHECK(machine.memories[index(on_device)].bytes == Bytes{128});
  CHECK(machine.memories[index(in_host)].bytes == Bytes{256});
  CHECK(machine.memories[index(in_file)].alignment == Bytes{4096});
  CHECK(machine.host == in_host);
  CHECK(machine.links[index(file_in)].from == in_file);
  CHECK(machine.links[index(file_out)].latency == 20ns);
  CHECK(machine.links[index(host_in)].capacities == machine.links[index(file_in)].capacities);
  CHECK(machine.capacities[0].bytes_per_second == 100'000'000);
  // Each copies at the same time as the others, unless one engine copies in both directions.
  CHECK(v2::engine_of(machine, host_in) != v2::engine_of(machine, file_in));
  KnownMachine half = machine_with(256);
  half.duplex = Duplex::half;
  CHECK(v2::engine_of(tiered_machine(half), host_out) == v2::engine_of(tiered_machine(half), file_in));
}

TEST_CASE("a neighbour is one more memory, whose links share nothing with the host's") {
  KnownMachine known = machine_with(256);
  known.tiers->neighbours[0] = AwayMemory{Bytes{512}, Bytes{128}, {400'000'000, 0ns}, {300'000'000, 5ns}};
  const v2::Machine machine = tiered_machine(known);
  REQUIRE(v2::check_machine(machine));
  REQUIRE(machine.memories.size() == 4);
  REQUIRE(machine.links.size() == 6);
  CHECK(machine.memories[2].name == "neighbour");
  CHECK(machine.memories[2].bytes == Bytes{512});
  CHECK(machine.memories[2].alignment == Bytes{128});
  CHECK(machine.memories[3].name == "file");
  CHECK(machine.links[2].name == "neighbour.in");
  CHECK(machine.links[2].bytes_per_second == 400'000'000);
  CHECK(machine.links[3].latency == 5ns);
  CHECK(machine.links[2].capacities.empty());
  CHECK(machine.links[4].capacities == machine.links[0].capacities);
  known.tiers->file.reset();
  CHECK(tiered_machine(known).memories.size() == 3);
  // There is something to choose even if the host has room for all.
  CHECK(needs_tiers(timed_updates(1), known));
}

TEST_CASE("several neighbours are several memories, and share what was measured that they carry together") {
  KnownMachine known = machine_with(256);
  known.tiers->neighbours[0] = AwayMemory{Bytes{512}, Bytes{64}, {400'000'000, 0ns}, {300'000'000, 0ns}};
  known.tiers->neighbours[2] = AwayMemory{Bytes{1024}, Bytes{64}, {200'000'000, 0ns}, {100'000'000, 0ns}};
  known.tiers->between_neighbours = {450'000'000, 0};
  known.tiers->with_host = {0, 380'000'000};
  const v2::Machine machine = tiered_machine(known);
  REQUIRE(v2::check_machine(machine));
  REQUIRE(machine.memories.size() == 5);
  CHECK(machine.memories[2].name == "neighbour");
  CHECK(machine.memories[3].name == "neighbour-3");
  CHECK(machine.memories[3].bytes == Bytes{1024});
  CHECK(machine.memories[4].name == "file");
  const auto shares = [&](std::size_t link) {
    std::vector<std::uint64_t> rates;
    for (const v2::CapacityId id : machine.links[link].capacities) {
      rates.push_back(machine.capacities[index(id)].bytes_per_second);
    }
    std::ranges::sort(rates);
    return rates;
  };
  using Rates = std::vector<std::uint64_t>;
  CHECK(shares(0) == Rates{100'000'000});               // host to device
  CHECK(shares(1) == Rates{100'000'000, 380'000'000});  // and back: with the neighbours
  CHECK(shares(2) == Rates{450'000'000});               // neighbours to device
  CHECK(shares(4) == Rates{450'000'000});
  CHECK(shares(3) == Rates{380'000'000});  // and back
  CHECK(shares(5) == Rates{380'000'000});
  CHECK(shares(6) == Rates{100'000'000});  // the file's values pass the host
  CHECK(shares(7) == Rates{100'000'000, 380'000'000});
  CHECK(knows(Home::neighbour_3, {.trace_digest = {}, .machine = machine}));
  CHECK_FALSE(knows(Home::neighbour_2, {.trace_digest = {}, .machine = machine}));
}

TEST_CASE("taken as one memory, neighbours are filled in their order") {
  const Program program = timed_updates(4);  // 256 bytes
  KnownMachine known = machine_with(1024);   // a byte takes 10 ns in the host
  known.tiers->neighbours[0] = AwayMemory{Bytes{64}, Bytes{64}, {1'000'000'000, 0ns}, {1'000'000'000, 0ns}};
  known.tiers->neighbours[1] = AwayMemory{Bytes{64}, Bytes{64}, {200'000'000, 0ns}, {200'000'000, 0ns}};
  // 64 bytes of 1 ns, 64 of 5 ns, and 128 of 10 ns.
  CHECK(as_one_memory(program, known).h2d.bytes_per_second == 153'846'153);
}

TEST_CASE("a plan tells host and file apart if the host has room for some values and not for all") {
  const Program program = timed_updates(3);
  CHECK(!needs_tiers(program, machine_with(0)));
  CHECK(needs_tiers(program, machine_with(64)));
  CHECK(needs_tiers(program, machine_with(191)));
  CHECK(!needs_tiers(program, machine_with(192)));
  KnownMachine without = machine_with(64);
  without.tiers.reset();
  CHECK(!needs_tiers(program, without));
}

TEST_CASE("taken as one memory, host and file are as fast as both are for an average byte") {
  const Program program = timed_updates(4);
  // A byte takes 10 ns in the host, and 100 ns in the file.
  CHECK(as_one_memory(program, machine_with(0)).h2d == Link{10'000'000, 0ns});
  CHECK(as_one_memory(program, machine_with(256)).h2d == Link{100'000'000, 0ns});
  CHECK(as_one_memory(program, machine_with(1024)).d2h == Link{100'000'000, 0ns});
  CHECK(as_one_memory(program, machine_with(128)).h2d.bytes_per_second == 18'181'818);  // 55 ns
  CHECK(as_one_memory(program, machine_with(128)).d2h.latency == 10ns);
}

TEST_CASE("the executor follows what a plan does with the device, each copy in the queue of its memory") {
  Program program = timed_updates(3);
  // A fourth operation uses the first tensor again.
  program.trace.operations.push_back(program.trace.operations[0]);
  program.first_access.push_back(4);
  program.accesses.push_back({0, Access::update});
  program.scratch_roles.push_back(none);
  program.events.insert(program.events.end() - 1, {Event::What::operation, 3});
  const KnownMachine machine = machine_with(64);
  v2::Plan plan = turns(program, machine);
  Result<CompiledPlan> adopted = adopt_tiered_plan(program, plan, machine);
  if (!adopted) FAIL(adopted.problem().message);
  REQUIRE(adopted->plan.commands.size() == 6);
  REQUIRE(adopted->steps.size() == 6);
  std::vector<const Step*> copies;
  for (const Step& step : adopted->steps) {
    if (step.kind == CommandKind::swap_in || step.kind == CommandKind::swap_out) copies.push_back(&step);
  }
  REQUIRE(copies.size() == 4);
  CHECK(copies[0]->copy.home == Home::file);
  CHECK(!copies[0]->copy.ends);
  CHECK(copies[1]->copy.home == Home::host);
  CHECK(copies[1]->copy.ends);
  CHECK(copies[2]->copy.home == Home::host);
  CHECK(copies[3]->copy.home == Home::file);
  CHECK(copies[3]->copy.ends);
  // The first copy waits for the end of its place in the file: for the copy of the round before.
  CHECK(copies[0]->needs.back[staged_h2d] == 1);
  CHECK(adopted->points == std::array<std::uint32_t, device_queue_count>{3, 1, 1, 1, 1});
  CHECK(adopted->begins_in == std::vector<std::optional<Home>>{std::nullopt, Home::host, std::nullopt});
  // Of 4 operations the second one waits for 6,400 + 640 ns, the fourth for 640 + 6,400 ns, each without what runs
  // beside.
  CHECK(adopted->plan.predicted.compute == 4us);
  CHECK(adopted->plan.predicted.iteration == 4us + 7040ns + 6040ns + 20ns);
  CHECK(adopted->plan.predicted.h2d == Bytes{128});
  CHECK(bytes_of(Home::file, *adopted->tiered) == std::pair(Bytes{64}, Bytes{64}));
  REQUIRE(adopted->stalls.size() == 2);
  CHECK(adopted->stalls[0].time == 7060ns);
  // With a file that is as fast as the host, it takes less.
  KnownMachine fast = machine;
  fast.tiers->file->in = fast.tiers->file->out = machine.h2d;
  CHECK(tiered_iteration(program.trace, *adopted->tiered, fast) == 4us + 1280ns + 280ns);
}

TEST_CASE("a plan is refused that needs more of the host than it has, or that is for another program") {
  const v2::Plan plan = turns(timed_updates(3), machine_with(64));
  CHECK(refusal(plan) == "");
  v2::Plan high = plan;
  high.commands[4].offset = Bytes{64};
  CHECK(refusal(high).starts_with("the plan is not valid: "));
  v2::Plan early = plan;
  early.commands[4].after = {cmd(3)};  // the operation that changes the value may not have run
  CHECK(refusal(early).starts_with("the plan is not valid: "));
  v2::Plan other = plan;
  other.trace_digest = digest(timed_updates(4).trace);
  CHECK(refusal(other).starts_with("the plan is not valid: "));
}

TEST_CASE("plans of the planners for host and file are followed, and keep both budgets") {
  for (const std::uint64_t host : {64U, 128U, 192U}) {
    for (const std::string planner : {"belady", "best", "on-demand", "per-operation"}) {
      CAPTURE(host);
      CAPTURE(planner);
      const KnownMachine machine = machine_with(host);
      const Result<CompiledPlan> made = make_tiered_plan(planner, timed_updates(5), machine, {});
      if (!made) FAIL(made.problem().message);
      REQUIRE(made->tiered);
      CHECK(made->plan.predicted.peak <= Bytes{128});
      CHECK(made->plan.predicted.iteration >= made->plan.predicted.lower_bound);
      CHECK(made->plan.predicted.lower_bound > 0ns);
    }
  }
}
