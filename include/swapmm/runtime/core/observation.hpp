// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include <swapmm/interface/options.hpp>
#include <swapmm/runtime/book/program_book.hpp>
#include <swapmm/runtime/core/round_measurement.hpp>
#include <swapmm/runtime/core/session_state.hpp>
#include <swapmm/runtime/links/link_probe.hpp>
#include <swapmm/runtime/values/bundle.hpp>

namespace swapmm::runtime {

/// Learns from iterations that run on demand: how long values live, and, through the log of each iteration, the program
/// for which the program book makes plans.
template <Backend B>
class Observation {
 public:
  using Rec = Record<B>;

  Observation(SessionState<B>& state, ProgramBook& book, const Options& options, RoundMeasurement<B>& measurement)
      : state_(state), book_(book), options_(options), measurement_(measurement) {}
  Observation(const Observation&) = delete;
  Observation& operator=(const Observation&) = delete;

  /// True if plans are made from observed iterations.
  [[nodiscard]] bool makes_plans() const { return book_.options().observe != 0 && !options_.check_access; }

  /// Ends the last iteration: its transient values die, and its log is evaluated.
  void close_log() {
    Recorder<B>& recorder = state_.recorder;
    if (!recorder.is_open()) return;
    take_late_times();
    for (LogTensor& tensor : recorder.log().tensors) {
      if (tensor.scratch()) continue;
      Rec& record = state_.store.records[tensor.record];
      if (record.tensor.serial != tensor.serial || !record.tensor.alive) {
        tensor.destroyed = true;
        continue;
      }
      tensor.outlives = record.value.outlives;
      // Values written since then belong to the next iteration.
      if (record.tensor.lifetime == Lifetime::transient && record.value.written_in < state_.store.iteration)
        end_value(record);
    }
    book_.install_finished();
    const ProgramBook::Outlook outlook = book_.outlook(recorder.name(), recorder.log());
    recorder.close(outlook.waits);
    if (outlook.waits) take_late_times();
    if (!makes_plans()) return;
    if (outlook.plans && !recorder.log().broken && !state_.knows_all_links(book_)) learn_links();
    for (LogTensor& tensor : recorder.log().tensors) {
      if (tensor.scratch()) continue;
      const Rec& record = state_.store.records[tensor.record];
      if (record.tensor.serial == tensor.serial && record.host.wanted) continue;
      tensor.copied = state_.copied_if_encoded(book_, tensor.name, tensor.bytes);
    }
    const std::uint64_t sequence = book_.observed(recorder.name(), recorder.take(), state_.machine(book_));
    measurement_.name_last(sequence);
    recorder.times_are_of(sequence);
  }

  /// Records how many iterations after its write a value is read, so that it is not considered dead in between.
  void note_distances(const Request<B>& request) {
    for (const auto& item : request.items) {
      Rec& record = *item.record;
      if (item.access == Access::write || !record.has_value()) continue;
      const std::uint64_t distance = state_.store.iteration - std::min(record.value.written_in, state_.store.iteration);
      record.value.outlives =
          std::max(record.value.outlives, static_cast<std::uint32_t>(std::min<std::uint64_t>(distance, outlives_all)));
    }
  }

  /// Makes the next plans keep the tensor's value for as long as the tensor exists.
  void keep_value(Rec& record) {
    record.value.outlives = outlives_all;
    book_.keep_value(record.tensor.serial);
  }

 private:
  void take_late_times() {
    state_.recorder.collect_late(
        [&](std::uint64_t sequence, const auto& durations) { book_.times_came(sequence, durations); });
  }

  void learn_links() {
    if (!state_.knows_host_link(book_)) LinkProbe(state_.store).measure();
    for (std::size_t path = 0; path < neighbour_path_count; ++path) {
      if (!state_.knows_neighbours_link(path)) LinkProbe(state_.store, neighbour_home(path)).measure();
    }
    if (!state_.knows_links(book_)) book_.knows_no_links();
  }

  void end_value(Rec& record) {
    if (record.tensor.constant) return;
    record.device.valid = false;
    record.host.valid = false;
    record.value.missing_reason = MissingReason::never_written;
    if (record.device.resident) state_.demand.release(record);
  }

  SessionState<B>& state_;
  ProgramBook& book_;
  const Options& options_;
  RoundMeasurement<B>& measurement_;
};

}  // namespace swapmm::runtime
