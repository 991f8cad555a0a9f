// SPDX-License-Identifier: Apache-2.0
// Uploads and downloads beside host views, from their memory and to it.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include <swapmm/backend/testing/simulated.hpp>
#include <swapmm/swapmm.hpp>

#include "lifetime/host_view_desk.hpp"
#include "support/small_program.hpp"

using namespace swapmm;
using namespace swapmm::test;
using namespace swapmm::literals;

TEST_CASE("uploads and downloads beside a view") {
  HostViewDesk desk;
  auto t = desk.manager.tensor<int>({view_length}, "t");
  set(desk.manager, t, 1);
  std::vector<int> expected(view_length, 1);
  const auto view = t.host_view(small_blocks);
  view[3] = expected[3] = 30;
  view[block_length + 1] = expected[block_length + 1] = 31;
  const std::vector<int> part(10, 7);
  view[20] = expected[20] = 32;  // in the same block as what is uploaded next
  t.slice(0, 10).upload(part);   // comes after what the program wrote
  std::fill_n(expected.begin(), 10, 7);
  CHECK(view[3] == 7);
  CHECK(view[20] == 32);
  CHECK(view[10] == 1);
  CHECK(view[block_length + 1] == 31);
  CHECK(t.download() == expected);
  view[0] = expected[0] = 8;
  CHECK(t.download() == expected);
  view[1] = expected[1] = 9;
  std::vector<int> late(view_length);
  auto pending = t.download_async(late);
  set(desk.manager, t, 0);
  pending.wait();
  CHECK(late == expected);
  t.upload(expected);
  CHECK(view[1] == 9);

  // Memory of the view itself as source and target.
  auto u = desk.manager.tensor<int>({view_length}, "u");
  increase(desk.manager, t, 1);
  u.upload(view.span());
  for (int& x : expected) ++x;
  CHECK(u.download() == expected);
  set(desk.manager, u, 4);
  u.download(view.span());
  CHECK(holds(t, 4));
  set(desk.manager, t, 3);
  CHECK_THROWS_AS((void)u.download_async(view.span()), UsageError);
}

TEST_CASE("a tensor is downloaded into its own view, whole and in part, touched before or not") {
  for (const bool of_array : {false, true}) {
    CAPTURE(of_array);
    HostViewDesk desk;
    auto t = desk.manager.tensor<int>({view_length}, "t");
    std::vector<int> array(view_length);
    set(desk.manager, t, 1);
    const auto view = of_array ? t.host_view(std::span(array), small_blocks) : t.host_view(small_blocks);
    t.download(view.span());
    CHECK(view[0] == 1);
    CHECK(view[view_length - 1] == 1);
    increase(desk.manager, t, 1);
    view.prepare_read();
    t.download(view.span());
    CHECK(view[block_length] == 2);
    increase(desk.manager, t, 1);
    view[7] = 70;
    t.slice(0, view_length).download(view.span());
    CHECK(view[7] == 70);
    CHECK(view[8] == 3);
    // Other elements: the program changes the view by this.
    t.slice(7, 100).download(view.span().subspan(block_length, 100));
    CHECK(view[block_length] == 70);
    CHECK(view[block_length + 1] == 3);
    std::vector<int> expected(view_length, 4);
    expected[7] = expected[block_length] = 71;
    increase(desk.manager, t, 1);
    CHECK(t.download() == expected);
  }
}

TEST_CASE("memory of a lazy view, which is not there, is refused as the memory of another view") {
  HostViewDesk desk;
  auto t = desk.manager.tensor<int>({view_length}, "t");
  auto u = desk.manager.tensor<int>({view_length}, "u");
  std::vector<int> array(view_length);
  set(desk.manager, t, 1);
  set(desk.manager, u, 2);
  const auto view = t.host_view(std::span(array), small_blocks);
  const auto refusal = [&](std::span<int> memory) {
    return text_of<UsageError>([&] { (void)u.host_view(memory, small_blocks); });
  };
  CHECK(says(refusal(array), {"tensor \"t\"", "has the same memory"}));
  CHECK(view.traffic().faults == 0);
  set(desk.manager, t, 1);
  auto own = desk.manager.tensor<int>({view_length}, "own");
  set(desk.manager, own, 3);
  const auto of_own = own.host_view(small_blocks);
  set(desk.manager, own, 3);
  CHECK(says(refusal(of_own.span()), {"tensor \"own\"", "has the same memory"}));
  CHECK(view[5] == 1);
}
