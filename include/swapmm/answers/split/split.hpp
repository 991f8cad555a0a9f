// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <swapmm/answers/as_json.hpp>
#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/machine.hpp>
#include <swapmm/plan/split/split.hpp>

// Does a program fit if its batch is divided into pieces, and what does that cost?

namespace swapmm::answers {

/// What was asked, and the step that was learned from two traces.
struct SplitQuestion {
  std::string trace;        ///< its name
  std::string planner;      ///< who made the plans
  Machine machine;          ///< of the plans
  std::uint64_t batch = 1;  ///< number of samples that is divided
  SplitStep step;
};

/// The sizes of so many pieces: "4 x 64", or "3 pieces of 86 or 85".
[[nodiscard]] std::string pieces_text(std::uint64_t batch, std::uint64_t pieces);

/// "batch 256 does not fit; 4 x 64 does, at 1.070 x", or "batch 256 fits whole, at 1.300 x; 4 x 64 take 1.070 x", or
/// "batch 256 fits whole, at 1.070 x; no split that was tried is faster". Times are relative to the unsplit step
/// without stalls.
[[nodiscard]] std::string split_text(std::uint64_t batch, const SplitChoice& choice);

/// How long that number of pieces takes, relative to the unsplit step without stalls; none if that takes no time or
/// there is no plan.
[[nodiscard]] std::optional<double> slowdown_of(const SplitChoice& choice, const SplitTry& tried);

/// The answer.
[[nodiscard]] json::object split_as_json(const SplitQuestion& question, const Result<SplitChoice>& choice);

}  // namespace swapmm::answers
