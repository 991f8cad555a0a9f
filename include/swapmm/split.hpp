// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <swapmm/backend/backend.hpp>
#include <swapmm/error.hpp>
#include <swapmm/memory_manager.hpp>
#include <swapmm/plan/planner_choice.hpp>
#include <swapmm/plan/split/split.hpp>

namespace swapmm {

/// A piece of a batch, as the body of a split step gets it.
struct Piece {
  std::size_t number = 0;   ///< position among the pieces of its step, from 0
  std::size_t pieces = 1;   ///< number of pieces of its step
  std::size_t first = 0;    ///< position of its first sample in the batch
  std::size_t samples = 0;  ///< number of samples; at least 1
};

/// Options for one Split.
struct SplitOptions {
  /// The value of `pieces` that has the number chosen.
  static constexpr std::size_t choose = 0;

  std::size_t batch = 0;        ///< number of samples of each step; at least 1
  std::size_t pieces = choose;  ///< number of pieces, at most `batch`; or `choose`
  /// Number of samples of the smaller pieces that are observed if the number is to be chosen; the others have twice as
  /// many. Their bundles must fit. Default: a sixteenth of the batch, at least 1.
  std::size_t observed_samples = 0;
  /// Makes the plans that are compared if the number is to be chosen. Default: the planner of the manager's scheduler.
  std::optional<PlannerChoice> planner{};
  SplitChoiceOptions choice{};  ///< how many numbers are tried
  /// True if the step computes something of all samples of the batch that later operations on samples need, such as the
  /// mean and variance of batch normalisation. In pieces it would be of a piece, so such a step cannot be split.
  bool keeps_statistics = false;
};

/// Runs the steps of a program with the batch of each step divided into pieces, so that operations need less memory at
/// once. Each step is one iteration of the manager: plans are made for the whole step, all pieces and the rest.
///
///     swapmm::Split split{manager, "train", {.batch = 256}};
///     for (...)
///       split.step([&] { clear(gradients); },
///                  [&](const swapmm::Piece& piece) { forward_and_backward(images, piece); },
///                  [&] { update(weights, gradients); });
///
/// The body uploads its part of the input, and makes the tensors whose size depends on the number of samples; they end
/// with the piece. It adds to what all pieces have in common (gradients, the loss): operations update these. It must
/// run the same operations for each piece, and give the sum over all pieces the same meaning for any number of pieces:
/// a mean over the batch is the sum of what each sample adds, divided by SplitOptions::batch. The result is then the
/// same up to rounding for any number of pieces, and the same bit for bit for the same number.
///
/// If the number is to be chosen, the first two steps run in pieces of two sizes (iteration "NAME, observed"), and the
/// number is chosen when the third one begins. See choose_pieces() and docs/batch_splitting.md.
///
/// The manager must outlive it, and must not be moved while it exists. Like the manager it is for one thread at a time.
template <Backend B>
class Split {
 public:
  /// `name` is the name of the iterations. Throws UsageError if the options make no sense: no sample, more pieces than
  /// samples, statistics over the batch in more than one piece, or a batch of less than three samples, or a manager
  /// that observes nothing, if the number is to be chosen.
  Split(MemoryManager<B>& manager, std::string name, SplitOptions options)
      : manager_(manager), name_(std::move(name)), options_(std::move(options)) {
    check_options();
    if (options_.pieces != SplitOptions::choose) sizes_ = piece_sizes(options_.batch, options_.pieces);
  }
  Split(const Split&) = delete;
  Split& operator=(const Split&) = delete;

  /// Runs one step: `begin()`, then `body(piece)` for each piece in order, then `end()`. Returns as run() does, before
  /// the device has done it. The step that chooses the number takes as long as the plans do that are compared; it
  /// throws UsageError, before anything runs, if there is nothing to choose from: the pieces were not alike, or nothing
  /// fits. What the functions throw passes through, and the step ends there.
  template <std::invocable Begin, std::invocable<const Piece&> Body, std::invocable End>
  void step(Begin&& begin, Body&& body, End&& end) {
    const bool observes = sizes_.empty() && observed_steps_ < observed_steps;
    const auto iteration = manager_.iteration(observes ? observed_name() : name_);
    // What was observed last is known from here on.
    if (sizes_.empty() && !observes) choose();
    const std::vector<std::uint64_t> sizes = observes ? observed_sizes() : sizes_;
    observed_.clear();
    const std::uint64_t start = observes ? manager_.report().operations : 0;
    begin();
    run_pieces(sizes, observes, start, body);
    end();
    if (observes) ++observed_steps_;
  }
  /// The same for a step that has nothing before the pieces: operations of the first piece write what those of the
  /// others update.
  template <std::invocable<const Piece&> Body, std::invocable End>
  void step(Body&& body, End&& end) {
    step([] {}, std::forward<Body>(body), std::forward<End>(end));
  }

  /// The number of pieces of each step; 0 as long as it has not been chosen.
  [[nodiscard]] std::size_t pieces() const { return sizes_.size(); }
  /// What was tried, and what it would take; nothing if the number was given, or has not been chosen yet.
  [[nodiscard]] const std::optional<SplitChoice>& choice() const { return choice_; }
  /// The step as it was observed; nothing as above. SplitStep::statistics names what may be statistics over the batch.
  [[nodiscard]] const std::optional<SplitStep>& observed() const { return step_; }

 private:
  static constexpr std::size_t observed_steps = 2;  // the first one may find caches cold

  void check_options() const {
    const auto refuse = [&](const std::string& why) { throw UsageError("split step \"" + name_ + "\": " + why); };
    if (options_.batch == 0) refuse("a batch has at least one sample");
    if (options_.pieces > options_.batch) {
      refuse(std::to_string(options_.pieces) + " pieces of a batch of " + std::to_string(options_.batch) + " samples");
    }
    if (options_.keeps_statistics && options_.pieces != 1) {
      refuse("it keeps statistics over the batch, as batch normalisation does, and they would be those of a piece");
    }
    if (options_.pieces != SplitOptions::choose) return;
    if (options_.batch < 3) refuse("a batch of less than 3 samples has no pieces of two sizes to observe");
    if (options_.observed_samples > options_.batch / 3) {
      refuse("pieces of " + std::to_string(options_.observed_samples) + " samples and of twice as many are more than " +
             "the batch of " + std::to_string(options_.batch));
    }
    if (manager_.scheduler().options().observe == 0) {
      refuse("the number of pieces cannot be chosen, because SchedulerOptions::observe is 0");
    }
  }

  [[nodiscard]] std::string observed_name() const { return name_ + ", observed"; }

  // Small and large ones in turns. What is left at the end may be a piece of another size.
  [[nodiscard]] std::vector<std::uint64_t> observed_sizes() const {
    const std::size_t sixteenth = std::max<std::size_t>(1, options_.batch / 16);
    const std::uint64_t small = options_.observed_samples == 0 ? sixteenth : options_.observed_samples;
    std::vector<std::uint64_t> sizes;
    std::uint64_t left = options_.batch;
    while (left > 0) {
      sizes.push_back(std::min(left, sizes.size() % 2 == 0 ? small : 2 * small));
      left -= sizes.back();
    }
    return sizes;
  }

  template <class Body>
  void run_pieces(const std::vector<std::uint64_t>& sizes, bool observes, std::uint64_t start, Body& body) {
    Piece piece{.number = 0, .pieces = sizes.size(), .first = 0, .samples = 0};
    for (const std::uint64_t samples : sizes) {
      piece.samples = static_cast<std::size_t>(samples);
      const std::uint64_t first = observes ? manager_.report().operations : 0;
      body(std::as_const(piece));
      if (observes) {
        const std::uint64_t behind = manager_.report().operations;
        observed_.push_back(
            {static_cast<std::uint32_t>(first - start), static_cast<std::uint32_t>(behind - first), samples});
      }
      piece.first += piece.samples;
      ++piece.number;
    }
  }

  void choose() {
    const std::optional<Trace> trace = manager_.scheduler().trace(observed_name());
    if (!trace) throw UsageError("split step \"" + name_ + "\": it was not observed, so the number of pieces is open");
    Result<SplitStep> step = split_step(*trace, observed_);
    if (!step) throw UsageError("split step \"" + name_ + "\": " + step.problem().message);
    const PlannerChoice& planner = options_.planner ? *options_.planner : manager_.scheduler().options().planner;
    Result<SplitChoice> choice = choose_pieces(
        *step, options_.batch, manager_.machine(),
        [&](const Trace& whole, const Machine& machine) { return planner.plan(whole, machine); }, options_.choice);
    if (!choice) throw UsageError("split step \"" + name_ + "\": " + choice.problem().message);
    step_ = *std::move(step);
    choice_ = *std::move(choice);
    sizes_ = piece_sizes(options_.batch, choice_->pieces);
  }

  MemoryManager<B>& manager_;
  std::string name_;
  SplitOptions options_;
  std::vector<std::uint64_t> sizes_;     // of each step's pieces; empty: not chosen yet
  std::size_t observed_steps_ = 0;       // steps that were observed
  std::vector<ObservedPiece> observed_;  // of the last one
  std::optional<SplitStep> step_;
  std::optional<SplitChoice> choice_;
};

}  // namespace swapmm
