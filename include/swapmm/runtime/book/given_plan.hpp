// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <istream>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <swapmm/base/result.hpp>
#include <swapmm/plan/plan.hpp>
#include <swapmm/plan/v2/plan.hpp>
#include <swapmm/plan/ways.hpp>
#include <swapmm/runtime/book/compiled_plan.hpp>

namespace swapmm::runtime {

/// A plan that is used instead of one that the planner would make: from outside, or the one for the same program on
/// other handles.
struct GivenPlan {
  Plan plan;                         ///< for the program with the replays written out
  std::vector<Replay> replays{};     ///< what it runs again
  std::optional<v2::Plan> tiered{};  ///< if it tells host and file apart; `plan` is what it does with the device
  std::string store_key{};           ///< the plan store has it under that key; empty: it is not from there
};

/// Whether a program may follow it: one that allows no replays may only lose what is proven dead.
[[nodiscard]] Check may_be_followed(const GivenPlan& given, bool allows_replays);
/// The plan, for the same program on other handles.
[[nodiscard]] GivenPlan given_by(const CompiledPlan& known);

/// A plan that was read, of a program that need not be known yet.
class LoadedPlan {
 public:
  LoadedPlan(Plan plan) : plan_(std::move(plan)) {}      // NOLINT(google-explicit-constructor)
  LoadedPlan(v2::Plan plan) : plan_(std::move(plan)) {}  // NOLINT(google-explicit-constructor)

  /// The digest of the program that it is for.
  [[nodiscard]] const std::string& trace_digest() const;
  /// Whether it is for that program.
  [[nodiscard]] bool is_for(const Program& program) const;
  /// The plan for its program. A Problem if no manager can follow such plans.
  [[nodiscard]] Result<GivenPlan> given_for(const Program& program) const;

 private:
  std::variant<Plan, v2::Plan> plan_;
};

/// Reads a plan of version 1 or 2 of the format to the end of the stream, as swapmm::read_plan() does.
[[nodiscard]] Result<LoadedPlan> read_loaded_plan(std::istream& in);
/// The same, from a text in memory.
[[nodiscard]] Result<LoadedPlan> read_loaded_plan(std::string_view text);

/// Writes a plan: in version 1 of the format if that can say all of it. Throws Error if it cannot be written.
void write_compiled_plan(std::ostream& out, const CompiledPlan& plan);

}  // namespace swapmm::runtime
