// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace swapmm::test {

/// Checks that tests/data/`name` holds exactly that text. Where it does not, the failure says where the new text was
/// written, and how to accept it.
void check_golden(const std::string& name, std::string_view text);

}  // namespace swapmm::test
