// SPDX-License-Identifier: Apache-2.0
#pragma once

// One network in less and less memory: all resident, on demand and by a plan, with the same steps, so that the results
// can be compared bit for bit.

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <swapmm/ir/liveness.hpp>
#include <swapmm/ir/profile.hpp>
#include <swapmm/ir/trace.hpp>
#include <swapmm/swapmm.hpp>

#include "bench/gpu/statistics.hpp"

namespace swapmm::bench {

/// Steps of each run. The first ones are observed, find memory untouched and see the plan begin; then pieces are timed,
/// each as a whole: the device need not wait between the steps of a piece.
struct Steps {
  std::size_t first = 5;
  std::size_t pieces = 5;
  std::size_t piece = 3;
  std::size_t first_on_demand = 2;
  std::size_t pieces_on_demand = 3;  ///< of one step each
  static constexpr std::size_t profile = 3;

  [[nodiscard]] std::size_t planned() const { return first + pieces * piece + profile; }
  [[nodiscard]] std::size_t on_demand() const { return first_on_demand + pieces_on_demand + profile; }
};

/// Beside copies: what a plan may use.
enum class Way { copies, recompute, compress };
[[nodiscard]] constexpr const char* contender_of(Way way) {
  if (way == Way::recompute) return "swapmm plan, recompute";
  return way == Way::compress ? "swapmm plan, compress" : "swapmm plan";
}

/// The settings of a network whose forward pass may run again, or not.
template <class Settings>
[[nodiscard]] Settings with_replays(Settings settings, bool again) {
  settings.replayable = again;
  return settings;
}

struct Stall {
  std::string what;
  double ms = 0;
};

/// What was measured at one budget. Times are of one iteration.
struct Record {
  std::string contender;
  double k = 1;
  Bytes memory;
  std::vector<double> iterations_ms{};
  std::vector<double> resident_ms{};  ///< all resident, measured by turns with it
  double compute_ms = 0;              ///< the operations alone, in one recorded iteration
  double idle_ms = 0;                 ///< the device's, in the same
  std::optional<Prediction> predicted{};
  std::size_t replays = 0;      ///< operations that run again
  double replay_ms = 0;         ///< as predicted
  std::size_t encoded = 0;      ///< tensors that are encoded on their way
  std::vector<Stall> stalls{};  ///< the longest, as predicted
  Bytes h2d{};
  Bytes d2h{};
  Bytes pinned{};
  std::optional<bool> identical{};
  std::string note{};                ///< why there are no times
  std::optional<Trace> trace{};      ///< what the first plan was made for
  std::optional<Machine> machine{};  ///< the same
};

/// `Subject` has: Backend; backend(); room(): bytes in which all of it fits; and Run, made from (Subject&,
/// MemoryManager&, bool again), with step(), an iteration "train" whose operations may run `again`, and digest(), which
/// depends on every bit of the results.
template <class Subject>
class Sweep {
 public:
  using Manager = MemoryManager<typename Subject::Backend>;

  /// `sink` gets each record as soon as it is there.
  Sweep(Subject& subject, const Steps& steps, std::vector<Way> ways, std::function<void(const Record&)> sink)
      : subject_(subject),
        steps_(steps),
        ways_(std::move(ways)),
        sink_(std::move(sink)),
        resident_(subject, {.device_budget = subject.room()}, 2) {
    if (steps.on_demand() > steps.planned()) throw std::invalid_argument("more steps on demand than by a plan");
    measure_resident();
  }

  /// The most bytes that live at one time.
  [[nodiscard]] Bytes peak() const { return peak_; }

  /// On demand and by plans of each way, at 1 / k of the peak.
  void run(double k) {
    const Bytes budget{static_cast<std::uint64_t>(static_cast<double>(peak_.value) / k)};
    if (budget < largest_bundle_) {
      cannot_run("swapmm on demand", k, budget);
      for (const Way way : ways_) cannot_run(contender_of(way), k, budget);
      return;
    }
    run_on_demand(k, budget);
    for (const Way way : ways_) run_planned(k, budget, way);
  }

 private:
  struct Session {
    Session(Subject& subject, const Options& options, std::size_t observe, bool again = false)
        : manager(subject.backend(), options, Scheduler({.observe = observe, .trial_iterations = 0})),
          run(subject, manager, again) {}

    void steps(std::size_t count) {
      for (std::size_t i = 0; i < count; ++i) run.step();
      manager.synchronize();
    }
    [[nodiscard]] double timed(std::size_t count) {
      const auto start = std::chrono::steady_clock::now();
      steps(count);
      return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count() /
             static_cast<double>(count);
    }

    Manager manager;
    typename Subject::Run run;
  };

  void cannot_run(const char* contender, double k, Bytes budget) {
    Record record{contender, k, budget};
    record.note = "the largest bundle has " + std::to_string(largest_bundle_.value) + " bytes";
    sink_(record);
  }

  static double milliseconds(std::chrono::nanoseconds time) { return static_cast<double>(time.count()) / 1e6; }

  // The second of three recorded iterations.
  static void profile(Session& session, Record& record) {
    session.manager.start_profile();
    session.steps(Steps::profile);
    const Profile profile = one_iteration(session.manager.stop_profile(), 1);
    std::chrono::nanoseconds compute{0};
    for (const ProfileSpan& span : profile.spans) {
      if (span.lane == Lane::compute) compute += span.end - span.start;
    }
    record.compute_ms = milliseconds(compute);
    record.idle_ms = milliseconds(idle_time(profile));
  }

  void measure_resident() {
    Record record{"all-resident", 1, Bytes{}};
    resident_.steps(steps_.first_on_demand);
    const auto trace = resident_.manager.scheduler().trace("train");
    if (!trace) throw std::logic_error("no iteration \"train\" was observed");
    const Liveness live = analyze_liveness(*trace, resident_.manager.machine().alignment);
    peak_ = live.peak;
    largest_bundle_ = live.largest_bundle;
    record.memory = peak_;
    resident_.steps(steps_.on_demand() - steps_.first_on_demand);
    digest_on_demand_ = resident_.run.digest();
    resident_.steps(steps_.planned() - steps_.on_demand());
    digest_planned_ = resident_.run.digest();
    resident_.steps(2);  // back to the plan
    const Report before = resident_.manager.report();
    for (std::size_t piece = 0; piece < steps_.pieces; ++piece) {
      record.iterations_ms.push_back(resident_.timed(steps_.piece));
    }
    count(before, resident_.manager.report(), steps_.pieces * steps_.piece, record);
    profile(resident_, record);
    record.identical = true;
    sink_(record);
  }

  static void count(const Report& before, const Report& after, std::size_t steps, Record& record) {
    record.h2d = Bytes{(after.h2d - before.h2d).value / steps};
    record.d2h = Bytes{(after.d2h - before.d2h).value / steps};
    record.pinned = after.pinned_used;
  }

  void run_on_demand(double k, Bytes budget) {
    Session session(subject_, {.device_budget = budget}, 0);
    Record record{"swapmm on demand", k, budget};
    session.steps(steps_.first_on_demand);
    measure(session, steps_.pieces_on_demand, 1, record);
    record.identical = session.run.digest() == digest_on_demand_;
    sink_(record);
  }

  void run_planned(double k, Bytes budget, Way way) {
    Options options{.device_budget = budget};
    if (way == Way::compress) options.codec_staging = Bytes{budget.value / 10};
    Session session(subject_, options, 2, way == Way::recompute);
    Record record{contender_of(way), k, budget};
    session.steps(steps_.first);
    const std::uint64_t followed = session.manager.report().iterations_followed;
    measure(session, steps_.pieces, steps_.piece, record);
    const Report report = session.manager.report();
    if (report.iterations_followed < followed + steps_.pieces * steps_.piece) {
      record.note = "the plan was not followed" + (report.notes.empty() ? std::string() : ": " + report.notes.back());
    }
    for (const PlanSummary& plan : report.plans) {
      if (plan.iteration != "train") continue;
      record.predicted = plan.predicted;
      record.replays = plan.replays;
      record.replay_ms = milliseconds(plan.replay_time);
      record.encoded = plan.encoded;
      for (const StallSummary& stall : plan.stalls) record.stalls.push_back({stall.what, milliseconds(stall.time)});
      break;
    }
    record.identical = session.run.digest() == digest_planned_;
    if (way == ways_.front()) {
      record.trace = session.manager.scheduler().trace("train");
      record.machine = session.manager.machine();
    }
    sink_(record);
    if (record.predicted && way == Way::copies) {
      Record floor{"floor", k, budget};
      floor.iterations_ms = {milliseconds(record.predicted->lower_bound)};
      sink_(floor);
    }
  }

  void measure(Session& session, std::size_t pieces, std::size_t piece, Record& record) {
    const Report before = session.manager.report();
    for (std::size_t i = 0; i < pieces; ++i) {
      record.iterations_ms.push_back(session.timed(piece));
      record.resident_ms.push_back(resident_.timed(piece));
    }
    count(before, session.manager.report(), pieces * piece, record);
    profile(session, record);
  }

  Subject& subject_;
  Steps steps_;
  std::vector<Way> ways_;
  std::function<void(const Record&)> sink_;
  Session resident_;
  Bytes peak_{};
  Bytes largest_bundle_{};
  std::uint64_t digest_on_demand_ = 0;  // after as many steps
  std::uint64_t digest_planned_ = 0;
};

}  // namespace swapmm::bench
