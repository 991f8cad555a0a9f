// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>
#include <unordered_map>
#include <utility>

#include <swapmm/base/text/figures.hpp>

#include <swapmm/plan/v2/explain.hpp>
#include <swapmm/plan/v2/explain/absences.hpp>
#include <swapmm/plan/v2/explain/sharing.hpp>
#include <swapmm/plan/v2/explain/stall_search.hpp>
#include <swapmm/plan/v2/long_run/step_names.hpp>
#include <swapmm/plan/v2/long_run/turn.hpp>
#include <swapmm/plan/v2/simulation/elements.hpp>
#include <swapmm/plan/v2/simulation/event_run.hpp>
#include <swapmm/plan/v2/simulation/parts.hpp>

namespace swapmm::v2 {
namespace {

using long_run::Turn;
using simulation::Element;
using simulation::ElementRun;
using simulation::Time;
using simulation::to_nanoseconds;
using std::chrono::nanoseconds;

class Explainer {
 public:
  Explainer(const Trace& trace, const Plan& plan)
      : trace_(trace),
        plan_(plan),
        n_(trace.operations.size()),
        parts_(trace, plan),
        elements_(elements_of(trace, plan, parts_)),
        run_(trace, plan, parts_, elements_) {}

  Explanation explain() {
    const simulation::SteadyState steady = run_until_periodic(run_);
    result_.iteration = nanoseconds{steady.mean};
    const std::vector<Bytes> peaks = run_.occupation().peaks();
    turn_ = long_run::run_one_turn(run_, steady);
    count_static_figures(peaks);
    if (turn_.iteration_ends.empty()) return std::move(result_);
    const std::size_t count = turn_.iteration_ends.size();
    begin_ = count < 2 ? turn_.begin : turn_.iteration_ends[count - 2];
    result_.examined = to_nanoseconds(turn_.end - begin_);
    const explaining::Sharing sharing(plan_.machine, elements_, turn_);
    find_pauses();
    use_links(sharing);
    use_engines(sharing);
    result_.absences = explaining::find_absences(trace_, plan_, parts_, turn_);
    return std::move(result_);
  }

 private:
  [[nodiscard]] bool is_command(std::uint32_t element) const { return element >= n_ && element + 1 < elements_.size(); }
  [[nodiscard]] CommandKind kind_of(std::uint32_t element) const { return plan_.commands[element - n_].kind; }
  [[nodiscard]] PlanStep step_of(std::uint32_t element) const {
    if (element < n_) return {false, element};
    return {true, static_cast<std::uint32_t>(element - n_)};
  }

  void count_static_figures(const std::vector<Bytes>& peaks) {
    const Machine& machine = plan_.machine;
    result_.engines.resize(machine.engines.size());
    result_.links.resize(machine.links.size());
    result_.capacities.resize(machine.capacities.size());
    result_.memories.resize(machine.memories.size());
    std::vector<nanoseconds> sums(engine_count(machine), nanoseconds{0});
    for (std::size_t e = 0; e < elements_.size(); ++e) {
      const Element& element = elements_[e];
      if (e < n_) sums[index(*element.engine)] += nanoseconds{element.time};
      if (element.link) {
        const Link& link = machine.links[index(*element.link)];
        LinkUse& use = result_.links[index(*element.link)];
        use.bytes += element.flow;
        ++use.copies;
        result_.memories[index(link.to)].in += element.flow;
        result_.memories[index(link.from)].out += element.flow;
        for (const CapacityId capacity : link.capacities) result_.capacities[index(capacity)].bytes += element.flow;
      }
      const bool takes = element.memory && !(is_command(static_cast<std::uint32_t>(e)) &&
                                             kind_of(static_cast<std::uint32_t>(e)) == CommandKind::release);
      if (takes) ++result_.memories[index(*element.memory)].taken;
    }
    result_.compute = *std::ranges::max_element(sums);
    for (std::size_t m = 0; m < peaks.size(); ++m) result_.memories[m].peak = peaks[m];
    for (const Place& place : plan_.initial) {
      MemoryUse& use = result_.memories[index(place.memory)];
      ++use.kept;
      use.kept_bytes += parts_.size(place.tensor, place.piece, place.form);
    }
  }

  /// How much longer a copy took than alone.
  [[nodiscard]] Time slowed(const ElementRun& run) const {
    if (!run.end) return 0;
    return std::max(Time{0}, *run.end - run.start - explaining::time_alone(plan_.machine, elements_[run.element]));
  }

  void find_pauses() {
    struct Last {
      Time since = 0;
      Time end = -1;
    };
    std::vector<Last> last(engine_count(plan_.machine));
    for (const ElementRun& run : turn_.runs) {
      const Element& element = elements_[run.element];
      if (!element.link || !run.end) continue;
      Last& before = last[index(*element.engine)];
      if (before.end != run.start) before.since = run.start;
      before.end = *run.end;
      busy_since_[&run] = before.since;
    }
  }

  void use_links(const explaining::Sharing& sharing) {
    std::vector<Time> busy(result_.links.size(), 0);
    std::vector<Time> slow(result_.links.size(), 0);
    for (const ElementRun& run : turn_.runs) {
      const Element& element = elements_[run.element];
      if (!element.link) continue;
      const std::size_t link = index(*element.link);
      busy[link] += std::min(run.end.value_or(turn_.end), turn_.end) - std::max(run.start, turn_.begin);
      // What crosses the beginning is there twice, so only what ends in the turn counts.
      if (run.end && *run.end <= turn_.end) slow[link] += slowed(run);
    }
    const auto count = static_cast<Time>(turn_.iteration_ends.size());
    for (std::size_t l = 0; l < busy.size(); ++l) {
      result_.links[l].busy = to_nanoseconds(busy[l] / count);
      result_.links[l].slowed = to_nanoseconds(slow[l] / count);
    }
    for (std::size_t c = 0; c < result_.capacities.size(); ++c) {
      result_.capacities[c].full = to_nanoseconds(sharing.full()[c] / count);
    }
  }

  void use_engines(const explaining::Sharing& sharing) {
    const explaining::StallSearch search(plan_, elements_, run_.waits(), turn_);
    // Engines that only copy have copies to wait for, and no stalls.
    std::vector<bool> runs(result_.engines.size(), false);
    for (const Element& element : elements_) {
      if (element.engine && !element.link) runs[index(*element.engine)] = true;
    }
    std::vector<Time> free(result_.engines.size(), begin_);
    for (const ElementRun& run : turn_.runs) {
      const Element& element = elements_[run.element];
      if (!element.engine || index(*element.engine) >= runs.size() || !runs[index(*element.engine)]) continue;
      const Time end = std::min(run.end.value_or(turn_.end), turn_.end);
      if (end <= begin_ && run.start < begin_) continue;
      stall_before(run, free[index(*element.engine)], search, sharing);
      add_time(run, end - std::clamp(run.start, begin_, end));
      free[index(*element.engine)] = std::max(free[index(*element.engine)], end);
    }
    for (std::size_t e = 0; e < runs.size(); ++e) {
      if (runs[e]) result_.engines[e].done = to_nanoseconds(turn_.end - free[e]);
    }
    std::ranges::stable_sort(result_.stalls, [](const Stall& a, const Stall& b) { return a.time > b.time; });
  }

  void add_time(const ElementRun& run, Time time) {
    EngineUse& use = result_.engines[index(*elements_[run.element].engine)];
    if (run.element < n_) {
      use.operations += to_nanoseconds(time);
    } else if (elements_[run.element].link) {
      use.copies += to_nanoseconds(time);
    } else if (kind_of(run.element) == CommandKind::run) {
      use.again += to_nanoseconds(time);
    } else {
      use.coding += to_nanoseconds(time);
    }
  }

  void stall_before(const ElementRun& run, Time free, const explaining::StallSearch& search,
                    const explaining::Sharing& sharing) {
    if (run.start <= free) return;
    Stall stall;
    stall.step = step_of(run.element);
    stall.engine = *elements_[run.element].engine;
    stall.time = to_nanoseconds(run.start - free);
    result_.engines[index(stall.engine)].waits += stall.time;
    if (const auto cause = search.cause_of(run)) {
      stall.cause = step_of(cause->run->element);
      if (cause->room) stall.room = id_at<CommandId>(*cause->room - n_);
      if (elements_[cause->run->element].link) {
        stall.slowed = to_nanoseconds(slowed(*cause->run));
        stall.busy = to_nanoseconds(*cause->run->end - busy_since_.at(cause->run));
        stall.capacity = sharing.limit_of(cause->run->element);
      }
    }
    result_.stalls.push_back(stall);
  }

  const Trace& trace_;
  const Plan& plan_;
  std::size_t n_;
  simulation::Parts parts_;
  std::vector<Element> elements_;
  simulation::EventRun run_;
  Turn turn_;
  Time begin_ = 0;  // of the examined iteration
  std::unordered_map<const ElementRun*, Time>
      busy_since_;  // of each copy: since when its engine copies without a pause
  Explanation result_;
};

std::string quoted(const Trace& trace, const Plan& plan, const PlanStep& step) {
  return '"' + long_run::step_name(trace, plan, step.is_command ? trace.operations.size() + step.index : step.index) +
         '"';
}

/// The step as the object of a sentence.
std::string what(const Trace& trace, const Plan& plan, const PlanStep& step) {
  const std::string name = quoted(trace, plan, step);
  if (!step.is_command) return "operation " + name;
  switch (plan.commands[step.index].kind) {
    case CommandKind::run: return "operation " + name + " that runs again";
    case CommandKind::encode: return "the encoding of " + name;
    case CommandKind::decode: return "the decoding of " + name;
    default: return "the copy of " + name;
  }
}

}  // namespace

Explanation explain(const Trace& trace, const Plan& plan) { return Explainer(trace, plan).explain(); }

std::string describe(const Stall& stall, const Trace& trace, const Plan& plan) {
  const Machine& machine = plan.machine;
  std::string text = what(trace, plan, stall.step) + " waits";
  if (!stall.cause) return text;
  const bool is_copy = stall.cause->is_command && plan.commands[stall.cause->index].kind == CommandKind::copy;
  if (stall.room) {
    const PlanStep room{true, static_cast<std::uint32_t>(*stall.room)};
    text += " for the room of " + quoted(trace, plan, room) + ", until ";
    text += is_copy ? quoted(trace, plan, *stall.cause) + " has gone" : what(trace, plan, *stall.cause) + " has ended";
  } else if (is_copy) {
    text += " for " + quoted(trace, plan, *stall.cause);
  } else {
    text += " for " + what(trace, plan, *stall.cause);
  }
  if (!is_copy) return text;
  text += " over link " + machine.links[index(plan.commands[stall.cause->index].link)].name;
  text += ", which copies without a pause for " + text::time_text(stall.busy) + " until then";
  if (stall.capacity && stall.slowed > nanoseconds{0}) {
    text += ", " + text::time_text(stall.slowed) + " of them because it shares capacity " +
            machine.capacities[index(*stall.capacity)].name;
  }
  return text;
}

}  // namespace swapmm::v2
