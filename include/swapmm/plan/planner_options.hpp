// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <swapmm/plan/bound.hpp>
#include <swapmm/plan/packing.hpp>

/// @file
/// The parameters of the planners, one struct per planner. make_plan() uses the defaults. Each technique of a
/// search can be switched off, by a bool, or by a count of 0 or an empty list. Parts are fractions of 1. Efforts are
/// counted in steps, not in time, so the same parameters give the same plan. docs/planning.md explains the techniques.

namespace swapmm {

/// Parameters of the lower bound of a plan.
struct BoundOptions {
  BoundEffort usual{};  ///< for traces up to `long_trace`. With 0 rounds the bound is only the time of the computation
  BoundEffort long_traces{.groups = 24, .options = 30'000, .rounds = 2};  ///< for longer traces: a rough bound
  std::size_t long_trace = 20'000;                                        ///< operations
};

/// Parameters of the search for a schedule that packs. A policy first chooses stays for the whole budget, and then for
/// fewer bytes, because packed places need more room than the sum of the sizes.
struct FittingOptions {
  int attempts = 8;           ///< number of schedules that are packed. 0: every use gets its own stay
  double least_step = 1.005;  ///< each attempt reduces the bytes by at least this factor
  double boldness = 0.5;      ///< increases the step of each further attempt; 0: proportional steps only
  /// Effort for each schedule. A little more traffic costs less than a long search.
  PackingEffort packing{.ejection_steps = 500};
};

/// Parameters of `on-demand` and `belady`.
struct OnDemandOptions {
  int settling_runs = 6;     ///< number of runs in which start and end of the iteration may become equal on their own
  FittingOptions fitting{};  ///< how a schedule that packs is found
  BoundOptions bound{};      ///< the lower bound of the plan
};

/// Which operations have their inputs sent to the host.
enum class VdnnOffload : std::uint8_t {
  all,          ///< all operations: vDNN_all
  convolutions  ///< only convolutions: vDNN_conv
};

/// Parameters of `vdnn-all` and `vdnn-conv`.
struct VdnnOptions {
  VdnnOffload offload = VdnnOffload::all;   ///< also determines the planner's name
  std::string convolution = "conv";         ///< an operation whose name contains this, in any case, is a convolution
  bool prefetch = true;                     ///< operations of the backward half prefetch inputs of a later one
  bool prefetch_past_convolutions = false;  ///< the search for prefetches continues after the first convolution
  FittingOptions fitting{};                 ///< how a schedule that packs is found
  BoundOptions bound{};                     ///< the lower bound of the plan
};

/// Parameters of `slack`.
struct SlackOptions {
  std::uint64_t least_part = 1024;  ///< tensors up to budget / least_part stay. 0: any size may go out
  Bytes least_bytes{};              ///< tensors below this stay, too
  /// A tensor goes out only if the operations between its uses (and stalls that are known) take longer than this many
  /// times its copies. 0: any tensor may go out.
  double least_slack = 1;
  bool needs_lack_of_room = true;  ///< a tensor goes out only if the live bytes exceed the budget somewhere between
  int rounds = 8;                  ///< rounds while they gain; from the second on, stalls count as slack, too
  FittingOptions fitting{};        ///< how a schedule that packs is found
  BoundOptions bound{};            ///< the lower bound of the plan
};

/// Parameters of `excess`.
struct ExcessOptions {
  int rounds = 1000;         ///< rounds over all operations; it ends before if nothing changes. 0: nothing is moved
  FittingOptions fitting{};  ///< how a schedule that packs is found
  BoundOptions bound{};      ///< the lower bound of the plan
};

/// Parameters of hiding copies under operations, in `excess-overlap` and for the decisions of `ilp`.
struct HidingOptions {
  /// Most rounds; each hides copies, then lets tensors stay in the remaining room. It ends before, when no more can
  /// stay.
  int rounds = 1000;
  bool write_backs = true;   ///< copies to the host run under the operations after the write
  bool swap_ins = true;      ///< copies to the device run under the excess preceding operations
  bool early_starts = true;  ///< swap-ins start even earlier if link and room are free
};

/// Parameters of the local search after `excess-overlap`: tensors that stay and tensors that go out trade places.
struct TradeOptions {
  std::size_t work = 100'000;                    ///< tries x absences, with limits on the tries below
  std::size_t least_tries = 20;                  ///< fewest tries, for large traces
  std::size_t most_tries = 1500;                 ///< most tries, for small traces. 0: no trades
  std::size_t patience = 4;                      ///< tries without a gain per absence, after which the search ends
  PackingEffort packing{.ejection_steps = 300};  ///< effort for each try
};

/// Parameters of `excess-overlap`.
struct ExcessOverlapOptions {
  /// Parts of the budget that tensors may fill by staying before any copy is hidden; each part is tried. With 1, the
  /// fewest bytes move, and there is no room for early copies. With 0, this is the method as originally described.
  std::vector<double> stay_shares{1.0, 0.8, 0.6, 0.4, 0.2, 0.0};
  int rounds = 4;  ///< rounds over all shares while they gain; from the second on, stalls count as time for copies
  HidingOptions hiding{};                                       ///< how copies are hidden
  FittingOptions fitting{.packing = {.ejection_steps = 1000}};  ///< effort for each share
  bool belady_if_nothing_packs = true;  ///< if nothing packs: the plan of `belady`, with overlapped copies
  OnDemandOptions belady{};             ///< for that plan; its bound is not used
  TradeOptions trades{};                ///< the local search
  BoundOptions bound{};                 ///< the lower bound of the plan
};

/// `best`, first step: rounds the relaxed problem's solution to decisions on which tensors are away.
struct RoundingOptions {
  /// A tensor goes out if more than this part of it is away in the solution. Each threshold is tried. If empty, there
  /// are no decisions, and the plan is Belady's.
  std::vector<double> thresholds{0.5, 0.7, 0.8, 0.9, 0.97};
  int passes = 2;              ///< timing passes per threshold; at least 1
  double longer_first = 1e-3;  ///< weight of the length of an absence if equal parts of tensors are away
};

/// `best`, second step: tries neighbours of the decisions and accepts them as in simulated annealing.
struct AnnealingOptions {
  std::size_t work = 1'500'000;  ///< tries x (operations + absences) in the first round, with limits on the tries below
  std::size_t least_tries = 10;  ///< fewest tries, for large traces
  std::size_t most_tries = 800;  ///< most tries, for small traces. 0: no neighbours
  std::size_t tries_per_absence = 8;  ///< most tries per absence, because few absences have few neighbours
  double warmth = 2e-4;            ///< part of the iteration by which a neighbour may be worse at the start; 0: never
  double relaxed_weight = 0.3;     ///< weight of the relaxed solution when making room, against a random number up to 1
  std::uint32_t fills_one_in = 8;  ///< one in this many neighbours also fills the remaining room. 0: none
};

/// `best`, third step: packs the decisions. If they do not pack, they are made again for a part of the budget.
struct PartOptions {
  int packings = 4;          ///< number of parts tried in the first two rounds
  int later_packings = 6;    ///< number of parts tried in later rounds
  double precision = 0.004;  ///< parts closer than this are treated as equal
  /// Once a part has packed, each further part is this much larger than the last one if that packed, else smaller; from
  /// the sixth step in one direction on, twice as much each time. 0 or less: they are found by bisection in each round.
  double step = 0.02;
  std::uint32_t steps = 1000;       ///< PackingEffort::ejection_steps in the first round
  double quick_part = 0.95;         ///< for large traces: a part that packs quickly, tried first
  std::uint32_t quick_steps = 300;  ///< PackingEffort::ejection_steps for quick_part
  std::size_t tries_divisor = 5;    ///< each further part has this many times fewer neighbours than the whole
  double time_in_hand = 0.1;        ///< each copy may be late by this part of its time; room is reserved for that
  /// How often decisions that do not pack are made easier where no place was found: copies overlap less there.
  int repairs = 4;
  /// Packing begins with the offsets of the last plan that packed. Faster, but plans come to be alike: the search ends
  /// up with better ones without.
  bool remembers_places = false;
  PackingEffort packing{.ejection_steps = 0};  ///< its techniques; the search sets the steps and go_on
};

/// `best`, fourth step: fills the room that a packing leaves in pieces.
struct PlaceOptions {
  std::size_t moves = 10;            ///< moves of other stays to find a place for one tensor, in the first round
  std::uint64_t looks = 40'000'000;  ///< number of stays examined in the first round. 0: no filling
  int rounds = 4;                    ///< rounds of letting tensors stay and timing copies again, while rounds gain
  double time_in_hand = 0.1;         ///< as in PartOptions
  std::uint64_t least_part = 500;    ///< no stay moves for a tensor up to budget / least_part. 0: for any tensor
  double move_cost_factor = 1.2;     ///< factor on the cost of moving a tensor after each of its moves
  std::size_t required_moves_factor = 10;  ///< stays that must have a place get this many times the moves
};

/// `best`, from the second round on: searches around the best plan, within the room that it uses.
struct NearBestOptions {
  bool on = true;                 ///< false switches this search off
  double least_gain = 2e-4;       ///< part of the iteration; a search that gains less has failed
  int failures = 3;               ///< it ends with so many failures in a row; in the first rounds with fewer, from 1
  std::size_t tries_divisor = 3;  ///< divides the number of neighbours
  std::uint32_t packing_divisor = 10;  ///< divides the number of packing steps
};

/// `best`, at the end: lets tensors return earlier than they must, in case copies take longer than expected.
struct EarlyReturnOptions {
  std::vector<double> times_in_hand{1.0, 3.0};  ///< as in PartOptions; each is tried. Empty: none
  std::size_t work = 100'000;                   ///< tries x (operations + absences), from 1 up to most_tries
  std::size_t most_tries = 31;                  ///< most tries, for small traces. 0: none
  std::uint64_t looks = 20'000'000;             ///< number of stays examined in total
};

/// `best`, if it has reached the bound: searches for a plan that is as fast, and that is faster on slower links.
struct SparedLinkOptions {
  std::vector<double> parts{0.8, 0.5};  ///< parts of the links' bandwidths. Empty: none
  /// The copies that such a plan adds take at most this many times as long, at that bandwidth, as it gains there.
  double most_copies = 4;
};

/// `best`, at the end: searches for a plan that is as fast, or near the bound, and moves fewer bytes.
struct SparedByteOptions {
  std::size_t tries = 300;  ///< neighbours of the decisions with the fewest bytes. 0: no search
  int packings = 4;         ///< number of parts of the budget that are tried
};

/// `best` also runs the planners that precede it in planners(), and takes the best plan.
struct OtherPlannerOptions {
  bool on = true;           ///< false: they do not run
  std::size_t small = 400;  ///< operations + absences; up to this size they run at the start
  /// Above this size they do not run. Between the two, they run once, when the search seems to have come to its end:
  /// after the last of a given number of rounds if these are at least `round`, or by the clock after a round (counted
  /// from 0, from `round` on) that gained less than `least_gain`.
  std::size_t large = 10'000;
  int round = 2;             ///< the first round, counted from 0, after which they may run
  double least_gain = 1e-4;  ///< part of the iteration
};

/// Parameters of `best`: relax, round, anneal, pack, fill, and repeat from the second step on.
struct BestOptions {
  BoundOptions bound{};                 ///< for the relaxed problem, whose solution also guides the search
  RoundingOptions rounding{};           ///< the first step
  AnnealingOptions annealing{};         ///< the second step
  PartOptions parts{};                  ///< the third step
  PlaceOptions places{};                ///< the fourth step
  NearBestOptions near_best{};          ///< the search around the best plan
  EarlyReturnOptions early_returns{};   ///< early returns at the end
  SparedByteOptions spared_bytes{};     ///< the search for fewer bytes
  SparedLinkOptions spared_links{};     ///< the search for slower links
  OtherPlannerOptions others{};         ///< the other planners
  bool belady_if_nothing_packs = true;  ///< if nothing packs: the plan of `belady`, with overlapped copies
  OnDemandOptions belady{};             ///< for that plan; its bound is not used
  int doublings = 2;                    ///< number of rounds that each have twice the effort of the round before
  /// Number of rounds without PlanningOptions::go_on, for traces up to `few_rounds_above`. With 0 the search ends after
  /// a first plan.
  int rounds = 2;
  int rounds_of_large = 1;                ///< the same for longer traces
  std::size_t few_rounds_above = 20'000;  ///< operations + absences
  std::int64_t near_bound = 100'000;      ///< plans up to bound + bound / near_bound count as fast as the bound
};

}  // namespace swapmm
