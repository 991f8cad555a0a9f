// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <swapmm/answers/comparison.hpp>

namespace swapmm::cli {

using answers::Comparison;

void print_comparison_table(const std::vector<Comparison>& rows);
/// With a line of names, fields quoted as RFC 4180 asks where they must be, lines ended by a newline alone.
void print_comparison_csv(const std::vector<Comparison>& rows);
void print_comparison_json(const std::vector<Comparison>& rows);

}  // namespace swapmm::cli
