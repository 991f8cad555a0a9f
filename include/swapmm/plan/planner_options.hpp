// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <swapmm/plan/bound.hpp>
#include <swapmm/plan/packing.hpp>

/// \file
/// The parameters of the planners, one struct for each. The defaults are what make_plan() uses. Each technique of a
/// search can be switched off: by a bool, or by a count or list of 0. Parts are of 1. A search is counted in steps, not
/// in time, so the same parameters give the same plan. docs/planning.md explains what the techniques do.

namespace swapmm {

/// How the lower bound that stands in a plan is computed.
struct BoundOptions {
  BoundEffort usual{};  ///< of traces up to `long_trace`. With 0 rounds the bound is the time of the computation alone
  BoundEffort long_traces{.groups = 24, .options = 30'000, .rounds = 2};  ///< of longer traces: a rough bound
  std::size_t long_trace = 20'000;                                        ///< operations
};

/// How a policy finds a schedule that packs: it is asked for one that needs no more than the budget, then for smaller
/// ones, since places cost more than bytes.
struct FittingOptions {
  int attempts = 8;                              ///< schedules that are packed. 0: every use gets a stay of its own
  double least_step = 1.005;                     ///< each attempt asks for less by at least this factor
  double boldness = 0.5;                         ///< grows the step of each further attempt; 0: in proportion alone
  PackingEffort packing{.ejection_steps = 500};  ///< of each schedule: a little more traffic is cheaper than a search
};

/// Parameters of `on-demand` and `belady`.
struct OnDemandOptions {
  int settling_runs = 6;  ///< of the iteration, in which its start and end may become the same by themselves
  FittingOptions fitting{};
  BoundOptions bound{};
};

/// Whose inputs go to the host.
enum class VdnnOffload : std::uint8_t {
  all,          ///< every operation's: vDNN_all
  convolutions  ///< of convolutions alone: vDNN_conv
};

/// Parameters of `vdnn-all` and `vdnn-conv`.
struct VdnnOptions {
  VdnnOffload offload = VdnnOffload::all;   ///< also decides the planner's name
  std::string convolution = "conv";         ///< in the name of an operation, in any case: it is a convolution
  bool prefetch = true;                     ///< operations of the backward half bring what a later one needs
  bool prefetch_past_convolutions = false;  ///< the search for what to bring goes on behind the first convolution
  FittingOptions fitting{};
  BoundOptions bound{};
};

/// Parameters of `slack`.
struct SlackOptions {
  std::uint64_t least_part = 1024;  ///< tensors up to budget / least_part stay. 0: the size does not matter
  bool needs_slack = true;          ///< goes out only if its copies take less time than the operations between
  bool needs_lack_of_room = true;   ///< goes out only if more is live than fits, somewhere between
  FittingOptions fitting{};
  BoundOptions bound{};
};

/// How copies are hidden under operations, in `excess-overlap` and in what comes of the decisions of `ilp`.
struct HidingOptions {
  int rounds = 6;            ///< of hiding copies, then letting tensors stay in the room that is left
  bool write_backs = true;   ///< copies to the host run under the operations after the write
  bool swap_ins = true;      ///< copies to the device run under the excess preceding operations
  bool early_starts = true;  ///< they start even earlier where link and room are free
};

/// A local search behind `excess-overlap`: tensors that stay and tensors that go out trade places.
struct TradeOptions {
  std::size_t work = 100'000;                    ///< tries x absences, between the two numbers below
  std::size_t least_tries = 20;                  ///< for large traces
  std::size_t most_tries = 1500;                 ///< for small ones. 0: no trades
  std::size_t patience = 4;                      ///< per absence, tries without a gain before it ends
  PackingEffort packing{.ejection_steps = 300};  ///< of each try
};

/// Parameters of `excess-overlap`.
struct ExcessOverlapOptions {
  /// Parts of the budget that tensors may fill by staying before any copy is hidden; each is tried. From everything
  /// (the fewest bytes move, and copies have no room to come early) to nothing (the method as it was first described).
  std::vector<double> stay_shares{1.0, 0.8, 0.6, 0.4, 0.2, 0.0};
  int rounds = 4;  ///< of all shares, while they gain: the second on counts stalls as time for copies, too
  HidingOptions hiding{};
  FittingOptions fitting{.packing = {.ejection_steps = 1000}};  ///< of each share
  bool belady_if_nothing_packs = true;  ///< then the plan of `belady`, with copies beside operations
  OnDemandOptions belady{};             ///< of that; its bound is not used
  TradeOptions trades{};
  BoundOptions bound{};
};

/// `best`, first step: the relaxed problem's solution rounded to decisions who is away.
struct RoundingOptions {
  /// Tensors that are away by more than this part go out. Each is tried; empty: no decision, and so Belady's plan.
  std::vector<double> thresholds{0.5, 0.7, 0.8, 0.9, 0.97};
  int passes = 2;              ///< of timing for each; at least 1
  double longer_first = 1e-3;  ///< of two that are away alike, the one that is away for longer: weight of the length
};

/// `best`, second step: neighbours of the decisions, accepted as in annealing.
struct AnnealingOptions {
  std::size_t work = 1'500'000;       ///< tries x (operations + absences) in the first round, within the numbers below
  std::size_t least_tries = 10;       ///< for large traces
  std::size_t most_tries = 800;       ///< for small ones. 0: no neighbours
  std::size_t tries_per_absence = 8;  ///< few absences have few neighbours
  double warmth = 2e-4;               ///< part of the iteration by which a neighbour may be worse at first; 0: never
  double relaxed_weight = 0.3;     ///< what the relaxed solution counts in making room, against a random number up to 1
  std::uint32_t fills_one_in = 8;  ///< one in so many neighbours also fills what room is left. 0: none
};

/// `best`, third step: decisions are packed. What does not pack is decided again for a part of the budget.
struct PartOptions {
  int packings = 4;                 ///< parts that are tried, in the first two rounds
  int later_packings = 6;           ///< in later ones
  double precision = 0.004;         ///< parts closer than this are not told apart
  std::uint32_t steps = 1000;       ///< PackingEffort::ejection_steps in the first round
  double quick_part = 0.95;         ///< of large traces, before everything else: a part that soon packs
  std::uint32_t quick_steps = 300;  ///< of that
  std::size_t tries_divisor = 5;    ///< each further part has so many times fewer neighbours than the whole
  double time_in_hand = 0.1;        ///< by which part of its time each copy may be late: room is reserved for that
  bool remembers_places = true;     ///< packing begins with the offsets of the last plan that packed
  PackingEffort packing{.ejection_steps = 0};  ///< its techniques; steps and questions are the search's own
};

/// `best`, fourth step: the room that a packing leaves over, in pieces, is filled.
struct PlaceOptions {
  std::size_t moves = 10;            ///< of others, for one tensor that looks for a place, in the first round
  std::uint64_t looks = 40'000'000;  ///< at stays, in the first round. 0: no filling
  int rounds = 4;                    ///< of letting tensors stay and timing copies again, while they gain
  double time_in_hand = 0.1;         ///< as in PartOptions
  std::uint64_t least_part = 500;    ///< nobody moves for a tensor up to budget / least_part. 0: for any
  double dearer_each_time = 1.2;     ///< the price of moving a tensor, each time it was moved
  std::size_t homeless_factor = 10;  ///< what cannot be without a place has so many times the moves
};

/// `best`, from the second round on: the search goes on around the best plan, within the room that it uses.
struct NearBestOptions {
  bool on = true;
  double least_gain = 2e-4;            ///< part of the iteration; it ends with a round that gains less
  std::size_t tries_divisor = 3;       ///< so many times fewer neighbours
  std::uint32_t packing_divisor = 10;  ///< so many times fewer steps of packing
};

/// `best`, at the end: tensors return earlier than they must, for the day when copies take longer than they should.
struct EarlyReturnOptions {
  std::vector<double> times_in_hand{1.0, 3.0};  ///< as in PartOptions; each is tried. Empty: none
  std::size_t work = 100'000;                   ///< tries x (operations + absences), from 1 up to the next number
  std::size_t most_tries = 31;                  ///< for small traces. 0: none
  std::uint64_t looks = 20'000'000;             ///< at stays, in all
};

/// `best`, if it has reached the bound: a plan that is as fast, and faster with slower links.
struct SparedLinkOptions {
  std::vector<double> parts{0.8, 0.5};  ///< of the links' bandwidths. Empty: none
};

/// `best` also asks the planners before it in planners(), and takes the best plan.
struct OtherPlannerOptions {
  bool on = true;
  std::size_t small = 400;     ///< operations + absences: up to here they are asked at once
  std::size_t large = 10'000;  ///< above, they are not asked; between the two, before the round below
  int round = 2;               ///< from 0
};

/// Parameters of `best`: relax, round, anneal, pack, fill, and again from the second step on.
struct BestOptions {
  BoundOptions bound{};  ///< of the relaxed problem, whose solution also guides the search
  RoundingOptions rounding{};
  AnnealingOptions annealing{};
  PartOptions parts{};
  PlaceOptions places{};
  NearBestOptions near_best{};
  EarlyReturnOptions early_returns{};
  SparedLinkOptions spared_links{};
  OtherPlannerOptions others{};
  bool belady_if_nothing_packs = true;  ///< then the plan of `belady`, with copies beside operations
  OnDemandOptions belady{};             ///< of that; its bound is not used
  int doublings = 2;                    ///< each round has twice the effort of the one before, for so many rounds
  /// Rounds without PlanningOptions::go_on, of traces up to `few_rounds_above` and above. 0 ends it behind a first
  /// plan.
  int rounds = 2;
  int rounds_of_large = 1;                ///< see rounds
  std::size_t few_rounds_above = 20'000;  ///< operations + absences
  std::int64_t near_bound = 100'000;      ///< plans up to the bound + bound / near_bound are as fast as the bound
};

}  // namespace swapmm
