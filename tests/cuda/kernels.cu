// SPDX-License-Identifier: Apache-2.0
#include "cuda/kernels.hpp"

namespace swapmm::test {

namespace {

constexpr unsigned block = 256;

unsigned blocks(std::size_t items) { return static_cast<unsigned>((items + block - 1) / block); }
__device__ std::size_t item() { return static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x; }

__global__ void add(const std::uint8_t* from, std::uint8_t* to, std::size_t size, std::uint8_t value) {
  if (const std::size_t i = item(); i < size) to[i] = static_cast<std::uint8_t>(from[i] + value);
}
__global__ void affine(const std::uint32_t* from, std::uint32_t* to, std::size_t size, std::uint32_t added) {
  if (const std::size_t i = item(); i < size) to[i] = 3U * from[i] + added;
}
__global__ void blend(const std::uint32_t* a, const std::uint32_t* b, std::uint32_t* to, std::size_t size) {
  if (const std::size_t i = item(); i < size) to[i] = 3U * a[i] + 5U * b[i] + static_cast<std::uint32_t>(i);
}
__global__ void grow(const std::uint32_t* by, std::uint32_t* to, std::size_t size) {
  if (const std::size_t i = item(); i < size) to[i] = 7U * to[i] + by[i];
}
__global__ void write_behind(std::uint8_t* to, std::size_t size) { to[size] = 1; }

}  // namespace

void launch_add(cudaStream_t stream, const std::uint8_t* from, std::uint8_t* to, std::size_t size, std::uint8_t value) {
  add<<<blocks(size), block, 0, stream>>>(from, to, size, value);
}
void launch_affine(cudaStream_t stream, const std::uint32_t* from, std::uint32_t* to, std::size_t size,
                   std::uint32_t added) {
  affine<<<blocks(size), block, 0, stream>>>(from, to, size, added);
}
void launch_blend(cudaStream_t stream, const std::uint32_t* a, const std::uint32_t* b, std::uint32_t* to,
                  std::size_t size) {
  blend<<<blocks(size), block, 0, stream>>>(a, b, to, size);
}
void launch_grow(cudaStream_t stream, const std::uint32_t* by, std::uint32_t* to, std::size_t size) {
  grow<<<blocks(size), block, 0, stream>>>(by, to, size);
}
void launch_write_behind(cudaStream_t stream, std::uint8_t* to, std::size_t size) {
  write_behind<<<1, 1, 0, stream>>>(to, size);
}
void launch_wrongly(cudaStream_t stream, std::uint32_t* to) {
  grow<<<1, 4096, 0, stream>>>(to, to, 1);  // more threads than a block can have
}

}  // namespace swapmm::test
