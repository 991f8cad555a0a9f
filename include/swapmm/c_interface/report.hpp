// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <swapmm/swapmm.h>
#include <swapmm/interface/report.hpp>

namespace swapmm::c_interface {

/// The numbers of a report.
[[nodiscard]] swapmm_numbers numbers_of(const Report& report);
/// The whole report in the format swapmm-manager-report of docs/formats.md.
[[nodiscard]] std::string report_json(const Report& report);

}  // namespace swapmm::c_interface
