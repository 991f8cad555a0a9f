// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <swapmm/base/export.hpp>
#include <swapmm/base/ids.hpp>
#include <swapmm/base/result.hpp>
#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/bound.hpp>
#include <swapmm/plan/machine.hpp>
#include <swapmm/plan/plan.hpp>
#include <swapmm/plan/planner.hpp>
#include <swapmm/plan/planner_options.hpp>

/// @file
/// Plans in which values come back in other ways than by copies: they are computed again, or leave in fewer bytes. See
/// docs/planning.md, "Other ways back".

namespace swapmm {

/// An operation that runs again, for the values that it makes. It is replayable, updates nothing, and writes transients
/// alone, which the host does not read. No operation between it and `before` changes what it reads or writes.
struct Replay {
  OperationId operation{};  ///< which one
  OperationId before{};     ///< it runs again right before this operation, later in the same iteration

  friend bool operator==(const Replay&, const Replay&) = default;
};

/// A value that is stored in an encoded form between two operations. It is one of a transient that the host does not
/// read, an operation at or before `after` has given it, and none between the two changes it.
struct Coding {
  TensorId tensor{};       ///< which one
  std::uint32_t form = 0;  ///< its form: a position in forms_of(trace, tensor)
  OperationId after{};     ///< it is encoded right behind this operation; codings with the same one share the encoding
  OperationId before{};    ///< it is decoded right before this operation, later in the same iteration

  friend bool operator==(const Coding&, const Coding&) = default;
};

/// A tensor that is divided: each piece is copied, and has its place, for itself. Every operation that accesses it
/// works in pieces, and accesses whole pieces. Its forms are not used.
struct TensorPieces {
  TensorId tensor{};      ///< which one
  std::vector<Bytes> at;  ///< where pieces end and the next ones begin: ascending, above 0, below the tensor's size

  friend bool operator==(const TensorPieces&, const TensorPieces&) = default;
};

/// What a plan does beside copies of whole values.
struct WaysBack {
  std::vector<Replay> replays{};       ///< in any order
  std::vector<Coding> codings{};       ///< in any order
  std::vector<TensorPieces> pieces{};  ///< ascending by tensor

  /// Whether the plan only copies whole values.
  [[nodiscard]] bool empty() const { return replays.empty() && codings.empty() && pieces.empty(); }
  friend bool operator==(const WaysBack&, const WaysBack&) = default;
};

/// What an operation of a written-out program does.
struct WrittenStep {
  /// What it is.
  enum class Kind : std::uint8_t {
    operation,  ///< an operation of the original
    replay,     ///< such an operation once more
    encode,     ///< makes an encoded value of a plain one
    decode,     ///< makes the plain value again
  };
  Kind kind = Kind::operation;  ///< what it is
  std::uint32_t which = 0;      ///< the original's operation, or the position in WrittenTrace::encoded

  friend bool operator==(const WrittenStep&, const WrittenStep&) = default;
};

/// What a tensor of a written-out program is of the original.
struct TensorPart {
  TensorId tensor{};                   ///< the tensor
  std::optional<std::uint32_t> piece;  ///< the piece; none: all of it

  friend bool operator==(const TensorPart&, const TensorPart&) = default;
};

/// A tensor of a written-out program that holds another one's values in an encoded form.
struct EncodedTensor {
  TensorId tensor{};       ///< whose values
  std::uint32_t form = 0;  ///< a position in forms_of(trace, tensor)

  friend bool operator==(const EncodedTensor&, const EncodedTensor&) = default;
};

/// A program with its other ways written out: as operations, and as tensors for encoded values. Between the last use
/// and what brings a value back it is dead, so a plan for this program need not keep it.
struct WrittenTrace {
  /// Its tensors are the parts of the original's, then one for each of `encoded`. It is of version 1, but for engines.
  Trace trace;
  std::vector<WrittenStep> steps;      ///< what each operation is
  std::vector<TensorPart> parts;       ///< ascending
  std::vector<EncodedTensor> encoded;  ///< ascending, each once
};

/// Writes ways out. Behind an operation come its encodings; before one come its decodings, and then its replays, in the
/// order of the operations that they repeat. They run on the engine of the operation that is repeated, or that they are
/// next to. The same way twice counts once. An access to a part of a tensor that is not divided counts as one to all of
/// it. A Problem if a way is not possible. Takes (operations + ways) x log(ways).
[[nodiscard]] SWAPMM_EXPORT Result<WrittenTrace> with_ways(const Trace& trace, const WaysBack& ways);

/// A plan with other ways back.
struct PlanWithWays {
  WaysBack ways;  ///< none: values are only copied
  Plan plan;      ///< for with_ways(trace, ways)
};

/// Parameters of plan_checkpoint_units().
struct CheckpointUnitOptions {
  std::vector<std::size_t> units{4, 8, 16, 32, 64};  ///< numbers of units that are tried
  std::size_t shares = 8;                            ///< shares of them that are recomputed, for each number
  /// Effort for rating one choice.
  BoundEffort rating{.groups = 16, .options = 20'000, .rounds = 2, .exact_operations = 0};
  ExcessOverlapOptions copies{};  ///< for what is copied
};

/// Parameters of improving a choice of ways by plans, of one quick round of `best` each, in plan_with_ways().
struct PlannedWaysOptions {
  std::size_t work = 20'000;    ///< plans x operations: large traces have few. 0: none
  std::size_t most_tries = 60;  ///< most plans, for small traces
  /// Prices of a copied byte to begin with, as multiples of the one whose choice has the best rating.
  std::vector<double> price_factors{1.0, 0.5, 2.0};
  /// Plans x operations for changes at random, beside the others. Small traces alone have them. 0: none
  std::size_t change_work = 40'000;
  std::size_t most_changes = 600;   ///< most such plans, for very small traces
  std::size_t least_changes = 200;  ///< a trace that has fewer by `change_work` has none
  std::size_t most_kept = 16;       ///< most checkpoints at a time of the choices that they are tried for
  double changes_within = 0.5;      ///< with PlanningOptions::go_on: they end when this part of the time has passed
  /// Effort for the relaxed problem of these plans.
  BoundEffort change_bound{.groups = 8, .options = 5'000, .rounds = 1, .exact_operations = 0};
};

/// Parameters of plan_with_ways(). Efforts are counted in steps, not in time.
struct WaysOptions {
  int prices = 16;             ///< prices of a copied byte for which ways are chosen. Below 2: only copies
  int refinements = 10;        ///< further prices, between the best ones
  double highest_price = 100;  ///< times the time per byte of the dearest way
  /// Values that are made early have dearer copies than later ones, or cheaper ones: at the beginning and at the end of
  /// the iteration by these powers of e.
  std::vector<double> tilts{0.75, -0.75, 1.5, -1.5};
  int omissions = 60;  ///< tries to leave ways of the best choice out
  /// Effort for rating one choice of ways quickly.
  BoundEffort rating{.groups = 16, .options = 20'000, .rounds = 2, .exact_operations = 0};
  /// Effort for rating the choices with the best quick ratings again.
  BoundEffort close_rating{.groups = 64, .options = 80'000, .rounds = 4};
  std::size_t close_work = 30'000;  ///< such ratings x operations: large traces have few
  std::size_t most_close = 100;     ///< most such ratings, for small traces
  CheckpointUnitOptions units{};    ///< choices of units that are looked at besides prices; none if `units` is empty
  PlannedWaysOptions planned{};     ///< choices that are rated by plans
  int plans = 2;                    ///< choices for which `best` runs, in turns; copies alone are one of them
  double most_behind = 0.01;  ///< a choice whose plan is slower than the best one by more than this part is given up
  bool copies_first = true;  ///< with PlanningOptions::go_on, copies alone are planned first, unless the trace is small
  BestOptions best{};        ///< for these runs
};

/// Chooses for each value whether it stays, is copied, is copied in an encoded form, or is computed again, chains
/// included. Tensors that only operations in pieces access are divided. Ways are chosen for many prices of a copied
/// byte, none among them. Each choice is rated by its relaxed problem, the best ones by plans of `best` for the program
/// with the ways written out. A choice is also improved by such plans: copies that a plan waits for become dearer, and
/// ways that do not make the plan faster are left out. In small traces, it is also changed at random, and changes that
/// make the plan no slower are kept. PlanningOptions::ways says which ones may be chosen.
/// `trace` may have all of version 2 but engines. The plan's lower bound holds for all plans with copies and the ways
/// that may be chosen.
[[nodiscard]] SWAPMM_EXPORT Result<PlanWithWays> plan_with_ways(const Trace& trace, const Machine& machine,
                                                                const PlanningOptions& limits = {},
                                                                const WaysOptions& options = {});

/// The method of US 2022/0138580, as a baseline: operations are divided into units that begin with a checkpoint, whose
/// value is copied. The other feature maps of some units are copied, those of the others computed again from the
/// checkpoint, for balance; copies are planned as `excess-overlap` does. Numbers of units and of recomputed ones are
/// rated as plan_with_ways() rates its choices. `trace` may have all of version 2 but engines; of its ways only
/// replayable operations are used.
[[nodiscard]] SWAPMM_EXPORT Result<PlanWithWays> plan_checkpoint_units(const Trace& trace, const Machine& machine,
                                                                       const PlanningOptions& limits = {},
                                                                       const CheckpointUnitOptions& options = {});

}  // namespace swapmm
