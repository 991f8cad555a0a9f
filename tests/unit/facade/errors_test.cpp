// SPDX-License-Identifier: Apache-2.0
// Refusals: the exception's type, the data in it, that nothing was queued, and that the same manager works on.
#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <sstream>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <swapmm/backend/testing/simulated.hpp>
#include <swapmm/swapmm.hpp>

#include "support/error_desk.hpp"
#include "support/failing_new.hpp"
#include "support/faulty_simulated.hpp"
#include "support/small_program.hpp"

using namespace swapmm;
using namespace swapmm::test;
using namespace swapmm::literals;

namespace {

simulated::Options with_host_bytes(Bytes bytes) {
  simulated::Options options;
  options.host_bytes = bytes;
  return options;
}

}  // namespace

TEST_CASE("copying an exception throws nothing, and copies share its data") {
  static_assert(std::is_nothrow_copy_constructible_v<Error>);
  static_assert(std::is_nothrow_copy_constructible_v<UsageError>);
  static_assert(std::is_nothrow_copy_constructible_v<BundleTooLarge>);
  static_assert(std::is_nothrow_copy_constructible_v<UndefinedValue>);
  static_assert(std::is_nothrow_copy_constructible_v<ConcurrentUse>);
  static_assert(std::is_nothrow_copy_constructible_v<NestedOperation>);
  static_assert(std::is_nothrow_copy_constructible_v<DroppedValue>);
  static_assert(std::is_nothrow_copy_constructible_v<PlanRefused>);
  static_assert(std::is_nothrow_copy_constructible_v<AccessViolation>);
  static_assert(std::is_nothrow_copy_constructible_v<BackendError>);
  static_assert(std::is_nothrow_copy_constructible_v<OutOfMemory>);
  static_assert(std::is_nothrow_copy_constructible_v<DeviceLost>);
  static_assert(std::is_nothrow_copy_constructible_v<WorkFailed>);
  static_assert(std::is_nothrow_copy_constructible_v<InternalError>);
  const UsageError error("a text", {.operation = "op", .tensors = {{3, "a", 4_bytes}}, .lost = {{5, "b", 8_bytes}}});
  const auto allocated = allocations();
  const UsageError copy = error;
  CHECK(allocations() == allocated);
  CHECK(copy.what() == std::string("a text"));
  CHECK(&copy.operation() == &error.operation());
  CHECK(copy.tensors() == std::vector<TensorName>{{3, "a", 4_bytes}});
  CHECK(names_are(copy.lost(), {"b"}));
  const Error plain("nothing more");
  CHECK(plain.operation().empty());
  CHECK(plain.tensors().empty());
  CHECK(plain.lost().empty());
}

TEST_CASE("each tensor of a manager has a number of its own, which outlives moves and is never used again") {
  ErrorDesk desk;
  auto a = desk.tensor("a");
  auto b = desk.tensor("b");
  const std::uint64_t first = a.id();
  CHECK(first != 0);
  CHECK(b.id() != first);
  auto moved = std::move(a);
  CHECK(moved.id() == first);
  CHECK(a.id() == 0);
  { const auto ends = std::move(moved); }
  CHECK(desk.tensor("c").id() != first);
}

TEST_CASE("a bundle above the budget is refused with operation, need, budget and its largest tensors") {
  ErrorDesk desk;
  auto small = desk.tensor("small", 4);
  auto large = desk.tensor("large", 40);
  auto middle = desk.tensor("middle", 20);
  set(desk.manager, large, 7);
  const auto error = desk.error<BundleTooLarge>(
      [&] { desk.manager.run("huge", reads(large), writes(small, middle), scratch(16_bytes), nothing); });
  REQUIRE(error);
  CHECK(error->operation() == "huge");
  CHECK(error->sizes.need == 272_bytes);
  CHECK(error->sizes.budget == 256_bytes);
  CHECK(error->sizes.largest_allocation == 256_bytes);
  CHECK(error->sizes.scratch == 16_bytes);
  CHECK(names_are(error->tensors(), {"large", "middle", "small"}));
  CHECK(error->tensors()[0].bytes == 160_bytes);
  CHECK(error->tensors()[0].id == large.id());
  CHECK(says(error->what(), {"\"huge\"", "272 bytes", "256 bytes", "\"large\" (160 bytes)", "\"middle\" (80 bytes)",
                             "\"scratch\" (16 bytes)"}));
  CHECK(holds(large, 7));
}

TEST_CASE("sizes that count as too large together are refused even where their sum is above 64 bits") {
  ErrorDesk desk;
  auto a = desk.manager.tensor<char>({std::size_t{1} << 61U}, "a");
  auto b = desk.manager.tensor<char>({std::size_t{1} << 61U}, "b");
  const auto error = desk.error<BundleTooLarge>(
      [&] { desk.manager.run("sum", writes(a, b), scratch(std::size_t{1} << 63U), nothing); });
  REQUIRE(error);
  CHECK(error->operation() == "sum");
  CHECK(error->sizes.need == Bytes{(std::uint64_t{1} << 62U) + (std::uint64_t{1} << 63U)});
  CHECK(error->sizes.scratch == Bytes{std::uint64_t{1} << 63U});
}

TEST_CASE("a bundle within the budget that does not pack into the device's largest allocations is refused") {
  simulated::Options device_options;
  device_options.max_allocation = 128_bytes;
  ErrorDesk desk(device_options);
  auto a = desk.tensor("a", 24);
  auto b = desk.tensor("b", 24);
  auto c = desk.tensor("c", 12);
  const auto error = desk.error<BundleTooLarge>([&] { desk.manager.run("split", writes(a, b, c), nothing); });
  REQUIRE(error);
  CHECK(error->operation() == "split");
  CHECK(error->sizes.need == 240_bytes);
  CHECK(error->sizes.budget == 256_bytes);
  CHECK(error->sizes.largest_allocation == 128_bytes);
  CHECK(names_are(error->tensors(), {"a", "b", "c"}));
  CHECK(says(error->what(), {"\"split\"", "240 bytes", "256 bytes", "128 bytes", "\"a\" (96 bytes)"}));
}

TEST_CASE("what can never fit is refused before any wait, and a plan that is followed goes on") {
  simulated::Options device_options;
  device_options.order = simulated::Order::starved;  // operations move only when the host waits
  Simulated device(device_options);
  MemoryManager<Simulated> manager(
      device, {.device_budget = 256_bytes},
      Scheduler({.observe = 1, .planner = "on-demand", .sample_every = 0, .trial_iterations = 0}));
  auto tensors = uploaded_tensors(manager, 5);
  auto large = manager.tensor<int>({5 * length}, "large");
  const auto refuse = [&] {
    const auto before = queued(device);
    const auto waits = device.counters().host_waits;
    const auto call = [&] { manager.run("huge", writes(large), nothing); };
    const auto error = thrown<BundleTooLarge>(call);
    REQUIRE(error);
    CHECK(error->operation() == "huge");
    CHECK(error->sizes.need == 320_bytes);
    CHECK(queued(device) == before);
    CHECK(device.counters().host_waits == waits);
  };
  for (int round = 0; round < 6; ++round) {
    {
      auto iteration = manager.iteration("loop");
      for (auto& tensor : tensors) {
        increase(manager, tensor, 1);
        refuse();
      }
    }
    refuse();  // the iteration's times are not known yet
  }
  CHECK(manager.report().iterations_followed == 4);
  CHECK(manager.report().divergences == 0);
  for (int i = 0; i < 5; ++i) CHECK(holds(tensors[static_cast<std::size_t>(i)], i + 7));
  for (const std::string& violation : device.violations()) FAIL_CHECK(violation);
}

TEST_CASE("a budget that the device refuses makes no manager and leaves nothing behind") {
  simulated::Options device_options;
  device_options.device_bytes = 128_bytes;
  Simulated device(device_options);
  const auto error = thrown<OutOfMemory>([&] { MemoryManager manager(device, {.device_budget = 256_bytes}); });
  REQUIRE(error);
  CHECK(error->memory == std::string("device"));
  CHECK(error->sizes.need == 256_bytes);
  CHECK(error->code == -4);
  CHECK(says(error->what(), {"device budget of 256 bytes"}));
  check_clean(device);
  MemoryManager manager(device, {.device_budget = 128_bytes});
  auto a = manager.tensor<int>({length}, "a");
  set(manager, a, 3);
  CHECK(holds(a, 3));
}

TEST_CASE("host memory that the host refuses is an error of the call that needs it") {
  ErrorDesk desk(with_host_bytes(512_bytes));
  {
    auto tensors = uploaded_tensors(desk.manager, 8);
    auto late = desk.tensor("late");
    const auto error = desk.error<OutOfMemory>([&] { late.upload(std::vector<int>(length, 9)); });
    REQUIRE(error);
    CHECK(error->memory == std::string("host"));
    CHECK(error->sizes.need == 64_bytes);
    CHECK(error->sizes.in_use == 512_bytes);
    CHECK(error->sizes.budget == 0_bytes);
    CHECK(error->operation().empty());
    CHECK(names_are(error->tensors(), {"late"}));
    CHECK(error->tensors()[0].id == late.id());
    CHECK(holds(tensors[7], 8));
    tensors.pop_back();
    late.upload(std::vector<int>(length, 9));
    CHECK(holds(late, 9));
  }
}

TEST_CASE("an eviction that finds no host memory leaves the operation undone and every tensor as it was") {
  ErrorDesk desk({}, {.device_budget = 256_bytes, .host_budget = 512_bytes});
  std::vector<Tensor<int, Simulated>> tensors;
  for (int i = 0; i < 12; ++i) {
    tensors.push_back(desk.tensor("t" + std::to_string(i)));
    set(desk.manager, tensors.back(), i);
  }
  auto last = desk.tensor("last");
  const auto error = thrown<OutOfMemory>([&] { set(desk.manager, last, 5, "final"); });
  REQUIRE(error);
  CHECK(error->memory == std::string("host"));
  CHECK(error->operation() == "final");
  CHECK(error->sizes.need == 64_bytes);
  CHECK(error->sizes.in_use == 512_bytes);
  CHECK(error->sizes.budget == 512_bytes);
  CHECK(error->code == 0);
  CHECK(error->lost().empty());
  tensors.erase(tensors.begin());
  set(desk.manager, last, 5, "final");
  CHECK(holds(tensors[2], 3));
  tensors.clear();
}

TEST_CASE("an upload above the host budget names the tensor and both numbers") {
  ErrorDesk desk({}, {.device_budget = 256_bytes, .host_budget = 512_bytes});
  auto large = desk.tensor("large", 160);
  const auto error = desk.error<OutOfMemory>([&] { large.upload(std::vector<int>(160)); });
  REQUIRE(error);
  CHECK(names_are(error->tensors(), {"large"}));
  CHECK(error->sizes.need == 640_bytes);
  CHECK(error->sizes.budget == 512_bytes);
  CHECK(says(error->what(), {"\"large\"", "640 bytes", "0 of 512"}));
}

TEST_CASE("a lost device is one sticky error that names the lost values, and destructors return") {
  Simulated device;
  FaultySimulated faulty(device);
  {
    MemoryManager manager(faulty, {.device_budget = 256_bytes});
    auto safe = manager.tensor<int>({length}, "safe");
    auto lost = manager.tensor<int>({length}, "lost");
    safe.upload(std::vector<int>(length, 1));
    set(manager, lost, 2);
    faulty.restart({FaultClass::record, FaultMode::device_lost, 1});
    const auto error = thrown<DeviceLost>([&] { set(manager, lost, 3, "last"); });
    REQUIRE(error);
    CHECK(error->operation() == "last");
    CHECK(names_are(error->lost(), {"lost"}));
    CHECK(error->lost()[0].id == lost.id());
    CHECK(error->code == injected_code);
    const std::string text = error->what();
    CHECK(says(text, {"\"last\"", "lost with the device", "\"lost\""}));
    const auto again = thrown<DeviceLost>([&] { (void)safe.download(); });
    REQUIRE(again);
    CHECK(again->lost() == error->lost());
    CHECK(text_of<DeviceLost>([&] { (void)lost.download(); }) == text);
    CHECK(text_of<DeviceLost>([&] { safe.upload(std::vector<int>(length)); }) == text);
    CHECK(text_of<DeviceLost>([&] { (void)manager.iteration(); }) == text);
    CHECK(text_of<DeviceLost>([&] { (void)manager.tensor<int>({1}); }) == text);
    CHECK(text_of<DeviceLost>([&] { manager.synchronize(); }) == text);
    CHECK(manager.report().operations >= 1);
  }
  check_clean(device);
}

TEST_CASE("a tensor of another manager is refused by name") {
  ErrorDesk desk;
  MemoryManager<Simulated> other(desk.device, {.device_budget = 256_bytes});
  auto own = desk.tensor("own");
  auto foreign = other.tensor<int>({length}, "foreign");
  const auto error = desk.error<UsageError>([&] { desk.manager.run("mixed", writes(own), reads(foreign), nothing); });
  REQUIRE(error);
  CHECK(error->operation() == "mixed");
  CHECK(names_are(error->tensors(), {"foreign"}));
  CHECK(says(error->what(), {"\"mixed\"", "\"foreign\"", "another manager"}));
}

TEST_CASE("a tensor that was moved from is refused in bundles, uploads, downloads and views") {
  ErrorDesk desk;
  auto first = desk.tensor("first");
  first.upload(std::vector<int>(length, 4));
  auto second = std::move(first);
  CHECK(says(desk.refused<UsageError>([&] { desk.manager.run("late", writes(second), reads(first), nothing); }),
             {"\"late\"", "tensor", "moved from"}));
  CHECK(says(desk.refused<UsageError>([&] { (void)first.download(); }), {"moved from"}));
  CHECK(says(desk.refused<UsageError>([&] { first.upload(std::vector<int>(length)); }), {"moved from"}));
  CHECK(says(desk.refused<UsageError>([&] { (void)first.slice(0, 1); }), {"moved from"}));
  std::vector<int> target(length);
  CHECK(says(desk.refused<UsageError>([&] { (void)first.download_async(target); }), {"moved from"}));
  Bundle<Simulated> bundle;
  bundle.reads(first);
  CHECK(says(desk.refused<UsageError>([&] { desk.manager.run("bundled", bundle, nothing); }),
             {"\"bundled\"", "moved from"}));
  CHECK(first.name().empty());
  CHECK(holds(second, 4));
  desk.manager.run("op", reads(second), [&](auto& op) {
    CHECK(says(text_of<UsageError>([&] { (void)op[first]; }), {"\"op\"", "moved from"}));
  });
}

TEST_CASE("a manager and a download that were moved from are refused") {
  Simulated device;
  MemoryManager<Simulated> first(device, {.device_budget = 256_bytes});
  auto a = first.tensor<int>({length}, "a");
  set(first, a, 1);
  std::vector<int> target(length);
  auto promised = a.download_async(target);
  auto taken = std::move(promised);
  CHECK(says(text_of<UsageError>([&] { (void)promised.ready(); }), {"moved from"}));
  CHECK(says(text_of<UsageError>([&] { promised.wait(); }), {"moved from"}));
  taken.wait();
  CHECK(target[3] == 1);

  MemoryManager<Simulated> second = std::move(first);
  CHECK(says(text_of<UsageError>([&] { set(first, a, 1); }), {"manager", "moved from"}));
  CHECK(says(text_of<UsageError>([&] { (void)first.iteration(); }), {"manager", "moved from"}));
  CHECK(says(text_of<UsageError>([&] { (void)first.tensor<int>({1}); }), {"manager", "moved from"}));
  CHECK(says(text_of<UsageError>([&] { first.synchronize(); }), {"manager", "moved from"}));
  CHECK(says(text_of<UsageError>([&] { (void)first.report(); }), {"manager", "moved from"}));
  CHECK(says(text_of<UsageError>([&] { (void)first.machine(); }), {"manager", "moved from"}));
  CHECK(says(text_of<UsageError>([&] { (void)first.backend(); }), {"manager", "moved from"}));
  CHECK(holds(a, 1));
  CHECK(probe(second));
}

TEST_CASE("a tensor twice in one bundle is refused, views of it included") {
  ErrorDesk desk;
  auto a = desk.tensor("a");
  set(desk.manager, a, 1);
  const auto twice = desk.error<UsageError>([&] { desk.manager.run("twice", reads(a), writes(a), nothing); });
  REQUIRE(twice);
  CHECK(twice->operation() == "twice");
  CHECK(names_are(twice->tensors(), {"a"}));
  CHECK(says(twice->what(), {"\"twice\"", "\"a\"", "updates()"}));
  const auto parts =
      desk.error<UsageError>([&] { desk.manager.run("parts", reads(a.slice(0, 2), a.slice(4, 2)), nothing); });
  REQUIRE(parts);
  CHECK(names_are(parts->tensors(), {"a"}));
  CHECK(holds(a, 1));
}

TEST_CASE("a read of a tensor that nobody wrote is refused, by operations and by the host") {
  ErrorDesk desk;
  auto empty = desk.tensor("empty");
  auto out = desk.tensor("out");
  const auto check = [&](std::string_view operation, const auto& call) {
    const auto error = desk.error<UndefinedValue>(call);
    REQUIRE(error);
    CHECK(error->operation() == operation);
    CHECK(names_are(error->tensors(), {"empty"}));
    CHECK(error->tensors()[0].id == empty.id());
    CHECK(error->lost().empty());
  };
  check("first", [&] { add(desk.manager, empty, out, 1, "first"); });
  check("", [&] { (void)empty.download(); });
  std::vector<int> target(length);
  check("", [&] { (void)empty.download_async(target); });
  check("", [&] { empty.slice(2, 2).upload(std::vector<int>(2)); });
  CHECK(says(text_of<UndefinedValue>([&] { add(desk.manager, empty, out, 1, "first"); }),
             {"\"first\"", "\"empty\"", "never written"}));
  CHECK(desk.manager.report().device_used == 0_bytes);
}

TEST_CASE("updates of a tensor that nobody wrote are refused, and so is the write of a part") {
  ErrorDesk desk;
  auto empty = desk.tensor("empty");
  const auto grow = desk.error<UndefinedValue>([&] { increase(desk.manager, empty, 1, "grow"); });
  REQUIRE(grow);
  CHECK(grow->operation() == "grow");
  CHECK(names_are(grow->tensors(), {"empty"}));
  const auto part = desk.error<UndefinedValue>([&] { set(desk.manager, empty.slice(0, 4), 1, "part"); });
  REQUIRE(part);
  CHECK(part->operation() == "part");
  CHECK(names_are(part->tensors(), {"empty"}));
}

TEST_CASE("a transient value is undefined in the next iteration") {
  ErrorDesk desk;
  auto passing = desk.manager.tensor<int>({length}, "passing", transient);
  {
    auto iteration = desk.manager.iteration();
    set(desk.manager, passing, 1);
  }
  auto iteration = desk.manager.iteration();
  auto out = desk.tensor("out");
  CHECK(says(desk.refused<UndefinedValue>([&] { add(desk.manager, passing, out, 1, "later"); }),
             {"\"later\"", "\"passing\"", "not in this iteration"}));
}

TEST_CASE("an upload or download of another size is refused with both sizes") {
  ErrorDesk desk;
  auto a = desk.tensor("a");
  set(desk.manager, a, 6);
  std::vector<int> wrong(length + 1);
  CHECK(says(desk.refused<UsageError>([&] { a.upload(wrong); }), {"upload", "17", "\"a\"", "16"}));
  CHECK(says(desk.refused<UsageError>([&] { a.download(wrong); }), {"download", "17", "\"a\"", "16"}));
  CHECK(says(desk.refused<UsageError>([&] { (void)a.download_async(wrong); }), {"download", "17", "\"a\"", "16"}));
  CHECK(says(desk.refused<UsageError>([&] { a.slice(0, 3).upload(std::vector<int>(4)); }),
             {"upload", "4", "\"a\"", "3"}));
  CHECK(holds(a, 6));
}

TEST_CASE("options that make no sense are refused before the device is asked for anything") {
  simulated::Options device_options;
  device_options.alignment = 64_bytes;
  Simulated device(device_options);
  const auto refusal = [&](const Options& options) {
    return text_of<UsageError>([&] { MemoryManager manager(device, options); });
  };
  CHECK(says(refusal({.device_budget = 0_bytes}), {"device_budget", "0"}));
  CHECK(says(refusal({.device_budget = 63_bytes}), {"device_budget", "63", "alignment", "64"}));
  CHECK(says(refusal({.device_budget = 256_bytes, .queue_depth = 7}), {"queue_depth", "8"}));
  CHECK(says(refusal({.device_budget = 256_bytes, .run_ahead = 0}), {"run_ahead"}));
  CHECK(says(refusal({.device_budget = 256_bytes, .run_ahead = 4}), {"run_ahead"}));
  CHECK(device.counters().device_memories.made == 0);
  CHECK(device.counters().events.made == 0);
}

TEST_CASE("a text that is no plan is refused with the place of the mistake") {
  ErrorDesk desk;
  std::istringstream no_json("{\"format\": ");
  const auto error = thrown<PlanRefused>([&] { desk.manager.scheduler().load_plan("train", no_json); });
  REQUIRE(error);
  CHECK(!error->reason().empty());
  CHECK(error->what() == "plan refused: " + std::string(error->reason()));
  std::istringstream no_plan(R"({"format": "swapmm-trace", "version": 1})");
  CHECK(says(text_of<PlanRefused>([&] { desk.manager.scheduler().load_plan("train", no_plan); }),
             {"plan refused", "format"}));
  std::ostringstream out;
  CHECK(says(text_of<UsageError>([&] { desk.manager.scheduler().save_plan("train", out); }), {"no plan", "\"train\""}));
}

TEST_CASE("a plan of another program is refused with both digests, whether it comes early or late") {
  std::ostringstream saved;
  std::string foreign;
  {
    ErrorDesk desk;
    auto w = uploaded_tensors(desk.manager, 6);
    for (int i = 0; i < 4; ++i) {
      auto iteration = desk.manager.iteration("train");
      for (auto& tensor : w) increase(desk.manager, tensor, 1);
    }
    desk.manager.scheduler().save_plan("train", saved);
    foreign = desk.manager.scheduler().plan("train")->trace_digest;
  }
  ErrorDesk desk;
  auto a = desk.tensor("a");
  const auto iterate = [&] {
    auto iteration = desk.manager.iteration("train");
    set(desk.manager, a, 1);
  };
  std::istringstream early(saved.str());
  desk.manager.scheduler().load_plan("train", early);
  for (int i = 0; i < 4; ++i) iterate();
  REQUIRE(desk.manager.scheduler().plan("train") != nullptr);
  const std::string own = desk.manager.scheduler().plan("train")->trace_digest;
  CHECK(own != foreign);
  const auto notes = desk.manager.report().notes;
  REQUIRE(notes.size() == 1);
  CHECK(says(notes[0], {"\"train\"", "refused", foreign, own}));

  std::istringstream late(saved.str());
  CHECK(says(text_of<PlanRefused>([&] { desk.manager.scheduler().load_plan("train", late); }), {foreign, own}));
  CHECK(desk.manager.report().iterations_followed > 0);
}

TEST_CASE("shapes have one to eight extents above 0, and a countable size") {
  CHECK_THROWS_AS(Shape({}), UsageError);
  CHECK(says(text_of<UsageError>([] { (void)Shape{3, 0, 2}; }), {"0"}));
  CHECK(says(text_of<UsageError>([] { (void)Shape{1, 1, 1, 1, 1, 1, 1, 1, 1}; }), {"1 to 8"}));
  CHECK(Shape{1, 2, 3, 4, 5, 6, 7, 8}.count() == std::size_t{40320});

  ErrorDesk desk;
  constexpr std::size_t many = std::size_t{1} << 32U;
  CHECK(!Shape{many, many}.count().has_value());
  CHECK(says(desk.refused<UsageError>([&] {
    (void)desk.manager.tensor<char>({many, many}, "huge");
  }),
             {"\"huge\"", "4294967296 x 4294967296"}));
  CHECK(says(desk.refused<UsageError>([&] { (void)desk.manager.tensor<double>({std::size_t{1} << 61U}, "wide"); }),
             {"\"wide\""}));
}

TEST_CASE("slices and shapes that do not fit are refused with the numbers") {
  ErrorDesk desk;
  auto a = desk.manager.tensor<int>({4, 4}, "a");
  CHECK(says(desk.refused<UsageError>([&] { (void)a.slice(3, 2); }), {"slice of 2", "from 3", "4 x 4"}));
  CHECK(says(desk.refused<UsageError>([&] { (void)a.slice(0, 0); }), {"slice of 0"}));
  constexpr std::size_t most = std::numeric_limits<std::size_t>::max();
  CHECK(says(desk.refused<UsageError>([&] { (void)a.slice(most, 2); }), {"slice of 2"}));
  CHECK(says(desk.refused<UsageError>([&] { (void)a.slice(1, most); }), {"from 1"}));
  CHECK(says(desk.refused<UsageError>([&] { (void)a.reshape({5, 3}); }), {"4 x 4", "5 x 3"}));
}
