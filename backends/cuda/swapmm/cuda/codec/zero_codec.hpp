// SPDX-License-Identifier: Apache-2.0
#pragma once

// Tensors with many zeros in fewer bytes, on the device. <swapmm/codec/zero_format.hpp> has the encoded form and its
// sizes; docs/compression.md explains the use.

#include <cstddef>
#include <span>

#include <cuda_runtime_api.h>

#include <swapmm/base/export.hpp>
#include <swapmm/codec/zero_format.hpp>

namespace swapmm::cuda {

namespace detail {
struct ZeroKernels;
}

/// Encodes and decodes on a device. Both only queue kernels: the host waits for nothing, and the codec allocates
/// nothing. The stream's device must be the thread's current one, as it is in an operation. A codec may be used by
/// several threads.
///
/// All memories are memories of the device, or page-locked memory of the host, which the device reaches by the same
/// address. If the memory of an encoded value is on the host, the kernels store straight into it, and exactly the bytes
/// of the encoded value cross the bus. To encode on the device and to move() the value is faster.
class SWAPMM_EXPORT ZeroCodec {
 public:
  /// Throws UsageError if the library was built without nvcc, and has no kernels.
  ZeroCodec();

  /// Queues an encoding on the stream. Reads the first elements of `plain`, writes `encoded` (at least
  /// zero_worst_case()) and `scratch` (at least zero_scratch(), free again when the stream has come there). The first
  /// 64 bytes of `encoded` are then a ZeroHeader, with the size. The stream first waits for the events `waits`.
  ///
  /// Throws UsageError before anything is queued if an argument is wrong: the size of an element, a memory that is too
  /// small, memories that overlap, or one that does not begin at a multiple of 8 (`plain`: of the size of an element).
  /// Throws BackendError if a call of the API fails; what was queued before that writes only `encoded` and `scratch`.
  void encode(cudaStream_t stream, const ZeroElements& elements, std::span<const std::byte> plain,
              std::span<std::byte> encoded, std::span<std::byte> scratch,
              std::span<const cudaEvent_t> waits = {}) const;

  /// Queues a decoding on the stream. Reads `encoded` (at least a header; its size limits what is read), writes all
  /// elements to `plain`, and uses `scratch` as encode() does. The first four bytes of `scratch` are then a ZeroStatus.
  /// Whatever `encoded` holds, nothing else is written. Throws as encode() does.
  void decode(cudaStream_t stream, const ZeroElements& elements, std::span<const std::byte> encoded,
              std::span<std::byte> plain, std::span<std::byte> scratch, std::span<const cudaEvent_t> waits = {}) const;

  /// Queues a copy of an encoded value to another memory, of the device or of the host. Its size, which the host need
  /// not know, stands in its header: exactly these bytes are copied, up to the size of the smaller memory, both at
  /// least a header. This is the way to the host and back: encode on the device, move, and move back before decode().
  /// `groups` of 128 work items do it; few keep a bus busy without slowing down what computes meanwhile
  /// (docs/compression.md). Throws as encode() does, and UsageError for no groups.
  void move(cudaStream_t stream, std::span<const std::byte> from, std::span<std::byte> to, unsigned groups,
            std::span<const cudaEvent_t> waits = {}) const;

 private:
  const detail::ZeroKernels& kernels_;
};

}  // namespace swapmm::cuda
