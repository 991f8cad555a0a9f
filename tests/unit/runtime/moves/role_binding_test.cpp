// SPDX-License-Identifier: Apache-2.0
// Which tensor may take which role of a plan, and what it takes over from the one before it.
#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <swapmm/runtime/moves/role_binding.hpp>

#include "support/executor_desk.hpp"

namespace {

using namespace swapmm;
using namespace swapmm::test;
using namespace swapmm::literals;
using runtime::Clock;
using runtime::MissingReason;
using BindingRecord = runtime::Record<NullBackend>;

/// A plan with the handle h (role 0), two locals (roles 1 and 2), and h once more, as the value after an upload (3).
struct BindingDesk {
  BindingDesk() {
    program.handle(h).local("first").local("second").handle(h);
    runtime::BoundRoles<NullBackend> bound(4);
    bound.records = {&h, nullptr, nullptr, &h};
    h.plan.role = 0;
    roles.start(program.program(), std::move(bound));
  }
  BindingRecord& tensor(const char* name, Bytes bytes = place_bytes) {
    return store.records.add(name, bytes, persistent, store.iteration);
  }
  /// A tensor that is bound to the first local's role in round 1 and has a place.
  BindingRecord& bound_at(Bytes offset) {
    BindingRecord& record = tensor("old");
    roles.bind(1, record, 1);
    store.assign_place(record, offset, store.addresses.at(offset, place_bytes), Clock{});
    return record;
  }
  std::vector<std::string> visited() {
    std::vector<std::string> names;
    roles.for_each([&](const runtime::Role&, const BindingRecord& record) { names.push_back(record.name); });
    return names;
  }

  runtime::Store<NullBackend> store{NullBackend(), Options{.device_budget = 256_bytes}};
  BindingRecord& h = tensor("h");
  WrittenProgram program;
  runtime::Drops<NullBackend> drops{store, nullptr, false};
  runtime::RoleBinding<NullBackend> roles{store, drops};
};

}  // namespace

TEST_CASE("a new tensor fits the role of a local if it has its size, is given a new value, and has no role") {
  BindingDesk desk;
  auto& local = desk.tensor("local");
  CHECK(desk.roles.fits(1, local, true, 1));
  CHECK(!desk.roles.fits(1, local, false, 1));  // it has no value that could be read
  CHECK(!desk.roles.fits(0, local, true, 1));   // that is h, and no other
  CHECK(!desk.roles.fits(1, desk.tensor("large", 128_bytes), true, 1));
  CHECK(!desk.roles.fits(1, desk.h, true, 1));
  auto& used = desk.tensor("used");
  used.use.fresh = false;
  CHECK(!desk.roles.fits(1, used, true, 1));
  ++desk.store.iteration;
  CHECK(!desk.roles.fits(1, local, true, 1));  // of an iteration before
}

TEST_CASE("the tensor of a role fits it for its round, and a handle for all rounds") {
  BindingDesk desk;
  for (const bool new_value : {false, true}) {
    CHECK(desk.roles.fits(0, desk.h, new_value, 1));
    CHECK(desk.roles.fits(0, desk.h, new_value, 7));
  }
  auto& local = desk.tensor("local");
  desk.roles.bind(1, local, 2);
  CHECK(desk.roles.fits(1, local, false, 2));
  CHECK(!desk.roles.fits(1, local, true, 3));
  auto& another = desk.tensor("another");
  CHECK(!desk.roles.fits(1, another, true, 2));  // the role has its tensor in this round
  CHECK(desk.roles.fits(1, another, true, 3));
  CHECK(!desk.roles.fits(2, local, true, 2));  // it has a role already
}

TEST_CASE("a tensor that took a role is new no more, so no other plan takes it for a new one") {
  BindingDesk desk;
  auto& local = desk.tensor("local");
  REQUIRE(local.use.fresh);
  desk.roles.bind(1, local, 1);
  CHECK(!local.use.fresh);
  CHECK(local.plan.role == 1);
  CHECK(desk.roles.record(1) == &local);
  CHECK(desk.roles.bound_in(1, 1));
  CHECK(!desk.roles.bound_in(1, 2));
}

TEST_CASE("the next local takes over a place that the plan keeps, after all uses of it") {
  for (const bool on_host : {false, true}) {
    BindingDesk desk;
    auto& old = desk.bound_at(64_bytes);
    old.device.valid = true;
    old.host.valid = on_host;
    old.device.ready = {{1, 2, 3}};
    old.device.busy = {{4, 5, 6}};
    auto& next = desk.tensor("next");
    desk.roles.bind(1, next, 2);
    CHECK(next.device.resident);
    CHECK(!next.device.valid);
    CHECK(next.device.offset == 64_bytes);
    CHECK(next.device.address == desk.store.addresses.at(64_bytes, place_bytes));
    CHECK(next.device.ready == Clock{{4, 5, 6}});
    CHECK(next.device.busy == Clock{{4, 5, 6}});
    CHECK(next.plan.role == 1);
    // The older tensor lives on without the place, and without a role. Its value was dropped, or is on the host.
    CHECK(!old.device.resident);
    CHECK(!old.device.valid);
    CHECK(old.value.missing_reason == (on_host ? MissingReason::never_written : MissingReason::dropped));
    CHECK(old.plan.role == runtime::none);
    CHECK(old.tensor.in_use);
    CHECK(old.host.valid == on_host);
    CHECK(desk.store.used() == place_bytes);
  }
}

TEST_CASE("the next local takes over the host memory of one that has ended, and of no other") {
  for (const bool ended : {false, true}) {
    for (const bool has_its_own : {false, true}) {
      BindingDesk desk;
      auto& old = desk.bound_at(0_bytes);
      desk.store.ensure_block(old);
      const auto* const block = old.host.block.get();
      auto& next = desk.tensor("next");
      if (has_its_own) desk.store.ensure_block(next);
      const auto* const own = next.host.block.get();
      if (ended) desk.store.records.end(old);
      desk.roles.bind(1, next, 2);
      CHECK(next.host.block.get() == (ended && !has_its_own ? block : own));
      CHECK(old.host.block.get() == (ended ? nullptr : block));
      CHECK(old.tensor.in_use == !ended);
      CHECK((&desk.tensor("after it") == &old) == ended);  // records of ended tensors are used again
    }
  }
}

TEST_CASE("a tensor takes the place that the plan has made for it, when its bytes are free") {
  BindingDesk desk;
  const auto* const address = desk.store.addresses.at(128_bytes, place_bytes);
  desk.roles.place(1) = {true, 128_bytes, address, Clock{{1, 2, 3}}};
  auto& local = desk.tensor("local");
  desk.roles.bind(1, local, 1);
  CHECK(local.device.resident);
  CHECK(local.device.offset == 128_bytes);
  CHECK(local.device.address == address);
  CHECK(local.device.ready == Clock{{1, 2, 3}});
  CHECK(local.device.busy == Clock{{1, 2, 3}});
  CHECK(!desk.roles.place(1).resident);
}

TEST_CASE("a plan that is left frees its places, and each ended tensor once, though it had two roles") {
  BindingDesk desk;
  desk.store.book(place_bytes, Clock{});
  desk.roles.place(2) = {true, 0_bytes, desk.store.addresses.at(0_bytes, place_bytes), Clock{}};
  auto& local = desk.tensor("local");
  desk.roles.bind(1, local, 1);
  CHECK(desk.visited() == std::vector<std::string>{"h", "local", "h"});
  desk.store.records.end(desk.h);
  std::vector<std::string> reclaimed;
  Bytes used_at_rebuild{1};
  desk.roles.stop([&] { used_at_rebuild = desk.store.used(); },
                  [&](BindingRecord& record) {
                    CHECK(record.plan.role == runtime::none);
                    reclaimed.push_back(record.name);
                    desk.store.records.remove(record);
                  });
  CHECK(reclaimed == std::vector<std::string>{"h"});
  CHECK(used_at_rebuild == 0_bytes);
  CHECK(local.plan.role == runtime::none);
  CHECK(local.tensor.in_use);
  CHECK(desk.visited().empty());
}
