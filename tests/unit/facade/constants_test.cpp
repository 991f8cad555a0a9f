// SPDX-License-Identifier: Apache-2.0
// Tensors whose values are in a file that is only read.
#include <doctest/doctest.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
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

constexpr Bytes slots{10 * 64};

/// Numbers in a file that nobody may write. It can become shorter.
class GivenFile final : public FileMemory {
 public:
  /// `lead` bytes, then values of 16 numbers each: those of the i-th are i + 1.
  GivenFile(std::size_t lead, std::size_t values, Bytes alignment = Bytes{1}) : alignment_(alignment), bytes(lead) {
    for (std::size_t i = 0; i < values; ++i) {
      const std::vector<int> numbers(length, static_cast<int>(i) + 1);
      const auto raw = std::as_bytes(std::span(numbers));
      bytes.insert(bytes.end(), raw.begin(), raw.end());
    }
    size_ = Bytes{bytes.size()};
  }

  [[nodiscard]] Bytes capacity() const override { return Bytes{}; }
  [[nodiscard]] Bytes size() const override { return size_; }
  [[nodiscard]] Bytes alignment() const override { return alignment_; }
  [[nodiscard]] std::string name() const override { return "a given file"; }
  void reserve(Bytes size) override {
    throw BackendError(BackendError::Kind::out_of_host_memory, EROFS, "reserving in a given file", size);
  }
  void read(Bytes offset, std::span<std::byte> to) override {
    if (offset.value + to.size() > bytes.size()) {
      throw BackendError(BackendError::Kind::failed, 0, "a given file ends at " + std::to_string(bytes.size()));
    }
    std::memcpy(to.data(), bytes.data() + offset.value, to.size());
    bytes_read += to.size();
  }
  void write(Bytes, std::span<const std::byte>) override { throw std::logic_error("a given file is written"); }

 private:
  Bytes alignment_;
  Bytes size_;

 public:
  std::vector<std::byte> bytes;
  std::uint64_t bytes_read = 0;
};

/// 256 bytes of the device: four values. Host memory for the slots alone, but for a few values.
struct Desk {
  explicit Desk(std::size_t values, std::size_t lead = 13, std::shared_ptr<FileMemory> file = nullptr,
                const Scheduler& scheduler = Scheduler(), Bytes host = 4_KiB)
      : given(std::make_shared<GivenFile>(lead, values)),
        manager(device, options(file != nullptr ? std::move(file) : given, host), scheduler) {
    for (std::size_t i = 0; i < values; ++i) {
      weights.push_back(
          manager.constant<int>({length}, given, Bytes{lead + i * tensor_bytes.value}, "w" + std::to_string(i)));
    }
  }
  static Options options(std::shared_ptr<FileMemory> file, Bytes host = 4_KiB) {
    Options options{.device_budget = 256_bytes, .host_budget = slots + host, .file = std::move(file)};
    options.file_staging = slots;
    return options;
  }

  Simulated device;
  std::shared_ptr<GivenFile> given;
  MemoryManager<Simulated> manager;
  std::vector<Tensor<int, Simulated>> weights;
};

int sum_of(std::size_t values) { return static_cast<int>(values * (values + 1) / 2); }

void add_all(Desk& desk, const Tensor<int, Simulated>& sum) {
  auto iteration = desk.manager.iteration("infer");
  set(desk.manager, sum, 0);
  for (const auto& weight : desk.weights) accumulate(desk.manager, weight, sum);
}

}  // namespace

TEST_CASE("a constant is not lost with work that failed before, whatever had its record") {
  Desk desk(2);
  auto old = desk.manager.tensor<int>({length}, "old");
  auto bad = desk.manager.tensor<int>({length}, "bad");
  auto others = uploaded_tensors(desk.manager, 4);
  set(desk.manager, old, 1);
  desk.device.fail(QueueKind::compute);
  set(desk.manager, bad, 1);                                    // fails, and nobody knows yet
  for (auto& other : others) increase(desk.manager, other, 1);  // `old` leaves
  old.reset();
  const auto weight = desk.manager.constant<int>({length}, desk.given, 13_bytes, "in the record of old");
  CHECK_THROWS_AS(desk.manager.synchronize(), WorkFailed);
  CHECK(holds(weight, 1));
  CHECK_THROWS_AS((void)bad.download(), WorkFailed);
}

TEST_CASE(
    "constants come from their file as often as they are needed, on demand and by a plan, and are never written") {
  for (const bool planned : {false, true}) {
    for (const std::size_t lead : {0U, 13U, 64U}) {
      CAPTURE(planned);
      CAPTURE(lead);
      SchedulerOptions scheduler;
      if (!planned) scheduler.observe = 0;
      Desk desk(10, lead, nullptr, Scheduler(scheduler), 128_bytes);
      auto sum = desk.manager.tensor<int>({length}, "sum");
      for (int round = 0; round < 8; ++round) {
        add_all(desk, sum);
        CHECK(holds(sum, sum_of(10)));
      }
      const Report report = desk.manager.report();
      CHECK((report.iterations_followed > 0) == planned);
      for (const PlanSummary& plan : report.plans) CHECK_FALSE(plan.tells_file);  // there is nothing to choose
      CHECK(report.device_peak <= 256_bytes);
      CHECK(report.file_used == 0_bytes);
      CHECK(report.file_written == 0_bytes);
      CHECK(report.file_read.value == desk.given->bytes_read);
      CHECK(report.file_read >= Bytes{8 * 7 * 64});  // three of ten may stay
      CHECK(report.host_peak <= slots + tensor_bytes + tensor_bytes);
      CHECK(report.d2h <= Bytes{9 * 64});  // the sum
      CHECK(desk.device.violation_count() == 0);
    }
  }
}

TEST_CASE("a plan takes constants for what they are: nothing goes out, and what stays is never read again") {
  Desk desk(10);
  auto sum = desk.manager.tensor<int>({length}, "sum", kept);
  for (int round = 0; round < 6; ++round) add_all(desk, sum);
  const Report before = desk.manager.report();
  for (int round = 0; round < 10; ++round) add_all(desk, sum);
  const Report after = desk.manager.report();
  CHECK(after.iterations_followed == before.iterations_followed + 10);
  CHECK(after.d2h - before.d2h <= Bytes{10 * 64});  // the sum, at most
  // Of four places one is the sum's. At least two of the other three can hold weights that stay.
  CHECK(after.swap_ins - before.swap_ins <= 10 * 9);
  CHECK(after.swap_ins - before.swap_ins >= 10 * 7);
  CHECK(holds(sum, sum_of(10)));
}

TEST_CASE("constants beside a file for other values, and on a device that has room for all") {
  const auto file = std::make_shared<MemoryFile>(64_KiB);
  Desk desk(6, 13, file);
  auto tensors = uploaded_tensors(desk.manager, 80, "t");  // more than the host has
  for (int round = 0; round < 3; ++round) {
    for (std::size_t i = 0; i < tensors.size(); ++i) accumulate(desk.manager, desk.weights[i % 6], tensors[i]);
  }
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    CHECK(holds(tensors[i], static_cast<int>(i) + 1 + 3 * (static_cast<int>(i % 6) + 1)));
  }
  CHECK(file->bytes_written > 0);
  CHECK(desk.manager.report().file_read.value == file->bytes_read + desk.given->bytes_read);

  Options ample = Desk::options(desk.given);
  ample.device_budget = 64_KiB;
  MemoryManager<Simulated> manager(desk.device, ample);
  const std::uint64_t read = desk.given->bytes_read;  // two managers may have constants in one file
  auto weight = manager.constant<int>({length}, desk.given, 13_bytes);
  auto sum = manager.tensor<int>({length}, "sum");
  for (int round = 0; round < 5; ++round) {
    auto iteration = manager.iteration("infer");
    set(manager, sum, round);
    accumulate(manager, weight, sum);
    CHECK(holds(sum, round + 1));
  }
  CHECK(desk.given->bytes_read == read + 64);
}

TEST_CASE("where the host and the file are full, no constant is given up for room") {
  const auto file = std::make_shared<MemoryFile>(1_KiB);
  Desk desk(2, 13, file);
  auto sum = desk.manager.tensor<int>({length}, "sum");
  add_all(desk, sum);
  auto tensors = uploaded_tensors(desk.manager, 80, "t");  // all that host and file have
  std::vector<Tensor<int, Simulated>> more;
  const auto fill_up = [&] {
    for (int i = 0; i < 8; ++i) {
      more.push_back(desk.manager.tensor<int>({length}, "more"));
      set(desk.manager, more.back(), i);
      for (const auto& weight : desk.weights) accumulate(desk.manager, weight, more.back());
    }
  };
  CHECK_THROWS_AS(fill_up(), OutOfMemory);
  for (std::size_t i = 0; i < 80; ++i) CHECK(holds(tensors[i], static_cast<int>(i) + 1));
  tensors.clear();
  std::vector<Tensor<int, Simulated>> others;  // all of the device
  for (int i = 0; i < 4; ++i) {
    others.push_back(desk.manager.tensor<int>({length}, "other"));
    set(desk.manager, others.back(), i);
  }
  const std::uint64_t read = desk.given->bytes_read;
  for (int round = 0; round < 3; ++round) {
    add_all(desk, sum);
    CHECK(holds(sum, sum_of(2)));
  }
  CHECK(desk.given->bytes_read == read + 2 * 64);  // they still are where they were
}

TEST_CASE("a constant is read by the host, in parts as well, and in pieces larger than a slot of the staging") {
  for (const bool in_pages : {false, true}) {
    CAPTURE(in_pages);
    Desk desk(40, 3, in_pages ? std::make_shared<MemoryFile>(64_KiB) : nullptr);
    CHECK(holds(desk.weights[17], 18));
    auto all = desk.manager.constant<int>({40 * length}, desk.given, 3_bytes, "all");
    std::vector<int> expected;
    for (int i = 0; i < 40; ++i) expected.insert(expected.end(), length, i + 1);
    CHECK(all.download() == expected);
    CHECK(all.slice(2 * length + 5, 30).download() ==
          std::vector<int>(expected.begin() + 2 * length + 5, expected.begin() + 2 * length + 35));
    // The file ends with the value, and the staging is read in whole slots.
    const auto last = desk.manager.constant<int>({5}, desk.given, Bytes{3 + 40 * 64 - 20}, "last");
    CHECK(last.download() == std::vector<int>(5, 40));
    auto copy = desk.manager.tensor<int>({5}, "copy");
    add(desk.manager, last, copy, 1);
    CHECK(copy.download() == std::vector<int>(5, 41));
    auto pending = desk.weights[5].download_async(expected = std::vector<int>(length));
    pending.wait();
    CHECK(expected == std::vector<int>(length, 6));
  }
}

TEST_CASE("nobody writes a constant") {
  Desk desk(2);
  auto& weight = desk.weights[1];
  CHECK(says(text_of<UsageError>([&] { weight.upload(std::vector<int>(length, 9)); }),
             {"an upload writes tensor \"w1\", which is a constant"}));
  CHECK(says(text_of<UsageError>([&] { increase(desk.manager, weight, 1, "step"); }),
             {"operation \"step\" writes tensor \"w1\", which is a constant"}));
  CHECK(says(text_of<UsageError>([&] { set(desk.manager, weight.slice(0, 4), 1, "part"); }),
             {"operation \"part\" writes tensor \"w1\""}));
  CHECK(holds(weight, 2));
  auto sum = desk.manager.tensor<int>({length}, "sum");
  add_all(desk, sum);
  CHECK(holds(sum, 3));
}

TEST_CASE("constants that cannot be are refused when they are made, with the file and the bytes") {
  Desk desk(2, 8);
  const auto refused = [&](std::shared_ptr<FileMemory> file, Bytes offset) {
    return text_of<UsageError>([&] { (void)desk.manager.constant<int>({length}, std::move(file), offset, "c"); });
  };
  CHECK(says(refused(nullptr, 0_bytes), {"constant \"c\": there is no file"}));
  CHECK(says(refused(desk.given, 73_bytes), {"constant \"c\"", "64 bytes", "byte 73", "a given file has 136 bytes"}));
  CHECK(says(refused(desk.given, Bytes{~std::uint64_t{0}}), {"a given file has 136 bytes"}));
  CHECK(holds(desk.manager.constant<int>({length}, desk.given, 72_bytes), 2));
  const auto in_sectors = std::make_shared<GivenFile>(16, 3, Bytes{16});
  CHECK(says(refused(in_sectors, 24_bytes), {"multiples of 16 bytes"}));
  CHECK(holds(desk.manager.constant<int>({length}, in_sectors, 80_bytes), 2));

  Simulated device;
  MemoryManager<Simulated> without(device, {.device_budget = 256_bytes});
  CHECK(says(text_of<UsageError>([&] { (void)without.constant<int>({length}, desk.given, 8_bytes, "c"); }),
             {"constant \"c\"", "Options::file"}));
}

TEST_CASE("a file that becomes shorter is an error of who needs the bytes, and nothing else is lost") {
  Desk desk(6);
  auto sum = desk.manager.tensor<int>({length}, "sum", kept);
  for (int round = 0; round < 5; ++round) add_all(desk, sum);
  std::vector<std::byte> whole = desk.given->bytes;
  desk.given->bytes.resize(13 + 3 * 64);
  const auto use_all = [&] {
    for (int round = 0; round < 3; ++round) add_all(desk, sum);
    desk.manager.synchronize();
  };
  const std::optional<WorkFailed> error = thrown<WorkFailed>(use_all);
  REQUIRE(error.has_value());
  CHECK(says(error->what(), {"a given file ends at 205"}));
  CHECK(holds(desk.weights[0], 1));
  CHECK(holds(desk.weights[2], 3));
  // The file is whole again.
  desk.given->bytes = std::move(whole);
  for (std::size_t i = 0; i < 6; ++i) CHECK(holds(desk.weights[i], static_cast<int>(i) + 1));
  for (int round = 0; round < 5; ++round) {
    add_all(desk, sum);
    CHECK(holds(sum, sum_of(6)));
  }
  CHECK(desk.device.violation_count() == 0);
}

TEST_CASE("constants come and go, and a new budget keeps them") {
  Desk desk(8);
  auto sum = desk.manager.tensor<int>({length}, "sum");
  for (int round = 0; round < 5; ++round) add_all(desk, sum);
  desk.weights.erase(desk.weights.begin() + 2, desk.weights.begin() + 4);
  for (int round = 0; round < 5; ++round) {
    add_all(desk, sum);
    CHECK(holds(sum, sum_of(8) - 3 - 4));
  }
  desk.manager.set_budget(128_bytes);
  for (int round = 0; round < 5; ++round) {
    add_all(desk, sum);
    CHECK(holds(sum, sum_of(8) - 3 - 4));
  }
  CHECK(desk.device.violation_count() == 0);
}

TEST_CASE("tensors that take the roles of constants in a followed plan have values and memory of their own") {
  Desk desk(6);
  auto sum = desk.manager.tensor<int>({length}, "sum");
  for (int round = 0; round < 6; ++round) add_all(desk, sum);
  CHECK(desk.manager.report().iterations_followed > 0);
  for (int generation = 1; generation < 4; ++generation) {
    desk.weights.clear();
    for (int i = 0; i < 6; ++i) {
      desk.weights.push_back(desk.manager.tensor<int>({length}, "t" + std::to_string(i)));
      set(desk.manager, desk.weights.back(), generation * (i + 1));
    }
    for (int round = 0; round < 3; ++round) {
      add_all(desk, sum);
      CHECK(holds(sum, generation * sum_of(6)));
    }
  }
  CHECK(desk.device.violation_count() == 0);
}
