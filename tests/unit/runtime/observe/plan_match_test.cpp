// SPDX-License-Identifier: Apache-2.0
// Whether an iteration begins as a plan's program does: which tensor can have a role, which request is an operation of
// it, and which uploads come first.
#include <doctest/doctest.h>

#include <cstdint>
#include <initializer_list>
#include <utility>
#include <vector>

#include <swapmm/options.hpp>
#include <swapmm/runtime/observe/plan_match.hpp>

#include "support/null_backend.hpp"

namespace {

using namespace swapmm;
using namespace swapmm::literals;
using namespace swapmm::test;
using runtime::BundleItem;
using runtime::Event;
using runtime::IterationLog;
using runtime::LogEvent;
using runtime::Program;
using runtime::Request;
using runtime::Role;

/// A program of two operations, and the tensors of its roles: first uploads the input, reads it and writes the hidden
/// value; then downloads it, and updates the weight in a work area.
struct PlanMatchDesk {
  using Tensor = runtime::Record<NullBackend>;
  using Bundle = std::vector<std::pair<Tensor*, Access>>;

  PlanMatchDesk() {
    program.roles = {handle(input),
                     {.kind = Role::Kind::local, .bytes = hidden.bytes},
                     handle(weight),
                     {.kind = Role::Kind::scratch, .bytes = 16_bytes}};
    program.accesses = {{0, Access::read}, {1, Access::write}, {2, Access::update}, {3, Access::write}};
    program.first_access = {0, 2, 4};
    program.scratch_roles = {runtime::none, 3};
    program.events = {{Event::What::download, 2}, {Event::What::upload, 0},    {Event::What::operation, 0},
                      {Event::What::download, 1}, {Event::What::operation, 1}, {Event::What::end_of_iteration, 0}};
    log_upload(input);
  }

  Tensor& tensor(Bytes bytes) { return store.records.add("t", bytes, persistent, store.iteration); }
  static Role handle(const Tensor& tensor) {
    return {.record = tensor.id, .serial = tensor.tensor.serial, .bytes = tensor.bytes};
  }
  void log_upload(const Tensor& tensor) {
    log.tensors.push_back(
        {.serial = tensor.tensor.serial, .record = tensor.id, .bytes = tensor.bytes, .name = tensor.name});
    log.events.push_back({LogEvent::What::upload, static_cast<std::uint32_t>(log.tensors.size() - 1)});
  }

  [[nodiscard]] bool begins(const Bundle& bundle, Bytes scratch = {}) {
    return asked(bundle, scratch, [&](const auto& request) { return begins_with(program, log, request, store); });
  }
  [[nodiscard]] bool is(std::uint32_t operation, const Bundle& bundle, Bytes scratch = {}) {
    return asked(bundle, scratch, [&](const auto& request) {
      return is_operation(program, operation, request, [&](std::uint32_t role, const Tensor& record, Access) {
        return can_be(program.roles[role], record, store.iteration);
      });
    });
  }

  NullBackend backend;
  runtime::Store<NullBackend> store{backend, {.device_budget = 1_KiB}};
  Tensor& input = tensor(64_bytes);
  Tensor& hidden = tensor(32_bytes);
  Tensor& weight = tensor(64_bytes);
  Program program;
  IterationLog log;

 private:
  template <class Ask>
  bool asked(const Bundle& bundle, Bytes scratch, Ask&& ask) {
    std::vector<BundleItem<NullBackend>> items;
    for (const auto& [record, access] : bundle) items.push_back({record, access, record->tensor.serial});
    return ask(Request<NullBackend>{.name = "any", .items = items, .scratch = scratch});
  }
};

}  // namespace

TEST_CASE("a local may be any tensor of its size that was made since the last iteration and never used, and no other") {
  PlanMatchDesk desk;
  for (unsigned what = 0; what < 16; ++what) {
    const bool local = (what & 1U) != 0;
    const bool fresh = (what & 2U) != 0;
    const bool new_born = (what & 4U) != 0;
    const bool same_size = (what & 8U) != 0;
    const Role role{.kind = local ? Role::Kind::local : Role::Kind::scratch, .bytes = same_size ? 32_bytes : 33_bytes};
    desk.hidden.use.fresh = fresh;
    desk.hidden.tensor.born = desk.store.iteration - (new_born ? 0 : 1);
    CAPTURE(what);
    CHECK(can_be(role, desk.hidden, desk.store.iteration) == (what == 15));
  }
}

TEST_CASE("a handle is one tensor, used or not, of whatever iteration") {
  PlanMatchDesk desk;
  desk.input.use.fresh = false;
  CHECK(can_be(desk.program.roles[0], desk.input, desk.store.iteration + 5));
  CHECK(!can_be(desk.program.roles[0], desk.weight, desk.store.iteration));
}

TEST_CASE("a request is an operation of a program if all of its bundle and its work area agree") {
  PlanMatchDesk desk;
  const auto input = std::pair(&desk.input, Access::read);
  const auto hidden = std::pair(&desk.hidden, Access::write);
  const auto weight = std::pair(&desk.weight, Access::update);
  CHECK(desk.is(0, {input, hidden}));
  CHECK(!desk.is(0, {input}));
  CHECK(!desk.is(0, {}));
  CHECK(!desk.is(0, {input, hidden, weight}));
  CHECK(!desk.is(0, {hidden, input}));
  CHECK(!desk.is(0, {input, {&desk.hidden, Access::update}}));
  CHECK(!desk.is(0, {input, hidden}, 16_bytes));
  CHECK(desk.is(1, {weight}, 16_bytes));
  CHECK(!desk.is(1, {weight}, 17_bytes));
  CHECK(!desk.is(1, {weight}));
  CHECK(!desk.is(1, {weight, hidden}, 16_bytes));
}

TEST_CASE("an iteration begins as a program does if its uploads and its first operation are the same") {
  PlanMatchDesk desk;
  const PlanMatchDesk::Bundle first{{&desk.input, Access::read}, {&desk.hidden, Access::write}};
  CHECK(desk.begins(first));
  // Host reads do not count.
  desk.log.events.push_back({LogEvent::What::download, 0});
  CHECK(desk.begins(first));
  CHECK(!desk.begins({{&desk.weight, Access::update}}, 16_bytes));
}

TEST_CASE(
    "an iteration without the first upload does not begin so, though its first operation is that of the program") {
  PlanMatchDesk desk;
  desk.log = {};
  CHECK(!desk.begins({{&desk.input, Access::read}, {&desk.hidden, Access::write}}));
}

TEST_CASE("an iteration with one upload more, or with that of another tensor, does not begin so") {
  enum class Uploads { weight, input_and_weight, input_twice };
  for (const Uploads uploads : {Uploads::weight, Uploads::input_and_weight, Uploads::input_twice}) {
    PlanMatchDesk desk;
    if (uploads == Uploads::weight) desk.log = {};
    desk.log_upload(uploads == Uploads::input_twice ? desk.input : desk.weight);
    CHECK(!desk.begins({{&desk.input, Access::read}, {&desk.hidden, Access::write}}));
    // What comes behind that in the program is no excuse.
    CHECK(!desk.begins({{&desk.weight, Access::update}}, 16_bytes));
  }
}
