// SPDX-License-Identifier: Apache-2.0
#include "faults/script/script.hpp"

#include <utility>

#include "faults/parts/call_sites.hpp"

namespace swapmm::test {

FaultScript::FaultScript(Faults faults, std::function<ManagerState()> look)
    : faults_(std::move(faults)), look_(std::move(look)) {
  for (const Fault& fault : faults_) failures_stick_ = failures_stick_ || fault.kind.way == Way::late_and_lost;
  armed_.reserve(faults_.size());
  if (!faults_.empty()) armed_.push_back({faults_.front()});
}

bool FaultScript::loses_device() const {
  return any([this](const FaultKind& kind) { return kind.loses_device() || (failures_stick_ && kind.late()); });
}

bool FaultScript::due(Armed& armed, CallClass call) const {
  if (armed.fault.kind.call != call) return false;
  ++armed.seen;
  return armed.seen == armed.fault.n || (armed.fault.kind.way == Way::for_ever && armed.seen > armed.fault.n);
}

// Arms the next one when this one goes wrong for the first time.
void FaultScript::fired(Armed& armed, std::string site) {
  if (std::exchange(armed.fired, true)) return;
  if (allocating_) count_allocations();
  hits_.push_back({armed.fault.kind, std::move(site), look_()});
  if (armed_.size() < faults_.size()) armed_.push_back({faults_[armed_.size()]});  // reserve() made room
  if (allocating_) FailingNew::fail_in(allocations_left());
}

std::optional<FaultPlan> FaultScript::backend_call(FaultClass call, const CallSite& where) {
  if (over_) return std::nullopt;
  const std::size_t armed_before = armed_.size();
  for (std::size_t i = 0; i < armed_before; ++i) {
    Armed& armed = armed_[i];
    if (!due(armed, call_class(call))) continue;
    const UncountedAllocations uncounted;
    if (!armed.fired) fired(armed, site_name(where));
    return FaultPlan{call, fault_mode(armed.fault.kind.way), armed.fault.n};
  }
  return std::nullopt;
}

std::optional<FileFault> FaultScript::file_call(FileCall call) {
  ++file_calls_[static_cast<std::size_t>(call)];
  if (over_) return std::nullopt;
  constexpr std::array<CallClass, 4> classes{CallClass::file_read, CallClass::file_read, CallClass::file_write,
                                             CallClass::file_flush};
  const std::size_t armed_before = armed_.size();
  for (std::size_t i = 0; i < armed_before; ++i) {
    Armed& armed = armed_[i];
    if (call == FileCall::read_at_end && armed.fault.kind.way == Way::cut) continue;
    if (!due(armed, classes[static_cast<std::size_t>(call)])) continue;
    const UncountedAllocations uncounted;
    if (!armed.fired) fired(armed, CallStack().site_name());
    switch (armed.fault.kind.way) {
      case Way::blind: return FileFault::blind;
      case Way::thrown: return FileFault::throws;
      case Way::part: return FileFault::part;
      case Way::cut: return FileFault::cut;
      case Way::full: return FileFault::full;
      default: return FileFault::error;
    }
  }
  return std::nullopt;
}

// ---- operator new

// How many allocations from now on the next one fails; 0: none does.
std::uint64_t FaultScript::allocations_left() const {
  if (over_) return 0;
  std::uint64_t least = 0;
  for (const Armed& armed : armed_) {
    if (armed.fault.kind.call != CallClass::operator_new) continue;
    std::uint64_t left = armed.seen < armed.fault.n ? armed.fault.n - armed.seen : 0;
    if (left == 0 && armed.fault.kind.way == Way::for_ever) left = 1;
    if (left != 0 && (least == 0 || left < least)) least = left;
  }
  return least;
}

void FaultScript::count_allocations() {
  const std::uint64_t now = allocations();
  for (Armed& armed : armed_) {
    if (armed.fault.kind.call == CallClass::operator_new) armed.seen += now - allocations_at_;
  }
  allocations_seen_ += now - allocations_at_;
  allocations_at_ = now;
}

std::uint64_t FaultScript::allocation_failed() {
  count_allocations();
  const std::size_t armed_before = armed_.size();
  for (std::size_t i = 0; i < armed_before; ++i) {
    Armed& armed = armed_[i];
    if (armed.fault.kind.call != CallClass::operator_new || armed.seen < armed.fault.n) continue;
    if (!armed.fired) fired(armed, CallStack().site_name());
  }
  return allocations_left();
}

FaultScript::Allocations::Allocations(FaultScript& script)
    : script_(script),
      failing_(
          script.allocations_left(),
          [](void* context) { return static_cast<FaultScript*>(context)->allocation_failed(); }, &script) {
  script.allocating_ = true;
  script.allocations_at_ = allocations();
}
FaultScript::Allocations::~Allocations() {
  script_.allocating_ = false;
  script_.count_allocations();
}

}  // namespace swapmm::test
