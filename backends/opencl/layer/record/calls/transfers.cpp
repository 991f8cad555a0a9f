// SPDX-License-Identifier: Apache-2.0
#include "../host_bytes.hpp"
#include "themes.hpp"

namespace swapmm::opencl::layer::record {
namespace {

using calls::CallKind;

struct ReadBuffer {
  static constexpr bool timed = true;
  static void before(Hook& hook, cl_command_queue&, cl_mem& buffer, cl_bool& blocking, size_t& offset, size_t& size,
                     void*& to, cl_uint&, const cl_event*&, cl_event*&) {
    hook.call.kind = CallKind::read;
    hook.call.blocking = blocking != CL_FALSE;
    add_operand(hook, buffer, Access::read, offset, size);
    hook.note_output(host_range(to, size));
  }
};

struct WriteBuffer {
  static constexpr bool timed = true;
  static void before(Hook& hook, cl_command_queue&, cl_mem& buffer, cl_bool& blocking, size_t& offset, size_t& size,
                     const void*& from, cl_uint&, const cl_event*&, cl_event*&) {
    hook.call.kind = CallKind::write;
    hook.call.blocking = blocking != CL_FALSE;
    add_operand(hook, buffer, Access::write, offset, size);
    hook.call.host = host_range(from, size);
    if (from != nullptr && fits(hook)) log_input(recorder(), hook.call.sequence, *hook.call.host);
  }
};

struct FillBuffer {
  static constexpr bool timed = true;
  static void before(Hook& hook, cl_command_queue&, cl_mem& buffer, const void*& pattern, size_t& pattern_size,
                     size_t& offset, size_t& size, cl_uint&, const cl_event*&, cl_event*&) {
    hook.call.kind = CallKind::fill;
    add_operand(hook, buffer, Access::write, offset, size);
    if (pattern == nullptr || pattern_size > 128) return;
    hook.call.argument.emplace();
    hook.call.argument->bytes = pattern_size;
    hook.call.argument->value.assign(static_cast<const char*>(pattern), pattern_size);
  }
};

struct CopyBuffer {
  static constexpr bool timed = true;
  static void before(Hook& hook, cl_command_queue&, cl_mem& from, cl_mem& to, size_t& from_offset, size_t& to_offset,
                     size_t& size, cl_uint&, const cl_event*&, cl_event*&) {
    hook.call.kind = CallKind::copy;
    add_operand(hook, from, Access::read, from_offset, size);
    add_operand(hook, to, Access::write, to_offset, size);
  }
};

}  // namespace

bool fits(const Hook& hook) {
  if (hook.call.operands.empty()) return false;
  const calls::Operand& operand = hook.call.operands.back();
  const std::uint64_t whole = recorder().memory(operand.object).bytes;
  return operand.bytes <= whole && operand.offset <= whole - operand.bytes;
}

void wrap_transfers(cl_icd_dispatch& table) {
  SWAPMM_WRAP(clEnqueueReadBuffer, ReadBuffer);
  SWAPMM_WRAP(clEnqueueWriteBuffer, WriteBuffer);
  SWAPMM_WRAP(clEnqueueFillBuffer, FillBuffer);
  SWAPMM_WRAP(clEnqueueCopyBuffer, CopyBuffer);
}

}  // namespace swapmm::opencl::layer::record
