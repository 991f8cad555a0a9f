// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cctype>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <swapmm/ir/liveness.hpp>
#include <swapmm/plan/simulate.hpp>
#include <swapmm/plan/v2/validate.hpp>
#include <swapmm/plan/v2/ways.hpp>
#include <swapmm/plan/ways.hpp>

#include "parts.hpp"

namespace swapmm::bench {
namespace {

constexpr double shares[] = {0.5, 0.35, 0.2, 0.1};
constexpr double gigabytes_per_second[] = {6, 12, 25, 55};

bool name_has(const TraceOperation& operation, const std::string& part) {
  std::string name = operation.name;
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return name.find(part) != std::string::npos;
}

std::chrono::nanoseconds time_at(Bytes bytes, double gigabytes) {
  return std::chrono::nanoseconds{std::llround(static_cast<double>(bytes.value) / gigabytes)};
}

/// What a rectifier makes or changes in place, values or their gradients: half zeros, in the form of the zero codec for
/// numbers of 4 bytes. Encoding and decoding take what they take on an H100 (docs/measurements.md), times the ratio of
/// its memory's bandwidth to that of the A100 from which the durations are.
void add_zero_forms(Trace& trace) {
  constexpr double density = 0.5;
  constexpr double encoded_gigabytes = 660 * 1.555 / 3.35;
  constexpr double decoded_gigabytes = 1060 * 1.555 / 3.35;
  std::vector<bool> has_zeros(trace.tensors.size());
  for (const TraceOperation& operation : trace.operations) {
    if (!name_has(operation, "relu")) continue;
    for (const auto* const made : {&operation.writes, &operation.updates}) {
      for (const TensorId tensor : *made) has_zeros[index(tensor)] = true;
    }
  }
  for (std::size_t t = 0; t < trace.tensors.size(); ++t) {
    if (!has_zeros[t]) continue;
    const Bytes bytes = trace.tensors[t].bytes;
    const std::uint64_t mask = bytes.value / 32 + 64;
    const Bytes expected{static_cast<std::uint64_t>(static_cast<double>(bytes.value) * density) + mask};
    trace.forms.push_back({id_at<TensorId>(t), "zero", bytes + Bytes{mask}, expected, time_at(bytes, encoded_gigabytes),
                           time_at(bytes, decoded_gigabytes)});
  }
}

/// The trace with all that other ways need: what updates nothing may run again, but for random operations; what a
/// rectifier makes may be encoded; all operations work in pieces.
Trace with_all_ways(Trace trace) {
  for (TraceOperation& operation : trace.operations) {
    const bool is_random = name_has(operation, "dropout") || name_has(operation, "rand");
    operation.replayable = operation.updates.empty() && !is_random;
    operation.in_pieces = true;
  }
  add_zero_forms(trace);
  return trace;
}

struct WaysCase {
  std::string name;
  Trace trace;
  double share = 0;
  double bandwidth = 0;
};

const std::string& name_of(const WaysCase& one) { return one.name; }

std::vector<WaysCase> cases_of(const Settings& settings) {
  std::vector<WaysCase> all;
  for (const std::string& name : settings.traces) {
    const Trace trace = load_trace(name);
    for (const double share : shares) {
      for (const double bandwidth : gigabytes_per_second) all.push_back({trace.name, trace, share, bandwidth});
    }
  }
  return chosen_of(all, settings);
}

/// A plan with some ways, in parts of the computation's time.
struct WaysResult {
  double time = 0;
  double bound = 0;
  std::size_t again = 0;     ///< operations that run again
  double again_time = 0;     ///< of them
  std::size_t encoded = 0;   ///< values that are encoded on their way
  std::size_t divided = 0;   ///< tensors in pieces
  std::uint64_t copied = 0;  ///< bytes, both ways
};

class WaysMeasuring {
 public:
  WaysMeasuring(const WaysCase& one, double limit)
      : trace_(with_all_ways(one.trace)),
        machine_(machine_with(
            std::max(part_of(peak_of(one.trace), one.share), analyze_liveness(one.trace, Bytes{256}).largest_bundle),
            one.bandwidth * 1e9)),
        limit_(limit) {
    for (const TraceOperation& operation : trace_.operations) {
      compute_ += static_cast<double>(operation.duration.count());
    }
  }

  [[nodiscard]] std::optional<WaysResult> plan(const Ways& ways) { return plan_on(machine_, ways); }

  /// On a link that is so slow that whatever can stay away from it does. Nothing where more than inputs and what the
  /// host reads must be copied.
  [[nodiscard]] std::optional<WaysResult> plan_without_copies() {
    Machine slow = machine_;
    slow.h2d.bytes_per_second = slow.d2h.bytes_per_second = 1'000'000;
    std::optional<WaysResult> found = plan_on(slow, {.recompute = true, .compress = false, .pieces = false});
    if (found && found->copied > needed_copies()) return std::nullopt;
    return found;
  }

  [[nodiscard]] const std::string& problem() const { return problem_; }

 private:
  std::optional<WaysResult> plan_on(const Machine& machine, const Ways& ways) {
    PlanningOptions options = within(limit_);
    options.ways = ways;
    const Result<PlanWithWays> made = plan_with_ways(trace_, machine, options);
    const Result<v2::Plan> plan = made ? v2::from_ways(trace_, *made) : Result<v2::Plan>(made.problem());
    if (!plan || !v2::validate(trace_, *plan).empty()) {
      problem_ = plan ? "a plan that breaks a rule" : plan.problem().message;
      return std::nullopt;
    }
    const Prediction& predicted = made->plan.predicted;
    WaysResult result;
    result.time = static_cast<double>(time_here(*made).count()) / compute_;
    result.bound = static_cast<double>(predicted.lower_bound.count()) / compute_;
    result.again = made->ways.replays.size();
    for (const Replay& replay : made->ways.replays) {
      result.again_time += static_cast<double>(trace_.operations[index(replay.operation)].duration.count()) / compute_;
    }
    result.encoded = made->ways.codings.size();
    result.divided = made->ways.pieces.size();
    result.copied = predicted.h2d.value + predicted.d2h.value;
    return result;
  }

  /// The plan may be for slower links.
  [[nodiscard]] std::chrono::nanoseconds time_here(const PlanWithWays& made) const {
    if (made.plan.machine == machine_) return made.plan.predicted.iteration;
    const Result<WrittenTrace> written = with_ways(trace_, made.ways);
    if (!written) throw std::runtime_error(written.problem().message);
    Plan here = made.plan;
    here.machine = machine_;
    return simulate(written->trace, here).iteration;
  }

  [[nodiscard]] std::uint64_t needed_copies() const {
    std::uint64_t bytes = 0;
    for (const TraceTensor& tensor : trace_.tensors) {
      if (tensor.kind == TensorKind::input) bytes += tensor.bytes.value;
    }
    for (const HostRead& read : trace_.host_reads) bytes += trace_.tensors[index(read.tensor)].bytes.value;
    return bytes;
  }

  Trace trace_;
  Machine machine_;
  double limit_;
  double compute_ = 0;
  std::string problem_;
};

/// Sums over all instances.
struct WaysSums {
  Ratios gain_of_replays;
  Ratios gain_of_all;
  Ratios all_over_best;
  Ratios all_over_bound;
  std::size_t worse = 0;  ///< all ways, than some of them, by more than a thousandth

  void add(const WaysResult& copies, const WaysResult& mixed, const WaysResult& all, double least) {
    gain_of_replays.add(mixed.time / copies.time);
    gain_of_all.add(all.time / copies.time);
    all_over_best.add(all.time / least);
    all_over_bound.add(all.time / all.bound);
    constexpr double thousandth = 1.001;
    if (all.time > thousandth * least) ++worse;
  }

  void tell(std::vector<std::string>& lines) const {
    if (all_over_bound.count == 0) return;
    lines.push_back(summary_of("swap and recompute / swap", gain_of_replays));
    lines.push_back(summary_of("all ways / swap", gain_of_all));
    lines.push_back(summary_of("all ways / the best of the others", all_over_best));
    lines.push_back(summary_of("all ways / their bound", all_over_bound));
    lines.push_back("all ways slower than some of them by more than a thousandth: " + std::to_string(worse) + " of " +
                    std::to_string(all_over_bound.count));
  }
};

}  // namespace

Report run_ways(const Settings& settings) {
  Report report;
  report.rows.title = "Ways back: time / computation";
  report.rows.columns = {"trace",     "budget / peak", "GB/s",  "swap",        "bound of swap", "recompute",
                         "both",      "all",           "bound", "all / least", "run again",     "of the computation %",
                         "encodings", "divided"};
  const std::vector<WaysCase> chosen = cases_of(settings);
  Progress progress("ways", chosen.size(), settings.quiet);
  WaysSums sums;
  std::string of_alone;  // the instance that `alone` is of: without copies the link hardly matters
  std::optional<WaysResult> alone;
  for (const WaysCase& one : chosen) {
    progress.step(one.name);
    WaysMeasuring measuring(one, settings.limit_or(10));
    const auto copies = measuring.plan({.recompute = false, .compress = false, .pieces = false});
    const auto mixed = measuring.plan({.recompute = true, .compress = false, .pieces = false});
    const auto all = measuring.plan({});
    if (!copies || !mixed || !all) {
      report.lines.push_back(one.name + ": " + measuring.problem());
      report.is_sound = false;
      continue;
    }
    if (const std::string key = one.name + fixed(one.share, 2); key != of_alone) {
      alone = measuring.plan_without_copies();
      of_alone = key;
    }
    double least = std::min(copies->time, mixed->time);
    if (alone) least = std::min(least, alone->time);
    if (all->bound > std::min(all->time, least)) report.is_sound = false;
    sums.add(*copies, *mixed, *all, least);
    report.rows.rows.push_back({one.name, fixed(one.share, 2), fixed(one.bandwidth, 0), fixed(copies->time, 3),
                                fixed(copies->bound, 3), alone ? fixed(alone->time, 3) : "", fixed(mixed->time, 3),
                                fixed(all->time, 3), fixed(all->bound, 3), fixed(all->time / least, 3),
                                std::to_string(all->again), fixed(100 * all->again_time, 1),
                                std::to_string(all->encoded), std::to_string(all->divided)});
  }
  sums.tell(report.lines);
  return report;
}

}  // namespace swapmm::bench
