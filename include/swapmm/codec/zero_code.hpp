// SPDX-License-Identifier: Apache-2.0
#pragma once

// The zero codec on the host, for values that were encoded on a device and are needed here.
// <swapmm/codec/zero_format.hpp> has the encoded form.

#include <cstddef>
#include <span>

#include <swapmm/base/bytes.hpp>
#include <swapmm/base/export.hpp>
#include <swapmm/codec/zero_format.hpp>

namespace swapmm {

/// Encodes on the host: the same bytes as on a device. `plain` has the elements, `encoded` at least zero_worst_case().
/// Returns the size of the encoded value, which ZeroHeader::bytes tells, too. Throws UsageError for an element size
/// that the codec does not take, and for a memory that is too small. Linear in the number of elements.
SWAPMM_EXPORT Bytes zero_encode(const ZeroElements& elements, std::span<const std::byte> plain,
                                std::span<std::byte> encoded);

/// Decodes a part of a value on the host: the bytes of the plain value from `offset` on, as many as `to` has. Reads
/// only the blocks of 4096 elements that have them, and the counts of those before. `encoded` may hold anything: what
/// cannot be read is zero in `to`, and the result says so. Throws UsageError as zero_encode() does, and for bytes
/// beyond the elements.
SWAPMM_EXPORT ZeroStatus zero_decode(const ZeroElements& elements, std::span<const std::byte> encoded, Bytes offset,
                                     std::span<std::byte> to);

/// Changes a part of an encoded value on the host: `from` are the new bytes of the plain value from `offset` on. If
/// that is the whole value, `encoded` may hold anything before; else it must be readable: if it is not, nothing
/// changes, and the result says so. Throws UsageError as zero_encode() and zero_decode() do. Decodes and encodes the
/// whole value.
SWAPMM_EXPORT ZeroStatus zero_rewrite(const ZeroElements& elements, std::span<std::byte> encoded, Bytes offset,
                                      std::span<const std::byte> from);

namespace detail {
/// Throws BackendError for values in a backend's memory that cannot be read.
SWAPMM_TEMPLATE_EXPORT void require_good(ZeroStatus status);
}  // namespace detail

}  // namespace swapmm
