// SPDX-License-Identifier: Apache-2.0
// A manager with a file: what fits neither on the device nor within the host's budget.
#include <doctest/doctest.h>

#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <swapmm/backend/testing/simulated.hpp>
#include <swapmm/swapmm.hpp>

#include "support/memory_file.hpp"
#include "support/small_program.hpp"

using namespace swapmm;
using namespace swapmm::test;
using namespace swapmm::literals;

namespace {

// Slots of 64 bytes, as large as a tensor of 16 elements. All of the host's budget is for them.
constexpr Bytes staging{10 * 64};

struct FileDesk {
  explicit FileDesk(const Options& more = {}, Bytes capacity = 64_KiB, const simulated::Options& options = {},
                    const Scheduler& scheduler = Scheduler())
      : file(std::make_shared<MemoryFile>(capacity)), device(options), manager(device, with(more), scheduler) {}

  [[nodiscard]] Options with(Options options) const {
    if (options.device_budget.value == 0) options.device_budget = 256_bytes;
    options.host_budget = staging;
    options.file_staging = staging;
    options.file = file;
    return options;
  }

  std::shared_ptr<MemoryFile> file;
  Simulated device;
  MemoryManager<Simulated> manager;
};

}  // namespace

TEST_CASE("values that fit neither on the device nor on the host are in the file, bit for bit") {
  FileDesk desk;
  auto tensors = uploaded_tensors(desk.manager, 8);
  for (int round = 0; round < 3; ++round) {
    for (auto& tensor : tensors) increase(desk.manager, tensor, 10);
  }
  for (int i = 0; i < 8; ++i) CHECK(holds(tensors[static_cast<std::size_t>(i)], i + 1 + 30));
  const Report report = desk.manager.report();
  CHECK(report.device_peak <= 256_bytes);
  CHECK(report.host_peak <= staging);
  CHECK(report.file_used == 512_bytes);
  CHECK(report.file_peak == report.file_used);
  CHECK(report.file_read.value == desk.file->bytes_read);
  CHECK(report.file_written.value == desk.file->bytes_written);
  CHECK(desk.device.violation_count() == 0);
  tensors.clear();
  CHECK(desk.manager.report().file_used == 0_bytes);
}

TEST_CASE("host memory is used first, and the file only for what is left") {
  const auto file = std::make_shared<MemoryFile>(64_KiB);
  Simulated device;
  Options options{.device_budget = 256_bytes, .host_budget = staging + 128_bytes, .file = file};
  options.file_staging = staging;
  MemoryManager<Simulated> manager(device, options);
  auto tensors = uploaded_tensors(manager, 3);
  CHECK(manager.report().file_used == 64_bytes);
  CHECK(manager.report().host_used == staging + 128_bytes);
  for (int i = 0; i < 3; ++i) CHECK(holds(tensors[static_cast<std::size_t>(i)], i + 1));
}

TEST_CASE("a plan is followed with values in the file, and waits for no copy more than it says") {
  simulated::Options options;
  options.file_read = options.file_write = {.bytes_per_second = 64'000'000'000U};  // 64 bytes: 1 ns
  FileDesk desk({}, 64_KiB, options, Scheduler({.planner = "belady"}));
  auto tensors = uploaded_tensors(desk.manager, 6);
  for (int i = 0; i < 8; ++i) {
    auto iteration = desk.manager.iteration("train");
    for (auto& tensor : tensors) increase(desk.manager, tensor, 1);
  }
  CHECK(desk.manager.report().iterations_followed == 5);
  for (int i = 0; i < 6; ++i) CHECK(holds(tensors[static_cast<std::size_t>(i)], i + 1 + 8));
  CHECK(desk.device.violation_count() == 0);
}

TEST_CASE("values of many slots are cut: large ones, and ones that end at any byte") {
  simulated::Options options;
  options.device_bytes = 1_MiB;
  for (const std::size_t elements : {16U, 17U, 64U, 65U, 1000U, 4097U}) {
    FileDesk desk({.device_budget = 40_KiB}, 1_MiB, options);
    std::vector<Tensor<int, Simulated>> tensors;
    for (int i = 0; i < 4; ++i) {
      tensors.push_back(desk.manager.tensor<int>({elements}, "t" + std::to_string(i)));
      std::vector<int> values(elements);
      std::iota(values.begin(), values.end(), 1000 * i);
      tensors.back().upload(values);
    }
    for (int round = 0; round < 2; ++round) {
      for (auto& tensor : tensors) increase(desk.manager, tensor, 1);
    }
    for (int i = 0; i < 4; ++i) {
      std::vector<int> expected(elements);
      std::iota(expected.begin(), expected.end(), 1000 * i + 2);
      CHECK(tensors[static_cast<std::size_t>(i)].download() == expected);
    }
    CHECK(desk.manager.report().device_peak <= 40_KiB);
    CHECK(desk.device.violation_count() == 0);
  }
}

TEST_CASE("a part of a value in the file is read and replaced without the rest") {
  FileDesk desk;
  constexpr std::size_t elements = 100;  // 400 bytes: more than the device has, in six slots and a part
  auto tensor = desk.manager.tensor<int>({elements}, "t");
  std::vector<int> values(elements);
  std::iota(values.begin(), values.end(), 0);
  tensor.upload(values);
  std::size_t first = 0;
  for (const std::size_t count : {1U, 3U, 15U, 16U, 17U, 40U}) {
    for (first = 0; first + count <= elements; first += 7) {
      auto part = tensor.slice(first, count);
      CHECK(part.download() == std::vector<int>(values.begin() + static_cast<std::ptrdiff_t>(first),
                                                values.begin() + static_cast<std::ptrdiff_t>(first + count)));
      for (std::size_t i = first; i < first + count; ++i) values[i] += 1000;
      part.upload(std::vector<int>(values.begin() + static_cast<std::ptrdiff_t>(first),
                                   values.begin() + static_cast<std::ptrdiff_t>(first + count)));
      REQUIRE(tensor.download() == values);
    }
  }
  CHECK(desk.device.violation_count() == 0);
}

TEST_CASE("downloads that are promised see the value of their time, though the file has a newer one") {
  FileDesk desk;
  auto tensors = uploaded_tensors(desk.manager, 6);
  std::vector<std::vector<int>> seen(6, std::vector<int>(length));
  std::vector<PendingDownload<Simulated>> promised;
  for (std::size_t i = 0; i < 6; ++i) {
    increase(desk.manager, tensors[i], 1);
    promised.push_back(tensors[i].download_async(seen[i]));
  }
  for (auto& tensor : tensors) increase(desk.manager, tensor, 100);
  for (auto& one : promised) one.wait();
  for (std::size_t i = 0; i < 6; ++i) CHECK(seen[i] == std::vector<int>(length, static_cast<int>(i) + 2));
  for (std::size_t i = 0; i < 6; ++i) CHECK(holds(tensors[i], static_cast<int>(i) + 102));
}

TEST_CASE("a promised value stays in the file when its tensor is gone, until it is collected") {
  FileDesk desk({}, 256_bytes);
  std::vector<int> seen(length);
  std::optional<PendingDownload<Simulated>> promised;
  {
    auto tensor = desk.manager.tensor<int>({length}, "gone");
    tensor.upload(std::vector<int>(length, 7));
    promised.emplace(tensor.download_async(seen));
  }
  auto tensors = uploaded_tensors(desk.manager, 3);
  for (auto& tensor : tensors) increase(desk.manager, tensor, 1);
  promised->wait();
  CHECK(seen == std::vector<int>(length, 7));
  promised.reset();
  tensors.push_back(desk.manager.tensor<int>({length}, "new"));
  tensors.back().upload(std::vector<int>(length, 1));
  CHECK(desk.manager.report().file_used == 256_bytes);
}

TEST_CASE("a full file is an error with names, and nothing is lost") {
  FileDesk desk({}, 192_bytes);
  auto tensors = uploaded_tensors(desk.manager, 3);
  auto one = desk.manager.tensor<int>({length}, "one");
  try {
    one.upload(std::vector<int>(length, 7));
    FAIL("the upload was accepted");
  } catch (const OutOfMemory& error) {
    CHECK(std::string(error.what()).find("\"one\"") != std::string::npos);
    CHECK(std::string(error.what()).find("a file in memory has no room for them") != std::string::npos);
  }
  for (int i = 0; i < 3; ++i) CHECK(holds(tensors[static_cast<std::size_t>(i)], i + 1));
  tensors.pop_back();
  one.upload(std::vector<int>(length, 7));
  CHECK(holds(one, 7));
}

TEST_CASE("a full disk is found when room is taken, not in a write") {
  FileDesk desk;
  desk.file->disk = 128_bytes;
  auto tensors = uploaded_tensors(desk.manager, 2);
  CHECK_THROWS_AS((void)uploaded_tensors(desk.manager, 1, "more"), OutOfMemory);
  for (auto& tensor : tensors) increase(desk.manager, tensor, 1);
  for (int i = 0; i < 2; ++i) CHECK(holds(tensors[static_cast<std::size_t>(i)], i + 2));
  desk.file->disk = 64_KiB;
  const auto more = uploaded_tensors(desk.manager, 1, "more");
  CHECK(holds(more[0], 1));
}

TEST_CASE("a read that fails is told with its tensor and the reason, and the value in the file stays") {
  FileDesk desk;
  auto tensors = uploaded_tensors(desk.manager, 6);
  desk.file->failing_read = desk.file->reads + 1;
  std::string text;
  try {
    increase(desk.manager, tensors[0], 1);
    desk.manager.synchronize();
    FAIL("the failure was not told");
  } catch (const WorkFailed& error) {
    text = error.what();
  }
  CHECK(text.find("\"w0\"") != std::string::npos);
  CHECK(text.find("reading: Input/output error") != std::string::npos);
  // The operation ran on what the failed read left, so its result is lost.
  CHECK_THROWS_AS((void)tensors[0].download(), WorkFailed);
  for (int i = 1; i < 6; ++i) CHECK(holds(tensors[static_cast<std::size_t>(i)], i + 1));
  tensors[0].upload(std::vector<int>(length, 3));
  increase(desk.manager, tensors[0], 1);
  CHECK(holds(tensors[0], 4));
  CHECK(probe(desk.manager));
}

TEST_CASE("a write that fails is told with its tensor and the reason, once, and other values stay") {
  FileDesk desk;
  auto tensors = uploaded_tensors(desk.manager, 6);
  for (auto& tensor : tensors) increase(desk.manager, tensor, 1);
  desk.manager.synchronize();
  desk.file->failing_write = desk.file->writes + 1;
  std::string text;
  try {
    for (auto& tensor : tensors) increase(desk.manager, tensor, 1);
    desk.manager.synchronize();
    FAIL("the failure was not told");
  } catch (const WorkFailed& error) {
    text = error.what();
  }
  CHECK(text.find("writing: Input/output error") != std::string::npos);
  CHECK(probe(desk.manager));
}

TEST_CASE("an upload into the file that fails loses the value only if it began to replace it") {
  FileDesk desk;
  auto tensor = desk.manager.tensor<int>({100}, "t");  // seven slots
  tensor.upload(std::vector<int>(100, 1));
  const auto text_of = [](auto&& call) -> std::string {
    try {
      call();
    } catch (const Error& error) {
      return error.what();
    }
    return {};
  };
  // A part is read around first.
  desk.file->failing_read = desk.file->reads + 1;
  const std::string unread = text_of([&] { tensor.slice(3, 4).upload(std::vector<int>(4, 2)); });
  CHECK(unread == "upload to tensor \"t\": reading: Input/output error");
  CHECK(tensor.download() == std::vector<int>(100, 1));
  desk.file->failing_write = desk.file->writes + 3;
  const std::string half = text_of([&] { tensor.upload(std::vector<int>(100, 3)); });
  CHECK(half.find("writing: Input/output error; undefined from now on: \"t\"") != std::string::npos);
  CHECK_THROWS_AS((void)tensor.download(), WorkFailed);
  tensor.upload(std::vector<int>(100, 4));
  CHECK(tensor.download() == std::vector<int>(100, 4));
}

TEST_CASE("what cannot be done with a file is refused") {
  Simulated device;
  const auto file = std::make_shared<MemoryFile>(64_KiB);
  Options options{.device_budget = 256_bytes, .file = file};
  options.file_staging = staging;

  Options little = options;
  little.file_staging = 100_bytes;
  CHECK_THROWS_WITH_AS(MemoryManager<Simulated>(device, little),
                       "Options::file_staging is 100 bytes, and a file in memory needs at least 640", UsageError);
  Options scrub = options;
  scrub.scrub = true;
  CHECK_THROWS_WITH_AS(MemoryManager<Simulated>(device, scrub),
                       "Options::scrub does not overwrite files: use it without Options::file", UsageError);
  Options poor = options;
  poor.host_budget = 100_bytes;
  CHECK_THROWS_WITH_AS(
      MemoryManager<Simulated>(device, poor),
      ("Options::file_staging of " + std::to_string(staging.value) + " bytes is more than Options::host_budget of 100")
          .c_str(),
      UsageError);
  {
    const MemoryManager<Simulated> first(device, options);
    CHECK_THROWS_WITH_AS(MemoryManager<Simulated>(device, options),
                         "Options::file: another manager uses a file in memory already", UsageError);
  }
  const MemoryManager<Simulated> second(device, options);  // the first one gave it back
}

TEST_CASE("a plan says which values are in the host and which in the file") {
  // The device has room for 4 of 12 tensors, the host for 5. A copy takes half as long as an operation, one with the
  // file four times as long as an operation.
  simulated::Options options;
  options.h2d = options.d2h = {.bytes_per_second = 128'000'000U};
  options.file_read = options.file_write = {.bytes_per_second = 16'000'000U};
  const auto file = std::make_shared<MemoryFile>(64_KiB);
  Simulated device(options);
  Options limits{.device_budget = 256_bytes, .host_budget = staging + 320_bytes, .file = file};
  limits.file_staging = staging;
  MemoryManager<Simulated> manager(device, limits, Scheduler({.planner = "best", .trial_iterations = 0}));
  auto tensors = uploaded_tensors(manager, 12);
  const auto iterate = [&] {
    auto iteration = manager.iteration("train");
    for (auto& tensor : tensors) increase(manager, tensor, 1);
  };
  for (int i = 0; i < 6; ++i) iterate();
  const Report before = manager.report();
  for (int i = 0; i < 6; ++i) iterate();
  const Report report = manager.report();
  INFO(report);
  CHECK(report.iterations_followed == before.iterations_followed + 6);
  REQUIRE(report.plans.size() == 1);
  const PlanSummary& plan = report.plans.front();
  REQUIRE(plan.tells_file);
  // Of the 12 tensors 4 are on the device, and 5 in the host.
  CHECK(plan.file_in >= 192_bytes);
  CHECK(plan.file_in < plan.predicted.h2d);
  CHECK((report.file_read - before.file_read).value == 6 * plan.file_in.value);
  CHECK((report.file_written - before.file_written).value == 6 * plan.file_out.value);
  for (int i = 0; i < 12; ++i) CHECK(holds(tensors[static_cast<std::size_t>(i)], i + 1 + 12));
  CHECK(report.host_peak <= limits.host_budget);
  CHECK(device.violation_count() == 0);
}
