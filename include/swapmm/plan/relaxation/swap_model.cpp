// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/relaxation/swap_model.hpp>

#include <algorithm>

namespace swapmm::planning::relaxation {
namespace {

/// The largest number of bytes that a valid plan can hold, with sizes rounded up to the alignment. If the budget is not
/// a multiple of the alignment, only the last bytes of a tensor can lie in its last piece.
std::uint64_t usable_room(const PlanningCase& planning) {
  const std::uint64_t alignment = planning.machine.alignment.value;
  const std::uint64_t piece = planning.machine.device_budget.value % alignment;
  const auto ends_in_piece = [&](const TraceTensor& tensor) {
    const std::uint64_t rest = tensor.bytes.value % alignment;
    return rest > 0 && rest <= piece;
  };
  const std::vector<TraceTensor>& tensors = planning.trace.tensors;
  const bool reaches = piece > 0 && std::any_of(tensors.begin(), tensors.end(), ends_in_piece);
  return planning.budget + (reaches ? alignment : 0);
}

class ModelMaker {
 public:
  ModelMaker(const PlanningCase& planning, const OverlapLedger& ledger)
      : planning_(planning), ledger_(ledger), n_(planning.operations), held_(2 * std::size_t{n_} + 1) {}

  SwapModel make() {
    model_.operations = n_;
    model_.half_duplex = planning_.machine.duplex == Duplex::half;
    for (const TraceOperation& operation : planning_.trace.operations) {
      model_.duration.push_back(static_cast<double>(operation.duration.count()));
      model_.compute += model_.duration.back();
    }
    for (std::uint32_t a = 0; a < ledger_.absences.size(); ++a) {
      if (ledger_.absences[a].version == no_version) model_.clean.push_back(make_window(a));
    }
    for (const Version& version : ledger_.versions) add_value(version);
    find_excess();
    return std::move(model_);
  }

 private:
  Window make_window(std::uint32_t id) {
    const Absence& absence = ledger_.absences[id];
    const std::size_t tensor = index(absence.tensor);
    Window window;
    window.absence = id;
    window.first_boundary = 2 * absence.first;
    window.last_part = 2 * absence.end - 1;
    window.bytes = static_cast<double>(planning_.sizes[tensor]);
    window.copy_in = static_cast<double>(ledger_.copy_back(absence).count());
    window.is_arrival = absence.is_arrival;
    window.lingers = absence.lingers;
    // An arrival for the first operations: its copy may run at the end of the iteration before.
    if (absence.first == 0) {
      window.first_boundary += 2 * n_;
      window.last_part = 2 * (absence.end + n_) - 1;
    }
    held_[absence.first] += planning_.sizes[tensor];
    held_[absence.end] -= planning_.sizes[tensor];
    return window;
  }

  void add_value(const Version& version) {
    const std::size_t tensor = index(version.tensor);
    const std::uint32_t next_write = next_write_after(version);
    WrittenValue value;
    value.copy_out = static_cast<double>(ledger_.copy_out[tensor].count());
    value.write_part = 2 * version.write + 1;
    value.last_part = 2 * next_write - 1;
    value.must_go = host_reads_it(version, next_write);
    value.first_window = static_cast<std::uint32_t>(model_.dirty.size());
    value.windows = version.absences;
    for (std::uint32_t i = 0; i < version.absences; ++i) {
      Window window = make_window(version.first_absence + i);
      while (window.first_boundary < value.write_part) {
        window.first_boundary += 2 * n_;
        window.last_part += 2 * n_;
      }
      model_.dirty.push_back(window);
    }
    std::sort(model_.dirty.begin() + value.first_window, model_.dirty.end(),
              [](const Window& a, const Window& b) { return a.first_boundary < b.first_boundary; });
    if (value.windows > 0 || value.must_go) model_.values.push_back(value);
  }

  /// The next operation that changes the tensor, counted from the write on; n operations later if it is the only one.
  std::uint32_t next_write_after(const Version& version) const {
    std::uint32_t next = version.write + n_;
    for (const Use& use : planning_.liveness.uses[index(version.tensor)]) {
      if (use.access == Access::read) continue;
      const auto operation = static_cast<std::uint32_t>(use.operation);
      next = std::min(next, operation > version.write ? operation : operation + n_);
    }
    return next;
  }

  bool host_reads_it(const Version& version, std::uint32_t next_write) const {
    const bool survives = planning_.trace.tensors[index(version.tensor)].kind == TensorKind::persistent;
    const std::uint32_t end = survives ? next_write : std::min(next_write, n_);
    const auto reads = host_reads_of(planning_, version.tensor);
    return std::any_of(reads.begin(), reads.end(), [&](const HostRead& read) {
      const auto after = static_cast<std::uint32_t>(read.after_operation);
      return (after < version.write ? after + n_ : after) < end;
    });
  }

  void find_excess() {
    const std::uint64_t room = usable_room(planning_);
    model_.room = static_cast<double>(room);
    std::vector<std::uint64_t> need(n_);
    std::uint64_t held = 0;
    for (std::uint32_t slot = 0; slot < 2 * n_; ++slot) {
      held += held_[slot];
      need[slot % n_] += held;
    }
    for (std::uint32_t i = 0; i < n_; ++i) {
      for_each_access(planning_.trace.operations[i],
                      [&](TensorId id, Access) { need[i] += planning_.sizes[index(id)]; });
      model_.excess.push_back(need[i] > room ? static_cast<double>(need[i] - room)
                                             : -static_cast<double>(room - need[i]));
    }
  }

  const PlanningCase& planning_;
  const OverlapLedger& ledger_;
  std::uint32_t n_;
  /// Per slot of two iterations: the change of the bytes of absences. Unsigned numbers wrap around below zero by
  /// design.
  std::vector<std::uint64_t> held_;
  SwapModel model_;
};

}  // namespace

SwapModel make_swap_model(const PlanningCase& planning, const OverlapLedger& ledger) {
  return ModelMaker(planning, ledger).make();
}

bool needs_copies(const SwapModel& model) {
  return std::any_of(model.excess.begin(), model.excess.end(), [](double bytes) { return bytes > 0; }) ||
         std::any_of(model.clean.begin(), model.clean.end(), [](const Window& window) { return window.is_arrival; }) ||
         std::any_of(model.values.begin(), model.values.end(), [](const WrittenValue& value) { return value.must_go; });
}

}  // namespace swapmm::planning::relaxation
