// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/simulator.hpp>

#include <algorithm>
#include <utility>

#include <swapmm/plan/dataflow.hpp>

namespace swapmm {
namespace {

using simulation::Dataflow;
using std::chrono::nanoseconds;

constexpr std::size_t most_iterations = 1000;

/// So many iterations, the last ones run, take `time` and then repeat themselves.
struct Period {
  std::size_t iterations = 1;
  std::int64_t time = 0;
  bool exact = true;
};

// Brent's cycle detection: the state that the others are compared with moves on at powers of two, so that one state
// is kept and the first that equals it is a whole period away.
Period run_until_periodic(Dataflow& flow) {
  std::vector<std::int64_t> kept;
  std::vector<std::int64_t> state;
  std::vector<std::int64_t> ends{0};
  std::size_t kept_at = 0;
  for (std::size_t iteration = 1; iteration <= most_iterations; ++iteration) {
    flow.advance();
    ends.push_back(flow.iteration_end());
    flow.carried(state);
    if (iteration > 1 && state == kept) return {iteration - kept_at, ends[iteration] - ends[kept_at]};
    if ((iteration & (iteration - 1)) == 0) {
      std::swap(kept, state);
      kept_at = iteration;
    }
  }
  // Copies that run ever further ahead of the operations, or behind them, never repeat: what is left is the mean.
  constexpr std::size_t half = most_iterations / 2;
  return {half, ends[most_iterations] - ends[half], false};
}

Bytes rounded_size(const Trace& trace, const Plan& plan, TensorId id) {
  return round_up(trace.tensors[index(id)].bytes, plan.machine.alignment);
}

/// What is occupied over the time of a period, as a circle: commands may reach into the periods beside it.
class OccupationCircle {
 public:
  OccupationCircle(const Trace& trace, const Plan& plan, std::int64_t origin, std::int64_t time)
      : trace_(trace), plan_(plan), origin_(origin), time_(time) {
    for (const Resident& resident : plan.initial) at_origin_ += rounded_size(trace, plan, resident.tensor);
  }

  /// The iteration that the dataflow ran last.
  void add_iteration(const Dataflow& flow) {
    changes_.reserve(changes_.size() + plan_.commands.size());
    for (std::size_t j = 0; j < plan_.commands.size(); ++j) {
      const Command& command = plan_.commands[j];
      if (command.kind == CommandKind::swap_out) continue;
      const Bytes size = rounded_size(trace_, plan_, command.tensor);
      // Sums wrap below zero in between, by the rules of unsigned arithmetic.
      add(flow.start(flow.command_step(j)) - origin_, command.kind == CommandKind::release ? Bytes{0} - size : size);
    }
  }

  [[nodiscard]] Bytes peak() && {
    std::sort(changes_.begin(), changes_.end(), [](const Change& a, const Change& b) { return a.time < b.time; });
    Bytes occupied = at_origin_;
    Bytes peak = changes_.empty() || changes_.front().time > 0 ? occupied : Bytes{0};
    for (std::size_t i = 0; i < changes_.size(); ++i) {
      occupied += changes_[i].bytes;
      // Occupation is half-open: what counts is what is left once all that happens at one time has happened.
      if (i + 1 == changes_.size() || changes_[i + 1].time != changes_[i].time) peak = std::max(peak, occupied);
    }
    return peak;
  }

 private:
  struct Change {
    std::int64_t time;
    Bytes bytes;
  };

  void add(std::int64_t time, Bytes bytes) {
    if (time_ > 0) {
      std::int64_t turns = time / time_;
      time %= time_;
      if (time < 0) {
        time += time_;
        --turns;
      }
      // What runs some turns early has happened as often before the origin; what is late has not yet.
      at_origin_ -= Bytes{bytes.value * static_cast<std::uint64_t>(turns)};
    }
    changes_.push_back({time, bytes});
  }

  const Trace& trace_;
  const Plan& plan_;
  std::int64_t origin_;
  std::int64_t time_;
  Bytes at_origin_;
  std::vector<Change> changes_;
};

/// Runs one more period if it is longer than the iteration that was run last.
Bytes peak_of(const Trace& trace, const Plan& plan, Dataflow& flow, const Period& period) {
  const bool one = period.iterations == 1 || !period.exact;
  const std::int64_t origin = one ? flow.iteration_end_before() : flow.iteration_end();
  const std::int64_t time = one ? flow.iteration_end() - origin : period.time;
  OccupationCircle circle(trace, plan, origin, time);
  if (one) circle.add_iteration(flow);
  for (std::size_t i = 0; !one && i < period.iterations; ++i) {
    flow.advance();
    circle.add_iteration(flow);
  }
  return std::move(circle).peak();
}

}  // namespace

Simulation simulate(const Trace& trace, const Plan& plan) {
  Dataflow flow(trace, plan);
  const Period period = run_until_periodic(flow);
  const auto iterations = static_cast<std::int64_t>(period.iterations);

  Simulation result;
  result.iteration = nanoseconds{(period.time + iterations / 2) / iterations};
  for (const TraceOperation& operation : trace.operations) result.compute += operation.duration;
  for (const Command& command : plan.commands) {
    if (command.kind == CommandKind::swap_in) result.h2d += trace.tensors[index(command.tensor)].bytes;
    if (command.kind == CommandKind::swap_out) result.d2h += trace.tensors[index(command.tensor)].bytes;
  }
  result.peak = peak_of(trace, plan, flow, period);

  const std::int64_t origin = flow.iteration_end_before();
  const auto span = [&](std::size_t step) {
    return Span{nanoseconds{flow.start(step) - origin}, nanoseconds{flow.end(step) - origin}};
  };
  result.operations.reserve(trace.operations.size());
  result.commands.reserve(plan.commands.size());
  for (std::size_t i = 0; i < trace.operations.size(); ++i) result.operations.push_back(span(i));
  for (std::size_t j = 0; j < plan.commands.size(); ++j) result.commands.push_back(span(flow.command_step(j)));
  return result;
}

std::vector<nanoseconds> iteration_ends(const Trace& trace, const Plan& plan, std::size_t iterations) {
  Dataflow flow(trace, plan);
  std::vector<nanoseconds> ends;
  ends.reserve(iterations);
  for (std::size_t i = 0; i < iterations; ++i) {
    flow.advance();
    ends.push_back(nanoseconds{flow.iteration_end()});
  }
  return ends;
}

}  // namespace swapmm
