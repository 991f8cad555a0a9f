// SPDX-License-Identifier: Apache-2.0
#pragma once

// A loop whose iterations can be captured, on a device that notes what is asked of it meanwhile.

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <swapmm/swapmm.hpp>

#include "support/numbers.hpp"
#include "support/replaying_backend.hpp"

namespace swapmm::test {

struct HostAccessSeen {
  Bytes offset;
  Bytes size;
  bool write;
  friend bool operator==(const HostAccessSeen&, const HostAccessSeen&) = default;
};

/// A ReplayingBackend that notes what is asked of it while it captures, and can be lost at the end of a capture.
class WatchedCaptures : public ReplayingBackend {
 public:
  struct Seen {
    std::size_t queries = 0;
    std::size_t switches_of_timing = 0;
    std::size_t switches_outside = 0;  // of a capture
    bool lost_at_end = false;
    bool next_record_fails = false;
    std::vector<HostAccessSeen> host_accesses;
  };
  [[nodiscard]] Seen& seen() { return *seen_; }

  using ReplayingBackend::wait;
  void record(QueueKind queue, Event& event) {
    if (std::exchange(seen_->next_record_fails, false)) {
      throw BackendError(BackendError::Kind::failed, 904, "not recorded");
    }
    ReplayingBackend::record(queue, event);
  }
  [[nodiscard]] EventStatus status(const Event& event) {
    if (capturing()) ++seen_->queries;
    return ReplayingBackend::status(event);
  }
  void set_timing(bool) { ++(capturing() ? seen_->switches_of_timing : seen_->switches_outside); }
  [[nodiscard]] Graph end_capture() {
    Graph graph = ReplayingBackend::end_capture();
    if (seen_->lost_at_end) throw BackendError(BackendError::Kind::device_lost, 903, "the device is gone");
    return graph;
  }
  void note_host_access(const HostMemory&, Bytes offset, Bytes size, bool write) {
    seen_->host_accesses.push_back({offset, size, write});
  }
  /// Whether all that was queued has ended.
  [[nodiscard]] bool idle() {
    Event now = make_event();
    record(QueueKind::compute, now);
    return ReplayingBackend::status(now) == EventStatus::complete;
  }

 private:
  std::shared_ptr<Seen> seen_ = std::make_shared<Seen>();
};
static_assert(CapturingBackend<WatchedCaptures>);

using WatchedTensor = Tensor<Number, WatchedCaptures>;

inline constexpr std::size_t row_length = 16;
inline constexpr Bytes row_bytes{row_length * sizeof(Number)};
inline constexpr std::size_t row_count = 4;
inline constexpr std::size_t rows_that_all_fit = 10;

/// A loop that reads an input, makes a temporary, uses a work area and changes some rows; and its model.
struct WatchedLoop {
  explicit WatchedLoop(std::size_t room, std::size_t period_ = 1)
      : period(period_),
        manager(device, {.device_budget = Bytes{room * row_bytes.value}}, Scheduler({.trial_iterations = 4})),
        input(manager.tensor<Number>({row_length}, "input")) {
    manager.run("give", writes(input), [&](auto& op) {
      op.queue().launch([out = op[input].span()] {
        for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<Number>(i) + 5U;
      });
    });
    for (std::size_t i = 0; i < row_count; ++i) {
      rows.push_back(manager.tensor<Number>({row_length}, "row" + std::to_string(i)));
      expected.push_back(numbers(row_length, static_cast<Number>(i)));
      rows.back().upload(expected.back());
    }
  }

  void grow_row(const WatchedTensor& by, const WatchedTensor& to) {
    manager.run("grow", reads(by), updates(to), [&](auto& op) {
      op.queue().launch([from = op[by].span(), into = op[to].span()] {
        for (std::size_t i = 0; i < into.size(); ++i) into[i] = 7U * into[i] + from[i];
      });
    });
  }
  void body() {
    manager.run("warm up", scratch(row_bytes), [](auto&) {});
    {
      const auto temporary = manager.tensor<Number>({row_length}, "temporary", transient);
      manager.run("make", reads(input), writes(temporary), [&](auto& op) {
        op.queue().launch([from = op[input].span(), out = op[temporary].span()] {
          for (std::size_t i = 0; i < out.size(); ++i) out[i] = from[i] + 1U;
        });
      });
      grow_row(temporary, rows[0]);
    }
    for (std::size_t i = 0; i + 1 < row_count; ++i) grow_row(rows[i], rows[i + 1]);
    if (period == 2) std::swap(rows[1], rows[2]);
  }
  void model(std::size_t changes = row_count) {
    Numbers made = input_value();
    for (Number& number : made) ++number;
    for (std::size_t i = 0; i < changes; ++i) grow(i == 0 ? made : expected[i - 1], expected[i]);
    if (period == 2) std::swap(expected[1], expected[2]);
  }
  void iterate(std::size_t times = 1) {
    for (std::size_t i = 0; i < times; ++i) {
      {
        const auto iteration = manager.iteration("loop");
        body();
      }
      model();
    }
  }
  /// Rounds, until a plan is followed and one of its rounds can begin.
  void settle() {
    iterate(10);
    while (!state().executor.at_start()) iterate();
    REQUIRE(state().executor.active());
  }
  [[nodiscard]] CapturedIteration<WatchedCaptures> capture() {
    auto captured = manager.capture("loop", [&] { body(); });
    for (std::size_t i = 0; i < period; ++i) model();
    return captured;
  }
  void launch(CapturedIteration<WatchedCaptures>& captured) {
    captured.launch();
    for (std::size_t i = 0; i < period; ++i) model();
  }
  [[nodiscard]] const runtime::SessionState<WatchedCaptures>& state() { return *core().session_state(); }
  [[nodiscard]] runtime::Core<WatchedCaptures>& core() { return *input.ref().core; }
  [[nodiscard]] static Numbers input_value() {
    Numbers value(row_length);
    for (std::size_t i = 0; i < row_length; ++i) value[i] = static_cast<Number>(i) + 5U;
    return value;
  }
  void check_rows() {
    for (std::size_t i = 0; i < row_count; ++i) CHECK(rows[i].download() == expected[i]);
  }
  /// What a launch that is refused says.
  [[nodiscard]] static std::string refusal(CapturedIteration<WatchedCaptures>& captured) {
    try {
      captured.launch();
    } catch (const UsageError& error) {
      return error.what();
    }
    return "nothing";
  }
  /// What a capture that is refused says.
  [[nodiscard]] std::string refusal_to_capture(const std::string& name = "loop") {
    try {
      (void)manager.capture(name, [] { FAIL_CHECK("the body of a refused capture ran"); });
    } catch (const UsageError& error) {
      return error.what();
    }
    return "nothing";
  }

  std::size_t period;
  WatchedCaptures device;
  MemoryManager<WatchedCaptures> manager;
  WatchedTensor input;
  std::vector<WatchedTensor> rows;
  std::vector<Numbers> expected;
};

/// What a report counts that grows with each iteration.
inline std::vector<std::uint64_t> counts_of(const Report& report) {
  return {report.operations,  report.swap_ins,
          report.swap_outs,   report.h2d.value,
          report.d2h.value,   report.iterations_followed,
          report.divergences, report.iterations_on_demand,
          report.plan_starts};
}
template <class Call>
std::vector<std::uint64_t> growth(WatchedLoop& loop, Call&& call) {
  std::vector<std::uint64_t> before = counts_of(loop.manager.report());
  call();
  std::vector<std::uint64_t> after = counts_of(loop.manager.report());
  for (std::size_t i = 0; i < after.size(); ++i) after[i] -= before[i];
  return after;
}

}  // namespace swapmm::test
