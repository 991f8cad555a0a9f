// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the demo measured, and how it is told.

#include <cstddef>
#include <filesystem>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include <swapmm/base/bytes.hpp>
#include <swapmm/ir/profile.hpp>
#include <swapmm/ir/trace.hpp>

namespace fashion {

/// What lives while most does, by what it is for.
struct MemoryAtPeak {
  swapmm::Bytes total;
  swapmm::Bytes activations;
  swapmm::Bytes gradients;
  swapmm::Bytes parameters;  ///< weights, biases, momenta
  swapmm::Bytes inputs;      ///< images and labels
  swapmm::Bytes work_areas;
  swapmm::Bytes largest_bundle;
  std::string largest_bundle_operation;
};

/// Sizes are rounded up to `alignment`.
[[nodiscard]] MemoryAtPeak memory_at_peak(const swapmm::Trace& trace, swapmm::Bytes alignment);

/// A budget; times and bytes are per iteration.
struct RunResult {
  std::string name;
  swapmm::Bytes budget;
  double on_demand_ms = 0;
  double on_demand_stall_ms = 0;
  double scheduled_ms = 0;
  std::optional<double> predicted_ms;  ///< none: no plan was followed
  std::optional<double> lower_bound_ms;
  swapmm::Bytes h2d;  ///< by the plan; the batch itself is in it
  swapmm::Bytes d2h;
  double stall_ms = 0;  ///< in which the device ran no operation
  std::size_t steps = 0;
  float loss = 0;                  ///< per image: mean of the last steps, of a short run of all
  std::optional<double> accuracy;  ///< where it was trained to the end
  bool weights_identical = false;  ///< to those without a limit after as many steps, on demand and by the plan
  swapmm::Profile profile;
  swapmm::Profile on_demand_profile;
  std::vector<std::string> notes;  ///< of the library: why there is no plan
};

/// A number of pieces, and how long a step is predicted to take within the budget.
struct PiecesTried {
  std::size_t pieces = 0;
  std::optional<double> predicted_ms;  ///< none: there is no plan
};

struct DemoResult {
  std::string device;
  bool host_shares_memory = false;
  std::size_t batch = 0;
  std::size_t pieces = 0;                 ///< of the batch; 0: it stays whole
  std::vector<PiecesTried> pieces_tried;  ///< where it does not
  std::size_t steps = 0;
  MemoryAtPeak memory;  ///< of the whole batch
  double unlimited_ms = 0;
  double unlimited_stall_ms = 0;
  float loss = 0;          ///< per image, mean of the last steps
  float loss_of_some = 0;  ///< of as many steps as short runs have
  double test_accuracy = 0;
  swapmm::Profile profile;
  std::vector<RunResult> runs;

  [[nodiscard]] bool all_identical() const;
};

/// The table for a person.
void print(std::ostream& out, const DemoResult& result);

struct ReportFiles {
  std::filesystem::path report;
  std::filesystem::path trace;    ///< trace events, for chrome://tracing and ui.perfetto.dev
  std::filesystem::path picture;  ///< SVG of the run that was trained within its budget
};

/// Throws std::runtime_error, as write_files() would, where files cannot be written there: before the work is done.
void check_writable(const std::filesystem::path& report);

/// Writes the report and, beside it, trace and picture. Each file is there whole or not at all. Throws
/// std::runtime_error with the file's name where it cannot be written.
ReportFiles write_files(const std::filesystem::path& report, const DemoResult& result);

}  // namespace fashion
