// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/v2/simulation/implied_waits.hpp>

#include <algorithm>
#include <limits>
#include <optional>
#include <span>
#include <tuple>

namespace swapmm::v2::simulation {
namespace {

struct PartAccess {
  MemoryId memory;
  std::uint32_t part;
  std::uint32_t operation;
  bool writes;  // or updates
};

/// What the host does at the end of an operation counts as an access to its own memory.
struct HostAccess {
  std::uint32_t operation;
  TensorId tensor;
  bool writes;
};

std::vector<HostAccess> host_accesses(const Trace& trace) {
  std::vector<HostAccess> accesses;
  for (const HostRead& read : trace.host_reads) {
    accesses.push_back({static_cast<std::uint32_t>(read.after_operation), read.tensor, false});
  }
  for (std::size_t t = 0; t < trace.tensors.size(); ++t) {
    if (trace.tensors[t].kind != TensorKind::input) continue;
    const std::size_t given = giving_operation(trace.tensors[t], trace.operations.size());
    accesses.push_back({static_cast<std::uint32_t>(given), id_at<TensorId>(t), true});
  }
  return accesses;
}

/// For each memory, whether operations of two engines or more work in it.
std::vector<bool> shared_memories(const Machine& machine, std::span<const Element> operations,
                                  std::span<const HostAccess> by_host) {
  std::vector<bool> shared(machine.memories.size());
  std::vector<std::optional<EngineId>> seen(machine.memories.size());
  const auto work = [&](EngineId engine, MemoryId memory) {
    std::optional<EngineId>& other = seen[index(memory)];
    if (other && *other != engine) shared[index(memory)] = true;
    other = engine;
  };
  for (const Element& operation : operations) {
    work(*operation.engine, *machine.engines[index(*operation.engine)].memory);
  }
  for (const HostAccess& access : by_host) work(*operations[access.operation].engine, machine.host);
  return shared;
}

/// The accesses in memories that engines share, by memory and part, then in the order of operations.
std::vector<PartAccess> collect_accesses(const Trace& trace, const Machine& machine,
                                         std::span<const Element> operations, const Parts& parts,
                                         std::span<const HostAccess> by_host, const std::vector<bool>& shared) {
  std::vector<PartAccess> accesses;
  for (std::uint32_t i = 0; i < operations.size(); ++i) {
    const MemoryId memory = *machine.engines[index(*operations[i].engine)].memory;
    if (!shared[index(memory)]) continue;
    for_each_access(trace.operations[i], [&](TensorId tensor, Access access) {
      const Parts::Range range = parts.accessed(OperationId{i}, tensor);
      for (std::uint32_t part = range.begin; part < range.end; ++part) {
        accesses.push_back({memory, part, i, access != Access::read});
      }
    });
  }
  for (const HostAccess& access : by_host) {
    if (!shared[index(machine.host)]) break;
    const Parts::Range range = parts.of(access.tensor);
    for (std::uint32_t part = range.begin; part < range.end; ++part) {
      accesses.push_back({machine.host, part, access.operation, access.writes});
    }
  }
  const auto key = [](const PartAccess& access) { return std::tuple(access.memory, access.part, access.operation); };
  std::ranges::sort(accesses, {}, key);
  return accesses;
}

/// The waits between the operations that access one part in one memory. Everything that accessed the part before the
/// last writer has ended when the last writer starts, and what a reader's engine ran before it has ended, too. So it is
/// enough to wait for the last writer, and for the last reader since then on each engine.
class PartOrder {
 public:
  PartOrder(std::span<const Element> operations, std::size_t engines, std::vector<Edge>& edges)
      : operations_(operations), edges_(edges), readers_(engines) {}

  void add(std::span<const PartAccess> accesses) {
    if (std::ranges::none_of(accesses, &PartAccess::writes)) return;
    for (const PartAccess& access : accesses) {
      if (writer_ != nobody) add_edge(access.operation, writer_);
      if (access.writes) {
        for (const EngineId engine : reading_) add_edge(access.operation, *readers_[index(engine)]);
        forget_readers();
        writer_ = access.operation;
      } else {
        std::optional<std::uint32_t>& reader = readers_[index(engine_of(access.operation))];
        if (!reader) reading_.push_back(engine_of(access.operation));
        reader = access.operation;
      }
    }
    forget_readers();
    writer_ = nobody;
  }

 private:
  static constexpr std::uint32_t nobody = std::numeric_limits<std::uint32_t>::max();

  [[nodiscard]] EngineId engine_of(std::uint32_t operation) const { return *operations_[operation].engine; }

  void add_edge(std::uint32_t waiting, std::uint32_t past) {
    if (engine_of(waiting) != engine_of(past)) edges_.push_back({waiting, past, false});
  }

  void forget_readers() {
    for (const EngineId engine : reading_) readers_[index(engine)].reset();
    reading_.clear();
  }

  std::span<const Element> operations_;
  std::vector<Edge>& edges_;
  std::uint32_t writer_ = nobody;
  std::vector<std::optional<std::uint32_t>> readers_;  // of each engine, since the last write
  std::vector<EngineId> reading_;                      // the engines that have one
};

}  // namespace

void add_implied_waits(std::vector<Edge>& edges, const Trace& trace, const Machine& machine,
                       const std::vector<Element>& elements, const Parts& parts) {
  const std::span operations = std::span(elements).first(trace.operations.size());
  const std::vector<HostAccess> by_host = host_accesses(trace);
  const std::vector<bool> shared = shared_memories(machine, operations, by_host);
  if (std::ranges::find(shared, true) == shared.end()) return;
  const std::vector<PartAccess> accesses = collect_accesses(trace, machine, operations, parts, by_host, shared);
  PartOrder order(operations, machine.engines.size(), edges);
  for (auto begin = accesses.begin(); begin != accesses.end();) {
    const auto same = [&](const PartAccess& access) {
      return access.memory == begin->memory && access.part == begin->part;
    };
    const auto end = std::find_if_not(begin, accesses.end(), same);
    order.add({begin, end});
    begin = end;
  }
}

}  // namespace swapmm::v2::simulation
