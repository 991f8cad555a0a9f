// SPDX-License-Identifier: Apache-2.0
// A manager for programs that know nothing of it: tensors made anew in each iteration, and no value dropped that may be
// needed.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <deque>
#include <set>
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

/// Decides which values are certainly dead.
struct Oracle {
  std::set<const void*> dead;
  bool all = false;
  std::size_t asked = 0;
};

runtime::EntranceOptions unmarked(Oracle& oracle) {
  return {.undefined_reads = true,
          .certainly_dead =
              [&oracle](const void* owner) {
                ++oracle.asked;
                return oracle.all || oracle.dead.contains(owner);
              },
          .identify_by_producer = true};
}

struct UnmarkedDesk : CoreDesk {
  explicit UnmarkedDesk(Oracle& oracle, Bytes budget = 256_bytes)
      : CoreDesk({.device_budget = budget}, unmarked(oracle)) {}

  Rec& make(std::string_view name) {
    Rec& record = core->create(name, tensor_bytes, Lifetime::observed);
    record.owner = &record;
    return record;
  }
  /// `to` = sum of `from` + `plus`
  void add(const std::vector<Rec*>& from, Rec& to, int plus) {
    std::vector<Item> items;
    for (Rec* const each : from) items.push_back(item(*each, Access::read));
    items.push_back(item(to, Access::write));
    run(items, [plus](const Spans& all) {
      for (int& value : all.back()) value = plus;
      for (std::size_t i = 0; i + 1 < all.size(); ++i) {
        for (std::size_t j = 0; j < all[i].size(); ++j) all.back()[j] += all[i][j];
      }
    });
  }
  [[nodiscard]] int value(Rec& record) {
    std::vector<int> data(length);
    core->download(key(record), Bytes{}, std::as_writable_bytes(std::span(data)));
    REQUIRE(std::all_of(data.begin(), data.end(), [&](int each) { return each == data[0]; }));
    return data[0];
  }
};

}  // namespace

TEST_CASE("a program whose tensors are all made anew in each iteration follows a plan, with the right values") {
  for (const bool next_reads_old : {false, true}) {  // does the operation that makes the next state read this one?
    CAPTURE(next_reads_old);
    Oracle oracle;
    UnmarkedDesk desk(oracle);
    Rec& weight = desk.make("weight");
    Rec* state = &desk.make("state");
    desk.add({}, weight, 2);
    desk.add({&weight}, *state, 1);
    int expected = 3;
    std::deque<Rec*> late;  // released one iteration late
    for (int i = 0; i < 30; ++i) {
      desk.core->begin_iteration("step");
      std::vector<Rec*> layers{&desk.make("layer 0")};
      desk.add({state, &weight}, *layers[0], i);
      for (int layer = 1; layer < 6; ++layer) {
        layers.push_back(&desk.make("layer " + std::to_string(layer)));
        desk.add({layers[static_cast<std::size_t>(layer) - 1]}, *layers.back(), 1);
      }
      for (int layer = 4; layer >= 0; --layer) {
        Rec& gradient = desk.make("gradient");
        desk.add({layers[static_cast<std::size_t>(layer)], layers.back()}, gradient, 0);
        desk.core->destroy(*layers.back());
        layers.back() = &gradient;
        desk.core->destroy(*layers[static_cast<std::size_t>(layer)]);
      }
      const int first = expected + 2 + i;
      int gradient = first + 5;
      for (int layer = 4; layer >= 0; --layer) gradient += first + layer;
      Rec& next = desk.make("next state");
      if (next_reads_old) {
        desk.add({state, layers.back()}, next, 0);
        expected += gradient;
      } else {
        desk.add({layers.back()}, next, 1);
        expected = gradient + 1;
      }
      expected %= 1000;  // small numbers
      const int modulus = expected;
      desk.run({CoreDesk::item(next, Access::update)}, [modulus](const Spans& all) {
        for (int& each : all[0]) {
          if (each % 1000 != modulus) each = -1'000'000;  // wrong
          each %= 1000;
        }
      });
      desk.core->destroy(*state);
      state = &next;
      late.push_back(layers.back());
      if (late.size() > 1) {
        desk.core->destroy(*late.front());
        late.pop_front();
      }
      desk.core->end_iteration();
    }
    CHECK(desk.value(*state) == expected);
    const Report report = desk.core->report();
    CHECK(report.iterations_followed >= 20);
    CHECK(report.operations_followed == report.iterations_followed * 13);
    CHECK(report.divergences == 0);
    CHECK(report.device_peak <= 256_bytes);
    CHECK(desk.device.violation_count() == 0);
  }
}

namespace {

/// Activations that live on and are overwritten in the next iteration. Returns what they hold after each iteration that
/// is read: none but the last.
void run_forward_and_backward(UnmarkedDesk& desk, std::vector<Rec*>& kept_handles, int round) {
  desk.core->begin_iteration("step");
  desk.add({}, *kept_handles[0], round);
  for (std::size_t i = 1; i < kept_handles.size(); ++i) desk.add({kept_handles[i - 1]}, *kept_handles[i], 1);
  for (std::size_t i = kept_handles.size() - 1; i-- > 0;) {
    desk.run({CoreDesk::item(*kept_handles[i], Access::read)}, [](const Spans&) {});
  }
  desk.core->end_iteration();
}

std::vector<Rec*> activations(UnmarkedDesk& desk) {
  std::vector<Rec*> all;
  for (int i = 0; i < 8; ++i) all.push_back(&desk.make("a" + std::to_string(i)));
  return all;
}

}  // namespace

TEST_CASE("what a plan drops and nobody knows to be dead is saved, and has its value whenever it is read") {
  Oracle oracle;
  UnmarkedDesk desk(oracle);
  std::vector<Rec*> all = activations(desk);
  for (int round = 0; round < 12; ++round) run_forward_and_backward(desk, all, round);
  Report report = desk.core->report();
  REQUIRE(report.iterations_followed >= 6);
  CHECK(report.values_saved > 0);
  CHECK(report.saved_bytes == Bytes{report.values_saved * 64});
  CHECK(oracle.asked >= report.values_saved);
  for (std::size_t i = 0; i < all.size(); ++i) CHECK(desk.value(*all[i]) == 11 + static_cast<int>(i));
  // In the middle of a followed iteration, too.
  for (int round = 12; round < 15; ++round) run_forward_and_backward(desk, all, round);
  desk.core->begin_iteration("step");
  for (int i = 0; i < 3; ++i) {
    if (i == 0) desk.add({}, *all[0], 15);
    if (i != 0) desk.add({all[static_cast<std::size_t>(i) - 1]}, *all[static_cast<std::size_t>(i)], 1);
  }
  for (std::size_t i = 3; i < all.size(); ++i) {
    const int held = 14 + static_cast<int>(i);
    desk.run({CoreDesk::item(*all[i], Access::read)}, [held](const Spans& spans) { CHECK(spans[0][0] == held); });
  }
  desk.core->end_iteration();
  CHECK(desk.device.violation_count() == 0);
}

TEST_CASE("a plan that knows of the program's waits saves what it must by itself, and keeps the rest") {
  // The program waits after each step. So while a step runs, all of it is known, and nothing of the next one: what it
  // overwrites is dead until then.
  std::vector<std::uint64_t> copied_out;  // values in each step
  for (const bool tells : {true, false}) {
    CAPTURE(tells);
    Oracle oracle;
    UnmarkedDesk desk(oracle);
    std::vector<Rec*> all = activations(desk);
    const auto step = [&](int round) {
      for (Rec* const each : all) oracle.dead.insert(each);
      desk.core->begin_iteration("step");
      for (std::size_t i = 0; i < all.size(); ++i) {
        oracle.dead.erase(all[i]);
        if (i == 0) desk.add({}, *all[0], round);
        if (i != 0) desk.add({all[i - 1]}, *all[i], 1);
      }
      for (std::size_t i = all.size() - 1; i-- > 0;) {
        desk.run({CoreDesk::item(*all[i], Access::read)}, [](const Spans&) {});
      }
      desk.core->end_iteration();
      if (tells && !desk.core->follows_plan()) desk.core->note_wait(0);
    };
    for (int round = 0; round < 12; ++round) step(round);
    const Report before = desk.core->report();
    REQUIRE(before.iterations_followed >= 6);
    for (int round = 12; round < 16; ++round) step(round);
    const Report report = desk.core->report();
    CHECK(report.iterations_followed == before.iterations_followed + 4);
    CHECK((report.values_saved == before.values_saved) == tells);
    copied_out.push_back((report.d2h - before.d2h).value / 64 / 4);
    for (std::size_t i = 0; i < all.size(); ++i) CHECK(desk.value(*all[i]) == 15 + static_cast<int>(i));
    CHECK(desk.device.violation_count() == 0);
  }
  // Eight values, of which four can be on the device when a step ends: four must have been copied at least.
  CHECK(copied_out[0] >= 4);
  CHECK(copied_out[0] < copied_out[1]);
}

TEST_CASE("a value is saved before the next one takes its place, if it may be needed") {
  // x is made anew in each step, and released in the next one, behind the operation that makes the next x. A plan that
  // knows of the waits leaves the place to x until then.
  Oracle oracle;
  UnmarkedDesk desk(oracle, 1024_bytes);
  Rec* before = nullptr;
  for (int round = 0; round < 14; ++round) {
    desk.core->begin_iteration("step");
    Rec& x = desk.make("x");
    Rec& y = desk.make("y");
    desk.add({}, x, round);
    desk.add({&x}, y, 1);
    if (round == 13) CHECK(desk.value(*before) == 12);
    desk.core->destroy(y);
    if (before != nullptr) desk.core->destroy(*before);
    before = &x;
    desk.core->end_iteration();
    if (!desk.core->follows_plan()) desk.core->note_wait(0);
  }
  const Report report = desk.core->report();
  REQUIRE(report.iterations_followed >= 6);
  CHECK(report.divergences == 0);
  CHECK(report.values_saved + 1 >= report.iterations_followed);  // each x
  CHECK(desk.device.violation_count() == 0);
}

TEST_CASE("what is certainly dead is dropped, and reading it is no error") {
  Oracle oracle;
  oracle.all = true;
  UnmarkedDesk desk(oracle);
  std::vector<Rec*> all = activations(desk);
  for (int round = 0; round < 12; ++round) run_forward_and_backward(desk, all, round);
  const Report report = desk.core->report();
  REQUIRE(report.iterations_followed >= 6);
  CHECK(report.values_saved == 0);
  std::size_t undefined = 0;
  for (Rec* const record : all) {
    if (!record->has_value()) ++undefined;
    std::vector<int> data(length);
    desk.core->download(CoreDesk::key(*record), Bytes{}, std::as_writable_bytes(std::span(data)));
  }
  CHECK(undefined > 0);
  CHECK(desk.device.violation_count() == 0);
}

TEST_CASE("a plan tells before an operation whether all that it drops there is certainly dead") {
  Oracle oracle;
  UnmarkedDesk desk(oracle);
  std::vector<Rec*> all = activations(desk);
  CHECK(desk.core->next_drops_are_certain());  // no plan, no drops
  for (int round = 0; round < 8; ++round) run_forward_and_backward(desk, all, round);
  REQUIRE(desk.core->follows_plan());
  CHECK(desk.core->swapped() > Bytes{});
  const auto uncertain_steps = [&] {
    std::size_t count = 0;
    desk.core->begin_iteration("step");
    for (std::size_t i = 0; i < all.size(); ++i) {
      count += desk.core->next_drops_are_certain() ? 0 : 1;
      if (i == 0) desk.add({}, *all[0], 1);
      if (i != 0) desk.add({all[i - 1]}, *all[i], 1);
    }
    for (std::size_t i = all.size() - 1; i-- > 0;) {
      count += desk.core->next_drops_are_certain() ? 0 : 1;
      desk.run({CoreDesk::item(*all[i], Access::read)}, [](const Spans&) {});
    }
    desk.core->end_iteration();
    return count;
  };
  std::size_t uncertain = 0;
  for (int i = 0; i < 16; ++i) uncertain += uncertain_steps();
  CHECK(uncertain > 0);   // tried once more, now and then
  CHECK(uncertain < 16);  // but not again and again in vain
  oracle.all = true;
  std::size_t now = 0;
  for (int i = 0; i < 4; ++i) now += uncertain_steps();
  CHECK(now == 0);
}
