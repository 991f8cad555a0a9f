// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

namespace swapmm::cli {

/// What the program returns. Scripts build on these numbers: they do not change.
enum class ExitCode : std::uint8_t {
  ok = 0,
  no = 1,        ///< the answer is no: it does not fit, the plan is not valid
  usage = 2,     ///< wrong use: an unknown option, a value that makes no sense
  bad_file = 3,  ///< a file that is not what it should be
  io = 4,        ///< what cannot be read or written
};

/// What ends a command early. The message names the file or the token.
class Failure : public std::runtime_error {
 public:
  Failure(ExitCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  [[nodiscard]] ExitCode code() const { return code_; }

 private:
  ExitCode code_;
};

}  // namespace swapmm::cli
