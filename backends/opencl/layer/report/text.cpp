// SPDX-License-Identifier: Apache-2.0
#include "text.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string_view>

#include <swapmm/formats/json/writer.hpp>

#include "../process/file_name.hpp"
#include "copies.hpp"

namespace swapmm::opencl::layer {
namespace {

constexpr std::array<const char*, passed_through_kinds> kinds{"images", "pipes", "shared virtual memory",
                                                              "objects of OpenGL or EGL", "buffers"};
constexpr std::array<const char*, passed_through_kinds> keys{"images", "pipes", "shared_virtual_memory", "graphics",
                                                             "buffers"};

std::string number(std::uint64_t value) { return std::to_string(value); }

std::string decimal(const char* format, double value) {
  std::string text(48, '\0');
  const int length = std::snprintf(text.data(), text.size(), format, value);
  text.resize(static_cast<std::size_t>(std::max(length, 0)));
  return text;
}

std::string mebibytes(std::uint64_t bytes) { return decimal("%.1f MiB", static_cast<double>(bytes) / (1U << 20U)); }
std::string milliseconds(std::uint64_t time) { return decimal("%.3f ms", static_cast<double>(time) / 1e6); }
std::string seconds(std::uint64_t time) { return decimal("%.3f s", static_cast<double>(time) / 1e9); }

double share(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0.0 : static_cast<double>(part) / static_cast<double>(whole);
}

std::string percent(double value) { return decimal("%.1f %%", 100 * value); }

std::string in_json(std::string_view text) {
  std::string quoted;
  json::append_text(quoted, text);
  return quoted;
}

/// Numbers of all devices. What was before the first plan is that of the device that had one first.
DeviceNumbers sum_of(const std::vector<DeviceNumbers>& devices) {
  DeviceNumbers sum;
  for (const DeviceNumbers& each : devices) {
    using Field = std::uint64_t DeviceNumbers::*;
    constexpr std::array<Field, 21> added{
        &DeviceNumbers::commands_refused, &DeviceNumbers::objects_refused, &DeviceNumbers::commands,
        &DeviceNumbers::by_plan,          &DeviceNumbers::iterations,      &DeviceNumbers::iterations_by_plan,
        &DeviceNumbers::plans_found,      &DeviceNumbers::plan_starts,     &DeviceNumbers::divergences,
        &DeviceNumbers::values_saved,     &DeviceNumbers::saved_bytes,     &DeviceNumbers::swap_ins,
        &DeviceNumbers::swap_outs,        &DeviceNumbers::to_device,       &DeviceNumbers::to_host,
        &DeviceNumbers::queue_waits,      &DeviceNumbers::host_waits,      &DeviceNumbers::host_wait_time,
        &DeviceNumbers::file_peak,        &DeviceNumbers::file_read,       &DeviceNumbers::file_written};
    for (const Field field : added) sum.*field += each.*field;
    sum.host_peak = std::max(sum.host_peak, each.host_peak);
    if (each.planned == 0 || (sum.planned != 0 && sum.time_before <= each.time_before)) continue;
    sum.planned = 1;
    sum.commands_before = each.commands_before;
    sum.iterations_before = each.iterations_before;
    sum.time_before = each.time_before;
  }
  return sum;
}

double share_after_warm_up(const DeviceNumbers& sum) {
  return sum.planned == 0 ? 0.0 : share(sum.by_plan, sum.commands - sum.commands_before);
}

/// By which a round is longer than its operations alone.
std::uint64_t predicted_stall(const DeviceNumbers& device) {
  return device.plan_time > device.plan_compute_time ? device.plan_time - device.plan_compute_time : 0;
}

using Lines = std::vector<std::string>;

void tell_device(Lines& lines, const DeviceNumbers& device) {
  if (device.wanted_peak == 0 && device.not_swapped_peak == 0) return;
  const std::string name = device.name.data();
  lines.push_back(name + ": budget " + mebibytes(device.budget) + ", buffers up to " + mebibytes(device.wanted_peak) +
                  ", largest command " + mebibytes(device.largest_command) + ", not swapped up to " +
                  mebibytes(device.not_swapped_peak));
  std::string passed;
  for (std::size_t kind = 0; kind < passed_through_kinds; ++kind) {
    const PassedObjects& objects = device.passed.at(kind);
    if (objects.objects == 0) continue;
    passed += (passed.empty() ? "" : ", ") + number(objects.objects) + " " + kinds.at(kind) + " (" +
              mebibytes(objects.bytes) + ")";
  }
  if (!passed.empty()) lines.push_back(name + ": passed through to the driver, in the whole run: " + passed);
}

void tell_moves(Lines& lines, const DeviceNumbers& sum) {
  lines.push_back(number(sum.commands) + " commands; moved " + mebibytes(sum.to_device) + " to the device in " +
                  number(sum.swap_ins) + " swaps and " + mebibytes(sum.to_host) + " to the host in " +
                  number(sum.swap_outs) + "; host memory up to " + mebibytes(sum.host_peak));
  if (sum.file_peak != 0) {
    lines.push_back("file up to " + mebibytes(sum.file_peak) + "; " + mebibytes(sum.file_read) + " read, " +
                    mebibytes(sum.file_written) + " written");
  }
  lines.push_back("stalls: the host waited for the device " + number(sum.host_waits) + " times, " +
                  seconds(sum.host_wait_time) + " in all; " + number(sum.queue_waits) +
                  " waits of commands for copies and of copies for commands were queued");
  if (sum.commands_refused + sum.objects_refused == 0) return;
  lines.push_back("refused: " + number(sum.commands_refused) + " commands, and " + number(sum.objects_refused) +
                  " objects that cannot be swapped");
}

void tell_plans(Lines& lines, const DeviceNumbers& sum, const std::vector<DeviceNumbers>& devices) {
  lines.push_back(number(sum.iterations) + " iterations found, " + number(sum.iterations_by_plan) + " by a plan; " +
                  number(sum.plans_found) + " plans found in the cache; " + number(sum.by_plan) +
                  " commands by a plan; " + number(sum.values_saved) + " values (" + mebibytes(sum.saved_bytes) +
                  ") saved because they may be needed");
  if (sum.planned == 0) return;
  lines.push_back("the first plan was followed after " + number(sum.iterations_before) + " iterations and " +
                  seconds(sum.time_before) + "; " + percent(share(sum.by_plan, sum.commands)) +
                  " of all commands followed a plan, " + percent(share_after_warm_up(sum)) +
                  " of those since then; a plan was left " + number(sum.divergences) + " times");
  for (const DeviceNumbers& device : devices) {
    if (device.plan_operations == 0) continue;
    lines.push_back("the last plan: " + number(device.plan_operations) + " commands a round, predicted to take " +
                    milliseconds(device.plan_time) + ", of which " + milliseconds(predicted_stall(device)) +
                    " are stalls" +
                    (device.plan_bound == 0 ? "" : "; no plan takes less than " + milliseconds(device.plan_bound)));
  }
}

std::string field(const char* name, std::uint64_t value) {
  return ",\n  \"" + std::string(name) + "\": " + number(value);
}

std::string device_json(const DeviceNumbers& device) {
  std::string text = "    {\"name\": " + in_json(device.name.data()) + ", \"budget_bytes\": " + number(device.budget) +
                     ", \"wanted_peak_bytes\": " + number(device.wanted_peak) +
                     ", \"not_swapped_peak_bytes\": " + number(device.not_swapped_peak) +
                     ", \"largest_command_bytes\": " + number(device.largest_command) + ",\n     \"passed_through\": {";
  for (std::size_t kind = 0; kind < passed_through_kinds; ++kind) {
    const PassedObjects& objects = device.passed.at(kind);
    text += std::string(kind == 0 ? "" : ", ") + in_json(keys.at(kind)) + ": {\"objects\": " + number(objects.objects) +
            ", \"bytes\": " + number(objects.bytes) + "}";
  }
  text += "},\n     \"last_plan\": ";
  if (device.plan_operations == 0) return text + "null}";
  return text + "{\"operations\": " + number(device.plan_operations) +
         ", \"iterations\": " + number(device.plan_iterations) + ", \"predicted_ns\": " + number(device.plan_time) +
         ", \"predicted_stall_ns\": " + number(predicted_stall(device)) +
         ", \"bound_ns\": " + (device.plan_bound == 0 ? "null" : number(device.plan_bound)) + "}}";
}

std::string first_plan_json(const DeviceNumbers& sum) {
  if (sum.planned == 0) return ",\n  \"first_plan\": null";
  return ",\n  \"first_plan\": {\"commands\": " + number(sum.commands_before) +
         ", \"iterations\": " + number(sum.iterations_before) + ", \"ns\": " + number(sum.time_before) + "}";
}

// A process that is in its static objects' destructors still writes. A copy is whole if it is still the published one.
DeviceNumbers published_in(const ReportPage::Slot& slot) {
  DeviceNumbers numbers;
  for (int attempt = 0; attempt < 100; ++attempt) {
    const std::uint32_t which = slot.published.load(std::memory_order_acquire);
    copy_words(numbers, slot.copies.at(which % 2));
    std::atomic_thread_fence(std::memory_order_acquire);
    if (slot.published.load(std::memory_order_relaxed) == which) break;
  }
  return numbers;
}

}  // namespace

ProcessNumbers numbers_of(const ReportPage& page) {
  ProcessNumbers numbers;
  numbers.process = page.process;
  numbers.ended_by_exit = page.ended.load(std::memory_order_acquire) != 0;
  const std::size_t devices = std::min<std::size_t>(page.devices.load(std::memory_order_acquire), page.slots.size());
  for (std::size_t i = 0; i < devices; ++i) {
    numbers.devices.push_back(published_in(page.slots.at(i)));
    numbers.devices.back().name.back() = '\0';
  }
  const std::size_t size = std::min<std::size_t>(page.notes_size.load(std::memory_order_acquire), page.notes.size());
  std::string_view notes(page.notes.data(), size);
  while (!notes.empty()) {
    const std::size_t end = std::min(notes.find('\n'), notes.size());
    numbers.notes.emplace_back(notes.substr(0, end));
    notes.remove_prefix(std::min(end + 1, notes.size()));
  }
  return numbers;
}

Lines lines_of(const ProcessNumbers& numbers) {
  Lines lines;
  const DeviceNumbers sum = sum_of(numbers.devices);
  if (!numbers.ended_by_exit) {
    lines.push_back("process " + number(numbers.process) +
                    " did not end by exit(); its report, up to its last command:");
  }
  for (const DeviceNumbers& device : numbers.devices) tell_device(lines, device);
  tell_moves(lines, sum);
  tell_plans(lines, sum, numbers.devices);
  lines.insert(lines.end(), numbers.notes.begin(), numbers.notes.end());
  return lines;
}

std::string json_of(const ProcessNumbers& numbers) {
  const DeviceNumbers sum = sum_of(numbers.devices);
  std::string text =
      "{\n  \"format\": \"swapmm-report\",\n  \"version\": 1" + field("process", numbers.process) +
      ",\n  \"ended_by_exit\": " + (numbers.ended_by_exit ? "true" : "false") + field("commands", sum.commands) +
      field("commands_by_plan", sum.by_plan) + field("commands_refused", sum.commands_refused) +
      field("objects_refused", sum.objects_refused) + field("iterations", sum.iterations) +
      field("iterations_by_plan", sum.iterations_by_plan) + first_plan_json(sum) +
      ",\n  \"share_by_plan\": " + decimal("%.6f", share(sum.by_plan, sum.commands)) +
      ",\n  \"share_by_plan_after_warm_up\": " + decimal("%.6f", share_after_warm_up(sum)) +
      field("plans_found", sum.plans_found) + field("plan_starts", sum.plan_starts) +
      field("divergences", sum.divergences) + field("values_saved", sum.values_saved) +
      field("saved_bytes", sum.saved_bytes) + field("swap_ins", sum.swap_ins) + field("swap_outs", sum.swap_outs) +
      field("bytes_to_device", sum.to_device) + field("bytes_to_host", sum.to_host) +
      field("queue_waits", sum.queue_waits) + field("host_waits", sum.host_waits) +
      field("host_wait_ns", sum.host_wait_time) + field("host_peak_bytes", sum.host_peak) +
      field("file_peak_bytes", sum.file_peak) + field("file_bytes_read", sum.file_read) +
      field("file_bytes_written", sum.file_written) + ",\n  \"devices\": [";
  const char* separator = "\n";
  for (const DeviceNumbers& device : numbers.devices) {
    text += separator + device_json(device);
    separator = ",\n";
  }
  text += "\n  ],\n  \"notes\": [";
  separator = "";
  for (const std::string& note : numbers.notes) {
    text += separator + in_json(note);
    separator = ", ";
  }
  return text + "]\n}\n";
}

bool write_report(const ProcessNumbers& numbers, const std::string& where) {
  std::string text;
  if (where == "text") {
    for (const std::string& line : lines_of(numbers)) text += "swapmm: " + line + "\n";
  } else {
    text = json_of(numbers);
  }
  if (where == "text" || where == "json") return std::fwrite(text.data(), 1, text.size(), stderr) == text.size();
  std::FILE* const out = std::fopen(file_of_process(where, numbers.process).c_str(), "we");
  if (out == nullptr) return false;
  const bool written = std::fwrite(text.data(), 1, text.size(), out) == text.size();
  return (std::fclose(out) == 0) && written;
}

}  // namespace swapmm::opencl::layer
