// SPDX-License-Identifier: Apache-2.0
// Host views beside plans that drop values, and beside operations that are refused. Random programs found some of
// these.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <swapmm/backend/testing/simulated.hpp>
#include <swapmm/swapmm.hpp>

#include "lifetime/host_view_desk.hpp"
#include "support/small_program.hpp"

using namespace swapmm;
using namespace swapmm::test;

namespace {

using ViewedTensor = Tensor<int, simulated::Backend>;

constexpr Bytes viewed_bytes{view_length * sizeof(int)};

/// An iteration whose plan drops the value of a tensor of its own: it is read for the last time before another tensor
/// needs its place. `look` may open a view of the tensor before its first value, and read at the end.
template <class Open, class Look>
void iterate_with_local(HostViewDesk& desk, const ViewedTensor& result, int value, Open&& open, Look&& look) {
  const auto iteration = desk.manager.iteration("train");
  auto local = desk.manager.tensor<int>({view_length}, "local");
  auto view = open(local);
  set(desk.manager, local, value, "first");
  add(desk.manager, local, result, 1, "second");
  auto next = desk.manager.tensor<int>({view_length}, "next");
  add(desk.manager, result, next, 1, "third");
  look(view);
}

void check_that_views_keep_values(bool lazy) {
  HostViewDesk desk(Bytes{2 * viewed_bytes.value});
  const HostViewOptions options{.block = small_blocks.block, .lazy = lazy};
  auto result = desk.manager.tensor<int>({view_length}, "result");
  for (int i = 0; i < 5; ++i) {
    iterate_with_local(
        desk, result, i, [](auto&) { return 0; }, [](int) {});
  }
  REQUIRE(desk.manager.report().iterations_followed > 0);
  iterate_with_local(
      desk, result, 7, [&](auto& local) { return local.host_view(options); },
      [](const auto& view) {
        REQUIRE_NOTHROW(view.prepare_read());
        const bool right = std::all_of(view.begin(), view.end(), [](int element) { return element == 7; });
        CHECK(right);
      });
}

}  // namespace

TEST_CASE("a followed plan keeps what it would drop, if a host view can see it") { check_that_views_keep_values(true); }

TEST_CASE("a followed plan keeps what it would drop, if an eager host view shows it") {
  check_that_views_keep_values(false);
}

TEST_CASE("a value that a plan had dropped when a host view was opened is kept from then on") {
  HostViewDesk desk(Bytes{2 * viewed_bytes.value});
  Scheduler scheduler({.drops = DropRule::observed});
  MemoryManager manager(desk.device, {.device_budget = Bytes{2 * viewed_bytes.value}}, scheduler);
  auto value = manager.tensor<int>({view_length}, "value");
  auto result = manager.tensor<int>({view_length}, "result");
  auto next = manager.tensor<int>({view_length}, "next");
  const auto iterate = [&](int count) {
    for (int i = 0; i < count; ++i) {
      const auto iteration = manager.iteration("train");
      set(manager, value, i, "first");
      add(manager, value, result, 1, "second");
      add(manager, result, next, 1, "third");
    }
  };
  iterate(6);
  const std::uint64_t followed = manager.report().iterations_followed;
  REQUIRE(followed > 0);
  REQUIRE_THROWS_AS((void)value.host_view(small_blocks), DroppedValue);
  iterate(6);
  REQUIRE(manager.report().iterations_followed > followed);
  CHECK_NOTHROW((void)value.host_view(small_blocks));
  CHECK(holds(value, 5));
}

TEST_CASE("a refused operation takes nothing from a view that is to give the first value") {
  HostViewDesk desk;
  auto t = desk.manager.tensor<int>({view_length}, "t");
  const auto view = t.host_view(small_blocks);
  view[block_length] = 7;
  CHECK_THROWS_AS(desk.manager.run("too large", writes(t), scratch(std::size_t{16} << 20U), [](auto&) {}),
                  BundleTooLarge);
  REQUIRE_NOTHROW(view.prepare_read());
  CHECK(view[block_length] == 7);
  std::vector<int> expected(view_length);
  expected[block_length] = 7;
  CHECK(t.download() == expected);
}

TEST_CASE("a refused operation takes nothing from a view that outlives its tensor") {
  HostViewDesk desk;
  std::optional<ViewedTensor> t = desk.manager.tensor<int>({view_length}, "t");
  set(desk.manager, *t, 4);
  const auto view = t->host_view(small_blocks);
  REQUIRE(view[0] == 4);
  auto of_gone = t->view();
  t.reset();
  CHECK_THROWS_AS(increase(desk.manager, of_gone, 1), UsageError);
  REQUIRE_NOTHROW(view.prepare_read(0, 1));
  CHECK(view[0] == 4);
}
