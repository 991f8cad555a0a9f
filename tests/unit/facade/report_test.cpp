// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <sstream>
#include <string>
#include <vector>

#include <swapmm/backend/testing/simulated.hpp>
#include <swapmm/swapmm.hpp>

#include "support/small_program.hpp"

using namespace swapmm;
using namespace swapmm::test;
using namespace swapmm::literals;

TEST_CASE("a fresh manager reports its device and its budget, and nothing else") {
  Simulated device;
  const MemoryManager<Simulated> manager(device, {.device_budget = 1000_bytes});
  const Report report = manager.report();
  CHECK(report.device == "simulated");
  CHECK(!report.host_shares_memory);
  CHECK(report.device_budget == 992_bytes);  // whole multiples of the alignment
  CHECK(report.device_used == 0_bytes);
  CHECK(report.tensors == 0);
  CHECK(report.operations == 0);
  CHECK(report.iterations_on_demand == 0);
  CHECK(report.plans.empty());
  CHECK(report.notes.empty());
}

TEST_CASE("the report counts what moved, what ran and what was used, exactly") {
  Simulated device;
  MemoryManager<Simulated> manager(device, {.device_budget = 256_bytes});
  auto tensors = uploaded_tensors(manager, 5);
  CHECK(manager.report().host_used == 320_bytes);
  for (auto& tensor : tensors) increase(manager, tensor, 1);  // the fifth one pushes the first one out
  const Report report = manager.report();
  CHECK(report.tensors == 5);
  CHECK(report.operations == 5);
  CHECK(report.swap_ins == 5);
  CHECK(report.h2d == 320_bytes);
  CHECK(report.swap_outs == 1);
  CHECK(report.d2h == 64_bytes);
  CHECK(report.device_used == 256_bytes);
  CHECK(report.device_peak == 256_bytes);
  CHECK(report.host_peak == 320_bytes);
  CHECK(report.pinned_used == 320_bytes);
  tensors.clear();
  CHECK(manager.report().tensors == 0);
  CHECK(manager.report().device_used == 0_bytes);
  CHECK(manager.report().device_peak == 256_bytes);
}

TEST_CASE("the report has each plan with what it promises") {
  Simulated device;
  MemoryManager<Simulated> manager(device, {.device_budget = 256_bytes}, Scheduler({.planner = "belady"}));
  auto tensors = uploaded_tensors(manager, 6);
  for (int i = 0; i < 6; ++i) {
    auto iteration = manager.iteration("train");
    for (auto& tensor : tensors) increase(manager, tensor, 1);
  }
  const Report report = manager.report();
  CHECK(report.iterations_on_demand == 3);
  CHECK(report.iterations_followed == 3);
  CHECK(report.plan_starts == 1);
  REQUIRE(report.plans.size() == 1);
  const PlanSummary& plan = report.plans[0];
  CHECK(plan.iteration == "train");
  CHECK(plan.planner == "belady");
  CHECK(plan.operations == 6);
  CHECK(plan.iterations_per_cycle == 1);
  CHECK(plan.predicted.compute == 6 * operation_time);
  CHECK(plan.predicted.iteration >= plan.predicted.compute);
  CHECK(plan.predicted.peak <= 256_bytes);
  CHECK(plan.predicted == manager.scheduler().plan("train")->predicted);
}

TEST_CASE("the report's text says in words and round numbers what a person asks for") {
  Report report;
  report.device = "a device";
  report.host_shares_memory = true;
  report.device_budget = 256_MiB;
  report.budget_changes = 6;
  report.device_used = 100_bytes;
  report.device_peak = 1536_KiB;
  report.host_used = 3_GiB;
  report.pinned_used = 2_GiB;
  report.pinned_slabs = 5;
  report.tensors = 12;
  report.operations = 345;
  report.iterations_on_demand = 2;
  report.iterations_followed = 40;
  report.swap_ins = 7;
  report.h2d = 10_KiB;
  report.swap_outs = 5;
  report.d2h = 20_KiB;
  report.queue_waits = 31;
  report.host_waits = 32;
  report.plan_starts = 3;
  report.divergences = 1;
  report.last_divergence = "of the weather";
  PlanSummary plan;
  plan.iteration = "train";
  plan.planner = "belady";
  plan.operations = 9;
  plan.predicted.iteration = std::chrono::microseconds{3000};
  plan.predicted.compute = std::chrono::microseconds{2500};
  plan.predicted.lower_bound = std::chrono::microseconds{2000};
  plan.predicted.h2d = 1_MiB;
  plan.measured = std::chrono::microseconds{3100};
  plan.on_demand = std::chrono::microseconds{4200};
  plan.state = PlanState::on_trial;
  report.plans.push_back(plan);
  report.notes.push_back("a remark");
  std::ostringstream out;
  out << report;
  CHECK(says(out.str(), {"a device",
                         "shares the host's memory",
                         "100 B used",
                         "peak 1.50 MiB",
                         "256.00 MiB, changed 6 times",
                         "12 tensors",
                         "3.00 GiB used",
                         "2.00 GiB of it pinned in slabs: 5\n",
                         "345 operations",
                         "2 on demand",
                         "40 by a plan",
                         "7 swap-ins (10.00 KiB)",
                         "5 swap-outs (20.00 KiB)",
                         "31 between queues",
                         "32 of the host",
                         "begun 3 times",
                         "left 1 times",
                         "of the weather",
                         "\"train\" by belady",
                         "9 operations",
                         "3.000 ms",
                         "0.500 ms stalls",
                         "3.100 ms measured",
                         "4.200 ms on demand",
                         "on trial",
                         "1.500 x the least possible",
                         "1.00 MiB in",
                         "a remark"}));
  std::ostringstream text;
  text << report << 0.5 << ' ' << 1e9;  // and leaves the stream as it was
  CHECK(text.str().ends_with("0.5 1e+09"));
}

TEST_CASE("host memory that is not in slabs is said to be pinned, and nothing of slabs") {
  Report report;
  report.pinned_used = 1_MiB;
  std::ostringstream out;
  out << report;
  CHECK(says(out.str(), {"1.00 MiB of it pinned\n"}));
}

TEST_CASE("the text has the longest stalls, and how many more there are") {
  Report report;
  PlanSummary plan;
  plan.stalled_operations = 7;
  plan.stalls = {{"operation \"b\" waits", std::chrono::microseconds{1500}},
                 {"operation \"a\" waits", std::chrono::microseconds{250}}};
  report.plans.push_back(plan);
  std::ostringstream out;
  out << report;
  CHECK(says(out.str(), {"1.500 ms: operation \"b\" waits", "0.250 ms: operation \"a\" waits", "and 5 operations"}));
}

TEST_CASE("a plan of several iterations says so in the text") {
  Report report;
  PlanSummary plan;
  plan.iteration = "train";
  plan.iterations_per_cycle = 2;
  report.plans.push_back(plan);
  std::ostringstream out;
  out << report;
  CHECK(says(out.str(), {"\"train\"", "2 iterations"}));
}

TEST_CASE("the report's text says each number of the file, of neighbours, of the codec and of turns in its place") {
  Report report;
  report.device = "a device";
  report.file_used = 1_KiB;
  report.file_peak = 2_KiB;
  report.file_read = 3_KiB;
  report.file_written = 4_KiB;
  report.neighbours_budget = 9_KiB;
  report.neighbours_used = 5_KiB;
  report.neighbours_peak = 6_KiB;
  report.neighbours_read = 7_KiB;
  report.neighbours_written = 8_KiB;
  report.codec_staging = 10_KiB;
  report.encoded_in = 11_KiB;
  report.encoded_out = 12_KiB;
  report.predictions = 14;
  report.predictions_right = 13;
  report.brought_ahead = 15;
  report.plan_starts = 2;
  report.start_h2d = 16_KiB;
  report.start_d2h = 17_KiB;
  report.divergences = 18;
  report.plans_found = 19;
  report.turns_taken = 20;
  report.turns_missed = 21;
  PlanSummary plan;
  plan.iteration = "train";
  plan.planner = "best";
  plan.operations = 9;
  plan.devices = 2;
  plan.replays = 22;
  plan.replay_time = std::chrono::microseconds{23};
  plan.encoded = 24;
  plan.predicted.h2d = 25_KiB;
  plan.predicted.d2h = 26_KiB;
  plan.predicted.peak = 27_KiB;
  plan.tells_file = plan.tells_neighbours = true;
  plan.file_in = 28_KiB;
  plan.file_out = 29_KiB;
  plan.neighbours_in = 30_KiB;
  plan.neighbours_out = 31_KiB;
  report.plans = {plan, plan};
  report.plans[1].devices = 3;
  report.on_demand = {{"test", OnDemandReason::nothing_repeats, "a reason"}};
  std::ostringstream out;
  out << report;
  const std::string text = out.str();
  const auto has = [&](const char* line) { return text.find(line) != std::string::npos; };
  CAPTURE(text);
  CHECK(has("  file     1.00 KiB used, peak 2.00 KiB; 3.00 KiB read, 4.00 KiB written\n"));
  CHECK(has("  neighbours 5.00 KiB used, peak 6.00 KiB of 9.00 KiB; 7.00 KiB read, 8.00 KiB written\n"));
  CHECK(has("  codec    10.00 KiB of the device; values of 12.00 KiB encoded, of 11.00 KiB decoded\n"));
  CHECK(has("  foresaw  13 of 14 operations on demand; 15 tensors brought ahead\n"));
  CHECK(has(
      "  plans    begun 2 times (16.00 KiB in, 17.00 KiB out to get there), left 18 times; 19 found in the store\n"));
  CHECK(has("  turns    20 copies waited for another device's, 21 could not\n"));
  CHECK(
      has(", beside 1 other device; 22 run again, 0.023 ms; values of 24 tensors encoded; 25.00 KiB in, 26.00 KiB out "
          "(28.00 KiB and 29.00 KiB with the file) (30.00 KiB and 31.00 KiB with neighbours), peak 27.00 KiB\n"));
  CHECK(has(", beside 2 other devices; 22 run again"));
  CHECK(has("  on demand \"test\": a reason\n"));
}
