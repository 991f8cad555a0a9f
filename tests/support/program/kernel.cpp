// SPDX-License-Identifier: Apache-2.0
#include "support/program/kernel.hpp"

namespace swapmm::test {
namespace {

void check_operand(const Kernel& kernel, const Kernel::Operand& operand, std::string_view when) {
  const simulated::Finding finding = operand.layout.check(operand.data, operand.range, operand.versions);
  if (finding.found == simulated::Found::exact || kernel.failure->any()) return;
  kernel.failure->set("the operation of action " + std::to_string(kernel.number) + " reads " +
                      text_of(operand.layout, finding) + ' ' + std::string(when));
}

}  // namespace

void Kernel::read() const {
  for (std::size_t i = 0; i < part_count; ++i) {
    if (parts[i].access != Access::write) check_operand(*this, parts[i], "at its start");
  }
  if (scratch_bytes != 0) simulated::fill({scratch, scratch_bytes}, scratch_id, number);
}

void Kernel::write() const {
  for (std::size_t i = 0; i < part_count; ++i) {
    if (parts[i].access == Access::read) check_operand(*this, parts[i], "at its end");
  }
  if (scratch_bytes != 0 && !failure->any() &&
      simulated::check({scratch, scratch_bytes}, scratch_id, number).found != simulated::Found::exact) {
    failure->set("the work area of action " + std::to_string(number) + " was changed while it ran");
  }
  for (std::size_t i = 0; i < part_count; ++i) {
    if (parts[i].access == Access::read) continue;
    SliceVersions next = parts[i].versions;
    for (std::size_t slice = parts[i].range.first; slice < parts[i].range.end; ++slice) ++next[slice];
    parts[i].layout.fill(parts[i].data, parts[i].range, next);
  }
  if (finished != nullptr) finished->fetch_add(1, std::memory_order_release);
}

std::string text_of(const SlicedBytes& tensor, const simulated::Finding& finding) {
  std::string text = "tensor t" + std::to_string(tensor.id) + ": " + std::string(to_string(finding.found)) +
                     " from byte " + std::to_string(finding.offset);
  if (finding.found == simulated::Found::stale || finding.found == simulated::Found::torn) {
    text += " of version " + std::to_string(finding.version);
  }
  return text;
}

}  // namespace swapmm::test
