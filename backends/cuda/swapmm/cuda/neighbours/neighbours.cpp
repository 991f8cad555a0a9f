// SPDX-License-Identifier: Apache-2.0
// Neighbours' memory: the part of the backend that is NeighbourBackend.

#include <swapmm/cuda/backend.hpp>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include <swapmm/cuda/session.hpp>
#include <swapmm/cuda/status.hpp>

namespace swapmm::cuda {

using detail::CurrentDevice;
using detail::Session;

namespace {

std::size_t size_of(Bytes bytes) { return static_cast<std::size_t>(bytes.value); }

// Lets copies between two devices go without the host. That they may be enabled already is no error, and where they
// cannot be, the driver copies through the host.
void enable_peer_copies(int device, int other) {
  if (device == other) return;
  int can = 0;
  check(cudaDeviceCanAccessPeer(&can, device, other), "cudaDeviceCanAccessPeer");
  if (can == 0) return;
  const CurrentDevice current(device);
  const cudaError_t status = cudaDeviceEnablePeerAccess(other, 0);
  if (status == cudaErrorPeerAccessAlreadyEnabled) return forget(status);
  check(status, "cudaDeviceEnablePeerAccess");
}

void require_no_capture(bool capturing) {
  if (capturing) throw UsageError("a graph cannot contain copies of values that are on a neighbour");
}

}  // namespace

// ---- Neighbour

Neighbour::Neighbour(int device, Bytes bytes) : device_(device), bytes_(bytes) {
  int count = 0;
  check(cudaGetDeviceCount(&count), "cudaGetDeviceCount");
  if (device < 0 || device >= count) {
    throw UsageError("no CUDA device has the number " + std::to_string(device) + ": there are " +
                     std::to_string(count));
  }
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
  name_ = "a part of " + std::string(properties.name) + " (device " + std::to_string(device) + ")";
}

Neighbour::~Neighbour() = default;

std::shared_ptr<Neighbour> neighbour(int device, Bytes bytes) { return std::make_shared<Neighbour>(device, bytes); }

// ---- NeighbourMemory

NeighbourMemory& NeighbourMemory::operator=(NeighbourMemory&& other) noexcept {
  if (this == &other) return *this;
  end();
  session_ = std::move(other.session_);
  data_ = std::exchange(other.data_, nullptr);
  device_ = other.device_;
  path_ = other.path_;
  return *this;
}

void NeighbourMemory::end() noexcept {
  if (data_ == nullptr) return;
  session_->end_memory({data_, Session::Memory::device});
  data_ = nullptr;
  session_.reset();
}

// ---- Backend

NeighbourMemory Backend::allocate_at(const swapmm::Neighbour& neighbour, Bytes size, std::size_t path) {
  const auto* const known = dynamic_cast<const Neighbour*>(&neighbour);
  if (known == nullptr) {
    throw BackendError(BackendError::Kind::failed, cudaErrorInvalidDevice, neighbour.name() + " is no CUDA neighbour");
  }
  enable_peer_copies(device(), known->device());
  const CurrentDevice current(known->device());
  void* data = nullptr;
  const cudaError_t status = cudaMalloc(&data, std::max<std::size_t>(size_of(size), 1));
  if (status != cudaSuccess) {
    BackendError error = error_of(status, "cudaMalloc on a neighbour", " of " + std::to_string(size.value) + " bytes");
    error.need = size;
    throw error;
  }
  return {session_, static_cast<std::byte*>(data), known->device(), path};
}

void Backend::copy_from_neighbour(const Address& to, const NeighbourMemory& from, Bytes from_offset, Bytes size,
                                  std::span<const Event* const> waits, Event& event) {
  require_no_capture(capturing());
  const QueueKind queue = neighbour_in_queue(from.path());
  session_->queue_waits(queue, waits);
  check(cudaMemcpyPeerAsync(to.data(), device(), from.data_ + from_offset.value, from.device_, size_of(size),
                            session_->stream(queue)),
        "cudaMemcpyPeerAsync from a neighbour");
  session_->record(queue, event);
}

void Backend::copy_to_neighbour(NeighbourMemory& to, Bytes to_offset, const Address& from, Bytes size,
                                std::span<const Event* const> waits, Event& event) {
  require_no_capture(capturing());
  const QueueKind queue = neighbour_out_queue(to.path());
  session_->queue_waits(queue, waits);
  check(cudaMemcpyPeerAsync(to.data_ + to_offset.value, to.device_, from.data(), device(), size_of(size),
                            session_->stream(queue)),
        "cudaMemcpyPeerAsync to a neighbour");
  session_->record(queue, event);
}

void Backend::read_neighbour(const NeighbourMemory& from, Bytes offset, std::span<std::byte> to) {
  require_no_capture(capturing());
  const cudaStream_t stream = session_->stream(neighbour_in_queue(from.path()));
  check(cudaMemcpyAsync(to.data(), from.data_ + offset.value, to.size(), cudaMemcpyDeviceToHost, stream),
        "cudaMemcpyAsync from a neighbour");
  check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
}

void Backend::write_neighbour(NeighbourMemory& to, Bytes offset, std::span<const std::byte> from) {
  require_no_capture(capturing());
  const cudaStream_t stream = session_->stream(neighbour_out_queue(to.path()));
  check(cudaMemcpyAsync(to.data_ + offset.value, from.data(), from.size(), cudaMemcpyHostToDevice, stream),
        "cudaMemcpyAsync to a neighbour");
  check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
}

}  // namespace swapmm::cuda
