// SPDX-License-Identifier: Apache-2.0
#include "support/plan_executor.hpp"

#include <algorithm>
#include <functional>
#include <optional>
#include <queue>
#include <set>
#include <tuple>
#include <utility>

#include "support/random_trace.hpp"

namespace swapmm::test {
namespace {

bool copies(const Command& command) {
  return command.kind == CommandKind::swap_in || command.kind == CommandKind::swap_out;
}

/// When each step of each iteration starts and ends; a step that never starts has a start below 0.
struct Schedule {
  std::size_t steps = 0;  // per iteration: operations, then commands
  std::vector<std::int64_t> start;
  std::vector<std::int64_t> end;
  std::vector<std::uint32_t> chain;  // how many that take no time wait for one another, up to this one, at its time
};

Schedule schedule(const Trace& trace, const Plan& plan, const Durations& durations) {
  const std::size_t n = trace.operations.size();
  const std::size_t steps = n + plan.commands.size();
  const std::size_t iterations = durations.size();
  std::vector<std::vector<std::size_t>> followers(steps * iterations);
  std::vector<int> missing(steps * iterations, 0);
  const auto edge = [&](std::size_t from, std::int64_t from_iteration, std::size_t to, std::int64_t to_iteration) {
    if (from_iteration < 0 || to_iteration >= static_cast<std::int64_t>(iterations)) return;
    const std::size_t to_step = static_cast<std::size_t>(to_iteration) * steps + to;
    followers[static_cast<std::size_t>(from_iteration) * steps + from].push_back(to_step);
    ++missing[to_step];
  };
  for (std::int64_t k = 0; k < static_cast<std::int64_t>(iterations); ++k) {
    for (std::size_t i = 0; i < n; ++i) edge(i > 0 ? i - 1 : n - 1, i > 0 ? k : k - 1, i, k);
    for (std::size_t j = 0; j < plan.commands.size(); ++j) {
      const Command& command = plan.commands[j];
      for (const Wait& wait : command.after) {
        const auto at = static_cast<std::int64_t>(wait.index);
        const auto operations = static_cast<std::int64_t>(n);
        if (wait.on == Wait::On::command) {
          edge(n + static_cast<std::size_t>(at), wait.previous ? k - 1 : k, n + j, k);
        } else {
          edge(static_cast<std::size_t>(at < 0 ? at + operations : at), at < 0 ? k - 1 : k, n + j, k);
        }
      }
      if (command.before_operation) {
        edge(n + j, k, *command.before_operation % n, *command.before_operation < n ? k : k + 1);
      }
    }
  }
  const auto same_engine = [&](const Command& a, const Command& b) {
    return copies(a) && copies(b) && (a.kind == b.kind || plan.machine.duplex == Duplex::half);
  };
  for (std::size_t j = 0; j < plan.commands.size(); ++j) {  // each copy and the next one of its engine
    for (std::size_t step = 1; step <= plan.commands.size(); ++step) {
      const std::size_t next = (j + step) % plan.commands.size();
      if (!same_engine(plan.commands[j], plan.commands[next])) continue;
      for (std::int64_t k = 0; k < static_cast<std::int64_t>(iterations); ++k) {
        edge(n + j, k, n + next, next > j ? k : k + 1);
      }
      break;
    }
  }

  const std::size_t count = steps * iterations;
  Schedule result{steps, std::vector<std::int64_t>(count, -1), std::vector<std::int64_t>(count, -1),
                  std::vector<std::uint32_t>(count, 0)};
  std::vector<std::int64_t> chain_time(count, -1);
  using End = std::pair<std::int64_t, std::size_t>;
  std::priority_queue<End, std::vector<End>, std::greater<>> running;
  const auto begin = [&](std::size_t step, std::int64_t now) {
    result.start[step] = now;
    running.push({now + durations[step / steps][step % steps], step});
  };
  for (std::size_t step = 0; step < missing.size(); ++step) {
    if (missing[step] == 0) begin(step, 0);
  }
  while (!running.empty()) {
    const auto [now, step] = running.top();
    running.pop();
    result.end[step] = now;
    for (const std::size_t follower : followers[step]) {
      if (std::exchange(chain_time[follower], now) != now) result.chain[follower] = 0;
      if (result.start[step] == now) {
        result.chain[follower] = std::max(result.chain[follower], result.chain[step] + 1);
      }
      if (--missing[follower] == 0) begin(follower, now);
    }
  }
  return result;
}

// At one time what ends comes before what starts. What takes no time is between them: in the order in which it waits
// for one another, and else places are given back before they are taken.
enum class Phase : std::uint8_t { end, give, instant, start };

struct Happening {
  std::int64_t time;
  Phase phase;
  std::size_t iteration;
  std::size_t step;  // of give: the iteration whose value is given is `iteration`
  std::uint32_t chain = 0;
  bool takes = false;
};

constexpr std::int64_t garbage = -1;
/// Of the iteration before the first, and dead in this one but for a host that has not got it yet.
constexpr std::int64_t old_value = -2;

/// One tensor: what its copies hold, and who is at them.
class Cell {
 public:
  Cell(const Trace& trace, const Plan& plan, std::size_t tensor, std::vector<std::string>& faults)
      : trace_(trace), plan_(plan), tensor_(tensor), faults_(faults), described_(trace.tensors[tensor]) {
    const bool given = described_.kind == TensorKind::input && described_.available_from == 0;
    for (const Resident& resident : plan.initial) {
      if (index(resident.tensor) == tensor) initial_ = &resident;
    }
    if (described_.kind == TensorKind::persistent) {
      host_ = initial_ == nullptr || initial_->host_valid ? 0 : garbage;
      device_ = initial_ != nullptr ? 0 : garbage;
    }
    if (given) {
      host_ = input_value(0);
      if (initial_ != nullptr) device_ = host_;
    }
    resident_ = initial_ != nullptr;
    if (resident_ && device_ == garbage) device_ = old_value;
    reached_host_.insert(host_);
  }

  void run(const Schedule& times, std::size_t iterations) {
    iterations_ = iterations;
    expect();
    std::vector<Happening> happenings = collect(times);
    std::sort(happenings.begin(), happenings.end(), [](const Happening& a, const Happening& b) {
      return std::tuple(a.time, a.phase, a.chain, a.takes, a.iteration, a.step) <
             std::tuple(b.time, b.phase, b.chain, b.takes, b.iteration, b.step);
    });
    for (std::size_t h = 0; h < happenings.size(); ++h) {
      // Of one time and no order: the one that can come first does.
      for (std::size_t other = h + 1; other < happenings.size() && happenings[h].phase == Phase::instant; ++other) {
        if (happenings[h].takes != resident_ || happenings[other].time != happenings[h].time) break;
        if (happenings[other].phase == Phase::instant && happenings[other].takes != resident_) {
          std::swap(happenings[h], happenings[other]);
        }
      }
      happen(happenings[h]);
    }
    finish();
  }

 private:
  [[nodiscard]] std::size_t operations() const { return trace_.operations.size(); }
  [[nodiscard]] std::int64_t input_value(std::size_t iteration) const {
    return 1'000'000 + static_cast<std::int64_t>(iteration);
  }
  [[nodiscard]] std::int64_t written_value(std::size_t iteration, std::size_t operation) const {
    return 1 + static_cast<std::int64_t>(iteration * operations() + operation);
  }
  void fault(const std::string& what) { faults_.push_back("tensor " + std::to_string(tensor_) + ": " + what); }

  struct Use {
    Access access = Access::read;
    std::int64_t before = garbage;
    bool any = false;
  };

  // The values of a run in program order.
  void expect() {
    uses_.assign(iterations_ * operations(), {});
    std::int64_t value = described_.kind == TensorKind::persistent ? 0 : garbage;
    for (std::size_t k = 0; k < iterations_; ++k) {
      if (described_.kind == TensorKind::transient) value = garbage;
      for (std::size_t i = 0; i < operations(); ++i) {
        if (described_.kind == TensorKind::input && i == described_.available_from) value = input_value(k);
        for_each_access(trace_.operations[i], [&](TensorId id, Access access) {
          if (index(id) != tensor_) return;
          uses_[k * operations() + i] = {access, value, true};
          if (access != Access::read) value = written_value(k, i);
        });
        for (const HostRead& read : trace_.host_reads) {
          // What the host reads in the last iteration may reach it in the next one.
          const bool counts = index(read.tensor) == tensor_ && index(read.after_operation) == i && k + 1 < iterations_;
          if (counts) host_reads_.push_back(value);
        }
      }
    }
    last_value_ = value;
  }

  std::vector<Happening> collect(const Schedule& times) const {
    std::vector<Happening> happenings;
    for (std::size_t k = 0; k < iterations_; ++k) {
      for (std::size_t step = 0; step < times.steps; ++step) {
        const std::int64_t start = times.start[k * times.steps + step];
        const std::int64_t end = times.end[k * times.steps + step];
        if (step < operations()) {
          const bool gives = described_.kind == TensorKind::input &&
                             step + 1 == (described_.available_from > 0 ? described_.available_from : operations());
          if (gives) happenings.push_back({end, Phase::give, described_.available_from > 0 ? k : k + 1, step});
          if (!uses_[k * operations() + step].any) continue;
        } else {
          const Command& command = plan_.commands[step - operations()];
          if (index(command.tensor) != tensor_) continue;
          if (!copies(command)) {
            happenings.push_back({start, Phase::instant, k, step, times.chain[k * times.steps + step],
                                  command.kind == CommandKind::allocate});
            continue;
          }
        }
        happenings.push_back({start, Phase::start, k, step});
        happenings.push_back({end, Phase::end, k, step});
      }
    }
    return happenings;
  }

  void happen(const Happening& h) {
    const bool starts = h.phase == Phase::start;
    if (h.phase == Phase::give) {
      epoch_ = h.iteration;
      host_ = input_value(h.iteration);
      reached_host_.insert(host_);
    } else if (h.step < operations()) {
      operation(uses_[h.iteration * operations() + h.step], written_value(h.iteration, h.step), starts);
    } else {
      switch (plan_.commands[h.step - operations()].kind) {
        case CommandKind::allocate: take(h.step - operations()); break;
        case CommandKind::swap_in: swap_in(h.step - operations(), starts); break;
        case CommandKind::swap_out: swap_out(starts); break;
        case CommandKind::release: release(); break;
      }
    }
  }

  void operation(const Use& use, std::int64_t new_value, bool starts) {
    if (use.access == Access::read) {
      if (starts) read_device(use.before, "an operation");
      readers_ += starts ? 1 : -1;
      return;
    }
    if (starts) {
      if (use.access == Access::update) read_device(use.before, "an operation");
      write_device("an operation");
    } else {
      device_ = new_value;
    }
    writers_ += starts ? 1 : -1;
  }

  void read_device(std::int64_t expected, const std::string& who) {
    if (!resident_) fault(who + " reads it off the device");
    if (writers_ > 0) fault(who + " reads it while it is written");
    if (device_ != expected) {
      fault(who + " reads " + std::to_string(device_) + " instead of " + std::to_string(expected));
    }
  }
  void write_device(const std::string& who) {
    if (!resident_) fault(who + " writes it off the device");
    if (writers_ > 0 || readers_ > 0) fault(who + " writes it while it is in use");
    device_ = garbage;
  }

  void take(std::size_t command) {
    if (resident_) fault("on the device twice");
    if (readers_ > 0 || writers_ > 0) fault("placed while in use");
    resident_ = true;
    offset_ = plan_.commands[command].offset;
    device_ = garbage;
  }

  void swap_in(std::size_t command, bool starts) {
    if (starts) {
      take(command);
      if (host_writers_ > 0) fault("swapped in while the host copy is written");
      if (host_ == garbage) fault("swapped in without a host copy");
      in_flight_ = host_;
    } else {
      device_ = in_flight_;
    }
    writers_ += starts ? 1 : -1;
    host_readers_ += starts ? 1 : -1;
  }

  void swap_out(bool starts) {
    if (starts) {
      if (!resident_ || writers_ > 0 || device_ == garbage) fault("swapped out without a device copy");
      if (host_readers_ > 0 || host_writers_ > 0) fault("swapped out while the host copy is in use");
      out_epoch_ = value_epoch();
    } else {
      reached_host_.insert(device_);
      // The value of an iteration before goes to a slot of its own.
      if (out_epoch_ == epoch_) host_ = device_;
    }
    readers_ += starts ? 1 : -1;
    host_writers_ += starts ? 1 : -1;
  }

  static constexpr std::size_t no_epoch = SIZE_MAX;
  // Of an input: the iteration that the value on the device belongs to.
  [[nodiscard]] std::size_t value_epoch() const {
    if (described_.kind != TensorKind::input || device_ == garbage) return epoch_;
    if (device_ == old_value) return no_epoch;
    if (device_ >= input_value(0)) return static_cast<std::size_t>(device_ - input_value(0));
    return static_cast<std::size_t>(device_ - 1) / operations();
  }

  void release() {
    if (!resident_) fault("released off the device");
    if (readers_ > 0 || writers_ > 0) fault("released while in use");
    resident_ = false;
    device_ = garbage;
  }

  void finish() {
    for (const std::int64_t value : host_reads_) {
      if (!reached_host_.contains(value)) fault("the host never gets " + std::to_string(value));
    }
    if (resident_ != (initial_ != nullptr)) fault("does not end where it began");
    if (!resident_ || initial_ == nullptr) return;
    if (offset_ && *offset_ != initial_->offset) fault("ends at another offset");
    const bool host_lost = described_.kind == TensorKind::persistent && initial_->host_valid && host_ != last_value_;
    if (host_lost) fault("ends without the host copy of the beginning");
  }

  const Trace& trace_;
  const Plan& plan_;
  std::size_t tensor_;
  std::vector<std::string>& faults_;
  const TraceTensor& described_;
  const Resident* initial_ = nullptr;
  std::size_t iterations_ = 0;

  std::vector<Use> uses_;                 // of each operation of each iteration
  std::vector<std::int64_t> host_reads_;  // the values
  std::set<std::int64_t> reached_host_;
  std::int64_t last_value_ = garbage;

  bool resident_ = false;
  std::optional<Bytes> offset_;
  std::int64_t device_ = garbage;
  std::int64_t host_ = garbage;
  std::int64_t in_flight_ = garbage;
  std::size_t epoch_ = 0;  // of an input: the iteration whose value the host gave last
  std::size_t out_epoch_ = 0;
  int readers_ = 0;
  int writers_ = 0;
  int host_readers_ = 0;
  int host_writers_ = 0;
};

struct Occupation {
  std::int64_t start;
  std::int64_t end;
  std::uint64_t first;
  std::uint64_t last;  // exclusive
};

void check_place(const Machine& machine, Bytes offset, Bytes bytes, std::vector<std::string>& faults) {
  const std::uint64_t end = offset.value + bytes.value;
  if (end > machine.device_budget.value) faults.push_back("over budget");
  if (offset.value % machine.alignment.value != 0) faults.push_back("not aligned");
  if (machine.max_allocation &&
      offset.value / machine.max_allocation->value != (end - 1) / machine.max_allocation->value) {
    faults.push_back("across two arenas");
  }
}

void check_occupation(const Trace& trace, const Plan& plan, const Schedule& times, std::size_t iterations,
                      std::vector<std::string>& faults) {
  const std::int64_t for_ever = INT64_MAX;
  std::vector<Occupation> occupations;
  for (std::size_t t = 0; t < trace.tensors.size(); ++t) {
    struct Change {
      std::int64_t time;
      std::uint32_t chain;
      bool takes;
      Bytes offset;
    };
    const std::uint64_t size = trace.tensors[t].bytes.value;
    std::vector<Change> changes;
    for (const Resident& resident : plan.initial) {
      if (index(resident.tensor) == t) changes.push_back({-2, 0, true, resident.offset});
    }
    for (std::size_t k = 0; k < iterations; ++k) {
      for (std::size_t j = 0; j < plan.commands.size(); ++j) {
        const Command& command = plan.commands[j];
        if (index(command.tensor) != t || command.kind == CommandKind::swap_out) continue;
        const std::size_t step = k * times.steps + trace.operations.size() + j;
        changes.push_back({times.start[step], times.chain[step], command.kind != CommandKind::release, command.offset});
      }
    }
    std::stable_sort(changes.begin(), changes.end(), [](const Change& a, const Change& b) {
      return std::pair(a.time, a.chain) < std::pair(b.time, b.chain);
    });
    std::vector<Change> open;
    std::int64_t released_too_soon = -1;  // what is released when it is taken may stand the other way round here
    for (const Change& change : changes) {
      if (change.takes) {
        check_place(plan.machine, change.offset, Bytes{size}, faults);
        if (released_too_soon == change.time) {
          released_too_soon = -1;
        } else {
          open.push_back(change);
        }
      } else if (open.empty()) {
        released_too_soon = change.time;
      } else {
        const std::uint64_t first = open.front().offset.value;
        occupations.push_back({open.front().time, change.time, first, first + size});
        open.erase(open.begin());
      }
    }
    for (const Change& left : open) {
      occupations.push_back({left.time, for_ever, left.offset.value, left.offset.value + size});
    }
  }
  std::sort(occupations.begin(), occupations.end(),
            [](const Occupation& a, const Occupation& b) { return a.start < b.start; });
  std::vector<Occupation> active;
  for (const Occupation& next : occupations) {
    if (next.start == next.end) continue;
    std::erase_if(active, [&](const Occupation& old) { return old.end <= next.start; });
    for (const Occupation& old : active) {
      if (old.first < next.last && next.first < old.last) faults.push_back("bytes of two tensors");
    }
    active.push_back(next);
  }
}

}  // namespace

Durations nominal_durations(const Trace& trace, const Plan& plan, std::size_t iterations) {
  std::vector<std::int64_t> one;
  for (const TraceOperation& operation : trace.operations) one.push_back(operation.duration.count());
  for (const Command& command : plan.commands) {
    const Link& link = command.kind == CommandKind::swap_in ? plan.machine.h2d : plan.machine.d2h;
    // Tests keep sizes below 2^33, so that the product fits.
    const std::uint64_t bytes = trace.tensors[index(command.tensor)].bytes.value;
    const std::uint64_t time = (bytes * 1'000'000'000 + link.bytes_per_second - 1) / link.bytes_per_second;
    one.push_back(copies(command) ? link.latency.count() + static_cast<std::int64_t>(time) : 0);
  }
  return Durations(iterations, one);
}

Durations random_durations(std::mt19937_64& random, const Trace& trace, const Plan& plan, std::size_t iterations) {
  constexpr std::uint64_t scales[] = {1, 10, 1000, 100'000};
  // One engine may be starved throughout, and each step may be an exception.
  const std::uint64_t engines[] = {scales[one_of(random, 4)], scales[one_of(random, 4)], scales[one_of(random, 4)]};
  const auto draw = [&](std::uint64_t scale) {
    if (chance(random, 0.1)) scale = scales[one_of(random, 4)];
    return static_cast<std::int64_t>(1 + below_or_equal(random, scale));
  };
  Durations durations(iterations);
  for (auto& one : durations) {
    for (std::size_t i = 0; i < trace.operations.size(); ++i) one.push_back(draw(engines[0]));
    for (const Command& command : plan.commands) {
      one.push_back(copies(command) ? draw(engines[command.kind == CommandKind::swap_in ? 1 : 2]) : 0);
    }
  }
  return durations;
}

Execution execute(const Trace& trace, const Plan& plan, const Durations& durations, bool check_values) {
  Execution execution;
  const Schedule times = schedule(trace, plan, durations);
  const std::size_t iterations = durations.size();
  for (std::size_t k = 0; k < iterations; ++k) {
    execution.iteration_ends.push_back(times.end[k * times.steps + trace.operations.size() - 1]);
  }
  if (std::find(times.end.begin(), times.end.end(), -1) != times.end.end()) {
    execution.faults.push_back("deadlock");
    return execution;
  }
  check_occupation(trace, plan, times, iterations, execution.faults);
  if (!check_values) return execution;
  for (std::size_t t = 0; t < trace.tensors.size(); ++t) Cell(trace, plan, t, execution.faults).run(times, iterations);
  return execution;
}

}  // namespace swapmm::test
