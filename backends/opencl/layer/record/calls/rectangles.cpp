// SPDX-License-Identifier: Apache-2.0
#include <optional>

#include "../host_bytes.hpp"
#include "themes.hpp"

namespace swapmm::opencl::layer::record {
namespace {

using calls::Box;
using calls::CallKind;

void add_rectangle(Hook& hook, cl_mem handle, Access access, const std::optional<Box>& box) {
  if (!box) return;
  add_operand(hook, handle, access, begin_of(*box), span_of(*box));
  if (!hook.call.operands.empty()) hook.call.operands.back().box = box;
}

std::optional<calls::HostData> host_rectangle(const void* address, const std::optional<Box>& box) {
  if (address == nullptr || !box) return std::nullopt;
  calls::HostData host = host_range(static_cast<const char*>(address) + begin_of(*box), span_of(*box));
  host.box = box;
  return host;
}

struct ReadRectangle {
  static constexpr bool timed = true;
  static void before(Hook& hook, cl_command_queue&, cl_mem& buffer, cl_bool& blocking, const size_t*& origin,
                     const size_t*& host_origin, const size_t*& region, size_t& row, size_t& slice, size_t& host_row,
                     size_t& host_slice, void*& to, cl_uint&, const cl_event*&, cl_event*&) {
    hook.call.kind = CallKind::read;
    hook.call.blocking = blocking != CL_FALSE;
    add_rectangle(hook, buffer, Access::read, box_of(origin, region, row, slice));
    if (auto host = host_rectangle(to, box_of(host_origin, region, host_row, host_slice))) {
      hook.note_output(*std::move(host));
    }
  }
};

struct WriteRectangle {
  static constexpr bool timed = true;
  static void before(Hook& hook, cl_command_queue&, cl_mem& buffer, cl_bool& blocking, const size_t*& origin,
                     const size_t*& host_origin, const size_t*& region, size_t& row, size_t& slice, size_t& host_row,
                     size_t& host_slice, const void*& from, cl_uint&, const cl_event*&, cl_event*&) {
    hook.call.kind = CallKind::write;
    hook.call.blocking = blocking != CL_FALSE;
    add_rectangle(hook, buffer, Access::write, box_of(origin, region, row, slice));
    hook.call.host = host_rectangle(from, box_of(host_origin, region, host_row, host_slice));
    if (hook.call.host && fits(hook)) log_input(recorder(), hook.call.sequence, *hook.call.host);
  }
};

struct CopyRectangle {
  static constexpr bool timed = true;
  static void before(Hook& hook, cl_command_queue&, cl_mem& from, cl_mem& to, const size_t*& from_origin,
                     const size_t*& to_origin, const size_t*& region, size_t& from_row, size_t& from_slice,
                     size_t& to_row, size_t& to_slice, cl_uint&, const cl_event*&, cl_event*&) {
    hook.call.kind = CallKind::copy;
    add_rectangle(hook, from, Access::read, box_of(from_origin, region, from_row, from_slice));
    add_rectangle(hook, to, Access::write, box_of(to_origin, region, to_row, to_slice));
  }
};

}  // namespace

void wrap_rectangles(cl_icd_dispatch& table) {
  SWAPMM_WRAP(clEnqueueReadBufferRect, ReadRectangle);
  SWAPMM_WRAP(clEnqueueWriteBufferRect, WriteRectangle);
  SWAPMM_WRAP(clEnqueueCopyBufferRect, CopyRectangle);
}

}  // namespace swapmm::opencl::layer::record
