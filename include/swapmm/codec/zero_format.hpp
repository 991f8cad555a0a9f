// SPDX-License-Identifier: Apache-2.0
#pragma once

// The encoded form of a tensor with many zeros, and its sizes. docs/compression.md describes the form for programs in
// other languages. swapmm::opencl::ZeroCodec and swapmm::cuda::ZeroCodec encode and decode on the device.
//
// The form works on bits: an element is zero if all of its bits are 0. All numbers are in the byte order of the device,
// which is little-endian on every device that is known.
//
//     header   64 bytes, ZeroHeader
//     table    for each block of 4096 elements, 4 bytes: how many elements of the block are not zero
//     bitmap   for each 32 elements, 4 bytes: bit i is 1 if element i of them is not zero
//     values   the elements that are not zero, in their order; they begin at the next multiple of 4, and of 8 if
//              elements have 8 bytes
//
// If this is not smaller than the elements themselves, the form is raw: the header, then all elements.

#include <cstdint>
#include <string>

#include <swapmm/base/bytes.hpp>
#include <swapmm/base/error.hpp>

namespace swapmm {

/// What is encoded: a number of elements, each with a number of bytes.
struct ZeroElements {
  std::uint64_t count = 0;          ///< number of elements; may be 0
  std::uint32_t element_bytes = 0;  ///< size of an element in bytes: 1, 2, 4 or 8
};

/// How an encoded tensor is stored: the second number of its header.
enum class ZeroForm : std::uint64_t {
  raw = 0,     ///< all elements, because nothing would be gained
  packed = 1,  ///< table, bitmap and values
};

/// The first 64 bytes of an encoded tensor.
struct ZeroHeader {
  static constexpr std::uint64_t magic_number = 0x31305a4d50415753;  ///< the bytes "SWAPMZ01"

  std::uint64_t magic = 0;           ///< magic_number
  ZeroForm form = ZeroForm::raw;     ///< what comes after the header
  std::uint64_t elements = 0;        ///< number of elements
  std::uint64_t element_bytes = 0;   ///< size of an element in bytes
  std::uint64_t block_elements = 0;  ///< elements of a block: 4096
  std::uint64_t nonzeros = 0;        ///< number of elements that are not zero
  std::uint64_t bytes = 0;           ///< size of the encoded tensor in bytes, header included
  std::uint64_t reserved = 0;        ///< 0
};
static_assert(sizeof(ZeroHeader) == 64);

/// What a decoding found: the first four bytes of its scratch memory. 0 means that all elements are as they were
/// encoded. Otherwise elements that could not be read are zero, and nothing outside of the decoded tensor was written.
enum class ZeroStatus : std::uint32_t {
  good = 0,          ///< everything was read
  other_value = 1,   ///< this is not the encoded form of such a tensor; all elements are zero
  truncated = 2,     ///< the memory is smaller than the header says; all elements are zero
  inconsistent = 4,  ///< table, bitmap and header contradict each other; some or all elements are wrong
};

namespace detail {

inline constexpr std::uint64_t zero_block = 4096;  // elements
inline constexpr std::uint64_t zero_chunk = 1024;  // blocks

constexpr std::uint64_t pieces_of(std::uint64_t count, std::uint64_t size) {
  return count / size + (count % size != 0 ? 1 : 0);
}

inline void check_elements(const ZeroElements& elements) {
  const std::uint64_t size = elements.element_bytes;
  if (size != 1 && size != 2 && size != 4 && size != 8) {
    throw UsageError("the zero codec takes elements of 1, 2, 4 or 8 bytes, and these have " + std::to_string(size));
  }
  // All sizes of the form stay below 2^63.
  constexpr std::uint64_t most = std::uint64_t{1} << 62U;
  if (elements.count > most / size) {
    throw UsageError("the zero codec takes tensors of up to 2^62 bytes, and this one has " +
                     std::to_string(elements.count) + " elements of " + std::to_string(size) + " bytes");
  }
}

}  // namespace detail

/// Number of blocks of the encoded form, each of up to 4096 elements.
[[nodiscard]] constexpr std::uint64_t zero_blocks(const ZeroElements& elements) {
  return detail::pieces_of(elements.count, detail::zero_block);
}

/// Size of the largest encoded form of such a tensor: the elements and a header. Memory for an encoding needs this
/// size, because the size of the result is known only when the device has encoded. Throws UsageError for a size of an
/// element other than 1, 2, 4 and 8, and for more than 2^62 bytes.
[[nodiscard]] inline Bytes zero_worst_case(const ZeroElements& elements) {
  detail::check_elements(elements);
  return Bytes{sizeof(ZeroHeader) + elements.count * elements.element_bytes};
}

/// Size of the encoded form of such a tensor in which that many elements are not zero. For elements of 4 bytes: 64 +
/// 4 * blocks + 4 * ceil(count / 32) + 4 * nonzeros, but at most zero_worst_case(). Throws UsageError as that does, and
/// if more elements are not zero than there are.
[[nodiscard]] inline Bytes zero_encoded_size(const ZeroElements& elements, std::uint64_t nonzeros) {
  const Bytes raw = zero_worst_case(elements);
  if (nonzeros > elements.count) {
    throw UsageError(std::to_string(nonzeros) + " of " + std::to_string(elements.count) + " elements are not zero");
  }
  const std::uint64_t words = zero_blocks(elements) + detail::pieces_of(elements.count, 32);
  const Bytes values_at = round_up(Bytes{sizeof(ZeroHeader) + 4 * words}, Bytes{elements.element_bytes == 8 ? 8U : 4U});
  const Bytes packed = values_at + Bytes{nonzeros * elements.element_bytes};
  return packed < raw ? packed : raw;
}

/// Size of the scratch memory for an encoding or a decoding, on the device: 4 bytes for each block, and a little more.
/// Throws UsageError as zero_worst_case() does.
[[nodiscard]] inline Bytes zero_scratch(const ZeroElements& elements) {
  detail::check_elements(elements);
  const std::uint64_t blocks = zero_blocks(elements);
  return Bytes{16 + 8 * detail::pieces_of(blocks, detail::zero_chunk) + 4 * blocks};
}

/// Groups of work items that move an encoded value to the host. On an NVIDIA H100 they reach 0.94 of the copy engine's
/// speed, and slow down what computes meanwhile by 2 to 3 percent (docs/compression.md).
inline constexpr unsigned zero_move_out = 8;
/// Groups that move one back: 0.92 and 4 percent.
inline constexpr unsigned zero_move_in = 32;

}  // namespace swapmm
