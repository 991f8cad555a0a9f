// SPDX-License-Identifier: Apache-2.0
#pragma once

// Tensors with many zeros in fewer bytes, on the device. <swapmm/codec/zero_format.hpp> has the encoded form and its
// sizes; docs/compression.md explains the use.

#include <cstdint>
#include <memory>
#include <span>

#include <swapmm/base/export.hpp>
#include <swapmm/codec/zero_format.hpp>
#include <swapmm/opencl/backend.hpp>
#include <swapmm/opencl/handle.hpp>

namespace swapmm::opencl {

namespace detail {
class ZeroKernels;  // the compiled kernels
}

/// Encodes and decodes on a backend's device. Both only queue kernels: the host waits for nothing, and the codec
/// allocates nothing. Must not be used by two threads at the same time.
///
/// A buffer may be a sub-buffer. Its first byte is the first byte of what it holds. The buffer of an encoded value may
/// lie in host memory (CL_MEM_ALLOC_HOST_PTR): then the kernels store straight into it, and exactly the bytes of the
/// encoded value cross the bus. It must not be mapped meanwhile.
class SWAPMM_EXPORT ZeroCodec {
 public:
  /// Compiles the kernels. Slow: up to seconds. Throws BackendError if that fails, and UsageError if the device runs
  /// fewer than 128 work items in a group.
  explicit ZeroCodec(const Backend& backend);
  /// Takes over the kernels. The moved-from codec may only be destroyed.
  ZeroCodec(ZeroCodec&& other) noexcept;
  /// Takes over the kernels, and releases those that this codec had.
  ZeroCodec& operator=(ZeroCodec&& other) noexcept;
  ~ZeroCodec();

  /// Queues an encoding after the events, and returns the event behind it, which an operation of the second form
  /// returns as well (its release()). Reads the first elements of `plain`, writes `encoded` (at least
  /// zero_worst_case()) and `scratch` (at least zero_scratch(), free again after the event). The first 64 bytes of
  /// `encoded` are then a ZeroHeader, with the size. The queue may be out of order.
  ///
  /// Throws UsageError before anything is queued if an argument is wrong: the size of an element, a buffer that is too
  /// small, or one buffer for two purposes. Throws BackendError if a call of the API fails; what was queued before that
  /// writes only `encoded` and `scratch`.
  Handle<cl_event> encode(cl_command_queue queue, const ZeroElements& elements, cl_mem plain, cl_mem encoded,
                          cl_mem scratch, std::span<const cl_event> waits = {});

  /// Queues a decoding after the events, and returns the event behind it. Reads `encoded` (at least a header; its size
  /// limits what is read), writes all elements to `plain`, and uses `scratch` as encode() does. The first four bytes
  /// of `scratch` are then a ZeroStatus. Whatever `encoded` holds, nothing else is written. Throws as encode() does.
  Handle<cl_event> decode(cl_command_queue queue, const ZeroElements& elements, cl_mem encoded, cl_mem plain,
                          cl_mem scratch, std::span<const cl_event> waits = {});

  /// Queues a copy of an encoded value to another memory, on the device or on the host. Its size, which the host need
  /// not know, stands in its header: exactly these bytes are copied, up to the size of the smaller memory, both at
  /// least a header. This is the way to the host and back: encode on the device, move, and move back before decode().
  /// `groups` of 128 work items do it; few keep a bus busy without slowing down what computes meanwhile
  /// (docs/compression.md). Returns the event behind it. Throws as encode() does, and UsageError for no groups.
  Handle<cl_event> move(cl_command_queue queue, cl_mem from, cl_mem to, unsigned groups,
                        std::span<const cl_event> waits = {});

 private:
  std::unique_ptr<detail::ZeroKernels> kernels_;
};

}  // namespace swapmm::opencl
