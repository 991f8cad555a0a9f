// SPDX-License-Identifier: Apache-2.0
#include "progress.hpp"

#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <string>

#include "../process/settings.hpp"

namespace swapmm::opencl::layer {

struct Progress {
  struct Counts {
    std::uint64_t commands = 0;
    std::uint64_t by_plan = 0;
    Bytes to_device;
    Bytes to_host;
    Bytes used;
  };
  std::chrono::steady_clock::time_point next;  // when a line is due
  Counts ended;                                // of contexts that are gone
  Report report;                               // made once, for its texts' memory
};

namespace {

using Counts = Progress::Counts;

bool is_wanted() { return settings().progress.count() != 0; }

Progress& progress_of(DeviceBudget& device) {
  if (device.progress == nullptr) {
    device.progress = new Progress;
    device.progress->next = std::chrono::steady_clock::now() + settings().progress;
  }
  return *device.progress;
}

void add(Counts& sum, const Report& report) {
  sum.commands += report.operations;
  sum.by_plan += report.operations_followed;
  sum.to_device += report.h2d;
  sum.to_host += report.d2h;
}

Counts counts_of(const DeviceBudget& device, Progress& progress) {
  Counts sum = progress.ended;
  sum.used = device.pinned();
  for (Context* const context : device.contexts()) {
    if (!context->has_core()) continue;
    context->core_in_use().count(progress.report);
    add(sum, progress.report);
    sum.used += progress.report.device_used;
  }
  return sum;
}

double mebibytes(Bytes bytes) { return static_cast<double>(bytes.value) / (1U << 20U); }

std::string line_of(const DeviceBudget& device, const Counts& counts) {
  const std::uint64_t percent = counts.commands == 0 ? 0 : 100 * counts.by_plan / counts.commands;
  std::array<char, 256> text{};
  (void)std::snprintf(
      text.data(), text.size(),
      "%llu commands, %llu %% by a plan; %.1f MiB to the device, %.1f MiB to the host; %.1f of %.1f MiB "
      "used",
      static_cast<unsigned long long>(counts.commands), static_cast<unsigned long long>(percent),
      mebibytes(counts.to_device), mebibytes(counts.to_host), mebibytes(counts.used), mebibytes(device.budget()));
  return DeviceBudget::all().size() > 1 ? device.name() + ": " + text.data() : std::string(text.data());
}

}  // namespace

void show_progress(DeviceBudget& device) {
  if (!is_wanted()) return;
  try {
    Progress& progress = progress_of(device);
    const auto now = std::chrono::steady_clock::now();
    if (now < progress.next) return;
    progress.next = now + settings().progress;
    say(line_of(device, counts_of(device, progress)));
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): no line
  }
}

void count_for_progress(DeviceBudget& device, Core& core) {
  if (!is_wanted()) return;
  try {
    Progress& progress = progress_of(device);
    core.count(progress.report);
    add(progress.ended, progress.report);
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): lines without it
  }
}

}  // namespace swapmm::opencl::layer
