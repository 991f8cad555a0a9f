// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the tests run on the device. All pointers are the device's.

#include <cstddef>
#include <cstdint>

#include <cuda_runtime_api.h>

namespace swapmm::test {

/// to[i] = from[i] + value
void launch_add(cudaStream_t stream, const std::uint8_t* from, std::uint8_t* to, std::size_t size, std::uint8_t value);
/// @{
/// As the functions of support/numbers.hpp.
void launch_affine(cudaStream_t stream, const std::uint32_t* from, std::uint32_t* to, std::size_t size,
                   std::uint32_t added);
void launch_blend(cudaStream_t stream, const std::uint32_t* a, const std::uint32_t* b, std::uint32_t* to,
                  std::size_t size);
void launch_grow(cudaStream_t stream, const std::uint32_t* by, std::uint32_t* to, std::size_t size);
/// @}
/// Writes the byte behind the end: compute-sanitizer must see it.
void launch_write_behind(cudaStream_t stream, std::uint8_t* to, std::size_t size);
/// A launch that the API refuses. Nobody asks for the error.
void launch_wrongly(cudaStream_t stream, std::uint32_t* to);

}  // namespace swapmm::test
