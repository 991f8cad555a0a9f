// SPDX-License-Identifier: Apache-2.0
#include "report.hpp"

#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <vector>

#include <swapmm/interface/report.hpp>

#include "process/settings.hpp"

namespace swapmm::opencl::layer {
namespace {

struct Totals {
  std::mutex mutex;
  std::uint64_t operations = 0;
  std::uint64_t by_plan = 0;
  std::uint64_t iterations = 0;
  std::uint64_t iterations_by_plan = 0;
  std::uint64_t plans_found = 0;
  std::uint64_t values_saved = 0;
  Bytes saved_bytes;
  std::vector<std::string> notes;
  std::uint64_t swap_ins = 0;
  std::uint64_t swap_outs = 0;
  Bytes to_device;
  Bytes to_host;
};

Totals& totals() {
  static Totals& all = *new Totals;
  return all;
}

void add(Totals& sum, const Report& report) {
  sum.operations += report.operations;
  sum.by_plan += report.operations_followed;
  sum.iterations += report.iterations_on_demand + report.iterations_followed;
  sum.iterations_by_plan += report.iterations_followed;
  sum.plans_found += report.plans_found;
  sum.values_saved += report.values_saved;
  sum.saved_bytes += report.saved_bytes;
  sum.notes.insert(sum.notes.end(), report.notes.begin(), report.notes.end());
  for (const OnDemandSummary& each : report.on_demand) sum.notes.push_back(each.why);
  sum.swap_ins += report.swap_ins;
  sum.swap_outs += report.swap_outs;
  sum.to_device += report.h2d;
  sum.to_host += report.d2h;
}

std::string number(std::uint64_t value) { return std::to_string(value); }

std::string mebibytes(Bytes bytes) {
  std::string text(32, '\0');
  const int length =
      std::snprintf(text.data(), text.size(), "%.1f MiB", static_cast<double>(bytes.value) / (1U << 20U));
  text.resize(static_cast<std::size_t>(std::max(length, 0)));
  return text;
}

std::string in_json(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    if (static_cast<unsigned char>(c) >= 0x20) quoted += c;
  }
  return quoted + '"';
}

std::string as_json(const Totals& sum, const std::vector<DeviceBudget*>& devices) {
  std::string text =
      "{\n  \"process\": " + number(static_cast<std::uint64_t>(getpid())) +
      ",\n  \"commands\": " + number(sum.operations) + ",\n  \"commands_by_plan\": " + number(sum.by_plan) +
      ",\n  \"iterations\": " + number(sum.iterations) +
      ",\n  \"iterations_by_plan\": " + number(sum.iterations_by_plan) +
      ",\n  \"plans_found\": " + number(sum.plans_found) + ",\n  \"values_saved\": " + number(sum.values_saved) +
      ",\n  \"saved_bytes\": " + number(sum.saved_bytes.value) + ",\n  \"swap_ins\": " + number(sum.swap_ins) +
      ",\n  \"swap_outs\": " + number(sum.swap_outs) + ",\n  \"bytes_to_device\": " + number(sum.to_device.value) +
      ",\n  \"bytes_to_host\": " + number(sum.to_host.value) +
      ",\n  \"host_peak_bytes\": " + number(host_memory()->peak().value) + ",\n  \"devices\": [";
  const char* separator = "\n";
  for (const DeviceBudget* const device : devices) {
    text += separator + std::string("    {\"name\": ") + in_json(device->name()) +
            ", \"budget_bytes\": " + number(device->budget().value) +
            ", \"wanted_peak_bytes\": " + number(device->wanted_peak().value) +
            ", \"not_swapped_peak_bytes\": " + number(device->pinned_peak().value) +
            ", \"largest_command_bytes\": " + number(device->largest_command().value) + "}";
    separator = ",\n";
  }
  return text + "\n  ]\n}\n";
}

void print(const Totals& sum, const std::vector<DeviceBudget*>& devices) {
  for (const DeviceBudget* const device : devices) {
    if (device->wanted_peak().value == 0 && device->pinned_peak().value == 0) continue;
    say(device->name() + ": budget " + mebibytes(device->budget()) + ", buffers up to " +
        mebibytes(device->wanted_peak()) + ", largest command " + mebibytes(device->largest_command()) +
        ", not swapped up to " + mebibytes(device->pinned_peak()));
  }
  say(number(sum.operations) + " commands; moved " + mebibytes(sum.to_device) + " to the device in " +
      number(sum.swap_ins) + " swaps and " + mebibytes(sum.to_host) + " to the host in " + number(sum.swap_outs) +
      "; host memory up to " + mebibytes(host_memory()->peak()));
  say(number(sum.iterations) + " iterations found, " + number(sum.iterations_by_plan) + " by a plan; " +
      number(sum.plans_found) + " plans found in the cache; " + number(sum.by_plan) + " commands by a plan; " +
      number(sum.values_saved) + " values (" + mebibytes(sum.saved_bytes) + ") saved because they may be needed");
  for (const std::string& note : sum.notes) say(note);
}

std::string with_process(std::string file) {
  if (const std::size_t at = file.find("%p"); at != std::string::npos) file.replace(at, 2, std::to_string(getpid()));
  return file;
}

void report() {
  Totals& sum = totals();
  const std::vector<DeviceBudget*> devices = DeviceBudget::all();
  for (DeviceBudget* const device : devices) {
    // The process ends: a thread that is still inside keeps its numbers.
    const std::unique_lock lock(device->mutex, std::try_to_lock);
    if (!lock) continue;
    for (Context* const context : device->contexts()) {
      try {
        if (context->has_core()) add(sum, context->core()->report());
      } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): a report without it
      }
    }
  }
  if (settings().report == "text") return print(sum, devices);
  if (std::FILE* const out = std::fopen(with_process(settings().report).c_str(), "we")) {
    const std::string text = as_json(sum, devices);
    (void)std::fwrite(text.data(), 1, text.size(), out);
    (void)std::fclose(out);
  } else {
    say("cannot write the report to " + settings().report);
  }
}

}  // namespace

void count_context(Core& core) {
  const std::lock_guard lock(totals().mutex);
  try {
    add(totals(), core.report());
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): a report without it
  }
}

void report_at_exit() {
  if (!settings().report.empty()) (void)std::atexit(report);
}

}  // namespace swapmm::opencl::layer
