// SPDX-License-Identifier: Apache-2.0
#include "report.hpp"

#include <pthread.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <mutex>
#include <string>
#include <vector>

#include "../process/settings.hpp"
#include "copies.hpp"
#include "page.hpp"
#include "text.hpp"

namespace swapmm::opencl::layer {

/// What the report knows of a device beside the device itself.
struct Tally {
  explicit Tally(ReportPage::Slot& in) : slot(in) {}
  ReportPage::Slot& slot;
  DeviceNumbers ended;             // sums of contexts that are gone
  DeviceNumbers now;               // what is published next
  Report report;                   // made once, for its texts' memory
  std::vector<std::string> notes;  // of contexts that are gone
  std::uint64_t first = 0;         // time of the first command
  std::uint64_t plan_starts_seen = 0;
};

namespace {

struct Reporting {
  std::atomic<ReportPage*> page{nullptr};  // null: no report
  bool shared = false;
  std::mutex mutex;  // for new slots
};

// Never destroyed: programs release objects while the process ends.
Reporting& reporting() {
  static Reporting& all = *new Reporting;
  return all;
}

std::uint64_t count_of(std::chrono::nanoseconds time) { return static_cast<std::uint64_t>(time.count()); }
std::uint64_t clock_now() { return count_of(std::chrono::steady_clock::now().time_since_epoch()); }

void add(DeviceNumbers& sum, const Report& report) {
  sum.commands += report.operations;
  sum.by_plan += report.operations_followed;
  sum.iterations += report.iterations_on_demand + report.iterations_followed;
  sum.iterations_by_plan += report.iterations_followed;
  sum.plans_found += report.plans_found;
  sum.plan_starts += report.plan_starts;
  sum.divergences += report.divergences;
  sum.values_saved += report.values_saved;
  sum.saved_bytes += report.saved_bytes.value;
  sum.swap_ins += report.swap_ins;
  sum.swap_outs += report.swap_outs;
  sum.to_device += report.h2d.value;
  sum.to_host += report.d2h.value;
  sum.queue_waits += report.queue_waits;
  sum.host_waits += report.host_waits;
  sum.host_wait_time += count_of(report.host_wait_time);
  sum.file_peak += report.file_peak.value;
  sum.file_read += report.file_read.value;
  sum.file_written += report.file_written.value;
}

void take_plan(DeviceNumbers& into, const Report& report) {
  if (report.plans.empty()) return;
  const PlanSummary& plan = report.plans.front();
  into.plan_operations = plan.operations;
  into.plan_iterations = plan.iterations_per_cycle;
  into.plan_time = count_of(plan.predicted.iteration);
  into.plan_compute_time = count_of(plan.predicted.compute);
  into.plan_bound = count_of(plan.predicted.lower_bound);
}

void take_notes(std::vector<std::string>& into, const Report& report) {
  into.insert(into.end(), report.notes.begin(), report.notes.end());
  for (const OnDemandSummary& each : report.on_demand) into.push_back(each.why);
}

Tally* tally_of(DeviceBudget& device, ReportPage& page) {
  if (device.tally != nullptr) return device.tally;
  const std::lock_guard lock(reporting().mutex);
  const std::uint32_t used = page.devices.load(std::memory_order_relaxed);
  if (used == page.slots.size()) return nullptr;
  device.tally = new Tally(page.slots.at(used));
  DeviceNumbers& now = device.tally->ended;
  std::copy_n(device.name().begin(), std::min(device.name().size(), now.name.size() - 1), now.name.begin());
  now.budget = device.budget().value;
  device.tally->now = now;
  page.devices.store(used + 1, std::memory_order_release);
  return device.tally;
}

void take_own(DeviceNumbers& now, const DeviceBudget& device) {
  now.wanted_peak = device.wanted_peak().value;
  now.not_swapped_peak = device.pinned_peak().value;
  now.largest_command = device.largest_command().value;
  now.host_peak = host_memory()->peak().value;
  now.commands_refused = device.refused_commands;
  now.objects_refused = device.refused_objects.load(std::memory_order_relaxed);
  for (std::size_t kind = 0; kind < passed_through_kinds; ++kind) {
    now.passed.at(kind) = {device.passed_objects.at(kind).load(std::memory_order_relaxed),
                           device.passed_bytes.at(kind).load(std::memory_order_relaxed)};
  }
}

void note_first_plan(Tally& tally, DeviceNumbers& now) {
  if (tally.first == 0 && now.commands != 0) tally.first = clock_now();
  if (now.planned != 0 || now.by_plan == 0) return;
  now.planned = tally.ended.planned = 1;
  now.commands_before = tally.ended.commands_before = now.commands - now.by_plan;
  now.iterations_before = tally.ended.iterations_before = now.iterations - now.iterations_by_plan;
  now.time_before = tally.ended.time_before = clock_now() - tally.first;
}

void bring_up_to_date(DeviceBudget& device, Tally& tally) {
  DeviceNumbers now = tally.ended;
  for (Context* const context : device.contexts()) {
    if (!context->has_core()) continue;
    context->core_in_use().count(tally.report);
    add(now, tally.report);
    // A plan's prediction is looked up ever more rarely: that takes longer than a command may.
    if (now.plan_starts <= tally.plan_starts_seen || !std::has_single_bit(now.plan_starts)) continue;
    tally.plan_starts_seen = now.plan_starts;
    take_plan(tally.ended, context->core_in_use().report());
    take_plan(now, context->core_in_use().report());
  }
  take_own(now, device);
  note_first_plan(tally, now);
  const std::uint32_t next = tally.slot.published.load(std::memory_order_relaxed) + 1;
  std::atomic_thread_fence(std::memory_order_release);  // this copy is written after the other one was published
  copy_words(tally.slot.copies.at(next % 2), now);
  tally.slot.published.store(next, std::memory_order_release);
}

void write_notes(ReportPage& page, const std::vector<std::string>& notes) {
  std::string text;
  for (const std::string& note : notes) {
    if (text.size() + note.size() + 1 <= page.notes.size()) text += note + "\n";
  }
  std::copy(text.begin(), text.end(), page.notes.begin());
  page.notes_size.store(static_cast<std::uint32_t>(text.size()), std::memory_order_release);
}

void collect_last(ReportPage& page) {
  std::vector<std::string> notes;
  for (DeviceBudget* const device : DeviceBudget::all()) {
    // The process ends: a thread that is still inside keeps its numbers.
    const std::unique_lock lock(device->mutex, std::try_to_lock);
    if (!lock || device->tally == nullptr) continue;
    notes.insert(notes.end(), device->tally->notes.begin(), device->tally->notes.end());
    for (Context* const context : device->contexts()) {
      try {
        if (!context->has_core()) continue;
        const Report report = context->core_in_use().report();
        take_notes(notes, report);
        take_plan(device->tally->ended, report);
      } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): a report without it
      }
    }
    publish(*device);
  }
  write_notes(page, notes);
}

void report_at_exit() {
  ReportPage* const page = reporting().page.load();
  if (page == nullptr) return;
  collect_last(*page);
  page->ended.store(clock_now(), std::memory_order_release);
  PageState state = PageState::running;
  if (reporting().shared && page->state.compare_exchange_strong(state, PageState::complete)) return;
  if (!write_report(numbers_of(*page), settings().report)) say("cannot write the report to " + settings().report);
}

}  // namespace

bool reports() { return reporting().page.load(std::memory_order_relaxed) != nullptr; }

void count_context(DeviceBudget& device, Core& core) {
  ReportPage* const page = reporting().page.load();
  Tally* const tally = page == nullptr ? nullptr : tally_of(device, *page);
  if (tally == nullptr) return;
  try {
    const Report report = core.report();
    add(tally->ended, report);
    take_plan(tally->ended, report);
    take_notes(tally->notes, report);
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): a report without it
  }
}

void publish(DeviceBudget& device) {
  ReportPage* const page = reporting().page.load(std::memory_order_relaxed);
  if (page == nullptr) return;
  try {
    if (Tally* const tally = tally_of(device, *page)) bring_up_to_date(device, *tally);
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): a report with what was before
  }
}

void start_report() {
  if (settings().report.empty()) return;
  reporting().page.store(make_page(reporting().shared));
  // The child of a fork() has its parent's numbers, in memory that is the parent's, too.
  (void)pthread_atfork(nullptr, nullptr, [] { reporting().page.store(nullptr); });
  (void)std::atexit(report_at_exit);
}

}  // namespace swapmm::opencl::layer
