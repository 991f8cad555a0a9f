// SPDX-License-Identifier: Apache-2.0
#include <swapmm/c/opencl.h>

#include <sstream>
#include <string>

#include <swapmm/backend/device_choice.hpp>
#include <swapmm/c_interface/failure.hpp>
#include <swapmm/c_interface/manager_on.hpp>
#include <swapmm/opencl/backend.hpp>
#include <swapmm/opencl/neighbour.hpp>

namespace swapmm::c_interface {
namespace {

struct OpenclNative {
  static void* address(const opencl::Address& address) { return address.buffer(); }
  static void* queue(opencl::Backend& backend) { return backend.queue(); }
  static NativeWaits waits(opencl::Backend&, const opencl::WaitList& waits) { return {waits.data(), waits.size()}; }
  static opencl::NativeEvent event(void* event) { return {static_cast<cl_event>(event)}; }
};

using OpenclHandle = BackendOn<opencl::Backend, ManagerOn<opencl::Backend, OpenclNative>>;

}  // namespace
}  // namespace swapmm::c_interface

using namespace swapmm::c_interface;  // NOLINT(*-build-using-namespace)

swapmm_status swapmm_opencl_create(void* context, void* device, void* queue, swapmm_backend** backend) {
  return make_backend<OpenclHandle>(backend, [&] {
    return swapmm::opencl::Backend(&required(static_cast<cl_context>(context), "the cl_context"),
                                   &required(static_cast<cl_device_id>(device), "the cl_device_id"),
                                   static_cast<cl_command_queue>(queue));
  });
}

swapmm_status swapmm_opencl_pick(const char* wanted, swapmm_backend** backend) {
  return make_backend<OpenclHandle>(backend, [&] {
    const std::string which = wanted == nullptr ? swapmm::device_from_environment() : std::string(wanted);
    std::ostringstream unread;
    return swapmm::opencl::Backend::pick(which, unread);
  });
}

swapmm_status swapmm_opencl_neighbour(void* device, uint64_t bytes, uint64_t staging, swapmm_neighbour** neighbour) {
  return make_object(neighbour, "the pointer to the neighbour", [&] {
    cl_device_id const wanted = &required(static_cast<cl_device_id>(device), "the cl_device_id");
    const swapmm::Bytes size{bytes};
    return new swapmm_neighbour{staging == 0 ? swapmm::opencl::neighbour(wanted, size)
                                             : swapmm::opencl::neighbour(wanted, size, swapmm::Bytes{staging})};
  });
}

swapmm_status swapmm_opencl_native(const swapmm_backend* backend, void** context, void** device) {
  return guarded([&] {
    const swapmm::opencl::Backend& opened = OpenclHandle::of(backend, "OpenCL");
    if (context != nullptr) *context = opened.context();
    if (device != nullptr) *device = opened.device();
  });
}
