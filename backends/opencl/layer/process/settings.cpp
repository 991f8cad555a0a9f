// SPDX-License-Identifier: Apache-2.0
#include "settings.hpp"

#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <mutex>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <swapmm/formats/quantity.hpp>

#include "environment.hpp"
#include "seconds.hpp"

namespace swapmm::opencl::layer {
namespace {

std::string text_in(const char* name) {
  const char* const value = variable(name);
  return value == nullptr ? std::string() : std::string(value);
}

bool is_on(const char* name) {
  const std::string value = text_in(name);
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

// What a program that is not the administrator's may still write in that folder.
Bytes free_disk(const std::string& folder, std::string& problem) {
  struct statvfs disk {};
  if (statvfs(folder.c_str(), &disk) != 0) {
    problem = "SWAPMM_FILE: \"" + folder + "\": " + std::strerror(errno);
    return {};
  }
  return Bytes{std::uint64_t{disk.f_bavail} * disk.f_frsize};
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

// A setting that is one of a few words. Empty: the first of them.
std::size_t choice(const char* name, const std::vector<std::string>& words, std::string& problem) {
  const std::string value = text_in(name);
  const auto found = std::find(words.begin(), words.end(), value.empty() ? words.front() : value);
  if (found != words.end()) return static_cast<std::size_t>(found - words.begin());
  problem = std::string(name) + ": \"" + value + "\" is not known; it can be";
  for (const std::string& word : words) problem += (word == words.front() ? " " : " or ") + word;
  return 0;
}

void read_analysis(Settings& settings) {
  constexpr std::array kinds{Analysis::background, Analysis::wait, Analysis::off};
  settings.analysis = kinds.at(choice("SWAPMM_ANALYSIS", {"background", "wait", "off"}, settings.problem));
  settings.prove = choice("SWAPMM_PROVE", {"on", "off"}, settings.problem) == 0;
  const std::string cache = text_in("SWAPMM_CACHE");
  settings.cache = cache != "off";
  if (!cache.empty() && cache[0] == '/') {
    settings.cache_folder = cache;
  } else if (!cache.empty() && settings.cache) {
    settings.problem = "SWAPMM_CACHE: \"" + cache + "\" is not known; it can be off, or a folder's whole name";
  }
  settings.helper = text_in("SWAPMM_HELPER");
  if (const std::string seconds = text_in("SWAPMM_HELPER_SECONDS"); !seconds.empty()) {
    int value = 0;
    const auto read = std::from_chars(seconds.data(), seconds.data() + seconds.size(), value);
    if (read.ec != std::errc() || value < 1 || value > 3600) {
      settings.problem = "SWAPMM_HELPER_SECONDS: \"" + seconds + "\" is not a number from 1 to 3600";
    } else {
      settings.helper_time = std::chrono::seconds(value);
    }
  }
  if (!has_more_rights_than_caller()) return;
  // No other program is started with these rights, and nothing is kept where the caller can get at it.
  settings.analysis = Analysis::off;
  settings.cache = false;
}

// Where values are for which the host has no room.
void read_file(Settings& settings) {
  settings.file_folder = text_in("SWAPMM_FILE");
  if (settings.file_folder.empty()) return;
#ifdef SWAPMM_LAYER_HAS_FILES
  const Bytes free = free_disk(settings.file_folder, settings.problem);
  settings.file_size = Bytes{free.value / 2};
  if (const std::string size = text_in("SWAPMM_FILE_SIZE"); !size.empty()) {
    settings.file_size = amount("SWAPMM_FILE_SIZE", size, free, settings.problem);
  }
#else
  settings.problem = "SWAPMM_FILE: this layer was built without files (Debian: liburing-dev)";
#endif
}

// What shows how the program runs.
void read_pictures(Settings& settings) {
  settings.trace_out = text_in("SWAPMM_TRACE_OUT");
  settings.svg = text_in("SWAPMM_SVG");
  if (const std::string length = text_in("SWAPMM_TRACE_LENGTH"); !length.empty()) {
    const auto read = std::from_chars(length.data(), length.data() + length.size(), settings.trace_length);
    if (read.ec != std::errc() || read.ptr != length.data() + length.size() || settings.trace_length == 0) {
      settings.problem = "SWAPMM_TRACE_LENGTH: \"" + length + "\" is not a whole number above 0";
    }
  }
  if (const std::string text = text_in("SWAPMM_PROGRESS"); !text.empty()) {
    const auto seconds = seconds_of(text);
    if (!seconds) settings.problem = "SWAPMM_PROGRESS: \"" + text + "\" is not a number of seconds";
    settings.progress = seconds.value_or(std::chrono::nanoseconds{0});
  }
}

std::vector<std::string> words_of(const std::string& list) {
  std::vector<std::string> words;
  std::istringstream in(list);
  for (std::string word; std::getline(in, word, ',');) {
    if (!word.empty()) words.push_back(word);
  }
  return words;
}

Settings read() {
  Settings settings;
  settings.disabled = is_on("SWAPMM_DISABLE");
  settings.quiet = is_on("SWAPMM_QUIET");
  settings.evict_always = text_in("SWAPMM_EVICT") == "always";
  settings.budget = text_in("SWAPMM_BUDGET");
  settings.report = text_in("SWAPMM_REPORT");
  settings.report_folder = text_in("SWAPMM_REPORT_FOLDER");
  settings.keep = words_of(text_in("SWAPMM_KEEP"));
  settings.log = text_in("SWAPMM_LOG");
  settings.log_data = is_on("SWAPMM_LOG_DATA");
  settings.started = text_in("SWAPMM_STARTED");
  settings.host_budget = free_host_memory();
  if (const std::string host = text_in("SWAPMM_HOST_BUDGET"); !host.empty()) {
    settings.host_budget = amount("SWAPMM_HOST_BUDGET", host, host_memory(), settings.problem);
  }
  read_file(settings);
  if (const std::string evict = text_in("SWAPMM_EVICT"); !evict.empty() && !settings.evict_always) {
    settings.problem = "SWAPMM_EVICT: \"" + evict + "\" is not known; it can be always";
  }
  if (const std::string plan = text_in("SWAPMM_PLAN"); plan == "off") {
    settings.plans = false;
  } else if (plan == "speculate") {
    settings.speculates = true;
  } else if (!plan.empty() && plan != "on") {
    settings.problem = "SWAPMM_PLAN: \"" + plan + "\" is not known; it can be on, off or speculate";
  }
  settings.waits_for_values = choice("SWAPMM_WAIT", {"commands", "values"}, settings.problem) == 1;
  const std::string reported = text_in("SWAPMM_REPORTED_MEMORY");
  if (reported == "budget") {
    settings.reported = ReportedMemory::budget;
  } else if (reported == "device") {
    settings.reported = ReportedMemory::device;
  } else if (!reported.empty() && reported != "both") {
    settings.problem = "SWAPMM_REPORTED_MEMORY: \"" + reported + "\" is not known; it can be both, budget or device";
  }
  read_pictures(settings);
  read_analysis(settings);
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

void say_of_command(const std::string& line) {
  static std::mutex& mutex = *new std::mutex;  // other threads may run until the process is gone
  static std::set<std::string>& said = *new std::set<std::string>;
  constexpr std::size_t most = 100;
  const std::lock_guard lock(mutex);
  if (said.size() >= most || !said.insert(line).second) return;
  say(line);
  if (said.size() == most) say("further commands that fail are not told of; the report counts those that are refused");
}

void remark(const std::string& line) {
  if (!settings().quiet) say(line);
}

}  // namespace swapmm::opencl::layer
