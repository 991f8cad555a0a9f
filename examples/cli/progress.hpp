// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>

#include <swapmm/answers/planning.hpp>

namespace swapmm::cli {

/// One line on stderr that says what long work is at. Only on a terminal, rewritten in place, gone at the end.
class Progress final : public answers::Watcher {
 public:
  explicit Progress(bool quiet);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress() override;

  /// Shown at once.
  void begin(const std::string& what) override;
  /// As detail(), for a search, which goes on.
  bool reached(const PlanningProgress& progress) override;
  /// Appended to what begin() said, at most ten times a second.
  void detail(const std::string& text);
  /// The line is gone, as by the destructor.
  void end();

 private:
  void write(const std::string& line);

  bool shown_;
  std::string what_;
  std::chrono::steady_clock::time_point last_;
};

}  // namespace swapmm::cli
