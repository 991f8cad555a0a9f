// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <swapmm/base/export.hpp>
#include <swapmm/base/ids.hpp>
#include <swapmm/base/result.hpp>
#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/machine.hpp>
#include <swapmm/plan/plan.hpp>

/// @file
/// A step of a program whose batch is divided into pieces: how long it takes for any number of pieces, and for which
/// number it takes the least time. See docs/batch_splitting.md.

namespace swapmm {

/// A number that was observed in pieces of two sizes, SplitStep::small and SplitStep::large. It is taken to grow by the
/// same amount with each sample.
struct SplitQuantity {
  std::int64_t at_small = 0;  ///< in a piece of `small` samples; not negative
  std::int64_t at_large = 0;  ///< in a piece of `large` samples; not negative

  friend bool operator==(const SplitQuantity&, const SplitQuantity&) = default;
};

/// A position in a step, whatever the number of pieces.
struct SplitPlace {
  /// The parts of a step.
  enum class Part : std::uint8_t {
    before,  ///< the operations before the first piece
    piece,   ///< the operations of each piece
    after,   ///< the operations after the last piece
  };
  Part part = Part::before;    ///< which part
  std::uint32_t position = 0;  ///< the operation's position in that part

  friend bool operator==(const SplitPlace&, const SplitPlace&) = default;
};

/// A tensor of a step.
struct SplitTensor {
  std::string name;                         ///< for people
  TensorKind kind = TensorKind::transient;  ///< how long its value lives
  SplitQuantity bytes;                      ///< its size
  bool local = false;                       ///< each piece has one of its own; otherwise all pieces have the same one
  /// For an input: the operation before which the host gives the value. Within a piece: of the piece that it belongs
  /// to, or the first piece if the tensor is not local.
  SplitPlace available_from;
};

/// An operation of a step. The ids in its bundle are positions in SplitStep::tensors; its durations are not used.
struct SplitOperation {
  SplitQuantity duration;  ///< in nanoseconds
  TraceOperation first;    ///< in the first piece, and before and after the pieces
  TraceOperation later;    ///< in all later pieces: what the first piece begins, they update
};

/// A value that the host reads.
struct SplitHostRead {
  TensorId tensor{};  ///< position in SplitStep::tensors; of a local tensor, that of each piece
  SplitPlace after;   ///< after this operation; within the pieces, if the tensor is not local: of the last piece

  friend bool operator==(const SplitHostRead&, const SplitHostRead&) = default;
};

/// A step of a program whose body runs once for each piece of the batch. Plain data, made from observations by
/// split_step().
struct SplitStep {
  std::string name;                       ///< name of the iteration
  std::uint64_t small = 1;                ///< number of samples in the smaller of the observed pieces; at least 1
  std::uint64_t large = 2;                ///< the same of the larger ones; above `small`
  std::vector<SplitTensor> tensors;       ///< a tensor's id is its position
  std::vector<SplitOperation> before;     ///< run once, before the first piece
  std::vector<SplitOperation> piece;      ///< run for each piece
  std::vector<SplitOperation> after;      ///< run once, after the last piece: the update of the weights
  std::vector<SplitHostRead> host_reads;  ///< what the host reads
  /// Tensors whose size does not depend on the batch, but whose value does, and that operations of the same piece read:
  /// they may be statistics over the batch, as batch normalisation has them. Then pieces compute other values than the
  /// whole batch does. Ascending.
  std::vector<TensorId> statistics;
};

/// A piece of an observed step.
struct ObservedPiece {
  std::uint32_t first = 0;       ///< position of its first operation in the trace
  std::uint32_t operations = 0;  ///< the number of its operations, which are all in a row
  std::uint64_t samples = 0;     ///< its size; at least 1
};

/// Learns a step from one iteration in which it ran in pieces of at least two sizes, one right after the other. The
/// largest size and the most frequent of the others are used. Tensors that two pieces use, or a piece and the rest, are
/// shared; the others are local to their piece. Durations are means over the pieces of a size, the first piece left out
/// if there are others. Returns a Problem if the pieces are not alike, or if the trace has something that only version
/// 2 of the format can say (what is replayable is left out), or lingering values. Linear in the size of the trace.
[[nodiscard]] SWAPMM_EXPORT Result<SplitStep> split_step(const Trace& trace, std::span<const ObservedPiece> pieces);

/// Learns a step from two iterations of the same program, each with its whole batch as one piece, of different sizes.
/// Tensors whose sizes differ are local to a piece, as are those of fixed size that only the piece's operations use
/// and that they write first. Operations with such a tensor run for each piece. Of the others, those that need what the
/// pieces compute run after the last one, and those that the pieces need run before the first. What pieces write to a
/// shared tensor is taken to be a sum: later pieces update it.
///
/// Returns a Problem if the traces have different operations or bundles, if no size differs, if a value that must wait
/// for the last piece is overwritten before, or as the other function does. Linear in the size of the traces.
[[nodiscard]] SWAPMM_EXPORT Result<SplitStep> split_step(const Trace& one, std::uint64_t samples_of_one,
                                                         const Trace& other, std::uint64_t samples_of_other);

/// The sizes of so many pieces of a batch: they differ by at most one sample, and the larger ones come first. `pieces`
/// is from 1 to `batch`.
[[nodiscard]] SWAPMM_EXPORT std::vector<std::uint64_t> piece_sizes(std::uint64_t batch, std::uint64_t pieces);

/// The whole step as a trace, with pieces of these sizes. Tensors are in the order of their first use. Sizes are exact
/// if they grow by the same amount with each sample, and rounded up otherwise. A Problem says which rule of
/// check_trace() the trace would break. Linear in the size of the result.
[[nodiscard]] SWAPMM_EXPORT Result<Trace> written_out(const SplitStep& step, std::span<const std::uint64_t> sizes);

/// Makes a plan for a trace and a machine.
using PlanStep = std::function<Result<Plan>(const Trace& trace, const Machine& machine)>;

/// A number of pieces, and what a plan for it predicts.
struct SplitTry {
  std::uint64_t pieces = 0;               ///< the number
  std::uint64_t largest = 0;              ///< samples of the largest piece
  std::optional<Prediction> predicted{};  ///< nothing if there is no plan
  std::string problem{};                  ///< why there is none
};

/// The number of pieces that was chosen, and all that were tried.
struct SplitChoice {
  std::uint64_t pieces = 0;     ///< the number with the least predicted time; the smallest of equal ones
  std::vector<SplitTry> tries;  ///< ascending; the first one has the least number whose bundles fit
  /// The time of the unsplit step without any stall. Times divided by it are what splitting and swapping cost.
  std::chrono::nanoseconds unsplit{0};

  /// What was tried for `pieces`.
  [[nodiscard]] SWAPMM_EXPORT const SplitTry& chosen() const;
};

/// Parameters of choose_pieces().
struct SplitChoiceOptions {
  std::size_t most_tries = 8;      ///< number of plans that are made; at least 1
  std::uint64_t least_pieces = 1;  ///< no fewer pieces than this; at most the number of samples
  /// No more pieces than this. 0: as many as there are samples, and as a trace has room for.
  std::uint64_t most_pieces = 0;
};

/// Chooses a number of pieces. Begins with the least number whose bundles fit the machine, and goes on to larger
/// numbers: the next one, or a quarter more if that is more. Ends if the operations alone would take longer than the
/// best step so far. Returns a Problem if no number fits, or if no plan was made for those that do. Takes as long as
/// `plan` does for each try.
[[nodiscard]] SWAPMM_EXPORT Result<SplitChoice> choose_pieces(const SplitStep& step, std::uint64_t batch,
                                                              const Machine& machine, const PlanStep& plan,
                                                              const SplitChoiceOptions& options = {});

}  // namespace swapmm
