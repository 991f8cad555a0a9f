// SPDX-License-Identifier: Apache-2.0
// Views share a tensor's storage; a tensor's storage is what moves.
#include <doctest/doctest.h>

#include <cstddef>
#include <numeric>
#include <vector>

#include <swapmm/backend/testing/simulated.hpp>
#include <swapmm/swapmm.hpp>

#include "support/small_program.hpp"

namespace {

using namespace swapmm;
using namespace swapmm::test;
using namespace swapmm::literals;

struct ViewsDesk {
  Simulated device;
  MemoryManager<Simulated> manager{device, {.device_budget = 256_bytes}};
  ~ViewsDesk() {
    for (const std::string& violation : device.violations()) FAIL_CHECK(violation);
  }
};

std::vector<int> counted(std::size_t count, int first = 0) {
  std::vector<int> values(count);
  std::iota(values.begin(), values.end(), first);
  return values;
}

}  // namespace

TEST_CASE("slices and shapes know their extents, sizes and places") {
  ViewsDesk desk;
  auto t = desk.manager.tensor<int>({4, 2, 2}, "t");
  CHECK(t.size() == 16);
  CHECK(t.bytes() == 64_bytes);
  CHECK(t.name() == "t");
  const auto middle = t.slice(1, 2);
  CHECK(middle.shape() == Shape{2, 2, 2});
  CHECK(middle.size() == 8);
  CHECK(middle.bytes() == 32_bytes);
  CHECK(middle.ref().offset == 16_bytes);
  CHECK(!middle.ref().whole());
  const auto last = middle.slice(1, 1).reshape({4});
  CHECK(last.shape() == Shape{4});
  CHECK(last.ref().offset == 32_bytes);
  CHECK(t.reshape({16}).ref().whole());
  CHECK(t.reshape({2, 8}).slice(1, 1).ref().offset == 32_bytes);
}

TEST_CASE("the host reads and writes parts of a tensor, wherever its value is") {
  ViewsDesk desk;
  auto t = desk.manager.tensor<int>({4, 4}, "t");
  t.upload(counted(16));
  CHECK(t.slice(2, 1).download() == counted(4, 8));
  t.slice(1, 1).upload(std::vector<int>(4, 77));
  increase(desk.manager, t, 100);  // on the device from here on
  CHECK(t.slice(1, 1).download() == std::vector<int>(4, 177));
  increase(desk.manager, t, 100);
  t.slice(3, 1).upload(counted(4, 50));
  std::vector<int> expected = counted(16, 200);
  for (std::size_t i = 4; i < 8; ++i) expected[i] = 277;
  for (std::size_t i = 12; i < 16; ++i) expected[i] = static_cast<int>(50 + i - 12);
  CHECK(t.download() == expected);
  increase(desk.manager, t, 1);
  CHECK(t.slice(3, 1).download() == counted(4, 51));
}

TEST_CASE("operations get the part that a view names, and a write of a part keeps the rest") {
  ViewsDesk desk;
  auto t = desk.manager.tensor<int>({4, 4}, "t");
  t.upload(counted(16));
  set(desk.manager, t.slice(1, 2), 9);
  increase(desk.manager, t.slice(3, 1), 1000);
  std::vector<int> expected = counted(16);
  for (std::size_t i = 4; i < 12; ++i) expected[i] = 9;
  for (std::size_t i = 12; i < 16; ++i) expected[i] += 1000;
  CHECK(t.download() == expected);

  auto row = desk.manager.tensor<int>({4}, "row");
  add(desk.manager, t.slice(3, 1), row, 1);
  CHECK(row.download() == std::vector<int>{1013, 1014, 1015, 1016});
}

TEST_CASE("a bundle entry made of a view covers the whole tensor: other parts of it may be used by the callable") {
  ViewsDesk desk;
  auto t = desk.manager.tensor<int>({2, 8}, "t");
  t.upload(counted(16));
  desk.manager.run("halves", updates(t.slice(0, 1)), [&](auto& op) {
    const auto first = op[t.slice(0, 1)];
    const auto second = op[t.slice(1, 1)];
    const auto whole = op[t];
    CHECK(second.data() == first.data() + 8);
    CHECK(whole.data() == first.data());
    CHECK(whole.size() == 16);
    op.queue().launch("halves", operation_time, {Touch::read(second), Touch::write(first)}, [first, second] {
      for (std::size_t i = 0; i < first.size(); ++i) first[i] = second[i];
    });
  });
  CHECK(t.slice(0, 1).download() == counted(8, 8));
}

TEST_CASE("a part that the device cannot address is an error by name when the callable asks for it") {
  ViewsDesk desk;
  auto t = desk.manager.tensor<int>({16}, "t");
  t.upload(counted(16));
  const std::string text = text_of<UsageError>([&] { increase(desk.manager, t.slice(1, 4), 1); });
  CHECK(says(text, {"view of tensor \"t\"", "begins at byte 4", "multiples of 16 bytes"}));
  t.upload(counted(16));
  increase(desk.manager, t.slice(4, 4), 1);
  CHECK(t.slice(4, 4).download() == counted(4, 5));
}

TEST_CASE("parts keep working while a plan is followed and their tensors are swapped") {
  ViewsDesk desk;
  std::vector<Tensor<int, Simulated>> rows;
  for (int i = 0; i < 6; ++i) {
    rows.push_back(desk.manager.tensor<int>({2, 8}, "row"));
    set(desk.manager, rows.back(), 0);
  }
  for (int round = 0; round < 6; ++round) {
    auto iteration = desk.manager.iteration();
    for (auto& row : rows) increase(desk.manager, row.slice(1, 1), 1);
    for (std::size_t i = 1; i < rows.size(); ++i) {
      accumulate(desk.manager, rows[i].slice(1, 1), rows[0].slice(0, 1));
    }
  }
  CHECK(desk.manager.report().iterations_followed >= 3);
  CHECK(rows[4].slice(1, 1).download() == std::vector<int>(8, 6));
  CHECK(rows[4].slice(0, 1).download() == std::vector<int>(8, 0));
  CHECK(rows[0].slice(0, 1).download() == std::vector<int>(8, 5 * (1 + 2 + 3 + 4 + 5 + 6)));
}

TEST_CASE("bundles of a size known at run time take tensors and views, and are used again") {
  ViewsDesk desk;
  auto a = desk.manager.tensor<int>({length}, "a");
  auto b = desk.manager.tensor<int>({length}, "b");
  set(desk.manager, a, 1);
  Bundle<Simulated> bundle;
  for (int round = 0; round < 3; ++round) {
    bundle.clear();
    bundle.reads(a.slice(0, 8)).writes(b).scratch(32_bytes);
    desk.manager.run("bundled", bundle, [&](auto& op) {
      const auto from = op[a.slice(0, 8)];
      const auto to = op[b];
      const auto work = op.scratch();
      CHECK(work.size() == 32);
      op.queue().launch("bundled", operation_time, {Touch::read(from), Touch::write(work), Touch::write(to)},
                        [from, to, work, round] {
                          std::fill(work.begin(), work.end(), std::byte{1});
                          for (std::size_t i = 0; i < to.size(); ++i) to[i] = from[i % 8] + round;
                        });
    });
    CHECK(holds(b, 1 + round));
  }
}
