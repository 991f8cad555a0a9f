// SPDX-License-Identifier: Apache-2.0
// Neighbours' memory: the part of the backend that is NeighbourBackend.

#include <swapmm/opencl/backend.hpp>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include <swapmm/opencl/info.hpp>
#include <swapmm/opencl/neighbour.hpp>
#include <swapmm/opencl/neighbours/link.hpp>
#include <swapmm/opencl/session.hpp>
#include <swapmm/opencl/status.hpp>

namespace swapmm::opencl {

using detail::NeighbourLink;

namespace {

constexpr Bytes least_staging{4096};

std::size_t size_of(Bytes bytes) { return static_cast<std::size_t>(bytes.value); }

NeighbourLink::Part part_of(cl_mem buffer, Bytes offset) { return {buffer, size_of(offset)}; }

std::span<const cl_event> span_of(const WaitList& list) { return {list.data(), list.size()}; }

bool has_device(cl_context context, cl_device_id device) {
  std::size_t bytes = 0;
  check(clGetContextInfo(context, CL_CONTEXT_DEVICES, 0, nullptr, &bytes), "clGetContextInfo");
  std::vector<cl_device_id> devices(bytes / sizeof(cl_device_id));
  check(clGetContextInfo(context, CL_CONTEXT_DEVICES, bytes, devices.data(), nullptr), "clGetContextInfo");
  return std::find(devices.begin(), devices.end(), device) != devices.end();
}

}  // namespace

// ---- Neighbour

Neighbour::Neighbour(cl_device_id device, Bytes bytes, Bytes staging)
    : device_(device), bytes_(bytes), staging_(staging) {
  if (device == nullptr) throw UsageError("an OpenCL neighbour needs a device: it is null");
  if (staging < least_staging) throw UsageError("an OpenCL neighbour needs at least 4096 bytes of staging memory");
  alignment_ =
      Bytes{std::max<std::uint64_t>(detail::device_value<cl_uint>(device, CL_DEVICE_MEM_BASE_ADDR_ALIGN) / 8, 1)};
  largest_ = Bytes{detail::device_value<cl_ulong>(device, CL_DEVICE_MAX_MEM_ALLOC_SIZE)};
  name_ = "a part of " + detail::device_text(device, CL_DEVICE_NAME);
}

Neighbour::~Neighbour() = default;

std::shared_ptr<Neighbour> neighbour(cl_device_id device, Bytes bytes, Bytes staging) {
  return std::make_shared<Neighbour>(device, bytes, staging);
}

// ---- NeighbourMemory

NeighbourMemory::NeighbourMemory(std::shared_ptr<NeighbourLink> link, Handle<cl_mem> buffer)
    : link_(std::move(link)), buffer_(std::move(buffer)) {}

// ---- Backend

std::size_t NeighbourMemory::path() const { return link_->path(); }

NeighbourMemory Backend::allocate_at(const swapmm::Neighbour& neighbour, Bytes size, std::size_t path) {
  detail::require_own_process();
  const auto* const known = dynamic_cast<const Neighbour*>(&neighbour);
  if (known == nullptr) {
    throw BackendError(BackendError::Kind::failed, CL_INVALID_DEVICE, neighbour.name() + " is no OpenCL neighbour");
  }
  if (!has_device(context(), known->device())) {
    throw BackendError(BackendError::Kind::failed, CL_INVALID_DEVICE,
                       "the OpenCL context of the manager does not contain the neighbour " + known->name());
  }
  std::shared_ptr<NeighbourLink> link = known->link_.lock();
  if (link == nullptr || &link->session() != session_.get() || link->path() != path) {
    link = std::make_shared<NeighbourLink>(session_, known->device(), path,
                                           allocate_host(known->staging(), HostKind::pinned), known->staging());
    known->link_ = link;
  }
  try {
    cl_int status = CL_SUCCESS;
    Handle<cl_mem> buffer(clCreateBuffer(context(), CL_MEM_READ_WRITE, size_of(size), nullptr, &status));
    check(status, "clCreateBuffer on a neighbour");
    link->use_first(buffer.get(), size_of(size));
    return {std::move(link), std::move(buffer)};
  } catch (BackendError& error) {
    if (error.kind != BackendError::Kind::device_lost) error.kind = BackendError::Kind::out_of_device_memory;
    error.need = size;
    throw;
  }
}

void Backend::copy_from_neighbour(const Address& to, const NeighbourMemory& from, Bytes from_offset, Bytes size,
                                  std::span<const Event* const> waits, Event& event) {
  const WaitList list = wait_list(waits);
  recorded(event, from.link_
                      ->copy_in(part_of(to.buffer(), Bytes{}), part_of(from.buffer_.get(), from_offset), size_of(size),
                                span_of(list))
                      .release());
}

void Backend::copy_to_neighbour(NeighbourMemory& to, Bytes to_offset, const Address& from, Bytes size,
                                std::span<const Event* const> waits, Event& event) {
  const WaitList list = wait_list(waits);
  recorded(event, to.link_
                      ->copy_out(part_of(to.buffer_.get(), to_offset), part_of(from.buffer(), Bytes{}), size_of(size),
                                 span_of(list))
                      .release());
}

void Backend::read_neighbour(const NeighbourMemory& from, Bytes offset, std::span<std::byte> to) {
  from.link_->read(part_of(from.buffer_.get(), offset), to);
}

void Backend::write_neighbour(NeighbourMemory& to, Bytes offset, std::span<const std::byte> from) {
  to.link_->write(part_of(to.buffer_.get(), offset), from);
}

}  // namespace swapmm::opencl
