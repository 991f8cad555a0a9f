// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>

#include <swapmm/base/export.hpp>
#include <swapmm/base/result.hpp>
#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/planner.hpp>
#include <swapmm/plan/v2/plan.hpp>

namespace swapmm::v2 {

/// The same machine in version 1, or a Problem that says what version 1 cannot describe. Version 1 knows a device, a
/// host without limit, and one link in each direction; names are lost.
[[nodiscard]] SWAPMM_EXPORT Result<swapmm::Machine> to_version_1(const Machine& machine);

/// Makes a plan for any machine. Besides the planners of version 1 there is `checkpoint-units`, for machines that
/// version 1 can describe (plan_checkpoint_units()). `on-demand` and `belady` plan for all machines. The planners of
/// version 1 plan for those that version 1 can describe. For others they plan each device alone, as if all other
/// memories were one host; what leaves is then spread over the memories that are linked to the device directly. If
/// engines share memories or tensors, they plan for each memory alone. They refuse, with a reason, if memories are
/// full, and some programs whose engines share tensors. If one engine computes, `best` searches for a memory for each
/// value instead. If several compute and share nothing, it makes one plan for all, in which devices take turns on what
/// their links share. It is never slower than `belady`, whose plan it takes if there is no other. docs/planning.md
/// describes this.
[[nodiscard]] SWAPMM_EXPORT Result<Plan> make_plan(std::string_view planner, const Trace& trace, const Machine& machine,
                                                   const PlanningOptions& options = {});

}  // namespace swapmm::v2
