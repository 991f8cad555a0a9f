// SPDX-License-Identifier: Apache-2.0
// Divided tensors: operations need the pieces that their slices touch, and see a slice in one piece or in several.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <swapmm/backend/testing/simulated.hpp>
#include <swapmm/swapmm.hpp>

#include "support/null_manager.hpp"
#include "support/small_program.hpp"

namespace {

using namespace swapmm;
using namespace swapmm::test;
using namespace swapmm::literals;
using DividedInts = DividedTensor<int, Simulated>;

constexpr std::size_t entry_size = 4;  // elements in an entry: 16 bytes

// Room for four pieces of four entries.
struct DividedDesk {
  Simulated device;
  MemoryManager<Simulated> manager;
  explicit DividedDesk(Options options = {.device_budget = 256_bytes}, const simulated::Options& simulated = {})
      : device(simulated), manager(device, std::move(options)) {}
  ~DividedDesk() {
    for (const std::string& violation : device.violations()) FAIL_CHECK(violation);
  }

  [[nodiscard]] DividedInts field(std::size_t entries, std::string_view name, std::size_t in_a_piece = 4) {
    return manager.divided<int>({entries, entry_size}, name, {.entries = in_a_piece});
  }
  [[nodiscard]] std::uint64_t kernels() const { return device.counters().count(simulated::CommandKind::kernel); }
};

std::vector<int> counted_numbers(std::size_t count, int first = 0) {
  std::vector<int> values(count);
  std::iota(values.begin(), values.end(), first);
  return values;
}

// Every entry becomes the sum of itself and its neighbours, as far as there are any.
template <class From, class To>
void blur_slices(MemoryManager<Simulated>& manager, const From& from, const To& to) {
  const auto seen = from.slice(to.first(), to.count()).widened(1, 1);
  manager.run("blur", reads(seen), writes(to), [&](auto& op) {
    const auto in = op[seen];
    const auto out = op[to];
    op.queue().launch("blur", operation_time, {Touch::read(in), Touch::write(out)},
                      [in, out, before = to.first() - seen.first()] {
                        for (std::size_t i = 0; i < out.size(); ++i) {
                          const std::size_t middle = i + before * entry_size;
                          out[i] = in[middle];
                          if (middle >= entry_size) out[i] += in[middle - entry_size];
                          if (middle + entry_size < in.size()) out[i] += in[middle + entry_size];
                        }
                      });
  });
}

std::vector<int> blurred_values(const std::vector<int>& values) {
  std::vector<int> result = values;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i >= entry_size) result[i] += values[i - entry_size];
    if (i + entry_size < values.size()) result[i] += values[i + entry_size];
  }
  return result;
}

}  // namespace

TEST_CASE("divided tensors know their pieces, and slices their entries") {
  DividedDesk desk;
  const DividedInts field = desk.field(10, "field");
  CHECK(field.shape() == Shape{10, entry_size});
  CHECK(field.size() == 40);
  CHECK(field.bytes() == 160_bytes);
  CHECK(field.pieces() == 3);
  CHECK(field.entries_per_piece() == 4);
  CHECK(field.piece(2).shape() == Shape{2, entry_size});
  CHECK(field.piece(2).ref().whole());
  CHECK(desk.manager.report().tensors == 3);

  const auto slice = field.slice(3, 5);
  CHECK(slice.first() == 3);
  CHECK(slice.count() == 5);
  CHECK(slice.shape() == Shape{5, entry_size});
  CHECK(slice.bytes() == 80_bytes);
  CHECK(slice.slice(2, 3).first() == 5);
  CHECK(slice.widened(2, 1).first() == 1);
  CHECK(slice.widened(2, 1).count() == 8);
  CHECK(slice.widened(100, 100).count() == 10);
  const auto last = field.slice_of_piece(2);
  CHECK(last.first() == 8);
  CHECK(last.count() == 2);

  const auto parts = slice.parts();
  REQUIRE(parts.size() == 2);
  CHECK(parts[0].first == 3);
  CHECK(parts[0].view.shape() == Shape{1, entry_size});
  CHECK(parts[0].view.ref().offset == 48_bytes);
  CHECK(parts[1].first == 4);
  CHECK(parts[1].view.shape() == Shape{4, entry_size});
  CHECK(parts[1].view.ref().whole());
}

TEST_CASE("pieces that swapmm chooses are at most a 24th of the budget, and nearly equal") {
  DividedDesk desk({.device_budget = 4800_bytes});  // a 24th: 200 bytes, 12 entries
  const auto field = desk.manager.divided<int>({100, entry_size}, "field");
  CHECK(field.pieces() == 9);
  CHECK(field.entries_per_piece() == 12);
  CHECK(desk.manager.divided<int>({26, entry_size}).entries_per_piece() == 9);  // three pieces, not 12, 12 and 2
  CHECK(desk.manager.divided<int>({12, entry_size}).pieces() == 1);
  CHECK(desk.manager.divided<int>({3, 100}).pieces() == 3);  // an entry is the least
}

TEST_CASE("the host reads and writes slices wherever they lie") {
  DividedDesk desk;
  DividedInts field = desk.field(10, "field");
  field.upload(counted_numbers(40));
  CHECK(field.download() == counted_numbers(40));
  CHECK(field.slice(3, 5).download() == counted_numbers(20, 12));
  auto across = field.slice(3, 2);
  across.upload(counted_numbers(8, 1000));
  std::vector<int> expected = counted_numbers(40);
  for (std::size_t i = 0; i < 8; ++i) expected[12 + i] = static_cast<int>(1000 + i);
  CHECK(field.download() == expected);
  increase(desk.manager, field.slice_of_piece(1), 5);
  for (std::size_t i = 16; i < 32; ++i) expected[i] += 5;
  CHECK(field.download() == expected);
  CHECK(field.piece(2).download() == counted_numbers(8, 32));
}

TEST_CASE("a stencil over a tensor of several budgets has the values of the host, on demand and by plan") {
  DividedDesk desk({.device_budget = 512_bytes});
  constexpr std::size_t entries = 64;  // 1,024 bytes
  DividedInts now = desk.field(entries, "now");
  DividedInts next = desk.field(entries, "next");
  std::vector<int> expected(entries * entry_size);
  for (std::size_t i = 0; i < expected.size(); ++i) expected[i] = static_cast<int>(i * i % 7);
  now.upload(expected);
  const auto step = [&](const DividedInts& from, const DividedInts& to) {
    for (std::size_t i = 0; i < to.pieces(); ++i) blur_slices(desk.manager, from, to.slice_of_piece(i));
  };
  for (int i = 0; i < 6; ++i) {
    {
      const auto iteration = desk.manager.iteration();
      step(now, next);
      step(next, now);
    }
    expected = blurred_values(blurred_values(expected));
    CHECK(now.download() == expected);
  }
  CHECK(desk.manager.report().iterations_followed >= 2);
  CHECK(desk.manager.report().device_peak <= 512_bytes);
}

TEST_CASE("a slice in one piece is the piece itself, and nothing is copied on the device") {
  DividedDesk desk;
  DividedInts field = desk.field(10, "field");
  field.upload(counted_numbers(40));
  const std::uint64_t before = desk.kernels();
  increase(desk.manager, field.slice(5, 2), 1);  // a write of a part of a piece
  CHECK(desk.kernels() == before + 1);
  increase(desk.manager, field.slice(3, 2), 1);  // in two pieces: two copies there, two back
  CHECK(desk.kernels() == before + 6);
  set(desk.manager, field.slice(3, 2), 9);  // only back
  CHECK(desk.kernels() == before + 9);
  std::vector<int> expected = counted_numbers(40);
  for (std::size_t i = 20; i < 28; ++i) ++expected[i];
  for (std::size_t i = 12; i < 20; ++i) expected[i] = 9;
  CHECK(field.download() == expected);
}

TEST_CASE("operations that take pieces as they lie see each part") {
  DividedDesk desk;
  DividedInts field = desk.field(10, "field");
  field.upload(counted_numbers(40));
  const auto slice = field.slice(3, 6).in_pieces();
  const std::uint64_t before = desk.kernels();
  desk.manager.run("number", updates(slice), [&](auto& op) {
    for (const auto& part : slice.parts()) {
      const auto out = op[part.view];
      op.queue().launch("number", operation_time, {Touch::write(out)}, [out, first = part.first] {
        for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<int>(100 * (first + i / entry_size));
      });
    }
  });
  CHECK(desk.kernels() == before + 3);
  std::vector<int> expected = counted_numbers(40);
  for (std::size_t i = 12; i < 36; ++i) expected[i] = static_cast<int>(100 * (i / entry_size));
  CHECK(field.download() == expected);
}

TEST_CASE("a slice brings its own pieces to the device, and no others") {
  DividedDesk desk;
  DividedInts field = desk.field(32, "field");  // twice the budget
  field.upload(counted_numbers(128));
  const Bytes before = desk.manager.report().h2d;
  increase(desk.manager, field.slice(9, 2), 1);
  CHECK(desk.manager.report().h2d - before == 64_bytes);
  // Both pieces, and the slice once more in the work area.
  CHECK_THROWS_AS(increase(desk.manager, field, 1), BundleTooLarge);
  CHECK(field.slice(0, 9).download() == counted_numbers(36));
}

TEST_CASE("pieces that slices write whole need no value before, together or alone") {
  DividedDesk desk;
  DividedInts field = desk.field(8, "field");
  set(desk.manager, field.slice_of_piece(0), 1);
  CHECK_THROWS_AS(set(desk.manager, field.slice(4, 2), 2), UndefinedValue);
  desk.manager.run("both", writes(field.slice(4, 2), field.slice(6, 2)), [&](auto& op) {
    for (const std::size_t first : {4, 6}) {
      const auto out = op[field.slice(first, 2)];
      op.queue().launch("both", operation_time, {Touch::write(out)},
                        [out, first] { std::fill(out.begin(), out.end(), static_cast<int>(first)); });
    }
  });
  CHECK(field.slice(3, 4).download() == std::vector<int>{1, 1, 1, 1, 4, 4, 4, 4, 4, 4, 4, 4, 6, 6, 6, 6});
  set(desk.manager, field, 3);  // across both: each is written whole
  CHECK(field.download() == std::vector<int>(32, 3));
}

TEST_CASE("slices of one operation may share a piece, unless it writes what they have in common") {
  DividedDesk desk;
  DividedInts field = desk.field(8, "field");
  field.upload(counted_numbers(32));
  const auto copy = [&](const auto& from, const auto& to) {
    desk.manager.run("copy", reads(from), writes(to), [&](auto& op) {
      const auto in = op[from];
      const auto out = op[to];
      op.queue().launch("copy", operation_time, {Touch::read(in), Touch::write(out)},
                        [in, out] { std::copy(in.begin(), in.end(), out.begin()); });
    });
  };
  copy(field.slice(0, 2), field.slice(2, 2));  // both in the first piece
  CHECK(field.slice(0, 4).download() == std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3, 4, 5, 6, 7});
  desk.manager.run("copy", writes(field.slice(0, 2)), reads(field.slice(5, 2), field.slice(2, 2)), [&](auto& op) {
    const auto in = op[field.slice(5, 2)];
    const auto out = op[field.slice(0, 2)];
    op.queue().launch("copy", operation_time, {Touch::read(in), Touch::write(out)},
                      [in, out] { std::copy(in.begin(), in.end(), out.begin()); });
  });
  CHECK(field.slice(0, 4).download() == std::vector<int>{20, 21, 22, 23, 24, 25, 26, 27, 0, 1, 2, 3, 4, 5, 6, 7});
  CHECK_THROWS_WITH_AS(
      copy(field.slice(0, 3), field.slice(2, 3)),
      R"(operation "copy" has two slices of a divided tensor with elements in common, and writes them)", UsageError);
  desk.manager.run("look", reads(field.slice(0, 3), field.slice(2, 3)),
                   [&](auto& op) { CHECK(op[field.slice(2, 3)].size() == 12); });
}

TEST_CASE("the work area of an operation lies beside the slices that are joined in it") {
  DividedDesk desk;
  DividedInts field = desk.field(8, "field");
  field.upload(counted_numbers(32));
  const auto slice = field.slice(3, 2);
  desk.manager.run("reverse", updates(slice), scratch(32), [&](auto& op) {
    const auto out = op[slice];
    const auto area = op.scratch();
    CHECK(area.size() == 32);
    CHECK(op[slice.slice(1, 1)].data() == out.data() + entry_size);
    op.queue().launch("reverse", operation_time, {Touch::read(out), Touch::write(area), Touch::write(out)},
                      [out, area] {
                        auto* const copy = reinterpret_cast<int*>(area.data());
                        std::copy(out.begin(), out.end(), copy);
                        std::reverse_copy(copy, copy + 8, out.begin());
                      });
  });
  CHECK(slice.download() == std::vector<int>{19, 18, 17, 16, 15, 14, 13, 12});
  desk.manager.run("none", reads(slice),
                   [&](auto& op) { CHECK_THROWS_AS(static_cast<void>(op.scratch()), UsageError); });
}

TEST_CASE("operations of the second form work on joined slices, too") {
  DividedDesk desk;
  DividedInts field = desk.field(8, "field");
  field.upload(counted_numbers(32));
  const auto add_one = [&](const auto& slice) {
    desk.manager.run("second", updates(slice), [&](auto& op, const auto& waits) {
      const auto out = op[slice];
      return op.queue().launch("second", operation_time, {Touch::read(out), Touch::write(out)}, waits, [out] {
        for (int& element : out) ++element;
      });
    });
  };
  add_one(field.slice(3, 2));
  add_one(field.slice_of_piece(0));
  std::vector<int> expected = counted_numbers(32);
  for (std::size_t i = 0; i < 20; ++i) expected[i] += (i < 16 ? 1 : 0) + (i >= 12 ? 1 : 0);
  CHECK(field.download() == expected);
}

TEST_CASE("bundles that are put together at run time take slices") {
  DividedDesk desk;
  DividedInts field = desk.field(8, "field");
  field.upload(counted_numbers(32));
  auto sum = desk.manager.tensor<int>({8}, "sum");
  Bundle<Simulated> bundle;
  for (int i = 0; i < 2; ++i) {
    bundle.clear();
    bundle.reads(field.slice(3, 2)).writes(sum);
    desk.manager.run("take", bundle, [&](auto& op) {
      const auto in = op[field.slice(3, 2)];
      const auto out = op[sum];
      op.queue().launch("take", operation_time, {Touch::read(in), Touch::write(out)},
                        [in, out] { std::copy(in.begin(), in.end(), out.begin()); });
    });
    CHECK(sum.download() == counted_numbers(8, 12));
  }
}

TEST_CASE("plans run operations on joined slices again") {
  simulated::Options slow;
  slow.h2d.bytes_per_second = slow.d2h.bytes_per_second = 50'000'000;
  DividedDesk desk({.device_budget = 512_bytes}, slow);
  constexpr std::size_t layers = 5;
  auto seed = desk.manager.tensor<int>({entry_size}, "seed");
  auto result = desk.manager.tensor<int>({8, entry_size}, "result");
  std::vector<DividedInts> hidden;
  for (std::size_t i = 0; i < layers; ++i) {
    hidden.push_back(desk.manager.divided<int>({8, entry_size}, "hidden", {.entries = 4, .lifetime = transient}));
  }
  seed.upload(counted_numbers(entry_size));
  result.upload(std::vector<int>(32));
  std::size_t made = 0;
  constexpr std::size_t iterations = 8;
  for (std::size_t i = 0; i < iterations; ++i) {
    const auto iteration = desk.manager.iteration();
    for (std::size_t layer = 0; layer < layers; ++layer) {
      desk.manager.run("make", reads(seed), writes(hidden[layer]), replayable, [&, layer](auto& op) {
        ++made;
        const auto in = op[seed];
        const auto out = op[hidden[layer]];
        op.queue().launch("make", operation_time, {Touch::read(in), Touch::write(out)}, [in, out, layer] {
          for (std::size_t k = 0; k < out.size(); ++k) out[k] = in[k % entry_size] + static_cast<int>(layer * k);
        });
      });
    }
    for (std::size_t layer = layers; layer-- > 0;) accumulate(desk.manager, hidden[layer], result);
  }
  std::vector<int> expected(32);
  for (std::size_t k = 0; k < expected.size(); ++k) {
    const std::size_t once = layers * (k % entry_size) + (0 + 1 + 2 + 3 + 4) * k;
    expected[k] = static_cast<int>(iterations * once);
  }
  CHECK(result.download() == expected);
  const Report report = desk.manager.report();
  REQUIRE(!report.plans.empty());
  CHECK(report.plans.back().replays > 0);
  CHECK(made > iterations * layers);
}

TEST_CASE("checks of accesses see through joined slices") {
  DividedDesk desk({.device_budget = 512_bytes, .check_access = true});
  DividedInts field = desk.field(8, "field");
  field.upload(counted_numbers(32));
  // The first elements of a slice become 1, the others are left. Pieces are written whole, or in part.
  const auto begin = [&](const auto& slice, std::ptrdiff_t count) {
    desk.manager.run("begin", writes(slice), [&](auto& op) {
      const auto out = op[slice];
      op.queue().launch("begin", operation_time, {Touch::write(out)},
                        [out, count] { std::fill(out.begin(), out.begin() + count, 1); });
    });
  };
  for (const auto& slice : {field.slice(0, 8), field.slice(3, 2)}) {
    const auto bytes = std::to_string(slice.bytes().value);
    try {
      begin(slice, 1);
      FAIL("not found");
    } catch (const AccessViolation& error) {
      CHECK(error.kind == AccessViolation::Kind::left_unwritten);
      CHECK(std::string(error.what()).find("of its " + bytes + " bytes") != std::string::npos);
    }
    field.upload(counted_numbers(32));
    begin(slice, static_cast<std::ptrdiff_t>(slice.size()));
    CHECK(slice.download() == std::vector<int>(slice.size(), 1));
  }
  const auto seen = field.slice(3, 2);
  try {
    desk.manager.run("writes what it reads", reads(seen), [&](auto& op) {
      const auto in = op[seen];
      op.queue().launch("write", operation_time, {Touch::write(in)}, [in] { ++in[5]; });
    });
    FAIL("not found");
  } catch (const AccessViolation& error) {
    CHECK(error.kind == AccessViolation::Kind::changed_read);
  }
}

TEST_CASE("what would be lost in a joined slice is refused") {
  DividedDesk desk;
  DividedInts field = desk.field(12, "field");
  field.upload(counted_numbers(48));
  const auto joined = field.slice(3, 2);
  const auto apart = field.slice(5, 3);
  desk.manager.run("parts", updates(joined, apart), [&](auto& op) {
    CHECK_THROWS_WITH_AS(
        static_cast<void>(op[joined.parts()[0].view]),
        R"(operation "parts" uses a part of a slice of a divided tensor that is joined: use op[slice], )"
        "or declare the slice in_pieces()",
        UsageError);
    CHECK_THROWS_AS(static_cast<void>(op[field.piece(1)]), UsageError);
    CHECK(op[apart.parts()[0].view].size() == 12);  // of the same piece, and not joined
  });
  desk.manager.run("look", reads(joined), [&](auto& op) { CHECK(op[joined.parts()[0].view].size() == 4); });
  CHECK(field.download() == counted_numbers(48));
}

TEST_CASE("a part of several slices is taken where the device can address it") {
  DividedDesk desk;
  auto field = desk.manager.divided<int>({8, 3}, "field", {.entries = 4});  // entries of 12 bytes
  field.upload(counted_numbers(24));
  const auto a = field.slice(0, 4);
  const auto b = field.slice(1, 4);
  const auto look = [&](auto& op) { CHECK(op[field.slice(1, 2)].size() == 6); };
  desk.manager.run("look", reads(a, b), look);
  desk.manager.run("look", reads(b, a), look);
}

TEST_CASE("work areas that no number can count are too large") {
  DividedDesk desk;
  DividedInts field = desk.field(8, "field");
  field.upload(counted_numbers(32));
  const auto run = [&](const auto& slice) {
    desk.manager.run("huge", reads(slice), scratch(Bytes{~std::uint64_t{0} - 15}), [](auto&) {});
  };
  CHECK_THROWS_AS(run(field.slice(3, 2)), BundleTooLarge);
  CHECK_THROWS_AS(run(field.slice_of_piece(0)), BundleTooLarge);
  const auto run_with_two = [&](const auto& read) {
    desk.manager.run("huge", reads(read), scratch(Bytes{~std::uint64_t{0}}), scratch(16), [](auto&) {});
  };
  CHECK_THROWS_AS(run_with_two(field.slice_of_piece(0)), BundleTooLarge);
  CHECK_THROWS_AS(run_with_two(field.piece(0)), BundleTooLarge);
}

TEST_CASE("callables that may run again are the program's own, and can be copied") {
  DividedDesk desk;
  DividedInts field = desk.field(8, "field");
  field.upload(counted_numbers(32));
  struct Counting {
    int calls = 0;
    void operator()(Operation<Simulated>& /*op*/) { ++calls; }
  };
  Counting counting;
  desk.manager.run("ready", reads(field.slice_of_piece(0)), replayable, counting);
  desk.manager.run("joined", reads(field.slice(3, 2)), replayable, counting);
  CHECK(counting.calls == 2);
  struct MoveOnly {
    std::unique_ptr<int> held = std::make_unique<int>(1);
    void operator()(Operation<Simulated>& /*op*/) { ++*held; }
  };
  MoveOnly moves;
  Bundle<Simulated> bundle;
  bundle.reads(field.slice(3, 2));
  desk.manager.run("once", bundle, moves);
  CHECK(*moves.held == 2);
  bundle.replayable();
  CHECK_THROWS_WITH_AS(desk.manager.run("again", bundle, moves),
                       R"(operation "again" is replayable, and its callable cannot be copied)", UsageError);
}

TEST_CASE("a backend that copies nothing on the device takes slices that lie ready, and refuses others at once") {
  MemoryManager<NullBackend> manager{NullBackend(), {.device_budget = 4096_bytes}};
  auto field = manager.divided<int>({8, 64}, "field", {.entries = 4});
  field.upload(std::vector<int>(field.size()));
  int calls = 0;
  const auto run = [&](const auto& slice) { manager.run("use", updates(slice), [&](auto&) { ++calls; }); };
  run(field.slice_of_piece(0));
  run(field.slice(2, 4).in_pieces());
  CHECK(calls == 2);
  CHECK_THROWS_WITH_AS(
      run(field.slice(2, 4)),
      R"(operation "use" has a slice of a divided tensor that does not lie in one piece, and the backend )"
      "copies nothing on the device: declare it in_pieces()",
      UsageError);
  CHECK(calls == 2);
  CHECK_NOTHROW(static_cast<void>(field.download()));  // nothing is lost
}

TEST_CASE("a divided tensor that is moved to itself is as before") {
  DividedDesk desk;
  DividedInts field = desk.field(8, "field");
  field.upload(counted_numbers(32));
  DividedInts& same = field;
  field = std::move(same);
  CHECK(field.download() == counted_numbers(32));
}

TEST_CASE("wrong uses of divided tensors and slices are named") {
  DividedDesk desk;
  DividedDesk other;
  DividedInts field = desk.field(8, "field");
  field.upload(counted_numbers(32));
  CHECK_THROWS_AS(static_cast<void>(field.slice(3, 6)), UsageError);
  CHECK_THROWS_AS(static_cast<void>(field.slice(3, 0)), UsageError);
  CHECK_THROWS_AS(static_cast<void>(field.piece(2)), UsageError);
  CHECK_THROWS_AS(static_cast<void>(field.slice_of_piece(2)), UsageError);
  CHECK_THROWS_AS(field.slice(0, 2).upload(counted_numbers(7)), UsageError);
  CHECK_THROWS_AS(increase(other.manager, field.slice(3, 2), 1), UsageError);
  CHECK_THROWS_AS(static_cast<void>(desk.manager.divided<int>({std::size_t{1} << 62U, 4})), UsageError);

  desk.manager.run("look", reads(field.slice(3, 2)), [&](auto& op) {
    CHECK_THROWS_WITH_AS(static_cast<void>(op[field.slice(0, 4)]),
                         R"(operation "look" uses a slice of a divided tensor that is not in its bundle)", UsageError);
  });
  const auto pieces = field.slice(3, 2).in_pieces();
  desk.manager.run("look", reads(pieces), [&](auto& op) {
    CHECK_THROWS_WITH_AS(
        static_cast<void>(op[pieces]),
        R"(operation "look" takes a slice of a divided tensor in pieces, and asks for it in one: use parts())",
        UsageError);
    CHECK(op[pieces.slice(0, 1)].size() == entry_size);
  });
  const auto slice = field.slice(3, 2);
  DividedInts moved = std::move(field);
  CHECK(slice.download() == counted_numbers(8, 12));              // slices stay valid
  CHECK_THROWS_AS(static_cast<void>(field.shape()), UsageError);  // NOLINT(bugprone-use-after-move)
  moved.reset();
  CHECK_THROWS_AS(increase(desk.manager, slice, 1), UsageError);
  CHECK(desk.manager.report().tensors == 0);
}
