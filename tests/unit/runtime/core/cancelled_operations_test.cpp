// SPDX-License-Identifier: Apache-2.0
// Operations that the API refuses after their bundle was brought in: they leave every value as it was.
#include <doctest/doctest.h>

#include <cstddef>
#include <string>
#include <vector>

#include <swapmm/swapmm.hpp>

#include "support/core_desk.hpp"

using namespace swapmm;
using namespace swapmm::test;
using namespace swapmm::literals;

namespace {

using Rec = CoreDesk::Rec;

/// Tensors whose value is on the host alone, on the device alone, and on both; and one without a value.
struct CancelDesk : CoreDesk {
  using CoreDesk::CoreDesk;
  Rec& host = uploaded("host", 1);
  Rec& device_alone = written("device alone", 2);
  Rec& both = written("both", 3);
  Rec& none = tensor("none");

  void check_values() {
    CHECK(holds(host, 1));
    CHECK(holds(device_alone, 2));
    CHECK(holds(both, 3));
    CHECK(text_of<UndefinedValue>([&] { (void)holds(none, 0); }) != "");
  }
};

}  // namespace

TEST_CASE("a cancelled operation leaves all values as they were, whatever it declares and wherever they are") {
  for (const bool check_access : {false, true}) {
    for (const bool as_list : {false, true}) {
      for (const Access access : {Access::read, Access::write, Access::update}) {
        for (const std::size_t which : {0U, 1U, 2U, 3U}) {
          if (which == 3 && access != Access::write) continue;
          CAPTURE(static_cast<int>(access));
          CAPTURE(which);
          CancelDesk desk({.device_budget = 256_bytes, .check_access = check_access});
          CHECK(desk.holds(desk.both, 3));  // now it is on the host, too
          Rec* const records[] = {&desk.host, &desk.device_alone, &desk.both, &desk.none};
          const std::uint64_t operations = desk.core->report().operations;
          desk.cancelled({CoreDesk::item(*records[which], access)}, 64_bytes, as_list);
          CHECK(desk.core->report().operations == operations);
          desk.core->synchronize();  // nothing was postponed
          desk.check_values();
          desk.written("next", 5);
          desk.check_values();
          CHECK(desk.device.violation_count() == 0);
        }
      }
    }
  }
}

TEST_CASE("a cancelled operation that evicted others has lost none of their values, and frees its work area") {
  CoreDesk desk;
  std::vector<Rec*> all;
  for (int i = 0; i < 6; ++i) all.push_back(&desk.written("t" + std::to_string(i), i));
  for (int round = 0; round < 5; ++round) {
    desk.cancelled({CoreDesk::item(*all[0], Access::update), CoreDesk::item(*all[1], Access::write)}, 128_bytes);
    CHECK(desk.core->report().device_used == 128_bytes);
    desk.cancelled({CoreDesk::item(*all[2], Access::write)}, 192_bytes);
    CHECK(desk.core->report().device_used == 64_bytes);
  }
  for (int i = 0; i < 6; ++i) CHECK(desk.holds(*all[static_cast<std::size_t>(i)], i));
  CHECK(desk.device.violation_count() == 0);
}

TEST_CASE("an operation that was cancelled once is not cancelled again, and one that is complete stays complete") {
  CoreDesk desk;
  Rec& t = desk.uploaded("t", 1);
  const std::vector<CoreDesk::Item> items{CoreDesk::item(t, Access::update)};
  const runtime::Request<Simulated> request{"twice", items, 64_bytes, true};
  {
    CoreDesk::Running running(*desk.core, request, false);
    running.cancel();
    running.cancel();
  }
  desk.core->begin_iteration("train");
  {
    CoreDesk::Running running(*desk.core, request, false);
    running.complete();
    running.cancel();
  }
  CHECK_FALSE(desk.core->session_state()->recorder.broken());
  desk.core->end_iteration();
  CHECK(desk.core->report().operations == 1);
  CHECK(desk.holds(t, 1));
}

TEST_CASE("an operation that is cancelled inside an iteration on demand makes it one that is not learned from") {
  CoreDesk desk;
  Rec& t = desk.uploaded("t", 1);
  const runtime::SessionState<Simulated>& state = *desk.core->session_state();
  desk.core->begin_iteration("train");
  REQUIRE(state.store.timing);
  desk.cancelled({CoreDesk::item(t, Access::update)}, 64_bytes);
  CHECK(state.recorder.broken());
  desk.core->end_iteration();
  CHECK(desk.holds(t, 1));
}

TEST_CASE("a cancelled operation has no span in a profile, and the next one has") {
  CoreDesk desk;
  Rec& t = desk.uploaded("t", 1);
  desk.core->start_profile();
  desk.cancelled({CoreDesk::item(t, Access::update)}, 64_bytes);
  desk.run({CoreDesk::item(t, Access::update)}, [](const auto&) {});
  const Profile profile = desk.core->stop_profile();
  std::vector<std::string> operations;
  for (const ProfileSpan& span : profile.spans) {
    if (span.lane == Lane::compute) operations.push_back(span.name);
  }
  CHECK(operations == std::vector<std::string>{"run"});
}

TEST_CASE("a plan is left where an operation that follows it is cancelled, and every value stays") {
  for (const std::size_t cancelled : {0U, 1U, 5U}) {
    CAPTURE(cancelled);
    CoreDesk desk;
    std::vector<Rec*> all;
    for (int i = 0; i < 6; ++i) all.push_back(&desk.uploaded("t" + std::to_string(i), i));
    const auto increase_one = [&](std::size_t i) {
      desk.run({CoreDesk::item(*all[i], Access::update)}, [](const std::vector<std::span<int>>& spans) {
        for (int& element : spans[0]) ++element;
      });
    };
    for (int round = 0; round < 6; ++round) {
      desk.core->begin_iteration("train");
      for (std::size_t i = 0; i < 6; ++i) increase_one(i);
      desk.core->end_iteration();
    }
    const runtime::SessionState<Simulated>& state = *desk.core->session_state();
    desk.core->begin_iteration("train");
    for (std::size_t i = 0; i < 6; ++i) {
      if (i == cancelled) {
        REQUIRE((i == 0 || state.executor.active()));
        const std::vector<CoreDesk::Item> items{CoreDesk::item(*all[i], Access::update)};
        const runtime::Request<Simulated> request{"run", items, {}, false};
        CoreDesk::Running running(*desk.core, request, false);
        CHECK(state.executor.active());
        running.cancel();
        CHECK(!state.executor.active());
      }
      increase_one(i);
    }
    desk.core->end_iteration();
    CHECK(desk.core->report().divergences == 1);
    CHECK(desk.core->report().last_divergence == "an operation failed");
    for (int i = 0; i < 6; ++i) CHECK(desk.holds(*all[static_cast<std::size_t>(i)], i + 7));
    CHECK(desk.device.violation_count() == 0);
  }
}
