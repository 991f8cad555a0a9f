// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "numbers.hpp"

// A report as text, by the layer and by `swapmm run` alike.

namespace swapmm::opencl::layer {

/// The published numbers of a page.
struct ProcessNumbers {
  std::uint64_t process = 0;
  bool ended_by_exit = false;
  std::vector<DeviceNumbers> devices;
  std::vector<std::string> notes;
};

[[nodiscard]] ProcessNumbers numbers_of(const ReportPage& page);

/// Lines for people.
[[nodiscard]] std::vector<std::string> lines_of(const ProcessNumbers& numbers);

/// The format swapmm-report of docs/formats.md.
[[nodiscard]] std::string json_of(const ProcessNumbers& numbers);

/// Writes the report where SWAPMM_REPORT says: "text" and "json" are stderr, anything else is a file's name. False if
/// the file cannot be written.
[[nodiscard]] bool write_report(const ProcessNumbers& numbers, const std::string& where);

}  // namespace swapmm::opencl::layer
