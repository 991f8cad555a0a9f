// SPDX-License-Identifier: Apache-2.0
// A manager for an API that lets programs read what nobody wrote.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include <swapmm/swapmm.hpp>

#include "support/core_desk.hpp"

using namespace swapmm;
using namespace swapmm::test;
using namespace swapmm::literals;

namespace {

using Rec = CoreDesk::Rec;
using Spans = std::vector<std::span<int>>;
const runtime::EntranceOptions lenient{.undefined_reads = true};

/// An operation on a tensor that nobody wrote. What it touches is not told to the checker, which would object.
void touch_nothing(CoreDesk& desk, Rec& record, Access access) {
  const std::vector<CoreDesk::Item> items{CoreDesk::item(record, access)};
  const runtime::Request<Simulated> request{"touch", items, {}, false};
  CoreDesk::Running running(*desk.core, request, false);
  CHECK(record.device.resident);
  running.complete();
}

void upload_part(CoreDesk& desk, Rec& record, Bytes offset, const std::vector<int>& data) {
  desk.core->upload(CoreDesk::key(record), offset, std::as_bytes(std::span(data)));
}

}  // namespace

TEST_CASE("a manager of the facade refuses to read and to update what was never written") {
  CoreDesk desk;
  Rec& t = desk.tensor("t");
  for (const Access access : {Access::read, Access::update}) {
    CHECK(text_of<UndefinedValue>([&] { touch_nothing(desk, t, access); }) != "");
  }
  CHECK(text_of<UndefinedValue>([&] { (void)desk.holds(t, 1); }) != "");
  CHECK(text_of<UndefinedValue>([&] { upload_part(desk, t, 0_bytes, {1}); }) != "");
}

TEST_CASE("reading what was never written takes a place, copies nothing, and gives no value") {
  CoreDesk desk({.device_budget = 256_bytes}, lenient);
  Rec& t = desk.tensor("t");
  touch_nothing(desk, t, Access::read);
  CHECK(t.device.resident);
  CHECK_FALSE(t.has_value());
  CHECK(desk.core->report().device_used == 64_bytes);
  for (int i = 0; i < 4; ++i) desk.written("w" + std::to_string(i), i);
  CHECK_FALSE(t.device.resident);
  const Report report = desk.core->report();
  CHECK(report.swap_ins == 0);
  CHECK(report.swap_outs == 0);
  CHECK(report.host_used == 0_bytes);
  touch_nothing(desk, t, Access::read);  // as before
  CHECK_FALSE(t.has_value());
  CHECK(desk.core->report().swap_outs == 1);  // one of the others made room
}

TEST_CASE("updating what was never written gives it a value, which moves as every other") {
  CoreDesk desk({.device_budget = 256_bytes}, lenient);
  Rec& t = desk.tensor("t");
  touch_nothing(desk, t, Access::update);
  CHECK(t.device.valid);
  desk.run({CoreDesk::item(t, Access::write)}, [](const Spans& all) { std::fill(all[0].begin(), all[0].end(), 3); });
  for (int i = 0; i < 4; ++i) desk.written("w" + std::to_string(i), i);
  CHECK_FALSE(t.device.resident);
  CHECK(desk.holds(t, 3));
  desk.run({CoreDesk::item(t, Access::update)}, [](const Spans& all) { ++all[0][0]; });
  CHECK_FALSE(desk.holds(t, 3));
  CHECK(desk.device.violation_count() == 0);
}

TEST_CASE("a cancelled update of what was never written gives it no value") {
  CoreDesk desk({.device_budget = 256_bytes}, lenient);
  Rec& t = desk.tensor("t");
  desk.cancelled({CoreDesk::item(t, Access::update)});
  CHECK_FALSE(t.has_value());
  touch_nothing(desk, t, Access::read);
}

TEST_CASE("a value that was lost, or dropped, is refused as ever") {
  CoreDesk desk({.device_budget = 256_bytes}, lenient);
  Rec& t = desk.tensor("t");
  const std::vector<CoreDesk::Item> items{CoreDesk::item(t, Access::update)};
  const runtime::Request<Simulated> request{"thrown out", items, {}, false};
  { const CoreDesk::Running running(*desk.core, request, false); }  // never complete: it has failed
  CHECK(text_of<WorkFailed>([&] { touch_nothing(desk, t, Access::read); }) != "");
  CHECK(text_of<WorkFailed>([&] { (void)desk.holds(t, 1); }) != "");
  CHECK(text_of<WorkFailed>([&] { upload_part(desk, t, 0_bytes, {1}); }) != "");
  t.value.missing_reason = runtime::MissingReason::dropped;
  CHECK(text_of<DroppedValue>([&] { touch_nothing(desk, t, Access::update); }) != "");
  touch_nothing(desk, t, Access::write);
  touch_nothing(desk, t, Access::update);
}

TEST_CASE("the host reads nothing from what was never written, and gives it a value by writing a part") {
  CoreDesk desk({.device_budget = 256_bytes}, lenient);
  Rec& t = desk.tensor("t");
  std::vector<int> seen(length, 7);
  desk.core->download(CoreDesk::key(t), 0_bytes, std::as_writable_bytes(std::span(seen)));
  runtime::PendingRead& read = desk.core->promise(CoreDesk::key(t), 0_bytes, std::as_writable_bytes(std::span(seen)));
  CHECK(desk.core->collectable(read));
  desk.core->collect(read);
  desk.core->end_promise(read);
  CHECK(seen == std::vector<int>(length, 7));
  CHECK_FALSE(t.has_value());
  touch_nothing(desk, t, Access::read);
  upload_part(desk, t, 8_bytes, {1, 2});
  CHECK(t.host.valid);
  CHECK_FALSE(t.device.resident);
  CHECK(desk.core->report().swap_outs == 0);
  upload_part(desk, desk.tensor("not on the device"), 8_bytes, {1, 2});
  desk.run({CoreDesk::item(t, Access::update)}, [](const Spans& all) { ++all[0][3]; });
  desk.core->download(CoreDesk::key(t), 0_bytes, std::as_writable_bytes(std::span(seen)));
  CHECK(seen[2] == 1);
  CHECK(seen[3] == 3);
  CHECK(desk.device.violation_count() == 0);
}

TEST_CASE("an iteration that reads what was never written is not planned, and others are") {
  for (const bool undefined : {false, true}) {
    CoreDesk desk({.device_budget = 256_bytes}, lenient);
    std::vector<Rec*> all;
    for (int i = 0; i < 6; ++i) all.push_back(&desk.uploaded("t" + std::to_string(i), i));
    Rec& never = desk.tensor("never");
    for (int round = 0; round < 6; ++round) {
      desk.core->begin_iteration("train");
      if (undefined) touch_nothing(desk, never, Access::read);
      for (Rec* const each : all) desk.run({CoreDesk::item(*each, Access::update)}, [](const Spans& s) { ++s[0][0]; });
      desk.core->end_iteration();
    }
    CHECK((desk.core->report().iterations_followed > 0) == !undefined);
    CHECK(desk.core->report().plans.size() == (undefined ? 0 : 1));
  }
}
