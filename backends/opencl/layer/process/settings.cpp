// SPDX-License-Identifier: Apache-2.0
#include "settings.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string_view>

#include <swapmm/formats/quantity.hpp>

namespace swapmm::opencl::layer {
namespace {

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

bool is_on(const char* name) {
  const std::string value = variable(name);
  return !value.empty() && value != "0";
}

// What the host can give without swapping, by the kernel's own estimate, less a reserve.
Bytes free_host_memory() {
  std::ifstream info("/proc/meminfo");
  std::string name;
  std::uint64_t kibibytes = 0;
  std::string rest;
  while (info >> name >> kibibytes && std::getline(info, rest)) {
    if (name != "MemAvailable:") continue;
    const std::uint64_t bytes = kibibytes * 1024;
    return Bytes{bytes - std::min(bytes / 2, std::max<std::uint64_t>(bytes / 10, 1U << 29U))};
  }
  return Bytes{std::uint64_t{1} << 40U};  // no such file: the limit is the host's own
}

Bytes host_memory() {
  const long pages = sysconf(_SC_PHYS_PAGES);
  const long size = sysconf(_SC_PAGESIZE);
  return Bytes{static_cast<std::uint64_t>(std::max(pages, 1L)) * static_cast<std::uint64_t>(std::max(size, 1L))};
}

// A size, or a percentage of `whole`.
Bytes amount(const char* name, const std::string& text, Bytes whole, std::string& problem) {
  const auto budget = quantity::parse_budget(text, "it is written 8GB, 512MiB, or 25%");
  if (!budget) {
    problem = std::string(name) + ": " + budget.problem().message;
    return {};
  }
  const Bytes bytes = budget->of(whole);
  if (bytes.value == 0) problem = std::string(name) + " is 0";
  return bytes;
}

Settings read() {
  Settings settings;
  settings.disabled = is_on("SWAPMM_DISABLE");
  settings.quiet = is_on("SWAPMM_QUIET");
  settings.evict_always = variable("SWAPMM_EVICT") == "always";
  settings.budget = variable("SWAPMM_BUDGET");
  settings.report = variable("SWAPMM_REPORT");
  settings.log = variable("SWAPMM_LOG");
  settings.log_data = is_on("SWAPMM_LOG_DATA");
  settings.started = variable("SWAPMM_STARTED");
  settings.host_budget = free_host_memory();
  if (const std::string host = variable("SWAPMM_HOST_BUDGET"); !host.empty()) {
    settings.host_budget = amount("SWAPMM_HOST_BUDGET", host, host_memory(), settings.problem);
  }
  if (const std::string evict = variable("SWAPMM_EVICT"); !evict.empty() && !settings.evict_always) {
    settings.problem = "SWAPMM_EVICT: \"" + evict + "\" is not known; it can be always";
  }
  const std::string reported = variable("SWAPMM_REPORTED_MEMORY");
  if (reported == "budget") {
    settings.reported = ReportedMemory::budget;
  } else if (reported == "device") {
    settings.reported = ReportedMemory::device;
  } else if (!reported.empty() && reported != "both") {
    settings.problem = "SWAPMM_REPORTED_MEMORY: \"" + reported + "\" is not known; it can be both, budget or device";
  }
  return settings;
}

}  // namespace

const Settings& settings() {
  static const Settings& all = *new Settings(read());
  return all;
}

Bytes budget_for(Bytes device_memory, std::string& problem) {
  if (settings().budget.empty()) return Bytes{device_memory.value / 10 * 9};
  const Bytes budget = amount("SWAPMM_BUDGET", settings().budget, device_memory, problem);
  if (problem.empty() && budget > device_memory) {
    problem = "SWAPMM_BUDGET is " + std::to_string(budget.value) + " bytes, and the device has " +
              std::to_string(device_memory.value);
  }
  return problem.empty() ? budget : Bytes{};
}

void say(const std::string& line) {
  const std::string text = "swapmm: " + line + "\n";
  (void)std::fwrite(text.data(), 1, text.size(), stderr);
}

void remark(const std::string& line) {
  if (!settings().quiet) say(line);
}

}  // namespace swapmm::opencl::layer
