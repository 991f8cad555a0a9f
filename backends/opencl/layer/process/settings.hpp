// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include <swapmm/base/bytes.hpp>

namespace swapmm::opencl::layer {

/// What the program sees as the size of the device's memory.
enum class ReportedMemory : std::uint8_t {
  both,    ///< the budget and the host's budget: what it can have
  budget,  ///< the budget
  device,  ///< what the driver says
};

/// How kernels are analysed.
enum class Analysis : std::uint8_t {
  background,  ///< while the program goes on
  wait,        ///< the first launch of a kernel that needs it waits for it
  off,
};

/// The layer's settings, from the environment. docs/unmodified.md describes each variable.
struct Settings {
  bool disabled = false;                           ///< SWAPMM_DISABLE
  bool quiet = false;                              ///< SWAPMM_QUIET
  bool evict_always = false;                       ///< SWAPMM_EVICT=always
  std::string budget;                              ///< SWAPMM_BUDGET; empty: the default
  Bytes host_budget;                               ///< SWAPMM_HOST_BUDGET, or what the host has left
  std::string file_folder;                         ///< SWAPMM_FILE: what the host has no room for is in a file there
  Bytes file_size;                                 ///< SWAPMM_FILE_SIZE, of each context; or half of what is free
  std::string problem;                             ///< why nothing may be allocated; empty: all is well
  ReportedMemory reported = ReportedMemory::both;  ///< SWAPMM_REPORTED_MEMORY
  std::string report;                              ///< SWAPMM_REPORT: "text", "json", a file's name, or empty
  std::string report_folder;                       ///< SWAPMM_REPORT_FOLDER: of `swapmm run`, or empty
  std::string trace_out;                           ///< SWAPMM_TRACE_OUT: a file's name, or empty
  std::string svg;                                 ///< SWAPMM_SVG: a file's name, or empty
  std::uint64_t trace_length = 160000;             ///< SWAPMM_TRACE_LENGTH: commands and copies that are kept
  std::chrono::nanoseconds progress{0};            ///< SWAPMM_PROGRESS: the time between two lines; 0: no lines
  std::vector<std::string> keep;                   ///< SWAPMM_KEEP: kernels whose buffers stay on the device
  std::string log;                                 ///< SWAPMM_LOG: a file's name, or empty
  bool log_data = false;                           ///< SWAPMM_LOG_DATA
  bool plans = true;                               ///< SWAPMM_PLAN=off: everything on demand
  bool speculates = false;                         ///< SWAPMM_PLAN=speculate: what was never read is taken for dead
  bool waits_for_values = false;                   ///< SWAPMM_WAIT=values: waits end when the host has its values
  Analysis analysis = Analysis::background;        ///< SWAPMM_ANALYSIS
  bool prove = true;                               ///< SWAPMM_PROVE=off: no launch is measured
  bool cache = true;                               ///< SWAPMM_CACHE=off: nothing is kept for the next run
  std::string cache_folder;                        ///< SWAPMM_CACHE: in place of the user's folder for caches
  std::string helper;                     ///< SWAPMM_HELPER: the program that analyses; empty: beside the layer
  std::chrono::seconds helper_time{120};  ///< SWAPMM_HELPER_SECONDS: it is ended after that
  std::string started;                    ///< SWAPMM_STARTED: a file's name, or empty
};

/// Reads the environment at the first call.
[[nodiscard]] const Settings& settings();

/// The budget for a device with so much memory. Sets `problem` if the setting cannot be read or is too large.
[[nodiscard]] Bytes budget_for(Bytes device_memory, std::string& problem);

/// Writes one line on stderr that begins with "swapmm: ".
void say(const std::string& line);
/// The same for a command that fails: each line once, and not more than a hundred of them.
void say_of_command(const std::string& line);
/// Writes such a line unless the user asked for quiet.
void remark(const std::string& line);

}  // namespace swapmm::opencl::layer
