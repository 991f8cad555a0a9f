// SPDX-License-Identifier: Apache-2.0
#include "support/program/cpp_host_view.hpp"

#include <ostream>
#include <string_view>
#include <utility>
#include <vector>

#include "support/program/calls.hpp"
#include "support/program/cpp_operation.hpp"
#include "support/program/end.hpp"

namespace swapmm::test {
namespace {

std::string of_slot(std::string_view name, std::size_t slot) { return std::string(name) + std::to_string(slot); }

std::string pieces(const ModelHostView& view, const SliceVersions& versions, const SliceRange& range) {
  ModelTensor holds;
  holds.layout = view.layout;
  holds.versions = versions;
  return cpp_pieces(holds, range);
}

std::string bounds(const ModelHostView& view, const SliceRange& part) {
  return "(" + std::to_string(view.offset(part)) + ", " + std::to_string(view.layout.size(part)) + ")";
}

}  // namespace

void CppHostViews::print_variables() const {
  const std::vector<std::uint8_t> slots = slots_with_views(program_);
  for (const std::uint8_t slot : slots) out_ << "  std::vector<std::byte> array" << int{slot} << ";\n";
  for (const std::uint8_t slot : slots) {
    out_ << "  std::optional<HostView<std::byte, Device>> view" << int{slot} << ";\n";
  }
}

void CppHostViews::open(const Action& action, ModelTensor& tensor, const std::string& member, bool refused,
                        const Call& call) {
  ModelHostView& now = views_[action.slot];
  const ModelHostView next = view_to_open(action, tensor);
  if (now.live) {
    if (now.overlaps(next.range)) call("(void)" + member + "host_view()");
    return;
  }
  end(action.slot);
  std::string memory;
  if (next.memory == ViewMemory::array) {
    const std::string array = of_slot("array", action.slot);
    memory = "std::span(" + array + ").subspan(" + std::to_string(view_array_margin) + ", " +
             std::to_string(next.size()) + ")";
    out_ << "  " << array << ".assign(" << next.size() + 2 * view_array_margin << ", std::byte{0x77});\n";
    if (next.gives_value) out_ << "  fill(" << memory << ", " << pieces(next, next.versions, next.range) << ");\n";
    memory += ", ";
  }
  const std::string_view eager = next.memory == ViewMemory::eager ? ", .lazy = false" : "";
  call(of_slot("view", action.slot) + ".emplace(" + member + "host_view(" + memory + "HostViewOptions{.block = Bytes{" +
       std::to_string(view_block.value) + "}" + std::string(eager) + "}))");
  if (refused) return;
  now = next;
  now.open_on(tensor);
  open_[action.slot] = true;
}

void CppHostViews::close(std::size_t slot, bool refused, const Call& call) {
  if (views_[slot].live && host_memory_may_run_out(program_)) {
    call(of_slot("view", slot) + "->write_back()");
    if (refused) return;
  }
  end(slot);
}

void CppHostViews::end(std::size_t slot) {
  if (open_[slot]) out_ << "  view" << slot << ".reset();\n";
  open_[slot] = false;
  views_[slot] = {};
}

void CppHostViews::touch(const Action& action, ModelTensor& tensor, bool refused, const Call& call) {
  if (!open_[action.slot]) return;
  ModelHostView& view = views_[action.slot];
  const SliceRange part = view.part(action);
  const bool pokes = action.kind == ActionKind::poke;
  const ModelHostView::Way way = view.way(part, touch_of(action), host_memory_may_run_out(program_));
  if (way == ModelHostView::Way::none) return;
  const std::string name = of_slot("view", action.slot);
  const std::string prepare = name + "->" + (pokes ? "prepare_write" : "prepare_read") + bounds(view, part);
  if (way == ModelHostView::Way::refused) {
    out_ << "  refused([&] { " << prepare << "; });\n";
    return;
  }
  if (way == ModelHostView::Way::prepared) {
    call(prepare);
    if (refused) return;
  }
  if (pokes) view.write(part, tensor);
  out_ << (pokes ? "  fill(" : "  expect(\"the host\", ") << name << "->span().subspan" << bounds(view, part) << ", "
       << pieces(view, view.held(tensor), part) << ");\n";
  view.touched(part);
}

void CppHostViews::write_back(std::size_t slot, const Call& call) const {
  if (views_[slot].live) call(of_slot("view", slot) + "->write_back()");
}

void CppHostViews::exchange(std::size_t a, std::size_t b) {
  if (!open_[a] && !open_[b]) return;
  std::swap(views_[a], views_[b]);
  std::swap(open_[a], open_[b]);
  out_ << "  std::swap(array" << a << ", array" << b << ");\n  std::swap(view" << a << ", view" << b << ");\n";
}

}  // namespace swapmm::test
