// SPDX-License-Identifier: Apache-2.0
// What the manager is doing at this moment, seen from within a call of it.

#include <algorithm>

#include "faults/world/world.hpp"

namespace swapmm::test {

namespace {

using SessionState = runtime::SessionState<FaultyDevice>;
using Record = runtime::Record<FaultyDevice>;

Residency residency_of(const SessionState& session, const Record& record) {
  const runtime::Timeline<FaultyDevice>& timeline = session.store.timeline;
  if (record.host.block != nullptr && record.host.block->written > timeline.confirmed(QueueKind::d2h)) {
    return Residency::going;
  }
  const bool on_device = record.device.resident;
  if (on_device && record.device.ready[QueueKind::h2d] > timeline.confirmed(QueueKind::h2d)) return Residency::coming;
  if (on_device && record.device.valid) return record.host.valid ? Residency::clean : Residency::dirty;
  return record.host.valid ? Residency::host : Residency::none;
}

}  // namespace

ManagerState World::look_inside() const {
  ManagerState state;
  if (closing_) state.course = CourseState::ending;
  if (current_ >= managers_.size()) return state;
  const SessionState* session = nullptr;
  for (const Item& item : items_) {
    if (item.manager == current_ && item.tensor) session = item.tensor->ref().core->session_state();
  }
  if (!closing_) state.course = CourseState::between;
  if (session == nullptr) return state;  // it has no tensor, or no inside any more
  if (!closing_ && session->executor.active()) {
    state.course = CourseState::following;
  } else if (!closing_ && managers_[current_]->iteration) {
    state.course = session->executor.times_started() == 0 ? CourseState::observing : CourseState::left;
  }
  for (std::size_t i = 0; i < items_.size(); ++i) {
    const Item& item = items_[i];
    const bool asked = concerned_.empty() || std::find(concerned_.begin(), concerned_.end(), i) != concerned_.end();
    if (!asked || item.manager != current_ || !item.tensor) continue;
    state.residency = std::max(state.residency, residency_of(*session, *item.tensor->ref().record));
  }
  return state;
}

}  // namespace swapmm::test
