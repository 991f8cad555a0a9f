// SPDX-License-Identifier: Apache-2.0
// When the device is told to record times: while the recorder, a profile or a sampled round needs them. It is told only
// when that changes.
#include <doctest/doctest.h>

#include <cstddef>
#include <optional>
#include <stdexcept>
#include <string>

#include <swapmm/error.hpp>
#include <swapmm/runtime/values/store.hpp>

#include "support/value_desk.hpp"

namespace {

using namespace swapmm;
using namespace swapmm::test;
using namespace swapmm::literals;

const Calls told_on{"timing on"};
const Calls told_off{"timing off"};
const Calls not_told;

void start_profile_of(ValueDesk& desk) {
  desk.store.start_profile();
  (void)desk.calls();
}

}  // namespace

TEST_CASE("the recorder lets the device take times, and a profile or a sampled round that needs them keeps them on") {
  ValueDesk desk;
  auto& store = desk.store;
  store.time_for_recorder(true);
  CHECK(desk.calls() == told_on);
  store.time_for_recorder(true);
  CHECK(desk.calls() == not_told);
  store.time_for_recorder(false);
  CHECK(desk.calls() == told_off);
  store.time_for_recorder(false);
  CHECK(desk.calls() == not_told);

  start_profile_of(desk);
  for (const bool wanted : {true, false}) {
    store.time_for_recorder(wanted);
    CHECK(desk.calls() == not_told);
  }
  store.give_up_profile();
  CHECK(desk.calls() == told_off);

  store.start_sample();
  CHECK(desk.calls() == told_on);
  for (const bool wanted : {true, false}) {
    store.time_for_recorder(wanted);
    CHECK(desk.calls() == not_told);
  }
  store.finish_sample();
  CHECK(desk.calls() == told_off);
}

TEST_CASE("a sampled round turns times on and off again, unless the recorder or a profile has them on") {
  for (const bool recorder : {false, true}) {
    for (const bool profile : {false, true}) {
      for (const bool gives_up : {false, true}) {
        CAPTURE(recorder);
        CAPTURE(profile);
        CAPTURE(gives_up);
        ValueDesk desk;
        if (profile) desk.store.start_profile();
        if (recorder) desk.store.time_for_recorder(true);
        (void)desk.calls();
        const bool times = recorder || profile;
        desk.store.start_sample();
        CHECK(desk.calls() == (times ? not_told : told_on));
        if (gives_up) {
          desk.store.give_up_sample();
        } else {
          desk.store.finish_sample();
        }
        CHECK(desk.calls() == (times ? not_told : told_off));
        CHECK(!desk.store.sampler.active());
      }
    }
  }
}

TEST_CASE("giving up a sample where none is taken changes nothing, and keeps the times of the last one") {
  ValueDesk desk;
  auto& record = desk.tensor("a");
  desk.swap_out(record);
  desk.store.sampler.reserve(1);
  desk.store.start_sample();
  desk.store.swap_in(record, {});
  desk.store.finish_sample();
  REQUIRE(desk.store.sampler.waiting());
  (void)desk.calls();
  desk.store.give_up_sample();
  CHECK(desk.calls() == not_told);
  CHECK(desk.store.sampler.waiting());
}

TEST_CASE("a profile turns times on and off again, unless the recorder has them on") {
  for (const bool recorder : {false, true}) {
    for (const bool gives_up : {false, true}) {
      CAPTURE(recorder);
      CAPTURE(gives_up);
      ValueDesk desk;
      desk.store.time_for_recorder(recorder);
      (void)desk.calls();
      desk.store.start_profile();
      CHECK(desk.calls() == (recorder ? Calls{"record"} : Calls{"timing on", "record"}));
      if (gives_up) {
        desk.store.give_up_profile();
      } else {
        desk.store.drain();
        CHECK(desk.calls() == Calls{"finish"});
        CHECK(desk.store.stop_profile().device_budget == 1_KiB);
      }
      CHECK(desk.calls() == (recorder ? not_told : told_off));
      CHECK(!desk.store.profiler.active());
    }
  }
}

TEST_CASE("a profile ends the sample that is taken") {
  ValueDesk desk;
  desk.store.start_sample();
  (void)desk.calls();
  desk.store.start_profile();
  CHECK(desk.calls() == Calls{"timing off", "timing on", "record"});
  CHECK(!desk.store.sampler.active());
}

TEST_CASE("a profile that cannot start leaves no times on") {
  ValueDesk desk;
  desk.told.refused_records = 1;
  CHECK_THROWS_AS(desk.store.start_profile(), BackendError);
  CHECK(desk.calls() == Calls{"timing on", "record", "timing off"});
  CHECK(!desk.store.profiler.active());
}

TEST_CASE("events with times are recorded with times on, which are off again after it, also if it fails") {
  ValueDesk desk;
  bool ran = false;
  desk.store.with_times([&] { ran = true; });
  CHECK(ran);
  CHECK(desk.calls() == Calls{"timing on", "timing off"});
  CHECK_THROWS_AS(desk.store.with_times([] { throw std::runtime_error("fails"); }), std::runtime_error);
  CHECK(desk.calls() == Calls{"timing on", "finish", "timing off"});
  const auto nothing_to_do = [] {};
  desk.store.time_for_recorder(true);
  (void)desk.calls();
  desk.store.with_times(nothing_to_do);
  CHECK(desk.calls() == not_told);
  desk.store.time_for_recorder(false);
  desk.store.start_sample();
  (void)desk.calls();
  desk.store.with_times(nothing_to_do);
  CHECK(desk.calls() == not_told);
  desk.store.start_profile();
  (void)desk.calls();
  desk.store.with_times(nothing_to_do);
  CHECK(desk.calls() == not_told);
}

// ---- copies

TEST_CASE("a timed copy begins to count after its waits, and a copy records only for those who want its time") {
  ValueDesk desk;
  auto& record = desk.tensor("a");
  desk.store.ensure_block(record);
  desk.store.sampler.reserve(4);
  (void)desk.calls();
  desk.store.swap_out(record, {});
  CHECK(desk.calls() == Calls{"copy of 64 bytes to host after 0"});
  CHECK(desk.store.timed_copies.count() == 0);
  desk.store.time_for_recorder(true);
  (void)desk.calls();
  desk.store.swap_out(record, {});
  CHECK(desk.calls() == Calls{"record", "copy of 64 bytes to host after 0"});
  desk.store.swap_in(record, runtime::Clock::point(QueueKind::d2h, 2));
  CHECK(desk.calls() == Calls{"flush", "queue waits for 1", "record", "copy of 64 bytes to device after 0"});
  CHECK(desk.store.timed_copies.count() == 2);
  desk.store.time_for_recorder(false);
  desk.store.start_sample();
  (void)desk.calls();
  desk.store.swap_in(record, {});
  desk.store.swap_out(record, {});
  CHECK(desk.calls() == Calls{"record", "copy of 64 bytes to device after 0", "record", "record",
                              "copy of 64 bytes to host after 0", "record"});
  CHECK(desk.store.timed_copies.count() == 2);
}

TEST_CASE("a copy that the device refuses while a round is sampled is not timed by the next copy") {
  for (const QueueKind queue : {QueueKind::h2d, QueueKind::d2h}) {
    ValueDesk desk;
    auto& record = desk.tensor("a");
    desk.swap_out(record);
    const auto copy = [&] {
      if (queue == QueueKind::h2d) desk.store.swap_in(record, {});
      if (queue == QueueKind::d2h) desk.store.swap_out(record, {});
    };
    desk.store.sampler.reserve(4);
    desk.store.start_sample();
    desk.told.refused_copies = 1;
    CHECK_THROWS_AS(copy(), BackendError);
    desk.store.finish_sample();
    (void)desk.calls();
    copy();
    CHECK(desk.calls().size() == 1);
  }
}
