// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/v2/spread/shared_parts.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include <swapmm/plan/v2/baselines/uses.hpp>
#include <swapmm/plan/v2/engines.hpp>

namespace swapmm::v2::planning {
namespace {

using std::chrono::nanoseconds;

/// The operations of a memory's engines as if one engine ran them, and when they begin.
class PartLine {
 public:
  PartLine(const Trace& trace, const std::vector<Span>& spans, nanoseconds end, const std::vector<OperationId>& run,
           EnginePart& part)
      : spans_(spans), part_(part) {
    const auto behind = id_at<OperationId>(trace.operations.size());
    nanoseconds busy{0};  // until then
    for (std::size_t i = 0; i < run.size(); ++i) {
      const Span& span = spans[index(run[i])];
      // Before the first one, there is always a beginning: what comes from other memories comes after it.
      if (span.start > busy || (i == 0 && index(run[i]) > 0)) add_idle(run[i], busy, span.start);
      busy = std::max(busy, span.end);
      const nanoseconds next = i + 1 < run.size() ? spans[index(run[i + 1])].start : busy;
      const TraceOperation& operation = trace.operations[index(run[i])];
      add(run[i], operation.name, span.start, std::min(busy, next));
    }
    if (end > busy) add_idle(behind, busy, end);
  }

  /// The position in the part of an operation of the whole trace that runs there.
  [[nodiscard]] std::uint32_t at(OperationId operation) const {
    auto found = std::ranges::lower_bound(part_.operations, operation);
    while (idle_[static_cast<std::size_t>(found - part_.operations.begin())]) ++found;
    return static_cast<std::uint32_t>(found - part_.operations.begin());
  }

  /// The first position that begins at this time or later, and is in the order behind this operation.
  [[nodiscard]] std::uint32_t first_from(nanoseconds time, OperationId behind) const {
    const auto in_time = std::ranges::lower_bound(starts_, time) - starts_.begin();
    const auto in_order = std::ranges::upper_bound(part_.operations, behind) - part_.operations.begin();
    return static_cast<std::uint32_t>(std::max(in_time, in_order));
  }

  /// Operations, without tensors or with them, that come before this one of the whole trace, or are it.
  [[nodiscard]] std::uint32_t count_to(OperationId operation) const {
    const auto found = std::ranges::upper_bound(part_.operations, operation);
    return static_cast<std::uint32_t>(found - part_.operations.begin());
  }

  /// A tensor that stays after an operation that uses it.
  struct Kept {
    TensorId tensor{};
    std::uint32_t operation = 0;
    nanoseconds until{0};
  };

  /// What an operation uses stays there until it ends, even if others have begun, and what leaves until it has left:
  /// `leaving` has these. Not if the memory has too little room for it.
  void keep_tensors(const std::vector<Kept>& leaving, const Memory& memory) {
    const auto size_of = [&](TensorId tensor) {
      return round_up(part_.trace.tensors[index(tensor)].bytes, memory.alignment);
    };
    std::vector<Kept> kept;
    std::vector<TraceOperation>& operations = part_.trace.operations;
    auto left = leaving.begin();
    for (std::uint32_t i = 0; i < operations.size(); ++i) {
      std::erase_if(kept, [&](const Kept& it) { return it.until <= starts_[i]; });
      std::vector<TensorId> used;
      Bytes bytes;
      const auto use = [&](TensorId tensor) {
        used.push_back(tensor);
        bytes += size_of(tensor);
      };
      for_each_access(operations[i], [&](TensorId tensor, Access) { use(tensor); });
      const std::size_t own = used.size();
      for (const Kept& it : kept) {
        const bool is_known = std::ranges::find(used, it.tensor) != used.end();
        if (is_known || bytes + size_of(it.tensor) > *memory.bytes) continue;
        use(it.tensor);
        operations[i].reads.push_back(it.tensor);
      }
      if (idle_[i]) continue;
      const nanoseconds end = spans_[index(part_.operations[i])].end;
      for (std::size_t u = 0; u < own; ++u) kept.push_back({used[u], i, end});
      for (; left != leaving.end() && left->operation == i; ++left) kept.push_back(*left);
    }
  }

 private:
  void add(OperationId id, std::string name, nanoseconds from, nanoseconds to) {
    TraceOperation& operation = part_.trace.operations.emplace_back();
    operation.name = std::move(name);
    operation.duration = to - from;
    part_.operations.push_back(id);
    starts_.push_back(from);
    idle_.push_back(false);
  }
  void add_idle(OperationId next, nanoseconds from, nanoseconds to) {
    add(next, "idle", from, to);
    idle_.back() = true;
  }

  const std::vector<Span>& spans_;
  EnginePart& part_;
  std::vector<nanoseconds> starts_;
  std::vector<bool> idle_;
};

/// What operations do with a tensor.
struct Touch {
  OperationId operation{};
  MemoryId memory{};
  Access access{};
  bool needs_value = false;
};

class SharedPartsMaker {
 public:
  SharedPartsMaker(const Trace& trace, const Machine& machine, const Timeline& line, WhatLeaves kept)
      : trace_(trace),
        machine_(machine),
        line_(line),
        kept_(kept),
        engines_(trace, machine),
        uses_(trace),
        touches_(trace.tensors.size()),
        read_after_(trace.tensors.size()) {}

  Result<SharedParts> run() {
    std::map<MemoryId, std::vector<OperationId>> runs;
    for (std::size_t i = 0; i < trace_.operations.size(); ++i) {
      const auto id = id_at<OperationId>(i);
      const MemoryId memory = engines_.memory(id);
      if (memory != machine_.host) {
        if (!machine_.memories[index(memory)].bytes) {
          return Problem{"memory " + machine_.memories[index(memory)].name +
                         " has no limit and is not the host, and operations run there"};
        }
        runs[memory].push_back(id);
      }
      for_each_access(trace_.operations[i], [&](TensorId tensor, Access access) {
        touches_[index(tensor)].push_back(
            {id, memory, access, access != Access::write || !uses_.writes_whole(tensor, id)});
      });
    }
    if (runs.empty()) return Problem{"all operations run in the host"};
    for (const HostRead& read : trace_.host_reads) read_after_[index(read.tensor)].push_back(read.after_operation);
    result_.parts.reserve(runs.size());
    for (const auto& [memory, operations] : runs) {
      EnginePart& part = result_.parts.emplace_back();
      part.memory = memory;
      part.engine = engines_.engine(operations.front());
      part.trace.name = trace_.name;
      lines_.emplace_back(trace_, line_.spans, line_.end, operations, part);
      part_of_[memory] = result_.parts.size() - 1;
    }
    for (std::size_t t = 0; t < trace_.tensors.size(); ++t) {
      if (const auto problem = add_tensor(id_at<TensorId>(t))) return *problem;
    }
    std::ranges::sort(result_.leaving, {}, [](const LeavingValue& value) {
      return std::tuple(value.part, index(value.tensor), value.after);
    });
    result_.leaving.erase(std::unique(result_.leaving.begin(), result_.leaving.end()), result_.leaving.end());
    for (const LeavingValue& value : result_.leaving) {
      result_.parts[value.part].trace.host_reads.push_back({value.tensor, OperationId{value.after}});
    }
    for (std::size_t part = 0; part < lines_.size(); ++part) keep_tensors(part);
    return std::move(result_);
  }

 private:
  /// A new tensor of the part.
  TensorId add_to(std::size_t part, TensorId tensor, TensorKind kind, std::uint32_t available_from) {
    EnginePart& to = result_.parts[part];
    TraceTensor& added = to.trace.tensors.emplace_back(trace_.tensors[index(tensor)]);
    added.kind = kind;
    added.available_from = available_from;
    to.tensors.push_back(tensor);
    return id_at<TensorId>(to.tensors.size() - 1);
  }

  void add_access(std::size_t part, TensorId in_part, const Touch& touch) {
    TraceOperation& operation = result_.parts[part].trace.operations[lines_[part].at(touch.operation)];
    const bool writes = touch.access == Access::write && !touch.needs_value;
    auto& list = touch.access == Access::read ? operation.reads : writes ? operation.writes : operation.updates;
    list.push_back(in_part);
  }

  std::optional<Problem> add_tensor(TensorId tensor) {
    const std::vector<Touch>& touches = touches_[index(tensor)];
    const auto is_elsewhere = [&](const Touch& touch) { return touch.memory != touches.front().memory; };
    if (std::ranges::find(touches, machine_.host, &Touch::memory) != touches.end()) result_.in_host.push_back(tensor);
    if (touches.empty()) {
      // What the host gives or reads needs a place.
      const bool is_known =
          trace_.tensors[index(tensor)].kind == TensorKind::input || !read_after_[index(tensor)].empty();
      return is_known ? add_alone(tensor, 0) : std::nullopt;
    }
    if (std::ranges::none_of(touches, is_elsewhere)) {
      const auto part = part_of_.find(touches.front().memory);
      return part == part_of_.end() ? std::nullopt : add_alone(tensor, part->second);
    }
    add_shared(tensor);
    return std::nullopt;
  }

  /// A tensor of one memory.
  std::optional<Problem> add_alone(TensorId tensor, std::size_t part) {
    const TraceTensor& whole = trace_.tensors[index(tensor)];
    std::uint32_t from = 0;
    if (whole.available_from > 0) from = from_then(part, OperationId{whole.available_from - 1});
    const TensorId in_part = add_to(part, tensor, whole.kind, from);
    for (const Touch& touch : touches_[index(tensor)]) add_access(part, in_part, touch);
    for (const OperationId after : read_after_[index(tensor)]) {
      const std::uint32_t ended = lines_[part].count_to(after);
      // Before the first operation, the value is the one that the iteration before has left.
      if (ended == 0) return Problem{"the host reads a value of the iteration before"};
      result_.parts[part].trace.host_reads.push_back({in_part, OperationId{ended - 1}});
    }
    return std::nullopt;
  }

  /// The position in the part from which on something is there that is in the host when the operation ends.
  [[nodiscard]] std::uint32_t from_then(std::size_t part, OperationId operation) const {
    return lines_[part].first_from(line_.spans[index(operation)].end, operation);
  }

  /// A tensor of several memories.
  void add_shared(TensorId tensor) {
    const TraceTensor& whole = trace_.tensors[index(tensor)];
    const std::vector<Touch>& touches = touches_[index(tensor)];
    const bool persists = whole.kind == TensorKind::persistent;
    std::optional<std::size_t> last_write;  // position in touches
    bool has_one_writer = true;
    for (std::size_t i = 0; i < touches.size(); ++i) {
      if (touches[i].access == Access::read) continue;
      has_one_writer = has_one_writer && (!last_write || touches[*last_write].memory == touches[i].memory);
      last_write = i;
    }
    const auto is_home = [&](MemoryId memory) {
      return persists && (!last_write || (has_one_writer && touches[*last_write].memory == memory));
    };
    // What each memory has: the tensor of its part, and the write (as a position) whose value it holds.
    struct Held {
      TensorId in_part{};
      std::optional<std::size_t> value;
    };
    std::map<MemoryId, Held> held;
    std::map<std::size_t, TensorId> written_in;      // the tensor of the part, of each write
    std::vector<std::optional<std::size_t>> leaves;  // writes whose values are needed elsewhere; none: see below
    std::optional<std::size_t> value;                // the current one; none: of the iteration before, or given
    for (std::size_t i = 0; i < touches.size(); ++i) {
      const Touch& touch = touches[i];
      const bool is_managed = touch.memory != machine_.host;
      const std::size_t part = is_managed ? part_of_.at(touch.memory) : 0;
      auto found = held.find(touch.memory);
      const bool is_here = found != held.end() && (!touch.needs_value || found->second.value == value);
      if (!is_here && is_managed) {
        Held fresh{};
        if (is_home(touch.memory)) {
          fresh.in_part = add_to(part, tensor, TensorKind::persistent, 0);
        } else if (touch.needs_value) {
          fresh.in_part = add_to(part, tensor, TensorKind::input, input_from(part, tensor, touches, i, value));
        } else {
          fresh.in_part = add_to(part, tensor, TensorKind::transient, 0);
        }
        found = held.insert_or_assign(touch.memory, fresh).first;
      } else if (!is_here) {
        found = held.insert_or_assign(touch.memory, Held{}).first;
      }
      const bool comes_from_elsewhere = !is_here && touch.needs_value && !is_home(touch.memory);
      if (comes_from_elsewhere) leaves.push_back(value);
      found->second.value = value;
      if (is_managed) add_access(part, found->second.in_part, touch);
      if (touch.access == Access::read) continue;
      value = i;
      found->second.value = value;
      if (is_managed) written_in.emplace(i, found->second.in_part);
    }
    for (const OperationId after : read_after_[index(tensor)]) {
      std::optional<std::size_t> read;
      for (std::size_t i = 0; i < touches.size() && touches[i].operation <= after; ++i) {
        if (touches[i].access != Access::read) read = i;
      }
      leaves.push_back(read);
    }
    if (persists && !has_one_writer) leaves.push_back(last_write);
    for (std::optional<std::size_t> write : leaves) {
      if (!write && persists) write = last_write;  // of the iteration before
      if (!write) continue;
      const auto made = written_in.find(*write);
      if (made == written_in.end()) continue;  // in the host
      const std::size_t part = part_of_.at(touches[*write].memory);
      result_.leaving.push_back({part, made->second, lines_[part].at(touches[*write].operation)});
    }
  }

  /// From which operation of the part on a value that touch `first` needs, and a write elsewhere makes, is in the host.
  [[nodiscard]] std::uint32_t input_from(std::size_t part, TensorId tensor, const std::vector<Touch>& touches,
                                         std::size_t first, std::optional<std::size_t> write) const {
    const TraceTensor& whole = trace_.tensors[index(tensor)];
    if (!write) return whole.available_from == 0 ? 0 : from_then(part, OperationId{whole.available_from - 1});
    const Touch& made = touches[*write];
    nanoseconds time = line_.spans[index(made.operation)].end;
    if (made.memory != machine_.host) {
      time += hand_over_time(machine_, made.memory, machine_.host, whole.bytes).value_or(nanoseconds{0});
    }
    const std::uint32_t latest = lines_[part].at(touches[first].operation);
    return std::clamp<std::uint32_t>(lines_[part].first_from(time, made.operation), std::min(1U, latest), latest);
  }

  void keep_tensors(std::size_t number) {
    const EnginePart& part = result_.parts[number];
    std::vector<PartLine::Kept> leaving;
    for (const LeavingValue& value : result_.leaving) {
      if (value.part != number || kept_ == WhatLeaves::leaves_at_once) continue;
      const Span& made = line_.spans[index(part.operations[value.after])];
      const Bytes bytes = part.trace.tensors[index(value.tensor)].bytes;
      const auto time = hand_over_time(machine_, part.memory, machine_.host, bytes).value_or(nanoseconds{0});
      leaving.push_back({value.tensor, value.after, made.end + time});
    }
    std::ranges::stable_sort(leaving, {}, &PartLine::Kept::operation);
    lines_[number].keep_tensors(leaving, machine_.memories[index(part.memory)]);
  }

  const Trace& trace_;
  const Machine& machine_;
  const Timeline& line_;
  const WhatLeaves kept_;
  const detail::Engines engines_;
  const Uses uses_;
  std::vector<std::vector<Touch>> touches_;           // of each tensor, in the order of operations
  std::vector<std::vector<OperationId>> read_after_;  // by the host, of each tensor
  std::map<MemoryId, std::size_t> part_of_;
  std::vector<PartLine> lines_;  // of each part
  SharedParts result_;
};

}  // namespace

Result<SharedParts> shared_parts(const OrderedProgram& program, const Machine& machine, WhatLeaves kept) {
  return SharedPartsMaker(program.trace, machine, program.line, kept).run();
}

}  // namespace swapmm::v2::planning
