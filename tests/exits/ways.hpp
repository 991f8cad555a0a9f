// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace swapmm::test {

/// One way for a process to end while a manager has work in flight, and what is seen of it from outside.
struct Way {
  std::string_view name;
  int (*go)();                       ///< what main() does
  int code = 0;                      ///< that the process returns
  int signal = 0;                    ///< or that ends it
  std::vector<std::string> lines{};  ///< that it writes
};

[[nodiscard]] std::span<const Way> ways();

}  // namespace swapmm::test
