// SPDX-License-Identifier: Apache-2.0
#include "../host_bytes.hpp"
#include "themes.hpp"

namespace swapmm::opencl::layer::record {
namespace {

using calls::CallKind;

bool writes(cl_map_flags flags) { return (flags & (CL_MAP_WRITE | CL_MAP_WRITE_INVALIDATE_REGION)) != 0; }

struct MapBuffer {
  static constexpr bool timed = true;
  static void before(Hook& hook, cl_command_queue&, cl_mem& buffer, cl_bool& blocking, cl_map_flags& flags,
                     size_t& offset, size_t& size, cl_uint&, const cl_event*&, cl_event*&, cl_int*&) {
    hook.call.kind = CallKind::map;
    hook.call.blocking = blocking != CL_FALSE;
    hook.call.flags = flags;
    add_operand(hook, buffer, Access::read, offset, size);
  }
  template <class... Rest>
  static void after(Hook& hook, void* address, cl_command_queue, cl_mem, cl_bool, cl_map_flags flags, Rest...) {
    if (address == nullptr || hook.call.operands.empty()) return;
    recorder().add_map(address, {hook.call.operands.back(), flags});
    calls::HostData host = host_range(address, hook.call.operands.back().bytes);
    if ((flags & CL_MAP_WRITE_INVALIDATE_REGION) != 0) {
      hook.call.host = std::move(host);
    } else {
      hook.note_output(std::move(host));
    }
  }
};

// Nothing is known of what a map of an image brings.
struct MapImage {
  static void before(Hook& hook, cl_command_queue&, cl_mem& image, cl_bool& blocking, cl_map_flags& flags,
                     const size_t*&, const size_t*&, size_t*&, size_t*&, cl_uint&, const cl_event*&, cl_event*&,
                     cl_int*&) {
    hook.call.kind = CallKind::foreign;
    hook.call.blocking = blocking != CL_FALSE;
    hook.call.flags = flags;
    add_operand(hook, image, Access::read, 0, recorder().memory(recorder().find(image)).bytes);
  }
};

struct Unmap {
  static constexpr bool timed = true;
  static void before(Hook& hook, cl_command_queue&, cl_mem& memory, void*& address, cl_uint&, const cl_event*&,
                     cl_event*&) {
    recorder().pending().settle();
    recorder().pending().forget_reads(address);
    const calls::Object object = recorder().find(memory);
    const std::optional<KnownMap> map = recorder().take_map(address, object);
    hook.call.kind = map ? CallKind::unmap : CallKind::foreign;
    if (!map) return;
    hook.call.flags = map->flags;
    hook.call.host = host_range(address, map->operand.bytes);
    if (!writes(map->flags)) return;
    hook.call.operands.push_back(map->operand);
    hook.call.operands.back().access = Access::write;
    log_input(recorder(), hook.call.sequence, *hook.call.host);
  }
};

}  // namespace

void wrap_maps(cl_icd_dispatch& table) {
  SWAPMM_WRAP(clEnqueueMapBuffer, MapBuffer);
  SWAPMM_WRAP(clEnqueueMapImage, MapImage);
  SWAPMM_WRAP(clEnqueueUnmapMemObject, Unmap);
}

}  // namespace swapmm::opencl::layer::record
