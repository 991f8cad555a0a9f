// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <swapmm/ir/trace.hpp>

#include "support/refusal.hpp"
#include "support/test_program.hpp"

namespace swapmm::test {

struct SavedPlan {
  std::string iteration;  ///< name
  std::string text;
  std::optional<Trace> trace{};  ///< the iteration observed last
};

struct RunSettings {
  bool planning = true;  ///< false: everything on demand
  bool save_plans = false;
  bool keep_trace = false;          ///< no plan is made then
  std::vector<SavedPlan> loaded{};  ///< given to the scheduler before the first iteration; may be refused
};

/// What a run showed. Everything but `failure` is for statistics and for comparing runs.
struct RunResult {
  std::string failure;              ///< what did not hold, first of all; empty: everything held
  bool accepted_wrongly = false;    ///< what did not hold: a call was not refused
  std::vector<Refusal> outcomes{};  ///< of each action until something did not hold
  std::uint64_t trace_hash = 0;
  std::uint64_t downloads = 0;  ///< hash of all bytes that the host read
  std::uint64_t operations = 0;
  std::uint64_t iterations_on_demand = 0;
  std::uint64_t iterations_followed = 0;
  std::uint64_t divergences = 0;
  std::uint64_t plan_starts = 0;
  std::uint64_t swaps = 0;
  std::uint64_t dropped = 0;              ///< reads refused with DroppedValue
  std::uint64_t refused = 0;              ///< other calls refused, as they must be
  std::uint64_t outlived_refused = 0;     ///< uses of views that outlived their tensor
  std::uint64_t too_large = 0;            ///< operations refused because they can never fit
  std::uint64_t too_large_inside = 0;     ///< those in iterations
  std::uint64_t too_large_followed = 0;   ///< those in iterations that were followed to their end all the same
  std::uint64_t too_large_in_flight = 0;  ///< those that came while other operations were under way
  std::uint64_t loads_refused = 0;        ///< of the plans given to the scheduler: refused at once
  std::uint64_t budget_changes = 0;
  std::uint64_t sampled_rounds = 0;
  std::uint64_t plans_remade = 0;
  std::uint64_t file_bytes = 0;       ///< read and written
  std::uint64_t neighbour_bytes = 0;  ///< read and written
  std::uint64_t encoded_bytes = 0;    ///< in and out
  std::uint64_t host_views = 0;       ///< opened
  std::uint64_t view_faults = 0;      ///< touches of host views that waited
  std::uint64_t view_bytes_in = 0;    ///< copied from host views to tensors
  std::uint64_t view_bytes_out = 0;   ///< copied from tensors to host views
  std::uint64_t outlived_looks = 0;   ///< reads and writes through host views that outlived their tensor
  std::uint64_t joint_plans = 0;      ///< made for this program and those beside it
  std::uint64_t turns_taken = 0;      ///< copies that waited for one of another device
  std::uint64_t turns_missed = 0;     ///< that could not
  bool plans_encodings = false;       ///< a plan of the end encodes values on their way
  bool tells_neighbours = false;      ///< a plan of the end tells neighbours and host apart
  bool tells_file = false;            ///< a plan of the end tells host and file apart
  bool replays = false;               ///< a plan of the end runs operations again
  std::vector<std::string> notes;
  std::vector<std::string> planners;   ///< who made the plans that are known in the end
  std::optional<Trace> first_trace{};  ///< with keep_trace: of the first iteration that ended and could be observed
  std::vector<SavedPlan> plans;        ///< with save_plans
};

/// Runs the program on a simulated device of its own, and checks everything that must hold at each step and at the
/// end: each read sees the last write, the checker of the device finds nothing, budgets hold, calls that must be
/// refused are and others are not, and after teardown in a random order nothing is left. Programs beside it run at the
/// same time; the result is that of all of them, and plans are saved and loaded of none.
[[nodiscard]] RunResult run_program(const TestProgram& program, const RunSettings& settings = {});

/// The program and those beside it one after another, as if each were the only one.
[[nodiscard]] RunResult run_one_by_one(const TestProgram& program);

}  // namespace swapmm::test
