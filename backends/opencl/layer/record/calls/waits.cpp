// SPDX-License-Identifier: Apache-2.0
#include "themes.hpp"

namespace swapmm::opencl::layer::record {
namespace {

using calls::CallKind;

template <CallKind kind>
struct Of {
  template <class... Arguments>
  static void before(Hook& hook, Arguments&...) {
    hook.call.kind = kind;
  }
};

// flags 1: later commands of the queue come after it.
struct Barrier {
  template <class... Arguments>
  static void before(Hook& hook, Arguments&...) {
    hook.call.kind = CallKind::mark;
    hook.call.flags = 1;
  }
};

struct SetUserEvent {
  static void before(Hook& hook, cl_event&, cl_int& status) {
    hook.call.kind = CallKind::set_event;
    hook.call.value = status;
  }
};

// The program learns of ends that are no calls.
struct Callback {
  template <class... Arguments>
  static void before(Hook&, Arguments&...) {
    recorder().pending().forget_reads();
  }
};

}  // namespace

void wrap_waits(cl_icd_dispatch& table) {
  SWAPMM_WRAP(clFlush, Of<CallKind::flush>);
  SWAPMM_WRAP(clFinish, Of<CallKind::finish>);
  SWAPMM_WRAP(clWaitForEvents, Of<CallKind::wait>);
  SWAPMM_WRAP(clSetUserEventStatus, SetUserEvent);
  SWAPMM_WRAP(clEnqueueMarker, Of<CallKind::mark>);
  SWAPMM_WRAP(clEnqueueMarkerWithWaitList, Of<CallKind::mark>);
  SWAPMM_WRAP(clEnqueueBarrier, Barrier);
  SWAPMM_WRAP(clEnqueueBarrierWithWaitList, Barrier);
  SWAPMM_WRAP(clEnqueueWaitForEvents, Barrier);
  SWAPMM_WRAP(clSetEventCallback, Callback);
  SWAPMM_WRAP(clSetMemObjectDestructorCallback, Callback);
}

}  // namespace swapmm::opencl::layer::record
