// SPDX-License-Identifier: Apache-2.0
#include "hook.hpp"

#include "../queue.hpp"
#include "host_bytes.hpp"

namespace swapmm::opencl::layer::record {

using calls::CallKind;
using calls::ObjectKind;

Hook::Hook(const char* function) {
  guarded([&] {
    call.sequence = recorder().begin_call();
    call.thread = thread_number();
    call.begin = recorder().now();
    call.function = function;
  });
}

void Hook::take(const cl_event*& list) {
  if (list == nullptr || count_ > 65536) return;
  for (cl_uint i = 0; i < count_; ++i) call.waits.push_back(recorder().find(list[i]));
}

void Hook::take(cl_command_queue& handle) {
  call.queue = recorder().find(handle);
  if (Queue::from(handle) == nullptr) wants_event = false;  // its events are the driver's own
}

void Hook::take(cl_event*& where) {
  if (where == nullptr && wants_event) where = &own_event;
  event = where;
}

// The first object of the arguments is what the call is about.
void Hook::object(const void* handle) {
  if (call.object != 0) return;
  call.object = recorder().find(handle);
  call.object_kind = recorder().kind_of(handle);
}

calls::Object Hook::made(const void* handle, ObjectKind kind) {
  call.kind = CallKind::create;
  call.object_kind = kind;
  call.object = succeeded() ? recorder().add(handle, kind) : 0;
  return call.object;
}

void Hook::note_output(calls::HostData host) {
  call.host = std::move(host);
  has_output_ = true;
}

void Hook::returned() {
  guarded([&] {
    Recorder& all = recorder();
    Event* made = nullptr;
    if (event != nullptr && *event != nullptr && succeeded()) {
      made = Event::from(*event);
      if (event != &own_event) call.event = all.add(*event, ObjectKind::event);
    }
    if (has_output_ && succeeded()) {
      if (call.blocking) {
        call.host->digest = digest_of(*call.host);
      } else if (made != nullptr) {
        all.pending().add_read(call.sequence, *made, *call.host);
      }
    }
    if (made != nullptr && wants_event) all.pending().add_time(call.sequence, *made);
    if (event == &own_event && made != nullptr) (void)made->release();
    call.end = all.now();
    call.ended_before = all.calls_begun();
    all.write(call);
    all.pending().settle();
    const bool waits = call.blocking || call.kind == CallKind::finish || call.kind == CallKind::wait;
    if (waits) all.flush();
  });
}

}  // namespace swapmm::opencl::layer::record
