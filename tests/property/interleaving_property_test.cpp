// SPDX-License-Identifier: Apache-2.0
//
// Tiny programs under every interleaving of the device's queues, and some of the host too: two or three tensors, room
// for one or two of them, up to eight operations. What random orders could miss by bad luck, these cannot.

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <sstream>
#include <string>

#include "support/effort.hpp"
#include "support/program/tiny_programs.hpp"

using namespace swapmm;
using test::Action;
using test::ActionKind;
using test::TestProgram;
using test::tiny_program;

namespace {

Action action(ActionKind kind, std::uint8_t slot = 0, std::uint8_t other = 0) {
  Action result;
  result.kind = kind;
  result.slot = slot;
  result.other = other;
  return result;
}

Action make(std::uint8_t slot, std::uint32_t bytes = 16) {
  Action result = action(ActionKind::make, slot);
  result.bytes = bytes;
  result.slices = 1;
  return result;
}

Action operation(std::uint8_t slot, Access access, bool two_phases) {
  Action result = action(ActionKind::operation);
  result.parts[0] = {slot, access};
  result.part_count = 1;
  result.form.two_phases = two_phases;
  return result;
}

void download_all(TestProgram& program, std::uint8_t tensors) {
  for (std::uint8_t slot = 0; slot < tensors; ++slot) program.actions.push_back(action(ActionKind::download, slot));
}

void add_iteration(TestProgram& program, std::initializer_list<Action> body) {
  program.actions.push_back(action(ActionKind::begin_iteration));
  program.actions.insert(program.actions.end(), body);
  program.actions.push_back(action(ActionKind::end_iteration));
}

/// The number of interleavings, of which each one must hold, and follow a plan in so many iterations.
std::uint64_t run_all(const TestProgram& program, std::uint64_t followed = 0) {
  const test::Interleavings result = test::run_interleavings(program);
  std::ostringstream text;
  text << "interleaving " << result.runs << ": " << result.failure << "\n" << program;
  REQUIRE_MESSAGE(result.failure.empty(), text.str());
  CHECK(result.followed == followed * result.runs);
  return result.runs;
}

}  // namespace

TEST_CASE("with room for one tensor there is one interleaving: each step waits for the one before") {
  TestProgram program = tiny_program(2, 1);
  program.device.pieces = 3;
  for (int i = 0; i < 4; ++i) {
    add_iteration(program, {operation(0, Access::update, true), operation(1, Access::update, false)});
  }
  download_all(program, 2);
  CHECK(run_all(program, 2) == 1);
}

TEST_CASE("three tensors with room for two evict each other on demand under every interleaving") {
  TestProgram program = tiny_program(3, 2);
  program.scheduler.observe = 0;
  for (std::uint8_t i = 0; i < 6; ++i) {
    program.actions.push_back(operation(i % 3, i % 2 == 0 ? Access::update : Access::write, false));
  }
  download_all(program, 3);
  const std::uint64_t runs = run_all(program);
  CHECK(runs > 100);
}

TEST_CASE("three tensors with room for two are swapped by plan under every interleaving") {
  constexpr std::uint32_t pieces = test::is_slow ? 2 : 3;
  for (const std::string planner : {"on-demand", "excess-overlap"}) {
    TestProgram program = tiny_program(3, 2);
    program.scheduler.planner = planner;
    program.device.pieces = pieces;
    const auto update = [](std::uint8_t slot) { return operation(slot, Access::update, false); };
    program.actions.push_back(update(0));  // or the uploads would be the first iteration's
    for (int i = 0; i < 3; ++i) add_iteration(program, {update(0), update(1), update(2)});
    const std::uint64_t runs = run_all(program, 2);
    CHECK_MESSAGE(runs > 50, planner);
  }
}

TEST_CASE("downloads and uploads meet two operations under every interleaving, those of the host's calls too") {
  TestProgram program = tiny_program(2, 2);
  program.scheduler.observe = 0;
  program.device.steps_in_calls = true;
  program.actions.push_back(operation(0, Access::update, false));
  program.actions.push_back(action(ActionKind::promise, 0, 0));
  program.actions.push_back(action(ActionKind::upload, 0));
  program.actions.push_back(operation(0, Access::update, false));
  program.actions.push_back(action(ActionKind::collect, 0, 0));
  const std::uint64_t runs = run_all(program);
  CHECK(runs > 100);
}

TEST_CASE("bytes of a slab become a larger block while copies from the smaller ones wait, under every interleaving") {
  TestProgram program = tiny_program(0, 21);  // 336 bytes
  program.scheduler.observe = 0;
  program.device.pieces = 2;
  program.device.host_slab = Bytes{512};
  program.manager.pinned_budget = Bytes{512};
  for (std::uint8_t round = 0; round < 2; ++round) {
    program.actions.push_back(make(2, 304));
    program.actions.push_back(operation(2, Access::write, false));
    for (const std::uint8_t slot : {std::uint8_t{0}, std::uint8_t{1}}) {
      program.actions.push_back(make(slot));
      program.actions.push_back(action(ActionKind::upload, slot));  // 256 bytes of the slab
      program.actions.push_back(operation(slot, Access::update, false));
    }
    program.actions.push_back(action(ActionKind::destroy, 0));
    program.actions.push_back(action(ActionKind::destroy, 1));
    program.actions.push_back(make(3, 48));
    program.actions.push_back(operation(3, Access::write, false));  // pushes the large one out, into all of the slab
    program.actions.push_back(action(ActionKind::destroy, 3));
    if (round == 1) program.actions.push_back(action(ActionKind::download, 2));
    program.actions.push_back(action(ActionKind::destroy, 2));
  }
  const std::uint64_t runs = run_all(program);
  CHECK(runs > 100);
}

TEST_CASE("all programs of a few steps on two tensors hold under every interleaving, on demand and by plan") {
  constexpr std::size_t fewer = test::is_slow ? 1 : 0;
  const test::TinyEnumeration demand =
      test::run_tiny_programs(test::tiny_steps_on_demand - fewer, test::TinyCourse::on_demand);
  REQUIRE_MESSAGE(demand.failure.empty(), demand.failure);
  const test::TinyEnumeration followed =
      test::run_tiny_programs(test::tiny_steps_followed - fewer, test::TinyCourse::followed);
  REQUIRE_MESSAGE(followed.failure.empty(), followed.failure);
  CHECK(demand.runs > demand.programs);
  CHECK(followed.followed > followed.runs);
  MESSAGE(demand.programs << " programs on demand in " << demand.runs << " interleavings, " << followed.programs
                          << " as iterations in " << followed.runs);
}
