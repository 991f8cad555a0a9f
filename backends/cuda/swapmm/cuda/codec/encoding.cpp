// SPDX-License-Identifier: Apache-2.0
// The backend's copies of values that are encoded on their way: see swapmm::EncodingBackend.
#include <memory>
#include <span>
#include <utility>

#include <swapmm/codec/zero_code.hpp>
#include <swapmm/cuda/backend.hpp>
#include <swapmm/cuda/codec/zero_codec.hpp>
#include <swapmm/cuda/session.hpp>

namespace swapmm::cuda {

using detail::CurrentDevice;

namespace detail {

class EncoderParts {
 public:
  /// One direction: an encoded value, and scratch memory.
  struct Way {
    DeviceMemory memory;
    std::span<std::byte> value;
    std::span<std::byte> scratch;
  };

  EncoderParts(Backend& backend, Bytes largest) : out(make_way(backend, largest)), in(make_way(backend, largest)) {}

  ZeroCodec codec;
  Way out;
  Way in;

 private:
  static Way make_way(Backend& backend, Bytes largest) {
    const Bytes all = encoder_bytes(largest);
    const Bytes value = round_up(zero_worst_case({largest.value, 1}), Bytes{256});
    DeviceMemory memory = backend.allocate(all);
    std::byte* const data = backend.address(memory, Bytes{}, all).data();
    const auto first = static_cast<std::size_t>(value.value);
    return {std::move(memory), {data, first}, {data + first, static_cast<std::size_t>(all.value) - first}};
  }
};

namespace {

std::span<std::byte> bytes_of(const Address& place, const ZeroElements& elements) {
  return {place.data(), static_cast<std::size_t>(elements.count * elements.element_bytes)};
}
std::size_t size_of(const ZeroElements& elements) { return static_cast<std::size_t>(zero_worst_case(elements).value); }

}  // namespace
}  // namespace detail

Encoder::Encoder(std::unique_ptr<detail::EncoderParts> parts) : parts_(std::move(parts)) {}
Encoder::Encoder(Encoder&&) noexcept = default;
Encoder& Encoder::operator=(Encoder&&) noexcept = default;
Encoder::~Encoder() = default;

Encoder Backend::make_encoder(Bytes largest) {
  const CurrentDevice current(session_->device);
  auto parts = std::make_unique<detail::EncoderParts>(*this, largest);
  // Once on a small value, so that what a driver does at the first launch is not taken for the time of a copy.
  const auto& [codec, out, in] = *parts;
  const ZeroElements word{1, 4};
  const cudaStream_t stream = session_->stream(QueueKind::d2h);
  codec.encode(stream, word, in.value.first(4), out.value, out.scratch);
  codec.move(stream, out.value, in.value.subspan(256), 1);
  codec.decode(stream, word, in.value.subspan(256), in.value.first(4), in.scratch);
  finish();
  return Encoder(std::move(parts));
}

EncodedMemory Backend::allocate_encoded(const ZeroElements& elements) {
  return EncodedMemory(allocate_host(zero_worst_case(elements), HostKind::pinned));
}

void Backend::copy_encoded_to_host(Encoder& encoder, EncodedMemory& to, const Address& from,
                                   const ZeroElements& elements, std::span<const Event* const> waits, Event& event) {
  const CurrentDevice current(session_->device);
  const cudaStream_t stream = session_->stream(QueueKind::d2h);
  const auto& [codec, out, in] = *encoder.parts_;
  session_->queue_waits(QueueKind::d2h, waits);
  codec.encode(stream, elements, detail::bytes_of(from, elements), out.value, out.scratch);
  codec.move(stream, out.value, {to.memory_.data(), detail::size_of(elements)}, zero_move_out);
  session_->record(QueueKind::d2h, event);
}

void Backend::copy_encoded_to_device(Encoder& encoder, const Address& to, const EncodedMemory& from,
                                     const ZeroElements& elements, std::span<const Event* const> waits, Event& event) {
  const CurrentDevice current(session_->device);
  const cudaStream_t stream = session_->stream(QueueKind::h2d);
  const auto& [codec, out, in] = *encoder.parts_;
  session_->queue_waits(QueueKind::h2d, waits);
  codec.move(stream, {from.memory_.data(), detail::size_of(elements)}, in.value, zero_move_in);
  codec.decode(stream, elements, in.value, detail::bytes_of(to, elements), in.scratch);
  session_->record(QueueKind::h2d, event);
}

void Backend::read_encoded(const EncodedMemory& from, const ZeroElements& elements, Bytes offset,
                           std::span<std::byte> to) {
  swapmm::detail::require_good(zero_decode(elements, {from.memory_.data(), detail::size_of(elements)}, offset, to));
}

void Backend::write_encoded(EncodedMemory& to, const ZeroElements& elements, Bytes offset,
                            std::span<const std::byte> from) {
  swapmm::detail::require_good(zero_rewrite(elements, {to.memory_.data(), detail::size_of(elements)}, offset, from));
}

}  // namespace swapmm::cuda
