// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <random>
#include <string_view>

#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/v2/plan.hpp>

namespace swapmm::test::general {

/// A machine that passes check_machine(): one to three devices, maybe with two engines, a host with or without a limit,
/// maybe a disk and spare memory of a neighbour, links of different speed, shared engines and capacities. Each limited
/// memory that runs operations has at least `least` bytes.
[[nodiscard]] swapmm::v2::Machine random_machine(std::mt19937_64& random, Bytes least);

/// Gives a trace of version 1 engines of the machine, ranges, forms, and operations that may run again or take pieces.
void enrich(std::mt19937_64& random, const swapmm::v2::Machine& machine, Trace& trace);

/// A trace and a plan for it; `valid` says that the plan is one of a planner, maybe with changes that keep it valid.
struct Case {
  Trace trace;
  swapmm::v2::Plan plan;
};

/// A random trace on a random machine, with the plan of a planner. Tries until there is one.
[[nodiscard]] Case random_case(std::mt19937_64& random);

/// Divides a tensor that is not divided yet, if the plan has commands or places for it, and its forms are not used.
/// Each command becomes one for each piece. A plan that was valid stays so.
void divide(std::mt19937_64& random, Case& one);

/// Changes one thing of a plan, so that its indices stay in range: a wait, a command, an order, a place, a claim; or
/// adds an operation that runs again, or an encoding with its decoding. Some changes leave a valid plan valid. Says
/// what it did.
std::string_view mutate(std::mt19937_64& random, Case& one);

}  // namespace swapmm::test::general
