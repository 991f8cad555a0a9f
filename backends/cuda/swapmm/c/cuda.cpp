// SPDX-License-Identifier: Apache-2.0
#include <swapmm/c/cuda.h>

#include <sstream>
#include <string>
#include <vector>

#include <swapmm/backend/device_choice.hpp>
#include <swapmm/c_interface/failure.hpp>
#include <swapmm/c_interface/manager_on.hpp>
#include <swapmm/cuda/backend.hpp>

namespace swapmm::c_interface {
namespace {

class CudaNative {
 public:
  static void* address(const cuda::Address& address) { return address.data(); }
  static void* queue(cuda::Backend& backend) { return backend.queue(); }
  NativeWaits waits(cuda::Backend&, const cuda::WaitList& waits) {
    waits.events_for_other_streams(events_);
    return {events_.data(), events_.size()};
  }
  static cuda::NativeEvent event(void* event) { return {static_cast<cudaEvent_t>(event)}; }

 private:
  std::vector<cudaEvent_t> events_;
};

using CudaHandle = BackendOn<cuda::Backend, ManagerOn<cuda::Backend, CudaNative>>;

}  // namespace
}  // namespace swapmm::c_interface

using namespace swapmm::c_interface;  // NOLINT(*-build-using-namespace)

swapmm_status swapmm_cuda_create(int32_t device, swapmm_backend** backend) {
  return make_backend<CudaHandle>(backend, [&] { return swapmm::cuda::Backend(device); });
}

swapmm_status swapmm_cuda_create_on_stream(int32_t device, void* stream, swapmm_backend** backend) {
  return make_backend<CudaHandle>(backend,
                                  [&] { return swapmm::cuda::Backend(device, static_cast<cudaStream_t>(stream)); });
}

swapmm_status swapmm_cuda_pick(const char* wanted, swapmm_backend** backend) {
  return make_backend<CudaHandle>(backend, [&] {
    const std::string which = wanted == nullptr ? swapmm::device_from_environment() : std::string(wanted);
    std::ostringstream unread;
    return swapmm::cuda::Backend::pick(which, unread);
  });
}

swapmm_status swapmm_cuda_neighbour(int32_t device, uint64_t bytes, swapmm_neighbour** neighbour) {
  return make_object(neighbour, "the pointer to the neighbour",
                     [&] { return new swapmm_neighbour{swapmm::cuda::neighbour(device, swapmm::Bytes{bytes})}; });
}

swapmm_status swapmm_cuda_device(const swapmm_backend* backend, int32_t* device) {
  return guarded(
      [&] { required(device, "the pointer to the device's number") = CudaHandle::of(backend, "CUDA").device(); });
}
