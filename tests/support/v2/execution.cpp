// SPDX-License-Identifier: Apache-2.0
#include "support/v2/execution.hpp"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <queue>
#include <utility>

#include "support/v2/element_order.hpp"
#include "support/v2/part_accesses.hpp"

namespace swapmm::test::general {
namespace execution {
namespace {

using swapmm::v2::Command;
using swapmm::v2::CommandKind;
using swapmm::v2::FormId;
using swapmm::v2::Machine;
using swapmm::v2::MemoryId;
using swapmm::v2::Plan;
using Time = std::int64_t;

/// A value of a part. Each write, update and gift begins another one.
using Value = std::int64_t;
constexpr Value nothing = -1;

/// What the program does if its operations run one after another, beginning two iterations before the first one.
class ProgramOrder {
 public:
  ProgramOrder(const Trace& trace, const Parts& parts, std::size_t iterations)
      : operations_(trace.operations.size()), before_((iterations + 2) * operations_) {
    std::vector<Value> current(parts.count(), 0);
    Value next = 1;
    const auto give = [&](std::size_t part) { current[part] = next++; };
    for (std::size_t k = 0; k < iterations + 2; ++k) {
      for (std::size_t i = 0; i < operations_; ++i) {
        Operation& operation = before_[k * operations_ + i];
        for (const PartAccess& access : parts.of_operation(i)) {
          operation.accessed.emplace_back(current[access.part], current[access.part]);
          if (access.access != Access::read) operation.accessed.back().second = current[access.part] = next++;
        }
        for (const std::size_t part : parts.read_after(i)) operation.read_by_host.push_back(current[part]);
        for (const std::size_t part : parts.given_after(i)) {
          give(part);
          operation.given.push_back(current[part]);
        }
      }
      if (k == 1) at_start_ = current;
    }
  }

  struct Operation {
    std::vector<std::pair<Value, Value>> accessed;  // of each access: the values before and after it
    std::vector<Value> read_by_host;
    std::vector<Value> given;
  };
  /// `iteration` may be -1.
  [[nodiscard]] const Operation& of(Time iteration, std::size_t operation) const {
    return before_[static_cast<std::size_t>(iteration + 2) * operations_ + operation];
  }
  /// The newest value when the first iteration begins.
  [[nodiscard]] Value at_start(std::size_t part) const { return at_start_[part]; }

 private:
  std::size_t operations_;
  std::vector<Operation> before_;
  std::vector<Value> at_start_;
};

struct PlaceState {
  bool is_there = false;
  Bytes offset;
  Bytes size;
  Time since = 0;
  Value value = nothing;
  int readers = 0;
  int writers = 0;
};

struct PlaceKey {
  std::size_t part;
  FormId form;
  MemoryId memory;
  friend auto operator<=>(const PlaceKey&, const PlaceKey&) = default;
};

class Run {
 public:
  Run(std::mt19937_64& random, const Trace& trace, const Plan& plan, std::size_t iterations)
      : random_(random),
        trace_(trace),
        plan_(plan),
        machine_(plan.machine),
        parts_(trace, plan),
        program_(trace, parts_, iterations),
        order_(trace, plan, parts_, iterations + 1),
        n_(trace.operations.size()),
        iterations_(iterations),
        in_flight_(order_.missing.size(), nothing) {
    for (std::uint64_t& scale : scales_) scale = one_of_scales();
  }

  std::vector<std::string> run() {
    begin();
    for (std::size_t step = 0; step < order_.missing.size(); ++step) {
      if (order_.missing[step] == 0) ready(step, 0);
    }
    std::size_t ended = 0;
    while (!events_.empty() && faults_.empty()) {
      const Event event = events_.top();
      events_.pop();
      happen(event);
      if (event.phase == Phase::start) continue;
      if (++ended == order_.steps()) begin_first(event.time);
      for (const std::size_t follower : order_.followers[event.step]) {
        if (--order_.missing[follower] == 0) ready(follower, event.time);
      }
    }
    if (!faults_.empty()) return faults_;
    if (ended < order_.missing.size()) return {"a deadlock"};
    finish();
    return faults_;
  }

 private:
  // At one time: what ends; then what takes no time, in the order of rule 6; then what starts.
  enum class Phase : std::uint8_t { end, instant, start };
  struct Event {
    Time time;
    Phase phase;
    std::size_t before;
    std::size_t iteration;
    std::uint32_t chain;
    bool takes;
    std::size_t step;
    friend auto operator<=>(const Event&, const Event&) = default;
  };

  void fault(const std::string& what) { faults_.push_back(what); }
  [[nodiscard]] static std::string told(const PlaceKey& key) {
    return "part " + std::to_string(key.part) + " in form " + std::to_string(index(key.form)) + " in memory " +
           std::to_string(index(key.memory));
  }
  void fault(const PlaceKey& key, const std::string& what) { fault(told(key) + ": " + what); }

  [[nodiscard]] const Command* command(std::size_t step) const {
    const std::size_t of_iteration = step % order_.steps();
    return of_iteration < n_ ? nullptr : &plan_.commands[of_iteration - n_];
  }

  std::uint64_t one_of_scales() {
    constexpr std::uint64_t all[] = {1, 30, 1000, 100'000};
    return all[random_() % 4];
  }
  /// Above 0, and of very different sizes, so that what is not ordered comes in any order.
  Time duration(const Command* command) {
    std::size_t kind = 0;
    if (command != nullptr) kind = command->kind == CommandKind::copy ? 1 + index(command->link) % 6 : 7;
    const std::uint64_t scale = random_() % 10 == 0 ? one_of_scales() : scales_[kind];
    return static_cast<Time>(1 + random_() % (scale + 1));
  }

  /// All that it waits for has ended.
  void ready(std::size_t step, Time now) {
    const Command* const what = command(step);
    Event event{now, Phase::start, 0, step / order_.steps(), 0, false, step};
    if (what != nullptr && takes_no_time(*what)) {
      const ElementOrder::AtOneTime& of = order_.at_one_time[step];
      event = {now, Phase::instant, of.before, event.iteration, of.chain, what->kind == CommandKind::allocate, step};
    }
    if (event.iteration > 0 && !has_begun_) {
      of_first_.push_back(event);
    } else {
      events_.push(event);
    }
  }

  /// The iteration before the first has ended. Until then, nothing counts but the order of what ends.
  void begin_first(Time now) {
    has_begun_ = true;
    for (Event event : of_first_) {
      event.time = now;
      events_.push(event);
    }
  }

  /// What is where when the first iteration begins.
  void begin() {
    for (std::size_t part = 0; part < parts_.count(); ++part) {
      for (std::size_t m = 0; m < machine_.memories.size(); ++m) {
        if (machine_.memories[m].bytes) continue;
        const auto memory = id_at<MemoryId>(m);
        PlaceState& plain = places_[{part, FormId::plain, memory}];
        plain.is_there = true;
        if (memory == machine_.host) plain.value = program_.at_start(part);
        for (std::size_t f = 0; f < plan_.forms.size(); ++f) {
          places_[{part, id_at<FormId>(f + 1), memory}].is_there = true;
        }
      }
    }
    for (const swapmm::v2::Place& initial : plan_.initial) {
      const PlaceKey key{parts_.id(initial.tensor, initial.piece), initial.form, initial.memory};
      if (machine_.memories[index(key.memory)].bytes) take(key, initial.offset, 0);
      places_[key].value = initial.valid ? program_.at_start(key.part) : nothing;
    }
    for (std::size_t part = 0; part < parts_.count(); ++part) {
      if (!parts_.is_given_at_end(part)) continue;
      PlaceState& at_host = places_[{part, FormId::plain, machine_.host}];
      if (at_host.is_there) at_host.value = program_.at_start(part);
    }
  }

  void happen(const Event& event) {
    const Command* const what = command(event.step);
    const std::size_t i = event.step % order_.steps();
    const Time k = static_cast<Time>(event.iteration) - 1;
    const bool starts = event.phase == Phase::start;
    if (k < 0) {
      // It has had its effects.
    } else if (what == nullptr) {
      starts ? start_operation(i, program_.of(k, i)) : end_operation(i, program_.of(k, i), k);
    } else {
      happen(*what, event, k);
    }
    if (!starts && ++ended_[k] == order_.steps()) end_iteration(k);
    if (!starts) return;
    events_.push({event.time + duration(what), Phase::end, 0, event.iteration, 0, false, event.step});
  }

  void happen(const Command& command, const Event& event, Time k) {
    const bool starts = event.phase == Phase::start;
    switch (command.kind) {
      case CommandKind::allocate:
        return take({parts_.id(command.tensor, command.piece), command.form, command.memory}, command.offset.value(),
                    event.time);
      case CommandKind::release:
        return give_back({parts_.id(command.tensor, command.piece), command.form, command.memory}, event.time);
      case CommandKind::run: {
        const std::size_t i = index(command.operation);
        const bool is_of_this = command.position.value_or(static_cast<std::uint32_t>(n_)) > i;
        if (!trace_.operations[i].replayable) return fault("an operation that may not runs again");
        const auto& values = program_.of(is_of_this ? k : k - 1, i);
        return starts ? start_operation(i, values) : end_accesses(i, values);
      }
      case CommandKind::copy: {
        const auto& link = machine_.links[index(command.link)];
        const std::size_t part = parts_.id(command.tensor, command.piece);
        return transfer(event, command, {part, command.form, link.from}, {part, command.form, link.to});
      }
      case CommandKind::encode:
      case CommandKind::decode: {
        const MemoryId memory = machine_.engines[index(command.engine)].memory.value();
        const std::size_t part = parts_.id(command.tensor, command.piece);
        const PlaceKey plain{part, FormId::plain, memory};
        const PlaceKey encoded{part, command.form, memory};
        const bool encodes = command.kind == CommandKind::encode;
        return transfer(event, command, encodes ? plain : encoded, encodes ? encoded : plain);
      }
    }
  }

  void transfer(const Event& event, const Command& command, const PlaceKey& from, const PlaceKey& to) {
    if (event.phase == Phase::end) {
      end_read(from);
      end_write(to, in_flight_[event.step]);
      return;
    }
    start_read(from);
    in_flight_[event.step] = places_[from].value;
    if (in_flight_[event.step] == nothing) fault(from, "nothing is there to be copied");
    if (command.offset) take(to, *command.offset, event.time);
    start_write(to);
  }

  void start_operation(std::size_t i, const ProgramOrder::Operation& values) {
    const MemoryId memory = parts_.memory(i);
    const auto& accesses = parts_.of_operation(i);
    for (std::size_t a = 0; a < accesses.size(); ++a) {
      const PlaceKey key{accesses[a].part, FormId::plain, memory};
      if (accesses[a].access != Access::write) {
        start_read(key);
        const Value found = places_[key].value;
        if (found != values.accessed[a].first) {
          fault(key, "operation " + std::to_string(i) + " finds value " + std::to_string(found) + " instead of " +
                         std::to_string(values.accessed[a].first));
        }
        if (accesses[a].access == Access::update) end_read(key);
      }
      if (accesses[a].access != Access::read) start_write(key);
    }
    if (!trace_.operations[i].in_pieces && machine_.memories[index(memory)].bytes) check_next_to_each_other(i, memory);
  }

  void check_next_to_each_other(std::size_t i, MemoryId memory) {
    const auto& most = machine_.memories[index(memory)].max_allocation;
    const PartAccess* last = nullptr;
    std::uint64_t first_byte = 0;
    for (const PartAccess& access : parts_.of_operation(i)) {  // by tensor, then piece
      const PlaceState& place = places_[{access.part, FormId::plain, memory}];
      const bool goes_on = last != nullptr && parts_.tensor(last->part) == parts_.tensor(access.part);
      if (goes_on) {
        const PlaceState& before = places_[{last->part, FormId::plain, memory}];
        if (before.offset + before.size != place.offset) fault("pieces are not next to each other");
      } else {
        first_byte = place.offset.value;
      }
      const std::uint64_t end = place.offset.value + place.size.value;
      if (goes_on && most && end > first_byte && first_byte / most->value != (end - 1) / most->value) {
        fault("pieces cross an allocation");
      }
      last = &access;
    }
  }

  void end_accesses(std::size_t i, const ProgramOrder::Operation& values) {
    const auto& accesses = parts_.of_operation(i);
    for (std::size_t a = 0; a < accesses.size(); ++a) {
      const PlaceKey key{accesses[a].part, FormId::plain, parts_.memory(i)};
      if (accesses[a].access == Access::read) {
        end_read(key);
      } else {
        end_write(key, values.accessed[a].second);
      }
    }
  }

  void end_operation(std::size_t i, const ProgramOrder::Operation& values, Time k) {
    end_accesses(i, values);
    for (std::size_t r = 0; r < values.read_by_host.size(); ++r) {
      const PlaceKey key{parts_.read_after(i)[r], FormId::plain, machine_.host};
      const Value value = values.read_by_host[r];
      if (places_[key].is_there && places_[key].value == value && places_[key].writers == 0) continue;
      if (k + 1 < static_cast<Time>(iterations_)) awaited_.push_back({key, value, k + 1});
    }
    for (std::size_t g = 0; g < values.given.size(); ++g) {
      const PlaceKey key{parts_.given_after(i)[g], FormId::plain, machine_.host};
      PlaceState& place = places_[key];
      if (!place.is_there) fault(key, "the host has no place for what it gives");
      if (place.readers > 0 || place.writers > 0) fault(key, "the host gives while the place is in use");
      place.value = values.given[g];
      reached(key);
    }
  }

  /// The host has got what it reads.
  void reached(const PlaceKey& key) {
    if (key.memory != machine_.host || key.form != FormId::plain) return;
    std::erase_if(awaited_, [&](const Awaited& one) { return one.key == key && one.value == places_[key].value; });
  }

  void end_iteration(Time iteration) {
    for (const Awaited& one : awaited_) {
      if (one.until <= iteration) fault(one.key, "the host never gets value " + std::to_string(one.value));
    }
  }

  void start_read(const PlaceKey& key) {
    PlaceState& place = places_[key];
    if (!place.is_there) fault(key, "read, and is not there");
    if (place.writers > 0) fault(key, "read while it is written");
    ++place.readers;
  }
  void end_read(const PlaceKey& key) { --places_[key].readers; }

  void start_write(const PlaceKey& key) {
    PlaceState& place = places_[key];
    if (!place.is_there) fault(key, "written, and is not there");
    if (place.writers > 0 || place.readers > 0) fault(key, "written while it is in use");
    ++place.writers;
    place.value = nothing;
  }
  void end_write(const PlaceKey& key, Value value) {
    PlaceState& place = places_[key];
    --place.writers;
    place.value = value;
    reached(key);
  }

  void take(const PlaceKey& key, Bytes offset, Time now) {
    PlaceState& place = places_[key];
    const swapmm::v2::Memory& memory = machine_.memories[index(key.memory)];
    const Bytes size = parts_.size(key.part, key.form);
    if (!memory.bytes) return fault(key, "a place is taken where there is no limit");
    if (place.is_there) fault(key, "there twice");
    if (place.readers > 0 || place.writers > 0) fault(key, "taken while it is in use");
    if (offset + size > *memory.bytes) fault(key, "outside its memory");
    if (offset.value % memory.alignment.value != 0) fault(key, "not aligned");
    if (memory.max_allocation && size.value > 0 &&
        offset.value / memory.max_allocation->value != (offset.value + size.value - 1) / memory.max_allocation->value) {
      fault(key, "crosses an allocation");
    }
    place = {true, offset, size, now, nothing, 0, 0};
  }

  void give_back(const PlaceKey& key, Time now) {
    PlaceState& place = places_[key];
    if (!machine_.memories[index(key.memory)].bytes) return fault(key, "given back where there is no limit");
    if (!place.is_there) return fault(key, "given back, and is not there");
    if (place.readers > 0 || place.writers > 0) fault(key, "given back while it is in use");
    occupied(key, place, now);
    place = {};
  }

  void occupied(const PlaceKey& key, const PlaceState& place, Time end) {
    if (place.since < end && place.size.value > 0) {
      occupations_.push_back({key.memory, place.since, end, place.offset.value, place.offset.value + place.size.value});
    }
  }

  void finish() {
    std::map<PlaceKey, Bytes> initial;
    for (const swapmm::v2::Place& place : plan_.initial) {
      if (!machine_.memories[index(place.memory)].bytes) continue;
      initial[{parts_.id(place.tensor, place.piece), place.form, place.memory}] = place.offset;
    }
    for (const auto& [key, place] : places_) {
      if (!machine_.memories[index(key.memory)].bytes) continue;
      const auto at_start = initial.find(key);
      if (place.is_there != (at_start != initial.end())) {
        fault(key, "does not end where it began");
      } else if (place.is_there) {
        if (place.offset != at_start->second) fault(key, "ends at another offset");
        occupied(key, place, INT64_MAX);
      }
    }
    std::ranges::sort(occupations_, {}, &Occupation::since);
    for (std::size_t a = 0; a < occupations_.size(); ++a) {
      const Occupation& one = occupations_[a];
      for (std::size_t b = a + 1; b < occupations_.size() && occupations_[b].since < one.end; ++b) {
        const Occupation& other = occupations_[b];
        if (other.memory == one.memory && other.first < one.last && one.first < other.last) {
          fault("bytes of two parts in memory " + std::to_string(index(one.memory)));
        }
      }
    }
  }

  struct Awaited {
    PlaceKey key;
    Value value;
    Time until;  // the iteration at whose end it must be there
  };
  struct Occupation {
    MemoryId memory;
    Time since;
    Time end;
    std::uint64_t first;
    std::uint64_t last;  // exclusive
  };

  std::mt19937_64& random_;
  const Trace& trace_;
  const Plan& plan_;
  const Machine& machine_;
  Parts parts_;
  ProgramOrder program_;
  ElementOrder order_;
  std::size_t n_;
  std::size_t iterations_;
  std::uint64_t scales_[8]{};
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::vector<Value> in_flight_;
  std::map<PlaceKey, PlaceState> places_;
  std::map<Time, std::size_t> ended_;  // elements of each iteration
  std::vector<Event> of_first_;        // that can happen when the first iteration begins
  bool has_begun_ = false;
  std::vector<Awaited> awaited_;
  std::vector<Occupation> occupations_;
  std::vector<std::string> faults_;
};

}  // namespace
}  // namespace execution

std::vector<std::string> execute(std::mt19937_64& random, const Trace& trace, const swapmm::v2::Plan& plan,
                                 std::size_t iterations) {
  return execution::Run(random, trace, plan, iterations).run();
}

}  // namespace swapmm::test::general
