// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/schedule/command_writer.hpp>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <tuple>
#include <utility>

#include <swapmm/plan/schedule/place_history.hpp>

namespace swapmm::planning {
namespace {

/// A command that is not yet in the list. The list is ordered by gap, and in a gap by step: copies out, releases, then
/// arrivals. Every wait goes from an earlier to a later place of this order, iteration after iteration, so waits form
/// no cycle.
struct Entry {
  enum Step : std::uint8_t { write_back, release, arrival };
  std::uint32_t gap = 0;  ///< 0 to n; an iteration begins with arrivals in gap 0 and ends with departures in gap n
  Step step = write_back;
  std::uint64_t urgency = 0;
  std::uint32_t stay = 0;
  std::uint32_t back = 0;  ///< position of a write-back in the list of write-backs

  friend bool operator<(const Entry& a, const Entry& b) {
    return std::tie(a.gap, a.step, a.urgency, a.stay, a.back) < std::tie(b.gap, b.step, b.urgency, b.stay, b.back);
  }
};

constexpr std::uint32_t no_command = 0xffffffff;

/// Writes the commands of a schedule whose offsets are known.
class CommandWriter {
 public:
  explicit CommandWriter(const PlacedSchedule& placed)
      : planning_(placed.planning),
        schedule_(placed.schedule),
        facts_(placed.facts),
        write_backs_(placed.write_backs),
        offsets_(placed.offsets),
        n_(placed.planning.operations) {}

  std::vector<Command> write() {
    list_entries();
    number_entries();
    find_predecessors();
    std::vector<Command> commands;
    commands.reserve(entries_.size());
    for (const Entry& entry : entries_) {
      switch (entry.step) {
        case Entry::write_back: commands.push_back(make_write_back(entry)); break;
        case Entry::release: commands.push_back(make_release(entry)); break;
        case Entry::arrival: commands.push_back(make_arrival(entry)); break;
      }
    }
    return commands;
  }

 private:
  /// The releases in `releases_` that a stay waits for.
  struct Predecessors {
    std::uint32_t first = 0;
    std::uint32_t count = 0;
  };

  /// A departure in gap g (at least 1) belongs to the iteration of operation g - 1.
  std::uint32_t iteration_of_leaving(std::uint32_t gap) const { return (gap - 1) / n_; }
  std::uint32_t release_gap(std::uint32_t stay) const { return (facts_[stay].end - 1) % n_ + 1; }

  void list_entries() {
    for (std::uint32_t s = 0; s < facts_.size(); ++s) {
      const StayFacts& facts = facts_[s];
      const Stay& stay = schedule_.stays[s];
      for (std::uint32_t b = facts.first_write_back; b < facts.first_write_back + facts.write_backs; ++b) {
        // In one gap the shortest stays come first, because their room is needed soonest.
        const std::uint64_t urgency = std::uint64_t{stay.copy_rank} << 32U | (facts.end - facts.first_use);
        entries_.push_back({(write_backs_[b].gap - 1) % n_ + 1, Entry::write_back, urgency, s, b});
      }
      if (stay.always) continue;
      entries_.push_back({release_gap(s), Entry::release, 0, s, 0});
      const std::uint32_t gap = facts.allocated ? stay.start : std::max(stay.start, stay.queue_at);
      entries_.push_back({gap, Entry::arrival, facts.first_use, s, 0});
    }
    std::sort(entries_.begin(), entries_.end());
  }

  void number_entries() {
    release_.assign(facts_.size(), no_command);
    back_.assign(write_backs_.size(), no_command);
    last_write_back_in_gap_.assign(n_ + 1, no_command);
    for (std::uint32_t i = 0; i < entries_.size(); ++i) {
      const Entry& entry = entries_[i];
      if (entry.step == Entry::release) release_[entry.stay] = i;
      if (entry.step == Entry::write_back) {
        back_[entry.back] = i;
        last_write_back_in_gap_[entry.gap] = i;
      }
    }
  }

  /// Finds for each stay the stays whose releases it waits for: the former owners of its bytes, and the previous stay
  /// of its tensor.
  void find_predecessors() {
    std::vector<std::uint32_t> by_start;
    by_start.reserve(facts_.size());
    for (std::uint32_t s = 0; s < facts_.size(); ++s) {
      if (!schedule_.stays[s].always) by_start.push_back(s);
    }
    const auto start = [&](std::uint32_t s) { return std::tuple(schedule_.stays[s].start, s); };
    std::sort(by_start.begin(), by_start.end(), [&](auto a, auto b) { return start(a) < start(b); });

    predecessors_.assign(facts_.size(), {});
    std::vector<std::uint32_t> stay_of_tensor(planning_.trace.tensors.size(), no_command);
    PlaceHistory history;
    for (const bool counts : {false, true}) {  // the first round computes what the iteration before leaves
      for (const std::uint32_t s : by_start) {
        const std::size_t tensor = index(schedule_.stays[s].tensor);
        const std::uint32_t before = std::exchange(stay_of_tensor[tensor], s);
        const std::size_t first = releases_.size();
        history.take(offsets_[s].value, offsets_[s].value + planning_.sizes[tensor], s, releases_);
        if (!counts) {
          releases_.clear();
          continue;
        }
        // Stays that took over bytes of this stay have waited for its release, so no further wait is needed.
        const bool is_implied = before == s && releases_.size() > first;
        const auto found = releases_.begin() + static_cast<std::ptrdiff_t>(first);
        if (!is_implied && std::find(found, releases_.end(), before) == releases_.end()) releases_.push_back(before);
        predecessors_[s] = {static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(releases_.size() - first)};
      }
    }
  }

  Wait operation_wait(std::uint32_t operation, std::uint32_t iteration) const {
    return {Wait::On::operation, false,
            static_cast<std::int32_t>(operation) - static_cast<std::int32_t>(iteration * n_)};
  }
  static Wait command_wait(std::uint32_t command, bool previous) {
    return {Wait::On::command, previous, static_cast<std::int32_t>(command)};
  }

  Command make_write_back(const Entry& entry) const {
    const WriteBack& back = write_backs_[entry.back];
    const std::uint32_t iteration = iteration_of_leaving(back.gap);
    Command command;
    command.kind = CommandKind::swap_out;
    command.tensor = schedule_.stays[entry.stay].tensor;
    std::optional<std::uint32_t> before = back.next_write;
    if (copies_out_early(schedule_.pace)) {
      command.after = {operation_wait(back.write, iteration)};
    } else {
      command.after = {operation_wait(back.gap - 1, iteration)};
      before = before ? std::min(*before, back.gap) : back.gap;
    }
    if (before) command.before_operation = *before - iteration * n_;
    return command;
  }

  Command make_release(const Entry& entry) const {
    const StayFacts& facts = facts_[entry.stay];
    const std::uint32_t iteration = iteration_of_leaving(facts.end);
    Command command;
    command.kind = CommandKind::release;
    command.tensor = schedule_.stays[entry.stay].tensor;
    command.after.reserve(2);
    // The copies of a stay are in one queue in the order of their gaps, so the last one ends last.
    const WriteBack* last = nullptr;
    if (facts.write_backs > 0) last = &write_backs_[facts.first_write_back + facts.write_backs - 1];
    const bool last_waits_for_use =
        last && (copies_out_early(schedule_.pace) ? last->write : last->gap - 1) >= facts.last_use;
    // A lingering value may be lost after the operation before the gap of the release.
    const std::uint32_t last_use = facts.lingers ? facts.end - 1 : facts.last_use;
    if (!last_waits_for_use || facts.lingers) command.after.push_back(operation_wait(last_use, iteration));
    if (last) {
      const std::uint32_t id = back_[facts.first_write_back + facts.write_backs - 1];
      command.after.push_back(command_wait(id, iteration_of_leaving(last->gap) < iteration));
    }
    return command;
  }

  Command make_arrival(const Entry& entry) const {
    const StayFacts& facts = facts_[entry.stay];
    const Stay& stay = schedule_.stays[entry.stay];
    Command command;
    command.kind = facts.allocated ? CommandKind::allocate : CommandKind::swap_in;
    command.tensor = stay.tensor;
    command.offset = offsets_[entry.stay];
    command.before_operation = facts.first_use;
    const Predecessors predecessors = predecessors_[entry.stay];
    command.after.reserve(predecessors.count + 2);
    for (std::uint32_t i = predecessors.first; i < predecessors.first + predecessors.count; ++i) {
      const std::uint32_t other = releases_[i];
      // The latest release before the start; in the same iteration if it is before the start there.
      command.after.push_back(command_wait(release_[other], release_gap(other) > stay.start));
    }
    if (!facts.allocated) add_start_waits(entry, command);
    return command;
  }

  void add_start_waits(const Entry& entry, Command& command) const {
    const Stay& stay = schedule_.stays[entry.stay];
    const TraceTensor& tensor = planning_.trace.tensors[index(stay.tensor)];
    if (schedule_.pace != Pace::overlapped) {
      command.after.push_back(operation_wait(stay.start + n_ - 1, 1));
    } else if (tensor.kind == TensorKind::input) {
      command.after.push_back(operation_wait(tensor.available_from + n_ - 1, 1));
    }
    if (schedule_.pace == Pace::one_at_a_time) {
      const std::uint32_t out = last_write_back_in_gap_[stay.start == 0 ? n_ : stay.start];
      if (out != no_command) command.after.push_back(command_wait(out, stay.start == 0));
    }
  }

  const PlanningCase& planning_;
  const Schedule& schedule_;
  const std::vector<StayFacts>& facts_;
  const std::vector<WriteBack>& write_backs_;
  const std::vector<Bytes>& offsets_;
  std::uint32_t n_;
  std::vector<Entry> entries_;
  std::vector<std::uint32_t> release_;  ///< per stay
  std::vector<std::uint32_t> back_;     ///< per write-back
  std::vector<std::uint32_t> last_write_back_in_gap_;
  std::vector<std::uint32_t> releases_;     ///< stays whose releases others wait for
  std::vector<Predecessors> predecessors_;  ///< per stay
};

}  // namespace

std::vector<Command> write_commands(const PlacedSchedule& placed) { return CommandWriter(placed).write(); }

}  // namespace swapmm::planning
