// SPDX-License-Identifier: Apache-2.0
#include "support/program/calls.hpp"

#include <cstdint>
#include <limits>
#include <sstream>

#include "support/program/kernel.hpp"

namespace swapmm::test {

bool limits_host_memory(const TestProgram& program) {
  return program.device.host_bytes.has_value() ||
         program.manager.host_budget.value != std::numeric_limits<std::uint64_t>::max();
}

bool host_memory_may_run_out(const TestProgram& program) {
  return program.device.host_bytes.has_value() ||
         (limits_host_memory(program) && !(program.file && program.file->holds_all));
}

ProgramCalls::ProgramCalls(const TestProgram& program, RunResult& result)
    : program_(program),
      result_(result),
      limited_(host_memory_may_run_out(program)),
      steady_(program.steady),
      progress_("program", program.seed) {}

void ProgramCalls::fail(const std::string& text) {
  if (!result_.failure.empty()) return;
  std::ostringstream out;
  out << text;
  if (position_ < program_.actions.size()) {
    out << " (action " << position_ << ": " << program_.actions[position_] << ")";
  }
  result_.failure = out.str();
}

bool ProgramCalls::judge(Expected expected) {
  if (last_ == accepted) {
    if (expected.must != accepted) {
      fail("a call that must be refused (" + std::to_string(expected.must) + ") was accepted");
      result_.accepted_wrongly = true;
    }
    return expected.must == accepted;
  }
  if (last_ == dropped_value) ++result_.dropped;
  if (last_ == out_of_memory) steady_ = false;
  ++result_.refused;
  unsigned allowed = expected.must | expected.may;
  if (limited_) allowed |= out_of_memory;
  if ((allowed & last_) == 0) fail("unexpected: " + text_);
  return false;
}

Expected ProgramCalls::expected_of_read(const ModelTensor& tensor) const {
  switch (tensor.value) {
    case ModelTensor::Value::none: return {undefined_value, accepted};
    case ModelTensor::Value::dropped: return {undefined_value | dropped_value, accepted};
    case ModelTensor::Value::faded: return {accepted, undefined_value | dropped_value};
    case ModelTensor::Value::there: break;
  }
  const bool may_be_dropped = !tensor.viewed && !steady_ && !tensor.kept && (tensor.drops == 0 || tensor.local);
  return {accepted, may_be_dropped ? dropped_value : accepted};
}

void ProgramCalls::check_bytes(std::span<const std::byte> bytes, const SlicedBytes& layout, const SliceRange& range,
                               const SliceVersions& versions) {
  for (const std::byte byte : bytes) {
    result_.downloads = (result_.downloads ^ static_cast<std::uint64_t>(byte)) * 0x100000001B3U;
  }
  const simulated::Finding finding = layout.check(bytes.data(), range, versions);
  if (finding.found != simulated::Found::exact) fail("the host reads " + text_of(layout, finding));
}

void ProgramCalls::note_drop(ModelTensor& tensor) {
  if (last_ != dropped_value || !has_name(lost_, name_of(tensor))) return;
  if (tensor.viewed) fail("a value is dropped that the host can see through a host view: " + text_);
  if (tensor.value == ModelTensor::Value::there) ++tensor.drops;
  tensor.value = ModelTensor::Value::dropped;
}

}  // namespace swapmm::test
