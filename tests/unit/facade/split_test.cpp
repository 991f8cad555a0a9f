// SPDX-License-Identifier: Apache-2.0
#include <swapmm/split.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/small_program.hpp"
#include "support/split_program.hpp"

namespace swapmm::test::split_facade_test {
using namespace swapmm::literals;

struct SplitDesk {
  explicit SplitDesk(Bytes budget = 64_KiB, SchedulerOptions options = {})
      : manager(device, {.device_budget = budget}, Scheduler(std::move(options))) {}
  Simulated device;
  MemoryManager<Simulated> manager;
};

std::string refusal(const SplitOptions& options, const SchedulerOptions& scheduler = {}) {
  SplitDesk desk(64_KiB, scheduler);
  return text_of<UsageError>([&] { Split(desk.manager, "train", options); });
}

/// An operation on so many samples, which adds them up.
void body_of(MemoryManager<Simulated>& manager, const Piece& piece, const Tensor<int, Simulated>& sum) {
  auto x = manager.tensor<int>({piece.samples}, "x", transient);
  x.upload(std::vector<int>(piece.samples, static_cast<int>(piece.first)));
  accumulate(manager, x, sum);
}

TEST_CASE("options of a split step that make no sense are refused") {
  CHECK(says(refusal({}), {"split step \"train\"", "at least one sample"}));
  CHECK(says(refusal({.batch = 4, .pieces = 5}), {"5 pieces of a batch of 4"}));
  CHECK(says(refusal({.batch = 4, .pieces = 2, .keeps_statistics = true}), {"statistics over the batch"}));
  CHECK(says(refusal({.batch = 4, .keeps_statistics = true}), {"statistics over the batch"}));
  CHECK(says(refusal({.batch = 2}), {"less than 3 samples"}));
  CHECK(says(refusal({.batch = 8, .observed_samples = 3}), {"pieces of 3 samples", "the batch of 8"}));
  CHECK(says(refusal({.batch = 8}, {.observe = 0}), {"SchedulerOptions::observe is 0"}));
  SplitDesk desk;
  const Split one(desk.manager, "train", {.batch = 2, .pieces = 1, .keeps_statistics = true});
  CHECK(one.pieces() == 1);
}

TEST_CASE("each piece gets its samples, between the beginning and the end, in one iteration") {
  SplitDesk desk;
  auto sum = desk.manager.tensor<int>({1}, "sum");
  sum.upload(std::vector<int>{0});
  Split split(desk.manager, "train", {.batch = 8, .pieces = 3});
  std::string order;
  split.step([&] { order += "begin"; },
             [&](const Piece& piece) {
               CHECK(piece.pieces == 3);
               order += ' ' + std::to_string(piece.number) + ':' + std::to_string(piece.first) + '+' +
                        std::to_string(piece.samples);
               body_of(desk.manager, piece, sum);
             },
             [&] { order += " end"; });
  CHECK(order == "begin 0:0+3 1:3+3 2:6+2 end");
  CHECK(holds(sum, 0 + 3 + 6));
  (void)desk.manager.iteration("next");
  CHECK(desk.manager.scheduler().trace("train")->operations.size() == 3);
  CHECK(!split.choice());
}

TEST_CASE("what a function of a step throws passes through, and the next step runs") {
  SplitDesk desk;
  auto sum = desk.manager.tensor<int>({1}, "sum");
  sum.upload(std::vector<int>{0});
  Split split(desk.manager, "train", {.batch = 8});
  int bodies = 0;
  const auto step = [&](int failing) {
    split.step(
        [&](const Piece& piece) {
          if (bodies++ == failing) throw std::runtime_error("mine");
          body_of(desk.manager, piece, sum);
        },
        [] {});
  };
  CHECK_THROWS_WITH(step(2), "mine");
  for (int i = 0; i < 3; ++i) step(-1);
  CHECK(split.pieces() > 0);
  REQUIRE(split.observed());
  CHECK(split.observed()->name == "train, observed");
  CHECK(split.observed()->small == 1);
  CHECK(split.observed()->large == 2);
}

TEST_CASE("pieces that are not alike are an error when the number is chosen") {
  SplitDesk desk;
  auto sum = desk.manager.tensor<int>({1}, "sum");
  sum.upload(std::vector<int>{0});
  Split split(desk.manager, "train", {.batch = 8});
  const auto step = [&] {
    split.step(
        [&](const Piece& piece) {
          body_of(desk.manager, piece, sum);
          if (piece.number == 1) increase(desk.manager, sum, 1);
        },
        [] {});
  };
  step();
  step();
  const std::string text = text_of<UsageError>(step);
  CHECK(says(text, {"split step \"train\": piece 1 has 2 operations, and the first piece has 1"}));
}

TEST_CASE("a batch that is too large as a whole runs in the pieces that are chosen") {
  SplitProgram program;
  program.input = 8;
  program.layers.resize(2, {.weights = 40, .fixed = 0, .per_sample = 24, .fixed_time = 50, .time_per_sample = 20});
  SchedulerOptions options;
  options.planner = "belady";
  const auto run = [&](Bytes budget, std::size_t pieces) {
    SplitDesk desk(budget, options);
    SplitProgramRun steps(program, desk.manager, {.batch = 256, .pieces = pieces});
    for (std::uint32_t step = 0; step < 6; ++step) steps.step(step);
    CHECK(desk.manager.report().device_peak <= budget);
    return std::pair(steps.values(), steps.split().pieces());
  };
  // The bundle of a hidden layer has 2 x 24 numbers for each sample: 64 samples take 12 KiB.
  CHECK_THROWS_AS(run(14_KiB, 1), BundleTooLarge);
  const auto [values, pieces] = run(14_KiB, SplitOptions::choose);
  CHECK(pieces >= 4);
  CHECK(values == run(1024_KiB, 4).first);
  CHECK(values == run(1024_KiB, 1).first);
}

}  // namespace swapmm::test::split_facade_test
