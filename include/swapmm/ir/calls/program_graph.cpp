// SPDX-License-Identifier: Apache-2.0
#include <swapmm/ir/calls/program_graph.hpp>

#include <algorithm>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>

namespace swapmm::calls {
namespace {

constexpr std::uint64_t out_of_order = 1;  // a flag of queues (docs/formats.md)
constexpr std::uint64_t holds_later = 1;   // a flag of marks

class Builder {
 public:
  Builder(const CallLog& log, const Run& run) : log_(log), run_(run) {}

  ProgramGraph build() && {
    for (std::size_t i = 0; i < run_.storages.size(); ++i) {
      graph_.places.push_back({false, static_cast<std::uint32_t>(i), 0, run_.storages[i].bytes});
    }
    current_.resize(graph_.places.size());
    note_queues();
    graph_.flow.operations.resize(run_.operations.size());
    for (std::size_t i = 0; i < run_.operations.size(); ++i) add(id_at<OperationId>(i));
    graph_.ended_by.resize(graph_.flow.data.size());
    for (std::size_t i = 0; i < run_.storages.size(); ++i) {
      if (current_[i]) graph_.ended_by[index(*current_[i])] = run_.storages[i].released;
    }
    return std::move(graph_);
  }

 private:
  struct Queue {
    Object context = 0;
    bool in_order = true;
    std::optional<OperationId> last;     // of a queue in order
    std::optional<OperationId> barrier;  // of one out of order
    std::vector<OperationId> since;      // of one out of order: behind the barrier
  };

  void note_queues() {
    for (const Call& call : log_.calls) {
      if (call.kind != CallKind::create || call.object_kind != ObjectKind::queue) continue;
      queues_[call.object] = {call.parent, (call.flags & out_of_order) == 0, {}, {}, {}};
    }
  }

  void add(OperationId id) {
    const RunOperation& operation = run_.operations[index(id)];
    const Call& call = log_.calls[operation.call];
    OperationNode& links = graph_.flow.operations[index(id)];
    const auto take = [&](std::size_t place) {
      const DataId value = value_of(place);
      graph_.flow.data[index(value)].used_by.push_back(id);
      links.takes.push_back(value);
    };
    const std::vector<StorageAccess> accesses = combined(operation);
    if (operation.host_writes && call.host) take(host_source(*call.host));
    for (const StorageAccess& access : accesses) {
      if (access.access != Access::write) take(access.storage);
    }
    for (const StorageAccess& access : accesses) {
      if (access.access != Access::read) links.gives.push_back(new_version(access.storage, id));
    }
    if (operation.host_reads && call.host) {
      const std::size_t place = host_place(*call.host);
      links.gives.push_back(new_version(place, id));
      digests_[place] = call.host->digest;
    }
    order(id, call);
  }

  void order(OperationId id, const Call& call) {
    const auto edge = [&](OperationId from, OrderEdge::Reason reason) { graph_.order.push_back({from, id, reason}); };
    Object context = call.parent;
    if (const auto found = queues_.find(call.queue); found != queues_.end()) {
      Queue& queue = found->second;
      context = queue.context;
      if (queue.in_order) {
        if (queue.last) edge(*queue.last, OrderEdge::Reason::queue);
        queue.last = id;
      } else {
        order_out_of_order(id, call, queue, edge);
      }
    }
    for (const Object event : call.waits) {
      if (const auto from = events_.find(event); from != events_.end()) edge(from->second, OrderEdge::Reason::event);
    }
    if (call.event != 0) events_[call.event] = id;
    graph_.queues.push_back(call.queue);
    graph_.contexts.push_back(context);
  }

  template <class Edge>
  static void order_out_of_order(OperationId id, const Call& call, Queue& queue, Edge edge) {
    const bool is_barrier = call.kind == CallKind::mark && (call.flags & holds_later) != 0;
    if (queue.barrier) edge(*queue.barrier, OrderEdge::Reason::queue);
    if (call.kind == CallKind::mark && call.waits.empty()) {
      for (const OperationId before : queue.since) edge(before, OrderEdge::Reason::queue);
    }
    if (is_barrier) {
      queue.barrier = id;
      if (call.waits.empty()) queue.since.clear();  // the barrier comes after them
    } else {
      queue.since.push_back(id);
    }
  }

  std::size_t host_place(const HostData& host) {
    const auto [found, is_new] = hosts_.try_emplace({host.address, host.bytes}, graph_.places.size());
    if (is_new) {
      graph_.places.push_back({true, 0, host.address, host.bytes});
      current_.emplace_back();
    }
    return found->second;
  }

  // The host may have written to its memory at any time.
  std::size_t host_source(const HostData& host) {
    const std::size_t place = host_place(host);
    std::string& digest = digests_[place];
    if (host.digest.empty() || digest != host.digest || !current_[place]) new_version(place, std::nullopt);
    digest = host.digest;
    return place;
  }

  DataId value_of(std::size_t place) { return current_[place] ? *current_[place] : new_version(place, std::nullopt); }

  DataId new_version(std::size_t place, std::optional<OperationId> made_by) {
    std::optional<DataId>& current = current_[place];
    DataNode value;
    value.tensor = id_at<TensorId>(place);
    value.version = current ? graph_.flow.data[index(*current)].version + 1 : 0;
    value.made_by = made_by;
    current = id_at<DataId>(graph_.flow.data.size());
    graph_.flow.data.push_back(std::move(value));
    return *current;
  }

  const CallLog& log_;
  const Run& run_;
  ProgramGraph graph_;
  std::vector<std::optional<DataId>> current_;  // of each place
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::size_t> hosts_;
  std::unordered_map<std::size_t, std::string> digests_;  // of host memory
  std::unordered_map<Object, Queue> queues_;
  std::unordered_map<Object, OperationId> events_;
};

}  // namespace

ProgramGraph make_program_graph(const CallLog& log, const Run& run) { return Builder(log, run).build(); }

}  // namespace swapmm::calls
