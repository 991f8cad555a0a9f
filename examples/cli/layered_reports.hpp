// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace swapmm::cli {

/// Writes the reports of the processes that kept their numbers in `folder`, where SWAPMM_REPORT says; none if `where`
/// is empty. Processes that still run report by themselves when they end. Called once, when the program has ended.
void write_layered_reports(const std::string& folder, const std::string& where);

}  // namespace swapmm::cli
