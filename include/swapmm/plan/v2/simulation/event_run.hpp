// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include <swapmm/base/bytes.hpp>
#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/v2/plan.hpp>
#include <swapmm/plan/v2/simulation/elements.hpp>
#include <swapmm/plan/v2/simulation/flows.hpp>
#include <swapmm/plan/v2/simulation/occupation.hpp>
#include <swapmm/plan/v2/simulation/parts.hpp>
#include <swapmm/plan/v2/simulation/waits.hpp>

namespace swapmm::v2::simulation {

/// What the future of a run depends on, relative to the number of iterations that have ended, and to the time. Equal
/// states have equal futures.
struct RunState {
  struct Active {
    std::uint32_t element;
    bool flows;
    Work left;  ///< nanoseconds on the engine, or of the latency; work if it flows

    friend bool operator==(const Active&, const Active&) = default;
  };

  std::vector<std::int64_t> ahead;  ///< of each element of interest: its ends, minus those of iterations
  std::vector<Active> active;       ///< what is under way, by element

  friend bool operator==(const RunState&, const RunState&) = default;
};

/// One run of an element.
struct ElementRun {
  std::uint32_t element = 0;
  std::size_t iteration = 0;
  Time start = 0;
  std::optional<Time> end;  ///< none: it is under way
};

/// Everything that happens, from some time on.
struct RunLog {
  /// Bytes that are taken in a memory, or given back.
  struct Change {
    Time time = 0;
    MemoryId memory{};
    Bytes bytes;
  };

  std::vector<ElementRun> ended;  ///< by end
  std::vector<Change> changes;    ///< by time
};

/// Runs the elements of a plan by the timing rules of docs/formats.md, iteration after iteration, from one time at
/// which something happens to the next.
///
/// Each element runs once in each iteration, one iteration after the other. (On an engine that is the engine's order,
/// and places are taken and given back in turns.) So two numbers for each element say how far it has come, and an
/// element starts when none of its waits is missing.
///
/// An element may run ahead of the iterations that have ended by 1,000 at most. Only what nothing waits for comes so
/// far, such as copies of a tensor that no operation uses. Without a limit there could be any number of them at one
/// time.
class EventRun {
 public:
  /// The plan must be valid for the trace. Keeps references to both.
  EventRun(const Trace& trace, const Plan& plan, const Parts& parts, const std::vector<Element>& elements);

  /// Lets everything happen that happens at one time: at time 0 in the first call, then at the next time at which
  /// anything happens. But when so many iterations have ended in total, nothing starts any more, and the next call goes
  /// on at the same time. Returns false, and does nothing, if nothing can happen any more, or only after an iteration
  /// has taken longer than longest_iteration.
  bool step(std::size_t most_iterations);

  /// The ends of the iterations that have ended. An iteration ends when all its operations have ended.
  [[nodiscard]] const std::vector<Time>& iteration_ends() const { return iteration_ends_; }
  /// False if step() stopped before everything at its time had happened.
  [[nodiscard]] bool settled() const { return settled_; }
  /// The elements whose state is of interest.
  enum class Which : std::uint8_t {
    all,
    deciding,  ///< those that can have an effect on when iterations end
  };
  /// The state after everything at this time has happened.
  void capture(RunState& state, Which which) const;
  /// Whether all elements are deciding ones.
  [[nodiscard]] bool all_decide() const { return all_decide_; }

  [[nodiscard]] Occupation& occupation() { return occupation_; }

  [[nodiscard]] const Waits& waits() const { return waits_; }

  /// From now on, what happens is added to the log; nullptr: to none.
  void log_to(RunLog* log) { log_ = log; }
  /// The runs that are under way, by element.
  [[nodiscard]] std::vector<ElementRun> under_way() const;

  /// An iteration that no element has started yet, and none before it.
  [[nodiscard]] std::size_t next_new_iteration() const;
  /// From now on, times after that iteration are not recorded. No element may have ended it.
  void record_up_to(std::size_t iteration);
  /// Whether each element has ended the iteration of record_up_to().
  [[nodiscard]] bool recorded_all() const { return unrecorded_ == 0; }
  /// When an element ran last.
  struct Record {
    std::size_t iterations = 0;  ///< the number of iterations up to that one; 0: it has never ended
    Time start = 0;
    Time end = 0;
  };
  /// The record of each element, up to the iteration of record_up_to().
  [[nodiscard]] const std::vector<Record>& records() const { return records_; }

 private:
  struct TimedEnd {
    Time time;
    std::uint32_t element;
  };
  struct Progress {
    std::uint64_t started = 0;
    std::uint64_t ended = 0;
    std::uint32_t missing = 0;  // waits of the next iteration that have not ended
    Time start = 0;             // of the last iteration that has started
  };

  [[nodiscard]] std::uint32_t count_missing(std::uint32_t element) const;
  bool go_to_next_time();
  void make_ready(std::uint32_t element);
  void start(std::uint32_t element);
  void end_engine_time(std::uint32_t element);
  void end(std::uint32_t element);
  void end_iteration();

  const std::vector<Element>& elements_;
  Waits waits_;
  std::uint32_t iteration_end_;  // the last element
  std::vector<bool> decides_;
  bool all_decide_;
  Flows flows_;
  Occupation occupation_;

  Time now_ = 0;
  bool settled_ = false;
  std::vector<Progress> progress_;
  std::vector<std::uint32_t> ready_;   // can start now
  std::vector<std::uint32_t> held_;    // too far ahead; can start when the next iteration has ended
  std::vector<TimedEnd> timed_;        // heap, the earliest first
  std::vector<std::uint32_t> flowed_;  // scratch memory
  std::vector<Time> iteration_ends_;

  RunLog* log_ = nullptr;
  std::vector<Record> records_;
  std::size_t record_up_to_ = std::numeric_limits<std::size_t>::max();
  std::size_t unrecorded_ = 0;
};

}  // namespace swapmm::v2::simulation
