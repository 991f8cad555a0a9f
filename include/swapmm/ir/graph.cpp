// SPDX-License-Identifier: Apache-2.0
#include <swapmm/ir/graph.hpp>

#include <algorithm>
#include <utility>

namespace swapmm {
namespace {

/// Goes through the iteration from begin to end. `current_` has the value of each tensor at that point.
class Builder {
 public:
  explicit Builder(const Trace& trace)
      : trace_(trace), current_(trace.tensors.size()), first_(trace.tensors.size()), host_reads_(trace.host_reads) {
    std::stable_sort(host_reads_.begin(), host_reads_.end(),
                     [](const HostRead& a, const HostRead& b) { return a.after_operation < b.after_operation; });
  }

  Graph build() && {
    auto next_read = host_reads_.begin();
    graph_.operations.resize(trace_.operations.size());
    for (std::size_t i = 0; i < trace_.operations.size(); ++i) {
      add(id_at<OperationId>(i));
      for (; next_read != host_reads_.end() && index(next_read->after_operation) == i; ++next_read) {
        node(value_of(next_read->tensor)).host_reads.push_back(next_read->after_operation);
      }
    }
    carry();
    return std::move(graph_);
  }

 private:
  DataNode& node(DataId id) { return graph_.data[index(id)]; }

  void add(OperationId id) {
    const TraceOperation& operation = trace_.operations[index(id)];
    OperationNode& links = graph_.operations[index(id)];
    const auto take = [&](TensorId tensor) {
      const DataId value = value_of(tensor);
      node(value).used_by.push_back(id);
      links.takes.push_back(value);
    };
    for (const TensorId tensor : operation.reads) take(tensor);
    for (const TensorId tensor : operation.updates) take(tensor);
    for (const TensorId tensor : operation.writes) links.gives.push_back(new_version(tensor, id));
    for (const TensorId tensor : operation.updates) links.gives.push_back(new_version(tensor, id));
  }

  /// The tensor's value at this point. The first value in an iteration comes from outside.
  DataId value_of(TensorId tensor) {
    const std::optional<DataId> value = current_[index(tensor)];
    if (value) return *value;
    const DataId outside = new_version(tensor, std::nullopt);
    first_[index(tensor)] = outside;
    return outside;
  }

  DataId new_version(TensorId tensor, std::optional<OperationId> made_by) {
    std::optional<DataId>& current = current_[index(tensor)];
    DataNode value;
    value.tensor = tensor;
    value.version = current ? node(*current).version + 1 : 0;
    value.made_by = made_by;
    current = id_at<DataId>(graph_.data.size());
    graph_.data.push_back(std::move(value));
    return *current;
  }

  void carry() {
    for (std::size_t t = 0; t < trace_.tensors.size(); ++t) {
      if (trace_.tensors[t].kind == TensorKind::persistent && first_[t]) node(*current_[t]).carried_to = first_[t];
    }
  }

  const Trace& trace_;
  std::vector<std::optional<DataId>> current_;
  std::vector<std::optional<DataId>> first_;  ///< the value from outside the iteration, if it is used
  std::vector<HostRead> host_reads_;          ///< ascending by operation
  Graph graph_;
};

}  // namespace

Graph make_graph(const Trace& trace) { return Builder(trace).build(); }

}  // namespace swapmm
