// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/v2/schedule/waits.hpp>

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <utility>

#include <swapmm/plan/v2/engines.hpp>

namespace swapmm::v2::planning {
namespace {

/// What an iteration leaves is what the next one begins with after two of them. The third one's waits are those of all.
constexpr int iterations = 3;

/// An operation or a command of some iteration.
struct Step {
  bool is_command = false;
  std::uint32_t index = 0;
  int iteration = 0;
};

struct PlaceUses {
  MemoryId memory{};
  Bytes offset;
  std::optional<Step> put;   // what put the value there, or took the place
  std::vector<Step> uses{};  // since then
};

class WaitWriter {
 public:
  WaitWriter(const Trace& trace, const Machine& machine, SerialPlan& plan)
      : trace_(trace),
        machine_(machine),
        plan_(plan),
        engines_(trace, machine),
        places_(trace.tensors.size()),
        given_back_(machine.memories.size()),
        given_(trace.operations.size()),
        read_by_host_(trace.operations.size()) {
    for (const TraceTensor& tensor : trace.tensors) largest_ = std::max(largest_, tensor.bytes.value);
    for (const Place& place : plan.initial) use_of(place.tensor, place.memory).offset = place.offset;
    for (std::size_t t = 0; t < trace.tensors.size(); ++t) {
      if (trace.tensors[t].kind != TensorKind::input) continue;
      given_[giving_operation(trace.tensors[t], trace.operations.size())].push_back(id_at<TensorId>(t));
    }
    for (const HostRead& read : trace.host_reads) read_by_host_[index(read.after_operation)].push_back(read.tensor);
  }

  void run() {
    for (iteration_ = 0; iteration_ < iterations; ++iteration_) {
      std::uint32_t j = 0;
      for (std::uint32_t i = 0; i <= trace_.operations.size(); ++i) {
        for (; j < plan_.commands.size() && plan_.before[j] == i; ++j) command(j);
        if (i < trace_.operations.size()) operation(i);
      }
    }
    for (std::size_t c = 0; c < plan_.commands.size(); ++c) {
      Command& command = plan_.commands[c];
      if (command.kind == CommandKind::copy) {
        const std::size_t engine = index(engine_of(machine_, command.link));
        if (engine < machine_.engines.size() && machine_.engines[engine].memory) command.position = plan_.before[c];
      }
      std::vector<std::uint32_t>& before = command.before_operations;
      std::ranges::sort(before);
      before.erase(std::unique(before.begin(), before.end()), before.end());
    }
  }

 private:
  PlaceUses& use_of(TensorId tensor, MemoryId memory) {
    std::vector<PlaceUses>& places = places_[index(tensor)];
    const auto found = std::ranges::find(places, memory, &PlaceUses::memory);
    if (found != places.end()) return *found;
    places.push_back({memory, Bytes{0}, std::nullopt});
    return places.back();
  }
  [[nodiscard]] bool limited(MemoryId memory) const { return machine_.memories[index(memory)].bytes.has_value(); }

  /// `step` waits for `earlier`. Operations need not wait for others: their engines and rule 2 see to that.
  void wait(const Step& step, const Step& earlier) {
    const int back = step.iteration - earlier.iteration;
    if (iteration_ + 1 < iterations || back > 1) return;
    const auto n = static_cast<std::uint32_t>(trace_.operations.size());
    if (!step.is_command) {
      if (!earlier.is_command) return;
      plan_.commands[earlier.index].before_operations.push_back(step.index + (back == 1 ? n : 0));
      return;
    }
    Wait wait;
    if (earlier.is_command) {
      wait = {Wait::On::command, back == 1, static_cast<std::int32_t>(earlier.index)};
    } else {
      wait = {Wait::On::operation, false,
              static_cast<std::int32_t>(earlier.index) - (back == 1 ? static_cast<std::int32_t>(n) : 0)};
    }
    std::vector<Wait>& after = plan_.commands[step.index].after;
    if (std::ranges::find(after, wait) == after.end()) after.push_back(wait);
  }
  void wait_for_all(const Step& step, const PlaceUses& place) {
    if (place.put) wait(step, *place.put);
    for (const Step& use : place.uses) wait(step, use);
  }

  void put(const Step& step, PlaceUses& place) {
    wait_for_all(step, place);
    place.put = step;
    place.uses.clear();
  }
  void use(const Step& step, PlaceUses& place) {
    if (place.put) wait(step, *place.put);
    place.uses.push_back(step);
  }

  /// Takes bytes: waits for whatever had one of them.
  void take(const Step& step, TensorId tensor, MemoryId memory, Bytes offset) {
    PlaceUses& place = use_of(tensor, memory);
    put(step, place);
    place.offset = offset;
    const std::uint64_t end = offset.value + trace_.tensors[index(tensor)].bytes.value;
    auto& freed = given_back_[index(memory)];
    // What begins before that ends before it, too.
    const std::uint64_t first = offset.value - std::min(offset.value, largest_);
    for (auto at = freed.lower_bound({first, 0}); at != freed.end() && at->first.first < end;) {
      if (at->first.second <= offset.value) {
        ++at;
        continue;
      }
      wait(step, at->second);
      const bool covered = at->first.first >= offset.value && at->first.second <= end;
      at = covered ? freed.erase(at) : std::next(at);
    }
  }
  void give_back(const Step& step, TensorId tensor, MemoryId memory) {
    PlaceUses& place = use_of(tensor, memory);
    put(step, place);
    const std::uint64_t begin = place.offset.value;
    const std::uint64_t end = begin + trace_.tensors[index(tensor)].bytes.value;
    if (begin != end) given_back_[index(memory)][{begin, end}] = step;
  }

  void command(std::uint32_t j) {
    const Command command = plan_.commands[j];
    const Step step{true, j, iteration_};
    switch (command.kind) {
      case CommandKind::allocate: take(step, command.tensor, command.memory, *command.offset); break;
      case CommandKind::release: give_back(step, command.tensor, command.memory); break;
      case CommandKind::copy: {
        const Link& link = machine_.links[index(command.link)];
        use(step, use_of(command.tensor, link.from));
        if (command.offset) {
          take(step, command.tensor, link.to, *command.offset);
        } else {
          put(step, use_of(command.tensor, link.to));
        }
        break;
      }
      case CommandKind::run:
      case CommandKind::encode:
      case CommandKind::decode: break;
    }
  }

  void operation(std::uint32_t i) {
    const Step step{false, i, iteration_};
    const MemoryId memory = engines_.memory(OperationId{i});
    for_each_access(trace_.operations[i], [&](TensorId tensor, Access access) {
      PlaceUses& place = use_of(tensor, memory);
      if (access == Access::read) {
        use(step, place);
      } else {
        put(step, place);
      }
    });
    for (const TensorId tensor : read_by_host_[i]) use_of(tensor, machine_.host).uses.push_back(step);
    for (const TensorId tensor : given_[i]) put(step, use_of(tensor, machine_.host));
  }

  const Trace& trace_;
  const Machine& machine_;
  SerialPlan& plan_;
  const detail::Engines engines_;
  int iteration_ = 0;
  std::uint64_t largest_ = 0;                   // bytes of the largest tensor
  std::vector<std::vector<PlaceUses>> places_;  // of each tensor
  /// For each memory: ranges of bytes that were given back and not wholly taken again, and by what.
  std::vector<std::map<std::pair<std::uint64_t, std::uint64_t>, Step>> given_back_;
  std::vector<std::vector<TensorId>> given_;         // inputs, by operation
  std::vector<std::vector<TensorId>> read_by_host_;  // by operation
};

}  // namespace

void write_waits(const Trace& trace, const Machine& machine, SerialPlan& plan) {
  WaitWriter(trace, machine, plan).run();
}

void write_waits(const Trace& trace, Plan& plan) {
  SerialPlan serial{std::move(plan.commands), {}, std::move(plan.initial)};
  std::uint32_t before = 0;
  for (Command& command : serial.commands) {
    for (const Wait& wait : command.after) {
      if (wait.on == Wait::On::operation && wait.index >= 0) {
        before = std::max(before, static_cast<std::uint32_t>(wait.index) + 1);
      }
    }
    command.after.clear();
    command.before_operations.clear();
    serial.before.push_back(before);
  }
  write_waits(trace, plan.machine, serial);
  plan.commands = std::move(serial.commands);
  plan.initial = std::move(serial.initial);
}

}  // namespace swapmm::v2::planning
