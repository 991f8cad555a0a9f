// SPDX-License-Identifier: Apache-2.0
// The backend's copies of values that are encoded on their way: see swapmm::EncodingBackend.
#include <memory>
#include <span>
#include <utility>

#include <swapmm/codec/zero_code.hpp>
#include <swapmm/opencl/backend.hpp>
#include <swapmm/opencl/codec/zero_codec.hpp>
#include <swapmm/opencl/session.hpp>
#include <swapmm/opencl/status.hpp>

namespace swapmm::opencl {

using detail::require_own_process;

namespace detail {

class EncoderParts {
 public:
  /// One direction: an encoded value, and scratch memory.
  struct Way {
    DeviceMemory value_memory;
    Address value;
    DeviceMemory scratch_memory;
    Address scratch;
  };

  EncoderParts(Backend& backend, Bytes largest)
      : codec(backend), out(make_way(backend, largest)), in(make_way(backend, largest)) {}

  ZeroCodec codec;
  Way out;
  Way in;

 private:
  static Way make_way(Backend& backend, Bytes largest) {
    const ZeroElements bytes{largest.value, 1};
    const Bytes value = round_up(zero_worst_case(bytes), Bytes{256});
    const Bytes scratch = encoder_bytes(largest) - value;
    DeviceMemory value_memory = backend.allocate(value);
    Address value_place = backend.address(value_memory, Bytes{}, value);
    DeviceMemory scratch_memory = backend.allocate(scratch);
    Address scratch_place = backend.address(scratch_memory, Bytes{}, scratch);
    return {std::move(value_memory), std::move(value_place), std::move(scratch_memory), std::move(scratch_place)};
  }
};

namespace {

/// The host's view of a buffer in host memory that is not mapped otherwise, until this is destroyed.
class Mapping {
 public:
  Mapping(const Session& session, cl_mem buffer, Bytes size, cl_map_flags flags)
      : session_(session), buffer_(buffer), size_(static_cast<std::size_t>(size.value)) {
    cl_int status = CL_SUCCESS;
    data_ = static_cast<std::byte*>(
        clEnqueueMapBuffer(session.chores.get(), buffer, CL_TRUE, flags, 0, size_, 0, nullptr, nullptr, &status));
    check(status, "clEnqueueMapBuffer");
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping() {
    clEnqueueUnmapMemObject(session_.chores.get(), buffer_, data_, 0, nullptr, nullptr);
    clFinish(session_.chores.get());
  }
  [[nodiscard]] std::span<std::byte> bytes() const { return {data_, size_}; }

 private:
  const Session& session_;
  cl_mem buffer_;
  std::byte* data_ = nullptr;
  std::size_t size_;
};

std::span<const cl_event> events(const WaitList& list) { return {list.data(), list.size()}; }

}  // namespace
}  // namespace detail

Encoder::Encoder(std::unique_ptr<detail::EncoderParts> parts) : parts_(std::move(parts)) {}
Encoder::Encoder(Encoder&&) noexcept = default;
Encoder& Encoder::operator=(Encoder&&) noexcept = default;
Encoder::~Encoder() = default;

Encoder Backend::make_encoder(Bytes largest) {
  require_own_process();
  auto parts = std::make_unique<detail::EncoderParts>(*this, largest);
  // Once on a value of zeros, so that what a driver does at the first launch is not taken for the time of a copy.
  auto& [codec, out, in] = *parts;
  const ZeroElements word{1, 4};
  const cl_command_queue queue = session_->use(QueueKind::d2h);
  codec.encode(queue, word, in.value.buffer(), out.value.buffer(), out.scratch.buffer());
  codec.move(queue, out.value.buffer(), out.scratch.buffer(), 1);
  codec.decode(queue, word, out.scratch.buffer(), in.value.buffer(), in.scratch.buffer());
  finish();
  return Encoder(std::move(parts));
}

EncodedMemory Backend::allocate_encoded(const ZeroElements& elements) {
  require_own_process();
  const Bytes size = zero_worst_case(elements);
  cl_int status = CL_SUCCESS;
  Handle<cl_mem> buffer(clCreateBuffer(context(), CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR,
                                       static_cast<std::size_t>(size.value), nullptr, &status));
  detail::check_allocation(status, "clCreateBuffer in host memory", size, BackendError::Kind::out_of_host_memory);
  try {
    const detail::Mapping touched(*session_, buffer.get(), size, CL_MAP_WRITE);  // a driver may allocate only now
  } catch (BackendError& error) {
    if (error.kind == BackendError::Kind::out_of_device_memory) error.kind = BackendError::Kind::out_of_host_memory;
    throw;
  }
  return EncodedMemory(std::move(buffer));
}

void Backend::copy_encoded_to_host(Encoder& encoder, EncodedMemory& to, const Address& from,
                                   const ZeroElements& elements, std::span<const Event* const> waits, Event& event) {
  const WaitList list = wait_list(waits);
  const cl_command_queue queue = session_->use(QueueKind::d2h);
  auto& [codec, out, in] = *encoder.parts_;
  const Handle<cl_event> encoded =
      codec.encode(queue, elements, from.buffer(), out.value.buffer(), out.scratch.buffer(), detail::events(list));
  const cl_event before = encoded.get();
  recorded(event, codec.move(queue, out.value.buffer(), to.buffer_.get(), zero_move_out, {&before, 1}).release());
}

void Backend::copy_encoded_to_device(Encoder& encoder, const Address& to, const EncodedMemory& from,
                                     const ZeroElements& elements, std::span<const Event* const> waits, Event& event) {
  const WaitList list = wait_list(waits);
  const cl_command_queue queue = session_->use(QueueKind::h2d);
  auto& [codec, out, in] = *encoder.parts_;
  const Handle<cl_event> moved =
      codec.move(queue, from.buffer_.get(), in.value.buffer(), zero_move_in, detail::events(list));
  const cl_event before = moved.get();
  recorded(event,
           codec.decode(queue, elements, in.value.buffer(), to.buffer(), in.scratch.buffer(), {&before, 1}).release());
}

void Backend::read_encoded(const EncodedMemory& from, const ZeroElements& elements, Bytes offset,
                           std::span<std::byte> to) {
  require_own_process();
  const detail::Mapping mapping(*session_, from.buffer_.get(), zero_worst_case(elements), CL_MAP_READ);
  swapmm::detail::require_good(zero_decode(elements, mapping.bytes(), offset, to));
}

void Backend::write_encoded(EncodedMemory& to, const ZeroElements& elements, Bytes offset,
                            std::span<const std::byte> from) {
  require_own_process();
  const detail::Mapping mapping(*session_, to.buffer_.get(), zero_worst_case(elements), CL_MAP_READ | CL_MAP_WRITE);
  swapmm::detail::require_good(zero_rewrite(elements, mapping.bytes(), offset, from));
}

}  // namespace swapmm::opencl
