// SPDX-License-Identifier: Apache-2.0
#include <swapmm/ir/calls/window.hpp>

#include <algorithm>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

namespace swapmm::calls {
namespace {

/// What the operations do with one storage.
struct Use {
  std::optional<Access> first;  ///< in the window
  std::size_t host_writes = 0;  ///< in the window
  bool begins_with_host = false;
  bool is_needed_later = false;  ///< the next access behind the window needs the value
  TensorId tensor{};
};

class WindowBuilder {
 public:
  WindowBuilder(const CallLog& log, const Run& run, std::size_t first, std::size_t count)
      : log_(log), run_(run), first_(first), end_(first + count) {}

  TraceWindow build() && {
    for (std::size_t i = first_; i < end_; ++i) look_at(run_.operations[i]);
    look_behind();
    make_tensors();
    values_ = std::vector<bool>(run_.storages.size());
    for (std::size_t i = first_; i < end_; ++i) add(i);
    for (TraceTensor& tensor : window_.trace.tensors) {
      if (tensor.available_from < window_.trace.operations.size()) continue;
      tensor.available_from = 0;  // no operation uses the value
      tensor.kind = TensorKind::transient;
    }
    return std::move(window_);
  }

 private:
  [[nodiscard]] bool is_tensor(std::uint32_t storage) const {
    return run_.storages[storage].kind == ObjectKind::buffer && run_.storages[storage].bytes != 0;
  }

  // Of a buffer that was made in the window and has no value yet, all that an operation can do is write.
  [[nodiscard]] Access effective(const StorageAccess& access, bool has_value) const {
    const bool is_new = run_.storages[access.storage].created >= run_.operations[first_].call;
    return is_new && !has_value && access.access == Access::update ? Access::write : access.access;
  }

  void look_at(const RunOperation& operation) {
    for (const StorageAccess& access : combined(operation)) {
      if (!is_tensor(access.storage)) continue;
      const auto [found, is_new] = uses_.try_emplace(access.storage);
      if (is_new) order_.push_back(access.storage);
      Use& use = found->second;
      if (!use.first) {
        use.first = effective(access, false);
        use.begins_with_host = operation.host_writes;
      }
      if (operation.host_writes) ++use.host_writes;
    }
  }

  // Of what is not used behind the window, nothing is needed.
  void look_behind() {
    std::size_t open = 0;
    for (const auto& [storage, use] : uses_) {
      const auto& released = run_.storages[storage].released;
      if (!released || end_ >= run_.operations.size() || *released > run_.operations[end_ - 1].call) ++open;
    }
    std::unordered_map<std::uint32_t, bool> seen;
    for (std::size_t i = end_; i < run_.operations.size() && seen.size() < open; ++i) {
      for (const StorageAccess& access : combined(run_.operations[i])) {
        const auto use = uses_.find(access.storage);
        if (use == uses_.end() || !seen.try_emplace(access.storage).second) continue;
        use->second.is_needed_later = access.access != Access::write;
      }
    }
  }

  void make_tensors() {
    for (const std::uint32_t storage : order_) {
      Use& use = uses_[storage];
      const bool is_needed_before = *use.first != Access::write;
      TraceTensor tensor;
      tensor.name = "buffer " + std::to_string(run_.storages[storage].object);
      tensor.bytes = Bytes{run_.storages[storage].bytes};
      if (is_needed_before || use.is_needed_later) {
        tensor.kind = TensorKind::persistent;
      } else if (use.begins_with_host && use.host_writes == 1) {
        tensor.kind = TensorKind::input;
      }
      use.tensor = id_at<TensorId>(window_.trace.tensors.size());
      window_.trace.tensors.push_back(std::move(tensor));
    }
  }

  void add(std::size_t position) {
    const RunOperation& operation = run_.operations[position];
    const Call& call = log_.calls[operation.call];
    if (operation.host_reads) return add_host_read(operation);
    TraceOperation made;
    made.name = call.name.empty() || call.kind != CallKind::launch ? call.function : call.name;
    for (const StorageAccess& access : combined(operation)) {
      if (!is_tensor(access.storage)) continue;
      const Use& use = uses_[access.storage];
      TraceTensor& tensor = window_.trace.tensors[index(use.tensor)];
      if (operation.host_writes && tensor.kind == TensorKind::input) {
        tensor.available_from = static_cast<std::uint32_t>(window_.trace.operations.size());
        values_[access.storage] = true;
        continue;
      }
      const Access does = effective(access, values_[access.storage]);
      values_[access.storage] = true;
      if (call.kind == CallKind::launch && does == Access::update) ++window_.unknown_writes;
      auto& list = does == Access::read ? made.reads : does == Access::write ? made.writes : made.updates;
      list.push_back(use.tensor);
    }
    if (made.reads.empty() && made.writes.empty() && made.updates.empty()) return;
    window_.trace.operations.push_back(std::move(made));
    window_.operations.push_back(position);
  }

  // An input that no operation has used is on the host already.
  void add_host_read(const RunOperation& operation) {
    for (const StorageAccess& access : combined(operation)) {
      if (!is_tensor(access.storage)) continue;
      const Use& use = uses_[access.storage];
      const TraceTensor& tensor = window_.trace.tensors[index(use.tensor)];
      const std::size_t before = window_.trace.operations.size();
      const bool has_value = tensor.kind == TensorKind::persistent ||
                             (tensor.kind == TensorKind::transient && values_[access.storage]) ||
                             (tensor.kind == TensorKind::input && tensor.available_from < before);
      if (before == 0 || !has_value) {
        ++window_.skipped_reads;
        continue;
      }
      window_.trace.host_reads.push_back({use.tensor, id_at<OperationId>(before - 1)});
    }
  }

  const CallLog& log_;
  const Run& run_;
  std::size_t first_;
  std::size_t end_;
  TraceWindow window_;
  std::unordered_map<std::uint32_t, Use> uses_;  // by storage
  std::vector<std::uint32_t> order_;             // of their first use
  std::vector<bool> values_;                     // whether the storage got one in the window
};

}  // namespace

TraceWindow make_window(const CallLog& log, const Run& run, std::size_t first, std::size_t count) {
  return WindowBuilder(log, run, first, count).build();
}

}  // namespace swapmm::calls
