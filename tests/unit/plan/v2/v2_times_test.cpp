// SPDX-License-Identifier: Apache-2.0
// A second simulator, word for word from docs/formats.md and one nanosecond after the other, for random plans.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <swapmm/plan/v2/simulate.hpp>

#include "support/random_trace.hpp"
#include "support/seeds.hpp"

namespace swapmm::v2::times_test {

using test::below_or_equal;
using test::chance;
using test::one_of;
using Ends = std::vector<std::int64_t>;

/// Knows nothing but the plan. Only rates are those of FairRates, which fair_rates_test.cpp checks: here each copy is
/// on at most one capacity, so water-filling is a few lines.
class SlowSimulator {
 public:
  SlowSimulator(const Trace& trace, const Plan& plan, std::size_t iterations)
      : trace_(trace),
        plan_(plan),
        n_(trace.operations.size()),
        count_(n_ + plan.commands.size()),
        runs_(iterations, std::vector<Run>(count_)) {}

  Ends ends(std::size_t iterations) {
    Ends result;
    for (now_ = 0; result.size() < iterations; ++now_) {
      REQUIRE(now_ < 100'000);
      while (anything_happens()) {
      }
      for (std::size_t k = result.size(); k < iterations && all_ended(k); ++k) result.push_back(now_);
      flow();
    }
    return result;
  }

 private:
  enum State { waiting, on_engine, flowing, ended };
  struct Run {
    State state = waiting;
    std::int64_t left = 0;    // nanoseconds on the engine
    std::uint64_t bytes = 0;  // billionths that are left
  };

  [[nodiscard]] const Command& command(std::size_t e) const { return plan_.commands[e - n_]; }
  [[nodiscard]] bool has_ended(std::int64_t k, std::size_t e) const {
    return k < 0 || runs_[static_cast<std::size_t>(k)][e].state == ended;
  }

  [[nodiscard]] bool all_ended(std::size_t k) const {
    for (std::size_t i = 0; i < n_; ++i) {
      if (runs_[k][i].state != ended) return false;
    }
    return true;
  }

  [[nodiscard]] std::size_t engine_of_operation(std::size_t i) const {
    const std::uint32_t engine = trace_.operations[i].engine;
    return engine == TraceOperation::default_engine ? index(default_engine(plan_.machine)) : engine;
  }
  /// As the page has it, twice: p, then q.
  [[nodiscard]] std::tuple<std::size_t, std::size_t, std::size_t> turn(std::size_t e) const {
    if (e < n_) return {engine_of_operation(e), 2 * e + 1, 0};
    const std::size_t p = 2 * command(e).position.value_or(static_cast<std::uint32_t>(n_));
    switch (command(e).kind) {
      case CommandKind::copy: return {index(engine_of(plan_.machine, command(e).link)), p, e - n_};
      case CommandKind::run: return {engine_of_operation(index(command(e).operation)), p, e - n_};
      default: return {SIZE_MAX - e, p, e - n_};  // one of its own: places are taken and given back in turns
    }
  }

  /// Where the second piece of a tensor begins; its size if it is not divided.
  [[nodiscard]] std::uint64_t second_piece(std::size_t tensor) const {
    for (const Division& division : plan_.pieces) {
      if (index(division.tensor) == tensor) return division.at.front().value;
    }
    return trace_.tensors[tensor].bytes.value;
  }
  struct Use {
    bool any = false;
    bool writes = false;
  };
  [[nodiscard]] Use use(std::size_t i, MemoryId memory, std::size_t tensor, std::size_t piece) const {
    Use result;
    const auto add = [&](bool writes) { result = {true, result.writes || writes}; };
    for_each_access(trace_.operations[i], [&](TensorId id, Access access) {
      if (index(id) != tensor || *plan_.machine.engines[engine_of_operation(i)].memory != memory) return;
      const std::uint64_t size = trace_.tensors[tensor].bytes.value;
      std::uint64_t first = 0;
      std::uint64_t end = size;
      for (const AccessRange& range : trace_.ranges) {
        if (index(range.operation) != i || range.tensor != id) continue;
        first = range.first.value;
        end = first + range.bytes.value;
      }
      const std::uint64_t begin_of_piece = piece == 0 ? 0 : second_piece(tensor);
      const std::uint64_t end_of_piece = piece == 0 ? second_piece(tensor) : size;
      if (size == 0 || (first < end_of_piece && begin_of_piece < end)) add(access != Access::read);
    });
    if (memory != plan_.machine.host) return result;
    for (const HostRead& read : trace_.host_reads) {
      if (index(read.tensor) == tensor && index(read.after_operation) == i) add(false);
    }
    const TraceTensor& given = trace_.tensors[tensor];
    if (given.kind == TensorKind::input && (given.available_from + n_ - 1) % n_ == i) add(true);
    return result;
  }
  [[nodiscard]] bool conflict(std::size_t a, std::size_t b) const {
    for (std::size_t tensor = 0; tensor < trace_.tensors.size(); ++tensor) {
      for (std::size_t piece = 0; piece < 2; ++piece) {
        for (std::uint32_t memory = 0; memory < plan_.machine.memories.size(); ++memory) {
          const Use of_a = use(a, MemoryId{memory}, tensor, piece);
          const Use of_b = use(b, MemoryId{memory}, tensor, piece);
          if (of_a.any && of_b.any && (of_a.writes || of_b.writes)) return true;
        }
      }
    }
    return false;
  }

  [[nodiscard]] bool can_start(std::int64_t k, std::size_t e) const {
    for (std::size_t other = 0; other < count_; ++other) {
      if (std::get<0>(turn(other)) != std::get<0>(turn(e))) continue;
      if (!has_ended(turn(other) < turn(e) ? k : k - 1, other)) return false;
    }
    if (e >= n_) {
      return std::ranges::all_of(command(e).after, [&](const Wait& wait) {
        const std::int64_t n = static_cast<std::int64_t>(n_);
        if (wait.on == Wait::On::command)
          return has_ended(wait.previous ? k - 1 : k, static_cast<std::size_t>(n + wait.index));
        return wait.index < 0 ? has_ended(k - 1, static_cast<std::size_t>(n + wait.index))
                              : has_ended(k, static_cast<std::size_t>(wait.index));
      });
    }
    for (std::size_t j = 0; j < plan_.commands.size(); ++j) {
      for (const std::uint32_t before : plan_.commands[j].before_operations) {
        if (before % n_ == e && !has_ended(before < n_ ? k : k - 1, n_ + j)) return false;
      }
    }
    for (std::size_t other = 0; other < n_; ++other) {
      if (engine_of_operation(other) == engine_of_operation(e) || !conflict(e, other)) continue;
      if (!has_ended(other < e ? k : k - 1, other)) return false;
    }
    return true;
  }

  void start(Run& run, std::size_t e) const {
    run.state = on_engine;
    if (e < n_) {
      run.left = trace_.operations[e].duration.count();
    } else if (command(e).kind == CommandKind::run) {
      run.left = trace_.operations[index(command(e).operation)].duration.count();
    } else if (command(e).kind == CommandKind::copy) {
      run.left = plan_.machine.links[index(command(e).link)].latency.count();
      run.bytes = trace_.tensors[index(command(e).tensor)].bytes.value * 1'000'000'000;
    }
  }

  bool anything_happens() {
    bool happened = false;
    for (std::size_t k = 0; k < runs_.size(); ++k) {
      for (std::size_t e = 0; e < count_; ++e) {
        Run& run = runs_[k][e];
        const State before = run.state;
        if (run.state == waiting && can_start(static_cast<std::int64_t>(k), e)) start(run, e);
        if (run.state == on_engine && run.left == 0) run.state = flowing;
        if (run.state == flowing && run.bytes == 0) run.state = ended;
        happened = happened || run.state != before;
      }
    }
    return happened;
  }

  /// One nanosecond.
  void flow() {
    std::vector<std::pair<Run*, const Link*>> open;
    for (auto& iteration : runs_) {
      for (std::size_t e = 0; e < count_; ++e) {
        Run& run = iteration[e];
        if (run.state == on_engine) --run.left;
        if (run.state == flowing) open.emplace_back(&run, &plan_.machine.links[index(command(e).link)]);
      }
    }
    std::vector<std::uint64_t> left;
    for (const Capacity& capacity : plan_.machine.capacities) left.push_back(capacity.bytes_per_second);
    while (!open.empty()) {
      std::vector<std::uint64_t> offers;
      for (const auto& [run, link] : open) {
        std::uint64_t offer = link->bytes_per_second;
        for (const CapacityId capacity : link->capacities) {
          const auto same = [&](const auto& other) {
            return std::ranges::count(other.second->capacities, capacity) > 0;
          };
          offer =
              std::min(offer, left[index(capacity)] / static_cast<std::uint64_t>(std::ranges::count_if(open, same)));
        }
        offers.push_back(offer);
      }
      const std::uint64_t rate = *std::ranges::min_element(offers);
      std::vector<std::pair<Run*, const Link*>> rest;
      for (std::size_t i = 0; i < open.size(); ++i) {
        if (offers[i] != rate) {
          rest.push_back(open[i]);
          continue;
        }
        open[i].first->bytes -= std::min(open[i].first->bytes, rate);
        for (const CapacityId capacity : open[i].second->capacities) left[index(capacity)] -= rate;
      }
      open = std::move(rest);
    }
  }

  const Trace& trace_;
  const Plan& plan_;
  std::size_t n_;
  std::size_t count_;
  std::vector<std::vector<Run>> runs_;  // [iteration][element]
  std::int64_t now_ = 0;
};

/// Plans whose waits have no cycle. Their places and values make no sense. Operations wait for all operations of the
/// iteration before, and commands for the last one, so nothing runs further ahead than two iterations.
class RandomPlan {
 public:
  explicit RandomPlan(std::uint64_t seed) : random_(seed) {
    make_machine();
    make_trace();
    make_commands();
  }

  Trace trace;
  Plan plan;

 private:
  std::uint32_t number(std::size_t count) { return static_cast<std::uint32_t>(one_of(random_, count)); }

  void make_machine() {
    Machine& machine = plan.machine;
    machine.memories = {{"a", Bytes{1000}, Bytes{1}, std::nullopt}, {"b", std::nullopt, Bytes{1}, std::nullopt}};
    machine.host = MemoryId{number(2)};
    machine.engines = {{"copies", std::nullopt}, {"e0", MemoryId{0}}, {"e1", MemoryId{0}}, {"e2", MemoryId{1}}};
    for (int i = 0; i < 2; ++i) machine.capacities.push_back({"", 200'000'000 + random_() % 2'000'000'000});
    for (int i = 0; i < 6; ++i) {
      Link& link = machine.links.emplace_back();
      link.from = MemoryId{number(2)};
      link.to = MemoryId{1 - static_cast<std::uint32_t>(link.from)};
      link.bytes_per_second = 100'000'000 + random_() % 1'500'000'000;
      link.latency = std::chrono::nanoseconds{chance(random_, 0.5) ? 0 : random_() % 4};
      if (chance(random_, 0.4)) link.engine = EngineId{number(4)};
      for (std::uint32_t c = 0; c < 2; ++c) {
        if (chance(random_, 0.5)) link.capacities.push_back(CapacityId{c});
      }
    }
  }

  void make_trace() {
    test::RandomTraceOptions options;
    options.operations = 1 + one_of(random_, 6);
    options.tensors = 1 + one_of(random_, 5);
    options.max_bytes = 12;
    options.max_duration = 8;
    trace = test::random_trace(random_, options);
    trace.engines = {"copies", "e0", "e1", "e2"};
    for (std::uint32_t i = 0; i < trace.operations.size(); ++i) {
      TraceOperation& operation = trace.operations[i];
      if (chance(random_, 0.7)) operation.engine = 1 + number(3);
      std::vector<TensorId> ids;
      for_each_access(operation, [&](TensorId id, Access) { ids.push_back(id); });
      std::ranges::sort(ids);
      for (const TensorId id : ids) {
        const std::uint64_t bytes = trace.tensors[index(id)].bytes.value;
        if (bytes == 0 || chance(random_, 0.5)) continue;
        const std::uint64_t first = random_() % bytes;
        trace.ranges.push_back({OperationId{i}, id, Bytes{first}, Bytes{1 + random_() % (bytes - first)}});
      }
    }
    for (std::uint32_t t = 0; t < trace.tensors.size(); ++t) {
      const std::uint64_t bytes = trace.tensors[t].bytes.value;
      if (bytes > 1 && chance(random_, 0.5)) plan.pieces.push_back({TensorId{t}, {Bytes{1 + random_() % (bytes - 1)}}});
    }
  }

  void make_commands() {
    const auto n = static_cast<std::int32_t>(trace.operations.size());
    const auto count = static_cast<std::uint32_t>(one_of(random_, 9));
    std::vector<std::uint32_t> order;  // of all commands, by position and index: no wait leads back
    for (std::uint32_t j = 0; j < count; ++j) {
      Command& command = plan.commands.emplace_back();
      command.position = number(static_cast<std::size_t>(n) + 1);
      order.push_back(j);
    }
    std::ranges::stable_sort(order, {}, [&](std::uint32_t j) { return *plan.commands[j].position; });
    for (std::size_t at = 0; at < order.size(); ++at) {
      Command& command = plan.commands[order[at]];
      const auto position = static_cast<std::int32_t>(*command.position);
      command.after.push_back({Wait::On::operation, false, -1});
      if (position > 0 && chance(random_, 0.5)) {
        command.after.push_back({Wait::On::operation, false, static_cast<std::int32_t>(number(*command.position))});
      }
      if (at > 0 && chance(random_, 0.5)) {
        command.after.push_back({Wait::On::command, false, static_cast<std::int32_t>(order[number(at)])});
      }
      if (chance(random_, 0.3)) {
        command.after.push_back({Wait::On::command, true, static_cast<std::int32_t>(number(count))});
      }
      if (chance(random_, 0.2)) {
        command.after.push_back(
            {Wait::On::operation, false, -1 - static_cast<std::int32_t>(number(static_cast<std::size_t>(n)))});
      }
      const auto last = 2 * n - 1;
      while (chance(random_, 0.5)) {
        command.before_operations.push_back(static_cast<std::uint32_t>(position) +
                                            number(static_cast<std::size_t>(last - position + 1)));
      }
      make_kind(command);
    }
    // Every engine waits for all others.
    Command& command = plan.commands.emplace_back();
    command.kind = CommandKind::release;
    for (std::int32_t i = 0; i < n; ++i) command.after.push_back({Wait::On::operation, false, i - n});
    for (std::int32_t i = 0; i < n; ++i) command.before_operations.push_back(static_cast<std::uint32_t>(i));
  }

  void make_kind(Command& command) {
    const std::uint64_t kind = random_() % 6;
    if (kind == 0) {
      command.kind = CommandKind::run;
      command.operation = OperationId{number(trace.operations.size())};
    } else if (kind == 1) {
      command.kind = CommandKind::release;
      command.position.reset();
    } else {
      command.kind = CommandKind::copy;
      command.tensor = TensorId{number(trace.tensors.size())};
      command.link = LinkId{number(plan.machine.links.size())};
      // The slow simulator copies whole tensors only.
      std::erase_if(plan.pieces, [&](const Division& division) { return division.tensor == command.tensor; });
    }
  }

  std::mt19937_64 random_;
};

TEST_CASE("v2: random plans take the times that the page gives them, nanosecond by nanosecond") {
  constexpr std::size_t iterations = 5;
  const test::Seeds range = test::seeds(400);
  for (std::uint64_t seed = range.first; seed < range.first + range.count; ++seed) {
    CAPTURE(seed);
    const RandomPlan random(seed);
    Ends ends;
    for (const auto end : v2::iteration_ends(random.trace, random.plan, iterations)) ends.push_back(end.count());
    CHECK(ends == SlowSimulator(random.trace, random.plan, iterations + 2).ends(iterations));

    // The mean is that of many iterations.
    const auto many = v2::iteration_ends(random.trace, random.plan, 1001);
    const std::int64_t mean = v2::simulate(random.trace, random.plan).iteration.count();
    const std::int64_t last = (many[1000] - many[500]).count();
    CHECK(std::abs(mean * 500 - last) <= 500);
  }
}

}  // namespace swapmm::v2::times_test
