// SPDX-License-Identifier: Apache-2.0
#pragma once

// The host views of a program under the runner.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <swapmm/host_view.hpp>

#include "support/program/calls.hpp"
#include "support/program/host_view_model.hpp"
#include "support/program/runner.hpp"

namespace swapmm::test {

/// Opens, touches and ends the host view of each slot. What the host reads must be the tensor's last value, also where
/// the host itself wrote it through the view.
template <Backend B>
class ProgramHostViews {
 public:
  ProgramHostViews(const TestProgram& program, ProgramCalls& calls, RunResult& result)
      : program_(program), calls_(calls), result_(result) {}

  /// `part_of(range)`: those slices of the slot's tensor.
  template <class PartOf>
  void open(const Action& action, ModelTensor& tensor, PartOf&& part_of) {
    if (!tensor.exists) return;
    ViewSlot& slot = slots_[action.slot];
    ModelHostView model = view_to_open(action, tensor);
    if (slot.model.live) {
      if (slot.model.overlaps(model.range)) refuse_second([&] { (void)part_of(model.range).host_view(); });
      return;
    }
    end(action.slot, tensor);
    const std::span<std::byte> array = array_for(slot, model);
    const bool opened = calls_.check(expected_of_open(tensor, model), [&] {
      const HostViewOptions options{.block = view_block, .lazy = model.memory != ViewMemory::eager};
      auto part = part_of(model.range);
      slot.view.emplace(array.empty() ? part.host_view(options) : part.host_view(array, options));
    });
    if (!opened) return calls_.note_drop(tensor);
    ++result_.host_views;
    if (!slot.view->lazy()) model.memory = ViewMemory::eager;
    slot.model = model;
    slot.model.open_on(tensor);
  }

  /// Not if what was written through it may be lost then, because host memory may run out.
  void close(std::size_t number, ModelTensor& tensor) {
    ViewSlot& slot = slots_[number];
    if (slot.model.live && calls_.may_run_out() && !calls_.check({}, [&] { slot.view->write_back(); })) return;
    end(number, tensor);
  }
  /// Closes it in any case.
  void end(std::size_t number, ModelTensor& tensor) {
    ViewSlot& slot = slots_[number];
    if (!slot.view) return;
    const HostViewTraffic traffic = slot.view->traffic();
    result_.view_faults += traffic.faults;
    result_.view_bytes_in += traffic.to_tensor.value;
    result_.view_bytes_out += traffic.to_view.value;
    if (slot.model.live) tensor.viewed = false;
    slot.view.reset();
    slot.model = {};
  }

  void look(const Action& action, const ModelTensor& tensor) {
    ViewSlot& slot = slots_[action.slot];
    const SliceRange part = slot.model.part(action);
    const std::span<std::byte> bytes =
        touchable(slot, action, [&](std::size_t first, std::size_t count) { slot.view->prepare_read(first, count); });
    if (bytes.empty()) return;
    calls_.check_bytes(bytes, slot.model.layout, part, slot.model.held(tensor));
    slot.model.touched(part);
  }
  void poke(const Action& action, ModelTensor& tensor) {
    ViewSlot& slot = slots_[action.slot];
    const SliceRange part = slot.model.part(action);
    const std::span<std::byte> bytes =
        touchable(slot, action, [&](std::size_t first, std::size_t count) { slot.view->prepare_write(first, count); });
    if (bytes.empty()) return;
    slot.model.write(part, tensor);
    slot.model.layout.fill(bytes.data(), part, slot.model.held(tensor));
    slot.model.touched(part);
  }

  void write_back(std::size_t number) {
    const ViewSlot& slot = slots_[number];
    if (slot.view && slot.model.live) (void)calls_.check({}, [&] { slot.view->write_back(); });
  }

  void exchange(std::size_t a, std::size_t b) { std::swap(slots_[a], slots_[b]); }
  /// The tensor of that slot gets another value; `whole`: none of the old one stays.
  void replaced(std::size_t number, bool whole) { slots_[number].model.replaced(whole); }
  /// Before the operation modified blocks may be copied in, and behind it eager ones are fetched, also if it is
  /// refused.
  [[nodiscard]] bool may_copy_beside(const Action& operation) const {
    return std::any_of(operation.parts.begin(), operation.parts.begin() + operation.part_count,
                       [&](const Part& part) { return slots_[part.slot].model.may_be_copied(); });
  }
  /// The tensor of that slot is gone, or its manager.
  void outlives(std::size_t number, const ModelTensor& tensor) { slots_[number].model.outlives(tensor.versions); }

 private:
  struct ViewSlot {
    ModelHostView model;
    std::vector<std::byte> array;  // if the memory is the program's
    std::optional<HostView<std::byte, B>> view;
  };

  // Empty if the memory is to be the view's own.
  static std::span<std::byte> array_for(ViewSlot& slot, const ModelHostView& model) {
    if (model.memory != ViewMemory::array) return {};
    slot.array.assign(model.size() + 2 * view_array_margin, std::byte{0x77});
    const std::span<std::byte> array = std::span(slot.array).subspan(view_array_margin, model.size());
    if (model.gives_value) model.layout.fill(array.data(), model.range, model.versions);
    return array;
  }

  [[nodiscard]] Expected expected_of_open(const ModelTensor& tensor, const ModelHostView& view) const {
    if (tensor.transient) return {misused, accepted};
    Expected expected = view.gives_value ? Expected{} : calls_.expected_of_read(tensor);
    if (limits_host_memory(program_)) expected.may |= out_of_memory;
    return expected;
  }
  template <class Call>
  void refuse_second(Call&& call) {
    (void)calls_.check({misused, accepted}, call);
  }

  // The bytes of the action's part, which the program may touch now; none if it does not come to them.
  template <class Prepare>
  std::span<std::byte> touchable(ViewSlot& slot, const Action& action, Prepare&& prepare) {
    if (!slot.view) return {};
    const ModelHostView& model = slot.model;
    const SliceRange part = model.part(action);
    const std::size_t first = model.offset(part);
    const std::size_t count = model.layout.size(part);
    switch (model.way(part, touch_of(action), calls_.may_run_out())) {
      case ModelHostView::Way::none: return {};
      case ModelHostView::Way::direct:
        if (!model.live) ++result_.outlived_looks;
        break;
      case ModelHostView::Way::prepared:
        if (!calls_.check({}, [&] { prepare(first, count); })) return {};
        break;
      case ModelHostView::Way::refused:
        (void)calls_.check({misused, accepted}, [&] { prepare(first, count); });
        return {};
    }
    return slot.view->span().subspan(first, count);
  }

  const TestProgram& program_;
  ProgramCalls& calls_;
  RunResult& result_;
  std::array<ViewSlot, slot_count> slots_;
};

}  // namespace swapmm::test
