// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include <swapmm/backend/backend.hpp>
#include <swapmm/runtime/moves/role_binding.hpp>
#include <swapmm/runtime/observe/log.hpp>
#include <swapmm/runtime/observe/log_tensor.hpp>
#include <swapmm/runtime/observe/program.hpp>

namespace swapmm::runtime {

/// Logs events of a followed plan as if they had been observed: those of an iteration before its plan was left.
template <Backend B>
class FollowedLog {
 public:
  /// `iteration`: its number. `epoch`: the epoch of `log`, see Recorder.
  FollowedLog(const Program& program, const RoleBinding<B>& roles, std::uint64_t iteration, IterationLog& log,
              std::uint64_t epoch)
      : program_(program), roles_(roles), iteration_(iteration), log_(log), epoch_(epoch) {}

  /// Logs the events [begin, end) of the program.
  void write(std::size_t begin, std::size_t end) {
    for (std::size_t event = begin; event < end; ++event) {
      const Event& passed = program_.events[event];
      if (passed.what == Event::What::operation) write_operation(passed.index);
      if (passed.what == Event::What::upload) log_.events.push_back({LogEvent::What::upload, tensor_of(passed.index)});
      if (passed.what == Event::What::download) {
        log_.events.push_back({LogEvent::What::download, tensor_of(passed.index)});
      }
    }
    write_waits();
  }

 private:
  // What was waited for while the program was observed, up to the last operation.
  void write_waits() {
    const auto logged = static_cast<std::uint32_t>(log_.operations.size());
    for (const LogWait& wait : program_.waits) {
      if (wait.calls > first_operation_ && wait.calls < first_operation_ + logged) {
        log_.waits.push_back({wait.calls - first_operation_, wait.open});
      }
    }
  }

  void write_operation(std::uint32_t index) {
    if (log_.operations.empty()) first_operation_ = index;
    const std::uint32_t first = program_.first_access[index];
    const std::uint32_t end = program_.first_access[index + 1];
    LogOperation operation;
    operation.name = program_.trace.operations[index].name;
    operation.duration = program_.trace.operations[index].duration;
    operation.replayable = program_.is_replayable(index);
    operation.first_access = static_cast<std::uint32_t>(log_.accesses.size());
    operation.access_count = end - first;
    for (std::uint32_t i = first; i < end; ++i) {
      log_.accesses.push_back({tensor_of(program_.accesses[i].role), program_.accesses[i].access});
    }
    log_.operations.push_back(std::move(operation));
    log_.events.push_back({LogEvent::What::operation, static_cast<std::uint32_t>(log_.operations.size() - 1)});
  }

  std::uint32_t tensor_of(std::uint32_t role) {
    if (program_.roles[role].kind == Role::Kind::scratch) {
      log_.tensors.push_back({.bytes = program_.roles[role].bytes, .name = program_.trace.tensors[role].name});
      return static_cast<std::uint32_t>(log_.tensors.size() - 1);
    }
    Record<B>& record = *roles_.record(role);
    if (record.log.epoch != epoch_) {
      const auto index = static_cast<std::uint32_t>(log_.tensors.size());
      record.log = {epoch_, index};
      LogTensor tensor = log_tensor(record, iteration_, index, program_.by_producer);
      tensor.created_inside = program_.roles[role].kind == Role::Kind::local;
      tensor.destroyed = !record.tensor.alive;
      tensor.outlives = record.value.outlives;
      log_.tensors.push_back(std::move(tensor));
    }
    return record.log.index;
  }

  const Program& program_;
  const RoleBinding<B>& roles_;
  std::uint64_t iteration_;
  IterationLog& log_;
  std::uint64_t epoch_;
  std::uint32_t first_operation_ = 0;
};

}  // namespace swapmm::runtime
