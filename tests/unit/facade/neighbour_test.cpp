// SPDX-License-Identifier: Apache-2.0
// A manager with neighbours: what does not fit on the device is in other devices' memory first.
#include <doctest/doctest.h>

#include <cstddef>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <swapmm/backend/testing/simulated.hpp>
#include <swapmm/backend/testing/simulated/random.hpp>
#include <swapmm/swapmm.hpp>

#include "support/memory_file.hpp"
#include "support/small_program.hpp"

using namespace swapmm;
using namespace swapmm::test;
using namespace swapmm::literals;

namespace {

using Neighbours = std::vector<std::shared_ptr<Neighbour>>;

/// The device has room for four tensors, each neighbour for two.
struct NeighbourDesk {
  explicit NeighbourDesk(Options options = {}, const simulated::Options& speeds = {},
                         const Scheduler& scheduler = Scheduler())
      : device(speeds), manager(device, with(std::move(options)), scheduler) {}

  [[nodiscard]] Options with(Options options) const {
    options.device_budget = 256_bytes;
    options.neighbours = {first, second};
    return options;
  }

  std::shared_ptr<simulated::Neighbour> first = simulated::neighbour(128_bytes);
  std::shared_ptr<simulated::Neighbour> second = simulated::neighbour(128_bytes);
  Simulated device;
  MemoryManager<Simulated> manager;
};

/// Tensors that only operations write: their first place off the device is one that they are swapped out to.
std::vector<Tensor<int, Simulated>> computed_tensors(MemoryManager<Simulated>& manager, std::size_t count) {
  std::vector<Tensor<int, Simulated>> tensors;
  for (std::size_t i = 0; i < count; ++i) {
    tensors.push_back(manager.tensor<int>({length}, "c" + std::to_string(i)));
    set(manager, tensors.back(), static_cast<int>(i) + 1);
  }
  return tensors;
}

}  // namespace

TEST_CASE("values that do not fit on the device are on neighbours, then in the host, bit for bit") {
  NeighbourDesk desk;
  auto tensors = computed_tensors(desk.manager, 10);
  for (int round = 0; round < 3; ++round) {
    for (auto& tensor : tensors) {
      increase(desk.manager, tensor, 10);
      const Report now = desk.manager.report();
      REQUIRE(now.device_used <= 256_bytes);
      REQUIRE(now.neighbours_used <= 256_bytes);
    }
  }
  const Report report = desk.manager.report();
  CHECK(report.neighbours_budget == 256_bytes);
  CHECK(report.neighbours_used == 256_bytes);
  CHECK(report.neighbours_peak == 256_bytes);
  CHECK(report.neighbours_read >= 256_bytes);
  CHECK(report.neighbours_written >= 256_bytes);
  CHECK(report.host_used >= 128_bytes);
  CHECK(report.host_used < 640_bytes);
  CHECK(desk.first->in_use() == 128_bytes);
  CHECK(desk.second->peak() == 128_bytes);
  for (int i = 0; i < 10; ++i) CHECK(holds(tensors[static_cast<std::size_t>(i)], i + 1 + 30));
  CHECK(desk.device.violation_count() == 0);
  tensors.clear();
  CHECK(desk.manager.report().neighbours_used == 0_bytes);
}

TEST_CASE("with neighbours that hold everything, the host has nothing, and needs no budget") {
  const auto neighbour = simulated::neighbour(1_KiB);
  Simulated device;
  MemoryManager<Simulated> manager(device,
                                   {.device_budget = 256_bytes, .host_budget = 0_bytes, .neighbours = {neighbour}});
  auto tensors = computed_tensors(manager, 12);
  auto uploaded = uploaded_tensors(manager, 2);  // the host has no room, so they go straight to the neighbour
  for (auto& tensor : tensors) increase(manager, tensor, 1);
  for (auto& tensor : uploaded) increase(manager, tensor, 1);
  for (int i = 0; i < 12; ++i) CHECK(holds(tensors[static_cast<std::size_t>(i)], i + 2));
  for (int i = 0; i < 2; ++i) CHECK(holds(uploaded[static_cast<std::size_t>(i)], i + 2));
  CHECK(manager.report().host_peak == 0_bytes);
  CHECK(device.violation_count() == 0);
}

TEST_CASE("what the host fills and reads is in the host, if it has room") {
  NeighbourDesk desk;
  auto tensors = uploaded_tensors(desk.manager, 8);
  CHECK(desk.manager.report().neighbours_used == 0_bytes);
  auto computed = computed_tensors(desk.manager, 6);
  CHECK(desk.manager.report().neighbours_used > 0_bytes);
  const Bytes written = desk.manager.report().neighbours_written;
  computed[0].upload(std::vector<int>(length, 77));  // its place was on a neighbour, and is in the host now
  CHECK(desk.manager.report().neighbours_written == written);
  CHECK(holds(computed[0], 77));
  for (int i = 0; i < 8; ++i) CHECK(holds(tensors[static_cast<std::size_t>(i)], i + 1));
}

TEST_CASE("values are cut nowhere: one that no neighbour has room for in one piece is in the host") {
  NeighbourDesk desk;
  std::vector<Tensor<int, Simulated>> tensors;
  for (int i = 0; i < 3; ++i) {
    tensors.push_back(desk.manager.tensor<int>({40}, "large" + std::to_string(i)));  // 160 bytes
    set(desk.manager, tensors.back(), i);
  }
  CHECK(desk.manager.report().neighbours_used == 0_bytes);
  for (int i = 0; i < 3; ++i) CHECK(tensors[static_cast<std::size_t>(i)].download() == std::vector<int>(40, i));
}

TEST_CASE("a neighbour's memory is allocated in parts if it allows no more") {
  const auto neighbour = std::make_shared<simulated::Neighbour>(
      simulated::NeighbourOptions{.bytes = 500_bytes, .alignment = 16_bytes, .largest_allocation = 100_bytes});
  Simulated device;
  MemoryManager<Simulated> manager(device, {.device_budget = 256_bytes, .neighbours = {neighbour}});
  CHECK(manager.report().neighbours_budget == 496_bytes);
  CHECK(device.counters().neighbour_memories.live == 6);  // five of 96 bytes and one of 16
  auto tensors = computed_tensors(manager, 9);
  for (auto& tensor : tensors) increase(manager, tensor, 1);
  CHECK(manager.report().neighbours_used == 320_bytes);
  for (int i = 0; i < 9; ++i) CHECK(holds(tensors[static_cast<std::size_t>(i)], i + 2));
}

TEST_CASE("a part of a value on a neighbour is read and replaced without the rest") {
  NeighbourDesk desk({.device_budget = 256_bytes, .host_budget = 0_bytes});
  auto tensors = computed_tensors(desk.manager, 5);
  const auto slice = tensors[0].slice(3, 5);
  CHECK(slice.download() == std::vector<int>(5, 1));
  tensors[0].slice(3, 5).upload(std::vector<int>(5, 9));
  std::vector<int> expected(length, 1);
  std::fill_n(expected.begin() + 3, 5, 9);
  CHECK(tensors[0].download() == expected);
  increase(desk.manager, tensors[0], 1);
  for (int& value : expected) ++value;
  CHECK(tensors[0].download() == expected);
  CHECK(desk.device.violation_count() == 0);
}

TEST_CASE("downloads that are promised see the value of their time, though the neighbour has a newer one") {
  NeighbourDesk desk({.device_budget = 256_bytes, .host_budget = 128_bytes});
  auto tensors = computed_tensors(desk.manager, 5);
  std::vector<std::vector<int>> seen(5, std::vector<int>(length));
  std::vector<PendingDownload<Simulated>> promised;
  for (std::size_t i = 0; i < 5; ++i) {
    increase(desk.manager, tensors[i], 1);
    promised.push_back(tensors[i].download_async(seen[i]));
  }
  for (auto& tensor : tensors) increase(desk.manager, tensor, 100);
  for (auto& one : promised) one.wait();
  for (std::size_t i = 0; i < 5; ++i) CHECK(seen[i] == std::vector<int>(length, static_cast<int>(i) + 2));
  for (std::size_t i = 0; i < 5; ++i) CHECK(holds(tensors[i], static_cast<int>(i) + 102));
}

TEST_CASE("a plan says which values are on neighbours and which in the host") {
  // The neighbours carry 64 bytes in 250 ns, the host in 2,000 ns; an operation takes 1,000 ns.
  simulated::Options options;
  options.h2d = options.d2h = {.bytes_per_second = 32'000'000U};
  options.neighbour_in = options.neighbour_out = {.bytes_per_second = 256'000'000U};
  const auto neighbour = simulated::neighbour(512_bytes);
  Simulated device(options);
  MemoryManager<Simulated> manager(device, {.device_budget = 256_bytes, .neighbours = {neighbour}},
                                   Scheduler({.planner = "best", .trial_iterations = 0}));
  auto tensors = computed_tensors(manager, 14);
  const auto iterate = [&] {
    auto iteration = manager.iteration("train");
    for (auto& tensor : tensors) {
      increase(manager, tensor, 1);
      REQUIRE(manager.report().neighbours_used <= 512_bytes);
    }
  };
  for (int i = 0; i < 6; ++i) iterate();
  const Report before = manager.report();
  for (int i = 0; i < 6; ++i) iterate();
  manager.synchronize();
  const Report report = manager.report();
  INFO(report);
  CHECK(report.iterations_followed == before.iterations_followed + 6);
  REQUIRE(report.plans.size() == 1);
  const PlanSummary& plan = report.plans.front();
  REQUIRE(plan.tells_neighbours);
  CHECK_FALSE(plan.tells_file);
  CHECK(plan.neighbours_in >= 256_bytes);
  CHECK(plan.neighbours_in < plan.predicted.h2d);
  CHECK((report.neighbours_read - before.neighbours_read).value == 6 * plan.neighbours_in.value);
  CHECK((report.neighbours_written - before.neighbours_written).value == 6 * plan.neighbours_out.value);
  for (int i = 0; i < 14; ++i) CHECK(holds(tensors[static_cast<std::size_t>(i)], i + 1 + 12));
  CHECK(device.violation_count() == 0);
}

TEST_CASE("neighbours, host and file together, by a plan") {
  simulated::Options options;
  options.h2d = options.d2h = {.bytes_per_second = 64'000'000U};
  options.neighbour_in = options.neighbour_out = {.bytes_per_second = 256'000'000U};
  options.file_read = options.file_write = {.bytes_per_second = 16'000'000U};
  constexpr Bytes staging{10 * 64};
  const auto file = std::make_shared<MemoryFile>(64_KiB);
  Simulated device(options);
  Options limits{.device_budget = 256_bytes, .host_budget = staging + 256_bytes, .file = file};
  limits.file_staging = staging;
  limits.neighbours = {simulated::neighbour(256_bytes)};
  MemoryManager<Simulated> manager(device, limits, Scheduler({.planner = "best", .trial_iterations = 0}));
  auto tensors = computed_tensors(manager, 16);
  const auto iterate = [&] {
    auto iteration = manager.iteration("train");
    for (auto& tensor : tensors) {
      increase(manager, tensor, 1);
      const Report now = manager.report();
      REQUIRE(now.neighbours_used <= 256_bytes);
      REQUIRE(now.host_used <= limits.host_budget);
    }
  };
  for (int i = 0; i < 12; ++i) iterate();
  const Report report = manager.report();
  INFO(report);
  REQUIRE(report.plans.size() == 1);
  CHECK(report.plans.front().tells_neighbours);
  CHECK(report.plans.front().tells_file);
  CHECK(report.plans.front().neighbours_in > 0_bytes);
  CHECK(report.plans.front().file_in > 0_bytes);
  CHECK(report.iterations_followed >= 6);
  for (int i = 0; i < 16; ++i) CHECK(holds(tensors[static_cast<std::size_t>(i)], i + 1 + 12));
  CHECK(device.violation_count() == 0);
}

TEST_CASE("a copy from a neighbour that fails is told with its tensor, and the value there stays") {
  NeighbourDesk desk({.device_budget = 256_bytes, .host_budget = 0_bytes});
  auto tensors = computed_tensors(desk.manager, 6);
  desk.manager.synchronize();
  desk.device.fail(QueueKind::neighbour_in);
  std::string text;
  try {
    increase(desk.manager, tensors[0], 1);
    desk.manager.synchronize();
    FAIL("the failure was not told");
  } catch (const WorkFailed& error) {
    text = error.what();
  }
  CHECK(text.find("\"c0\"") != std::string::npos);
  for (int i = 1; i < 6; ++i) CHECK(holds(tensors[static_cast<std::size_t>(i)], i + 1));
  set(desk.manager, tensors[0], 3);
  CHECK(holds(tensors[0], 3));
}

TEST_CASE("a neighbour that is lost takes only the values that were there, each by name") {
  NeighbourDesk desk;
  auto tensors = computed_tensors(desk.manager, 10);  // c0 and c1 on the first neighbour, c2 and c3 on the second
  desk.manager.synchronize();
  desk.first->lose();
  for (int i = 9; i >= 2; --i) CHECK(holds(tensors[static_cast<std::size_t>(i)], i + 1));
  for (std::size_t i = 0; i < 2; ++i) {
    std::string text;
    try {
      (void)tensors[i].download();
      FAIL("a value of the lost neighbour was read");
    } catch (const Error& error) {
      text = error.what();
    }
    CHECK(text.find("\"c" + std::to_string(i) + "\"") != std::string::npos);
    CHECK(text.find("the neighbour is lost") != std::string::npos);
  }
}

TEST_CASE("a neighbour gets its memory back between iterations, values move before, and plans follow the change") {
  // As above: what is on the neighbours is near, what is in the host is far.
  simulated::Options speeds;
  speeds.h2d = speeds.d2h = {.bytes_per_second = 32'000'000U};
  speeds.neighbour_in = speeds.neighbour_out = {.bytes_per_second = 256'000'000U};
  NeighbourDesk desk({}, speeds, Scheduler({.planner = "best", .trial_iterations = 0}));
  auto tensors = computed_tensors(desk.manager, 10);
  int added = 0;
  const auto iterate = [&](int times) {
    for (int i = 0; i < times; ++i) {
      auto iteration = desk.manager.iteration("train");
      for (auto& tensor : tensors) increase(desk.manager, tensor, 1);
      ++added;
    }
  };
  const auto all_hold = [&] {
    bool all = true;
    for (std::size_t i = 0; i < tensors.size(); ++i) all = all && holds(tensors[i], static_cast<int>(i) + 1 + added);
    return all;
  };
  iterate(6);
  REQUIRE(desk.manager.report().neighbours_used >= 128_bytes);  // one tensor on each: plans leave a part free
  desk.manager.set_neighbour_budget(*desk.second, 0_bytes);
  CHECK(desk.second->in_use() == 0_bytes);
  CHECK(desk.manager.report().neighbours_budget == 128_bytes);
  iterate(4);
  CHECK(desk.manager.report().neighbours_used <= 128_bytes);
  {
    const Report fewer = desk.manager.report();
    INFO(fewer);
    REQUIRE(fewer.plans.size() == 1);
    CHECK(fewer.plans.front().tells_neighbours);
  }
  desk.manager.set_neighbour_budget(*desk.first, 70_bytes);
  CHECK(desk.first->in_use() == 64_bytes);
  iterate(4);
  CHECK(desk.manager.report().neighbours_used <= 64_bytes);
  desk.manager.set_neighbour_budget(*desk.first, 0_bytes);
  iterate(4);
  CHECK(desk.manager.report().neighbours_used == 0_bytes);
  CHECK(all_hold());
  desk.manager.set_neighbour_budget(*desk.first, 128_bytes);
  desk.manager.set_neighbour_budget(*desk.second, 128_bytes);
  CHECK(desk.second->in_use() == 128_bytes);
  const Report before = desk.manager.report();
  iterate(4);
  const Report report = desk.manager.report();
  CHECK(report.iterations_followed == before.iterations_followed + 4);  // by the first plan, which was kept
  CHECK(report.neighbours_read > before.neighbours_read);
  CHECK(all_hold());
  CHECK(desk.device.violation_count() == 0);
}

TEST_CASE("memory that is taken back and given again at random loses no byte, and no budget is exceeded") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    simulated::detail::Random random(seed);
    simulated::Options options;
    options.order = simulated::Order::uniform;
    options.seed = seed;
    NeighbourDesk desk({.device_budget = 256_bytes, .host_budget = 512_bytes}, options);
    auto tensors = computed_tensors(desk.manager, 9);
    std::vector<int> values(9);
    std::iota(values.begin(), values.end(), 1);
    std::vector<int> seen(length);
    for (int step = 0; step < 60; ++step) {
      const std::size_t at = random.below(9);
      switch (random.below(6)) {
        case 0: {
          const auto& neighbour = random.below(2) == 0 ? desk.first : desk.second;
          const Bytes bytes{random.below(129)};
          desk.manager.set_neighbour_budget(*neighbour, bytes);
          REQUIRE(neighbour->in_use() <= bytes);
          break;
        }
        case 1: {
          auto promised = tensors[at].download_async(seen);
          increase(desk.manager, tensors[at], 1);
          if (random.below(2) == 0) desk.manager.set_neighbour_budget(*desk.first, Bytes{random.below(129)});
          promised.wait();
          REQUIRE(seen == std::vector<int>(length, values[at]++));
          break;
        }
        case 2: tensors[at].upload(std::vector<int>(length, values[at] = step)); break;
        default: increase(desk.manager, tensors[at], 1); ++values[at];
      }
      const Report report = desk.manager.report();
      REQUIRE(report.neighbours_used <= report.neighbours_budget);
      REQUIRE(report.device_used <= 256_bytes);
      REQUIRE(report.host_used <= 512_bytes);
    }
    for (std::size_t i = 0; i < tensors.size(); ++i) REQUIRE(holds(tensors[i], values[i]));
    REQUIRE(desk.device.violation_count() == 0);
  }
}

TEST_CASE("a neighbour keeps its memory if its values have no room elsewhere") {
  NeighbourDesk desk({.device_budget = 256_bytes, .host_budget = 0_bytes});
  auto tensors = computed_tensors(desk.manager, 7);  // and one block for the next one that leaves the device
  CHECK_THROWS_AS(desk.manager.set_neighbour_budget(*desk.first, 0_bytes), OutOfMemory);
  CHECK(desk.manager.report().neighbours_budget == 256_bytes);
  for (auto& tensor : tensors) increase(desk.manager, tensor, 1);
  for (int i = 0; i < 7; ++i) CHECK(holds(tensors[static_cast<std::size_t>(i)], i + 2));
}

TEST_CASE("memory of a lost neighbour is given back, and the error names the values that were there") {
  NeighbourDesk desk;
  auto tensors = computed_tensors(desk.manager, 10);
  desk.manager.synchronize();
  desk.first->lose();
  std::vector<std::string> lost;
  try {
    desk.manager.set_neighbour_budget(*desk.first, 0_bytes);
    FAIL("the loss was not told");
  } catch (const WorkFailed& error) {
    for (const TensorName& tensor : error.lost()) lost.push_back(tensor.name);
    CHECK(std::string(error.what()).find("the neighbour is lost") != std::string::npos);
  }
  CHECK(lost == std::vector<std::string>{"c0", "c1"});
  CHECK(desk.first->in_use() == 0_bytes);
  CHECK_THROWS_AS((void)tensors[0].download(), WorkFailed);
  for (int i = 2; i < 10; ++i) CHECK(holds(tensors[static_cast<std::size_t>(i)], i + 1));
  set(desk.manager, tensors[0], 5);
  CHECK(holds(tensors[0], 5));
  // It has no memory to give.
  CHECK_THROWS_AS(desk.manager.set_neighbour_budget(*desk.first, 128_bytes), OutOfMemory);
  CHECK(desk.manager.report().neighbours_budget == 128_bytes);
}

TEST_CASE("what cannot be done with neighbours is refused") {
  Simulated device;
  const auto neighbour = simulated::neighbour(1_KiB);
  const Options options{.device_budget = 256_bytes, .neighbours = {neighbour}};
  Options scrub = options;
  scrub.scrub = true;
  CHECK_THROWS_WITH_AS(MemoryManager<Simulated>(device, scrub),
                       "Options::scrub does not overwrite neighbours' memory: use it without Options::neighbours",
                       UsageError);
  Options null = options;
  null.neighbours.push_back(nullptr);
  CHECK_THROWS_WITH_AS(MemoryManager<Simulated>(device, null), "Options::neighbours: a null pointer", UsageError);
  Options twice = options;
  twice.neighbours.push_back(neighbour);
  CHECK_THROWS_WITH_AS(MemoryManager<Simulated>(device, twice),
                       "Options::neighbours: another manager uses simulated neighbour already", UsageError);
  {
    const MemoryManager<Simulated> first(device, options);
    CHECK(neighbour->in_use() == 1_KiB);
    CHECK_THROWS_WITH_AS(MemoryManager<Simulated>(device, options),
                         "Options::neighbours: another manager uses simulated neighbour already", UsageError);
  }
  CHECK(neighbour->in_use() == 0_bytes);
  const MemoryManager<Simulated> second(device, options);  // the first one gave it back
}

TEST_CASE("budgets on neighbours that cannot be are refused") {
  NeighbourDesk desk;
  const auto stranger = simulated::neighbour(64_bytes);
  CHECK_THROWS_WITH_AS(desk.manager.set_neighbour_budget(*stranger, 64_bytes),
                       "simulated neighbour is none of the manager's Options::neighbours", UsageError);
  CHECK_THROWS_WITH_AS(desk.manager.set_neighbour_budget(*desk.first, 129_bytes),
                       "129 bytes of simulated neighbour, which has 128", UsageError);
  {
    auto iteration = desk.manager.iteration("train");
    CHECK_THROWS_AS(desk.manager.set_neighbour_budget(*desk.first, 0_bytes), UsageError);
  }
  desk.manager.set_neighbour_budget(*desk.first, 0_bytes);
  CHECK(desk.manager.report().neighbours_budget == 128_bytes);
}
