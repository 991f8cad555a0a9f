// SPDX-License-Identifier: Apache-2.0
// Unmodified programs' values are not encoded: the backend's codec calls functions of the API that the layer does not
// define.
#include <swapmm/base/error.hpp>
#include <swapmm/opencl/backend.hpp>

namespace swapmm::opencl {

namespace detail {
class EncoderParts {};
}  // namespace detail

namespace {
[[noreturn]] void refuse() { throw UsageError("the layer does not encode values"); }
}  // namespace

Encoder::Encoder(Encoder&&) noexcept = default;
Encoder& Encoder::operator=(Encoder&&) noexcept = default;
Encoder::~Encoder() = default;

Encoder Backend::make_encoder(Bytes) { refuse(); }
EncodedMemory Backend::allocate_encoded(const ZeroElements&) { refuse(); }
void Backend::copy_encoded_to_host(Encoder&, EncodedMemory&, const Address&, const ZeroElements&,
                                   std::span<const Event* const>, Event&) {
  refuse();
}
void Backend::copy_encoded_to_device(Encoder&, const Address&, const EncodedMemory&, const ZeroElements&,
                                     std::span<const Event* const>, Event&) {
  refuse();
}
void Backend::read_encoded(const EncodedMemory&, const ZeroElements&, Bytes, std::span<std::byte>) { refuse(); }
void Backend::write_encoded(EncodedMemory&, const ZeroElements&, Bytes, std::span<const std::byte>) { refuse(); }

}  // namespace swapmm::opencl
