// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/machine.hpp>

#include "measuring.hpp"

namespace swapmm::bench {

/// What is planned: a trace on a machine.
struct Instance {
  std::string name;  ///< of the trace
  Trace trace;
  Machine machine;
};

/// Lower bounds with tight_bound_effort, in nanoseconds. They take seconds each, so they are kept in a file
/// (Settings::out, bounds.csv) by the digest of the trace, its durations and the machine. A bound stays valid whatever
/// becomes of the code that computes them; delete the file to compute them anew.
class Bounds {
 public:
  explicit Bounds(const Settings& settings);

  /// Computes those that are missing, with Settings::jobs threads.
  void provide(const std::vector<const Instance*>& instances);
  /// Nothing where one bundle alone does not fit.
  [[nodiscard]] std::optional<double> of(const Instance& instance);

 private:
  void keep(const std::string& key, double nanoseconds);

  const Settings& settings_;
  std::string file_;
  std::map<std::string, double> known_;  ///< below 0: does not fit
};

}  // namespace swapmm::bench
