// SPDX-License-Identifier: Apache-2.0
#include "progress.hpp"

#include <unistd.h>

#include <iostream>

#include "printable.hpp"

namespace swapmm::cli {

Progress::Progress(bool quiet) : shown_(!quiet && isatty(STDERR_FILENO) == 1) {}

Progress::~Progress() { end(); }

void Progress::end() {
  if (shown_ && !what_.empty()) write("");
  what_.clear();
}

void Progress::begin(const std::string& what) {
  what_ = printable(what);
  if (shown_) write(what_);
}

bool Progress::reached(const PlanningProgress& progress) {
  detail(answers::progress_text(progress));
  return true;
}

void Progress::detail(const std::string& text) {
  constexpr std::chrono::milliseconds pause{100};
  if (!shown_ || std::chrono::steady_clock::now() - last_ < pause) return;
  write(what_ + ": " + text);
}

void Progress::write(const std::string& line) {
  std::cerr << "\r\x1b[K" << line.substr(0, 100) << std::flush;  // back to the line's start, and erase it
  last_ = std::chrono::steady_clock::now();
}

}  // namespace swapmm::cli
