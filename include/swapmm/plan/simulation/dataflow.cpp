// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/simulation/dataflow.hpp>

#include <algorithm>
#include <array>
#include <cassert>
#include <limits>
#include <utility>

namespace swapmm {
namespace simulation {
namespace {

constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();
constexpr std::int64_t end_of_time = Dataflow::end_of_time;
/// A time far from the beginning of the clock: 52 days. Real programs do not reach it.
constexpr std::int64_t far = std::int64_t{1} << 52;

std::int64_t time_of_copy(const Link& link, Bytes bytes) {
  __extension__ using Wide = unsigned __int128;
  constexpr std::uint64_t nanoseconds_per_second = 1'000'000'000;
  const Wide scaled = static_cast<Wide>(bytes.value) * nanoseconds_per_second;
  const Wide time = scaled / link.bytes_per_second + (scaled % link.bytes_per_second != 0 ? 1U : 0U) +
                    static_cast<Wide>(link.latency.count());
  return time < static_cast<Wide>(end_of_time) ? static_cast<std::int64_t>(time) : end_of_time;
}

std::int64_t duration(const Command& command, const Trace& trace, const Machine& machine) {
  const Bytes bytes = copied_bytes(trace.tensors[index(command.tensor)]);
  if (command.kind == CommandKind::swap_in) return time_of_copy(machine.h2d, bytes);
  if (command.kind == CommandKind::swap_out) return time_of_copy(machine.d2h, bytes);
  return 0;
}

struct Edge {
  std::uint32_t waiting;
  std::uint32_t waited;
  bool back;  // waits for the iteration before
};

/// All waits: those of the plan, and those that the order of each engine implies.
std::vector<Edge> collect_edges(const Plan& plan, std::uint32_t n) {
  std::vector<Edge> edges;
  std::size_t waits = n + 2 * plan.commands.size() + 2;
  for (const Command& command : plan.commands) waits += command.after.size();
  edges.reserve(waits);
  for (std::uint32_t i = 0; i < n; ++i) edges.push_back({i, i > 0 ? i - 1 : n - 1, i == 0});

  std::array<std::uint32_t, 2> first{none, none};
  std::array<std::uint32_t, 2> last{none, none};
  for (std::uint32_t j = 0; j < plan.commands.size(); ++j) {
    const Command& command = plan.commands[j];
    const std::uint32_t step = n + j;
    if (command.kind == CommandKind::swap_in || command.kind == CommandKind::swap_out) {
      const std::size_t engine = command.kind == CommandKind::swap_in || plan.machine.duplex == Duplex::half ? 0 : 1;
      if (last[engine] != none) edges.push_back({step, last[engine], false});
      if (first[engine] == none) first[engine] = step;
      last[engine] = step;
    }
    for (const Wait& wait : command.after) {
      if (wait.on == Wait::On::command) {
        edges.push_back({step, n + static_cast<std::uint32_t>(wait.index), wait.previous});
      } else {
        const bool back = wait.index < 0;
        edges.push_back({step, static_cast<std::uint32_t>(wait.index) + (back ? n : 0), back});
      }
    }
    if (command.before_operation) {
      edges.push_back({*command.before_operation % n, step, *command.before_operation >= n});
    }
  }
  for (std::size_t engine = 0; engine < first.size(); ++engine) {
    if (first[engine] != none) edges.push_back({first[engine], last[engine], true});
  }
  return edges;
}

}  // namespace
}  // namespace simulation

StepTimes step_times(const Trace& trace, const Plan& plan) {
  StepTimes times;
  times.operations.reserve(trace.operations.size());
  times.commands.reserve(plan.commands.size());
  for (const TraceOperation& operation : trace.operations) times.operations.push_back(operation.duration);
  for (const Command& command : plan.commands) {
    times.commands.emplace_back(simulation::duration(command, trace, plan.machine));
  }
  return times;
}

namespace simulation {

Dataflow::Dataflow(const Trace& trace, const Plan& plan) : Dataflow(trace, plan, step_times(trace, plan)) {}

Dataflow::Dataflow(const Trace& trace, const Plan& plan, const StepTimes& times)
    : operations_(trace.operations.size()) {
  durations_.reserve(operations_ + plan.commands.size());
  for (const std::chrono::nanoseconds time : times.operations) durations_.push_back(time.count());
  for (const std::chrono::nanoseconds time : times.commands) durations_.push_back(time.count());
  end_.assign(durations_.size(), 0);
  end_before_.assign(durations_.size(), 0);
  add_waits(plan);
  put_in_order();
}

void Dataflow::add_waits(const Plan& plan) {
  const std::vector<Edge> edges = collect_edges(plan, static_cast<std::uint32_t>(operations_));
  order_.resize(durations_.size());
  for (std::uint32_t step = 0; step < order_.size(); ++step) order_[step] = {step, 0, 0, 0};
  for (const Edge& edge : edges) ++(edge.back ? order_[edge.waiting].back : order_[edge.waiting].here);
  std::uint32_t first = 0;
  for (Waits& waits : order_) {
    waits.first = first;
    first += waits.here + waits.back;
    waits.here = waits.back = 0;
  }
  edges_.resize(edges.size());
  // First the waits for this iteration, then those for the one before.
  for (const bool back : {false, true}) {
    for (const Edge& edge : edges) {
      if (edge.back != back) continue;
      Waits& waits = order_[edge.waiting];
      edges_[waits.first + waits.here + waits.back] = edge.waited;
      ++(back ? waits.back : waits.here);
      if (back) carried_.push_back(edge.waited);
    }
  }
  std::sort(carried_.begin(), carried_.end());
  carried_.erase(std::unique(carried_.begin(), carried_.end()), carried_.end());
}

// Kahn's algorithm, with successors as linked lists through the edges.
void Dataflow::put_in_order() {
  std::vector<std::uint32_t> first_successor(order_.size(), none);
  std::vector<std::uint32_t> next_successor(edges_.size(), none);
  std::vector<std::uint32_t> waiting_step(edges_.size(), none);
  std::vector<std::uint32_t> missing(order_.size(), 0);
  std::vector<std::uint32_t> ready;
  ready.reserve(order_.size());
  for (const Waits& waits : order_) {
    for (std::uint32_t edge = waits.first; edge < waits.first + waits.here; ++edge) {
      next_successor[edge] = std::exchange(first_successor[edges_[edge]], edge);
      waiting_step[edge] = waits.step;
    }
    missing[waits.step] = waits.here;
    if (waits.here == 0) ready.push_back(waits.step);
  }
  for (std::size_t at = 0; at < ready.size(); ++at) {
    for (std::uint32_t edge = first_successor[ready[at]]; edge != none; edge = next_successor[edge]) {
      if (--missing[waiting_step[edge]] == 0) ready.push_back(waiting_step[edge]);
    }
  }
  assert(ready.size() == order_.size() && "a valid plan has no circle of waits");
  std::vector<Waits> sorted;
  sorted.reserve(ready.size());
  for (const std::uint32_t step : ready) sorted.push_back(order_[step]);
  order_ = std::move(sorted);
}

void Dataflow::advance() {
  std::swap(end_, end_before_);
  for (const Waits& waits : order_) {
    std::int64_t start = begin_;
    const std::uint32_t* edge = edges_.data() + waits.first;
    for (const std::uint32_t* const last = edge + waits.here; edge != last; ++edge)
      start = std::max(start, end_[*edge]);
    for (const std::uint32_t* const last = edge + waits.back; edge != last; ++edge) {
      start = std::max(start, end_before_[*edge]);
    }
    end_[waits.step] = std::min(start + durations_[waits.step], end_of_time);
  }
}

void Dataflow::wind_back() {
  const std::int64_t now = iteration_end();
  if (now < far) return;
  for (std::int64_t& time : end_) time -= now;
  begin_ = std::max(begin_ - now, -end_of_time);
}

bool Dataflow::clock_ended() const {
  return iteration_end() >= far && std::find(end_.begin(), end_.end(), end_of_time) != end_.end();
}

void Dataflow::carried(std::vector<std::int64_t>& times) const {
  times.resize(carried_.size());
  for (std::size_t i = 0; i < carried_.size(); ++i) times[i] = end_[carried_[i]] - iteration_end();
}

}  // namespace simulation
}  // namespace swapmm
