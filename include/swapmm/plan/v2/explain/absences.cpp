// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/v2/explain/absences.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include <swapmm/plan/v2/engines.hpp>

namespace swapmm::v2::explaining {
namespace {

using long_run::Turn;
using simulation::ElementRun;
using simulation::Time;
using std::chrono::nanoseconds;

/// What happens to the plain place of a part in a memory.
struct Event {
  enum class Kind : std::uint8_t { use, overwrite, release, fill };
  Time time = 0;
  Kind kind = Kind::use;
  const ElementRun* run = nullptr;

  /// The order of what happens at one time: operations in their own order, then releases, then what fills places.
  [[nodiscard]] int rank() const { return kind == Kind::release ? 1 : kind == Kind::fill ? 2 : 0; }
};

/// A part, as Parts numbers them, and a memory.
using PlaceKey = std::pair<std::uint32_t, MemoryId>;

class AbsenceSearch {
 public:
  AbsenceSearch(const Trace& trace, const Plan& plan, const simulation::Parts& parts, const Turn& turn)
      : trace_(trace), plan_(plan), parts_(parts), turn_(turn), engines_(trace, plan.machine) {
    for (const ElementRun& run : turn.runs) add(run);
  }

  std::vector<PlannedAbsence> find() {
    std::vector<PlannedAbsence> found;
    for (auto& [key, events] : events_) {
      std::ranges::stable_sort(events, [](const Event& a, const Event& b) {
        return a.time != b.time ? a.time < b.time : a.rank() < b.rank();
      });
      for (std::size_t i = 0; i < events.size(); ++i) {
        if (events[i].kind != Event::Kind::release || !in_last_iteration(events[i].time)) continue;
        if (auto absence = absence_after(events, i)) {
          absence->memory = key.second;
          found.push_back(*absence);
        }
      }
    }
    std::ranges::stable_sort(found, [](const PlannedAbsence& a, const PlannedAbsence& b) { return a.time > b.time; });
    return found;
  }

 private:
  [[nodiscard]] std::size_t operations() const { return trace_.operations.size(); }
  /// What takes no time at the beginning of a turn is at its end.
  [[nodiscard]] bool in_last_iteration(Time time) const {
    const std::size_t count = turn_.iteration_ends.size();
    const Time begin = count < 2 ? turn_.begin : turn_.iteration_ends[count - 2];
    return (time > begin && time <= turn_.end) || (time == begin && begin == turn_.begin);
  }
  [[nodiscard]] bool counts(MemoryId memory) const {
    return engines_.computes(memory) && plan_.machine.memories[index(memory)].bytes;
  }
  [[nodiscard]] std::uint32_t part_of(const Command& command) const {
    return parts_.of(command.tensor).begin + command.piece.value_or(0);
  }

  void add_event(std::uint32_t part, MemoryId memory, Event::Kind kind, const ElementRun& run) {
    // What was under way at the beginning is there once more at the end.
    if (run.start >= turn_.begin && counts(memory)) events_[{part, memory}].push_back({run.start, kind, &run});
  }

  void add_accesses(OperationId operation, const ElementRun& run) {
    const bool again = run.element >= operations();
    for_each_access(trace_.operations[index(operation)], [&](TensorId tensor, Access access) {
      const auto parts = parts_.accessed(operation, tensor);
      for (std::uint32_t part = parts.begin; part < parts.end; ++part) {
        Event::Kind kind = Event::Kind::use;
        if (access == Access::write) kind = again ? Event::Kind::fill : Event::Kind::overwrite;
        // What an operation only reads while it runs again is no use of its own.
        if (again && access == Access::read) continue;
        add_event(part, engines_.memory(operation), kind, run);
      }
    });
  }

  void add(const ElementRun& run) {
    if (run.element < operations()) return add_accesses(OperationId{run.element}, run);
    if (run.element - operations() >= plan_.commands.size()) return;
    const Command& command = plan_.commands[run.element - operations()];
    if (command.kind == CommandKind::run) return add_accesses(command.operation, run);
    const Machine& machine = plan_.machine;
    if (command.kind == CommandKind::decode) {
      add_event(part_of(command), *machine.engines[index(command.engine)].memory, Event::Kind::fill, run);
    } else if (command.form == FormId::plain && command.kind == CommandKind::copy) {
      add_event(part_of(command), machine.links[index(command.link)].to, Event::Kind::fill, run);
    } else if (command.form == FormId::plain && command.kind == CommandKind::release) {
      add_event(part_of(command), command.memory, Event::Kind::release, run);
    }
  }

  /// The events of a place, turn after turn.
  struct Circle {
    const std::vector<Event>& events;
    Time turn;
    std::size_t iterations;

    [[nodiscard]] const Event& at(std::size_t position) const { return events[position % events.size()]; }
    [[nodiscard]] Time time(std::size_t position) const {
      return at(position).time + static_cast<Time>(position / events.size()) * turn;
    }
    [[nodiscard]] std::size_t iteration(std::size_t position) const {
      return at(position).run->iteration + position / events.size() * iterations;
    }
  };

  [[nodiscard]] std::optional<PlannedAbsence> absence_after(const std::vector<Event>& events, std::size_t event) const {
    const Circle circle{events, turn_.end - turn_.begin, turn_.iteration_ends.size()};
    const std::size_t count = events.size();
    const std::size_t release = event + count;  // in the second turn, so that there is one before it
    std::size_t fill = release + 1;
    while (fill < release + count && circle.at(fill).kind == Event::Kind::use) ++fill;
    if (circle.at(fill).kind != Event::Kind::fill) return std::nullopt;  // a new value: the old one is not needed
    const Command& released = command_of(circle.at(release));
    PlannedAbsence absence;
    absence.tensor = released.tensor;
    absence.piece = released.piece;
    absence.release = id_of(circle.at(release));
    absence.back = id_of(circle.at(fill));
    absence.time =
        nanoseconds{static_cast<std::int64_t>(std::min(circle.time(fill) - circle.time(release), simulation::longest))};
    std::size_t last = release - 1;
    while (last + count > release && !is_operation(circle.at(last))) --last;
    std::size_t next = fill + 1;
    while (next < fill + count && !is_operation(circle.at(next))) ++next;
    if (!is_operation(circle.at(last)) || !is_operation(circle.at(next))) return absence;  // nothing uses it here
    absence.last_use = OperationId{circle.at(last).run->element};
    absence.next_use = OperationId{circle.at(next).run->element};
    absence.next_iteration = circle.iteration(next) > circle.iteration(last);
    const bool is_new = absence.next_iteration && trace_.tensors[index(absence.tensor)].kind != TensorKind::persistent;
    return is_new ? std::nullopt : std::optional{absence};
  }
  [[nodiscard]] CommandId id_of(const Event& event) const {
    return id_at<CommandId>(event.run->element - operations());
  }
  [[nodiscard]] const Command& command_of(const Event& event) const { return plan_.commands[index(id_of(event))]; }
  [[nodiscard]] bool is_operation(const Event& event) const { return event.run->element < operations(); }

  const Trace& trace_;
  const Plan& plan_;
  const simulation::Parts& parts_;
  const Turn& turn_;
  const detail::Engines engines_;
  std::map<PlaceKey, std::vector<Event>> events_;
};

}  // namespace

std::vector<PlannedAbsence> find_absences(const Trace& trace, const Plan& plan, const simulation::Parts& parts,
                                          const Turn& turn) {
  return AbsenceSearch(trace, plan, parts, turn).find();
}

}  // namespace swapmm::v2::explaining
