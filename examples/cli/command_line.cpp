// SPDX-License-Identifier: Apache-2.0
#include "command_line.hpp"

namespace swapmm::cli {

void add_common(CLI::App& command, CommonOptions& options) {
  command.add_flag("--json", options.json, "Print the answer as one JSON text: times in ns, sizes in bytes");
  command.add_flag("-q,--quiet", options.quiet, "No progress on stderr (without a terminal there is none anyway)");
}

}  // namespace swapmm::cli
