// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/v2/predicted_profile.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <swapmm/plan/v2/engines.hpp>
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

/// The bytes of a copy that it has transferred at that time, at constant speed.
Bytes moved_until(Bytes bytes, Time start, Time end, Time time) {
  if (time <= start) return Bytes{0};
  if (time >= end) return bytes;
  using simulation::Work;
  return Bytes{
      static_cast<std::uint64_t>(bytes.value * static_cast<Work>(time - start) / static_cast<Work>(end - start))};
}

class ProfileMaker {
 public:
  ProfileMaker(const Trace& trace, const Plan& plan, const std::vector<Element>& elements, Profile& profile)
      : trace_(trace), plan_(plan), elements_(elements), profile_(profile) {
    make_rows();
  }

  void add(const Turn& turn) {
    for (const ElementRun& run : turn.runs) add(turn, run);
    std::ranges::stable_sort(profile_.spans, [](const ProfileSpan& a, const ProfileSpan& b) {
      return a.start != b.start ? a.start < b.start : a.end < b.end;
    });
    for (const Time end : turn.iteration_ends) profile_.iteration_ends.push_back(to_nanoseconds(end - turn.begin));
    add_memories(turn);
  }

 private:
  [[nodiscard]] bool is_operation(std::size_t element) const { return element < trace_.operations.size(); }
  [[nodiscard]] SpanKind kind_of(std::size_t element) const {
    if (is_operation(element)) return SpanKind::operation;
    switch (plan_.commands[element - trace_.operations.size()].kind) {
      case CommandKind::run: return SpanKind::again;
      case CommandKind::encode:
      case CommandKind::decode: return SpanKind::coding;
      default: return SpanKind::copy;
    }
  }

  void make_rows() {
    const Machine& machine = plan_.machine;
    std::vector<bool> runs(engine_count(machine), false);
    std::vector<bool> copies(machine.links.size(), false);
    for (const auto& element : elements_) {
      if (!element.engine) continue;
      if (element.link) {
        copies[index(*element.link)] = true;
      } else {
        runs[index(*element.engine)] = true;
      }
    }
    const auto add = [&](std::optional<std::uint32_t>& row, const std::string& name, ProfileRow::Kind kind) {
      row = static_cast<std::uint32_t>(profile_.rows.size());
      profile_.rows.push_back({name, kind});
    };
    row_of_engine_.resize(engine_count(machine));
    row_of_link_.resize(machine.links.size());
    for (std::size_t e = 0; e < machine.engines.size(); ++e) {
      if (runs[e]) add(row_of_engine_[e], machine.engines[e].name, ProfileRow::Kind::engine);
    }
    const detail::Engines engines(trace_, machine);
    for (std::size_t l = 0; l < machine.links.size(); ++l) {
      if (!copies[l]) continue;
      add(row_of_link_[l], machine.links[l].name,
          engines.computes(machine.links[l].to) ? ProfileRow::Kind::link_in : ProfileRow::Kind::link_out);
    }
  }

  void add(const Turn& turn, const ElementRun& run) {
    const Element& element = elements_[run.element];
    if (!element.engine) return;
    Time from = std::max(run.start, turn.begin);
    Time to = std::min(run.end.value_or(turn.end), turn.end);
    // What takes no time and belongs to the next iteration has its place at the beginning.
    const std::size_t iterations_after = turn.iterations_before + turn.iteration_ends.size();
    if (turn.repeats && from == turn.end && run.iteration >= iterations_after) from = to = turn.begin;
    Bytes bytes;
    if (element.link) {
      const Time end = run.end.value_or(turn.end);
      bytes = moved_until(element.flow, run.start, end, std::max(run.start, to)) -
              moved_until(element.flow, run.start, end, from);
      if (run.start == end) bytes = element.flow;
    }
    const ProfileSpan span{0,
                           kind_of(run.element),
                           long_run::step_name(trace_, plan_, run.element),
                           bytes,
                           to_nanoseconds(from - turn.begin),
                           to_nanoseconds(to - turn.begin)};
    const auto add_to = [&](std::optional<std::uint32_t> row) {
      if (!row) return;
      profile_.spans.push_back(span);
      profile_.spans.back().row = *row;
    };
    add_to(row_of_engine_[index(*element.engine)]);
    if (element.link) add_to(row_of_link_[index(*element.link)]);
  }

  void add_memories(const Turn& turn) {
    const Machine& machine = plan_.machine;
    std::vector<std::optional<std::size_t>> at(machine.memories.size());
    for (std::size_t m = 0; m < machine.memories.size(); ++m) {
      if (!machine.memories[m].bytes) continue;
      at[m] = profile_.memories.size();
      profile_.memories.push_back(
          {machine.memories[m].name, *machine.memories[m].bytes, {{nanoseconds{0}, turn.occupied[m]}}});
    }
    std::vector<Bytes> occupied = turn.occupied;
    for (const auto& change : turn.changes) {
      const std::size_t m = index(change.memory);
      occupied[m] += change.bytes;
      std::vector<ProfileLevel>& levels = profile_.memories[*at[m]].levels;
      const nanoseconds time = to_nanoseconds(change.time - turn.begin);
      // A level counts after everything at the same time has happened.
      if (levels.back().time == time) {
        levels.back().used = occupied[m];
      } else {
        levels.push_back({time, occupied[m]});
      }
    }
    for (ProfileMemory& memory : profile_.memories) {
      const auto same = [](const ProfileLevel& a, const ProfileLevel& b) { return a.used == b.used; };
      memory.levels.erase(std::unique(memory.levels.begin(), memory.levels.end(), same), memory.levels.end());
    }
  }

  const Trace& trace_;
  const Plan& plan_;
  const std::vector<Element>& elements_;
  Profile& profile_;
  std::vector<std::optional<std::uint32_t>> row_of_engine_;
  std::vector<std::optional<std::uint32_t>> row_of_link_;
};

}  // namespace

Profile predicted_profile(const Trace& trace, const Plan& plan) {
  Profile profile;
  profile.title = trace.name + ", " + plan.planner + ", predicted";
  profile.machine = plan.machine.name;
  const simulation::Parts parts(trace, plan);
  const std::vector<Element> elements = elements_of(trace, plan, parts);
  simulation::EventRun run(trace, plan, parts, elements);
  const simulation::SteadyState steady = run_until_periodic(run);
  ProfileMaker(trace, plan, elements, profile).add(long_run::run_one_turn(run, steady));
  return profile;
}

}  // namespace swapmm::v2
