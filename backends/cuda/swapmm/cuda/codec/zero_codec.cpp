// SPDX-License-Identifier: Apache-2.0
#include <swapmm/cuda/codec/zero_codec.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <swapmm/base/error.hpp>
#include <swapmm/cuda/codec/zero_kernels.hpp>
#include <swapmm/cuda/status.hpp>

namespace swapmm::cuda {

namespace {

constexpr unsigned group_size = 128;               // threads of a block
constexpr std::uint64_t most_groups = 2147483647;  // blocks of a grid

using ConstMemory = std::span<const std::byte>;

// ---- arguments

void require(ConstMemory memory, Bytes least, std::size_t alignment, std::string_view what) {
  const std::string name(what);
  if (memory.size() < least.value) {
    throw UsageError("the memory for " + name + " has " + std::to_string(memory.size()) + " bytes, and " +
                     std::to_string(least.value) + " are needed");
  }
  if (least.value != 0 &&
      (memory.data() == nullptr || reinterpret_cast<std::uintptr_t>(memory.data()) % alignment != 0)) {
    throw UsageError("the memory for " + name + " does not begin at a multiple of " + std::to_string(alignment) +
                     " bytes");
  }
}

void require_apart(ConstMemory a, ConstMemory b) {
  const auto begin = [](ConstMemory memory) { return reinterpret_cast<std::uintptr_t>(memory.data()); };
  if (begin(a) < begin(b) + b.size() && begin(b) < begin(a) + a.size()) {
    throw UsageError("the zero codec was given memories that overlap");
  }
}

void check_memories(const ZeroElements& elements, ConstMemory plain, ConstMemory encoded, Bytes least_encoded,
                    ConstMemory scratch) {
  require(scratch, zero_scratch(elements), 8, "scratch");  // checks the elements as well
  require(encoded, least_encoded, 8, "the encoded value");
  require(plain, Bytes{elements.count * elements.element_bytes}, elements.element_bytes, "the elements");
  require_apart(plain, encoded);
  require_apart(plain, scratch);
  require_apart(encoded, scratch);
}

// ---- launches

template <class... Arguments>
void launch(cudaStream_t stream, const void* kernel, std::uint64_t groups, Arguments... arguments) {
  std::array<void*, sizeof...(Arguments)> places{&arguments...};
  check(cudaLaunchKernel(kernel, dim3(static_cast<unsigned>(groups)), dim3(group_size), places.data(), 0, stream),
        "cudaLaunchKernel of the zero codec");
}

// Calls queue(first, count) for parts of `groups` groups that a launch can take.
template <class Queue>
void in_parts(std::uint64_t groups, Queue&& queue) {
  for (std::uint64_t first = 0; first < groups; first += most_groups) {
    queue(static_cast<long long>(first), std::min(most_groups, groups - first));
  }
}

// The arguments of kernels are pointers to bytes and numbers of 64 bits: the same bytes as the kernels' own types.
long long number(std::uint64_t value) { return static_cast<long long>(value); }

void queue_waits(cudaStream_t stream, std::span<const cudaEvent_t> waits) {
  for (const cudaEvent_t event : waits) check(cudaStreamWaitEvent(stream, event, 0), "cudaStreamWaitEvent");
}

const detail::ZeroKernels::Element& kernels_of(const detail::ZeroKernels& kernels, const ZeroElements& elements) {
  return kernels.elements[std::countr_zero(elements.element_bytes)];
}

// Replaces the counts of blocks by sums. They begin at 32-bit word `at` of `counts`.
void scan_chunks(cudaStream_t stream, const detail::ZeroKernels& kernels, const ZeroElements& elements,
                 ConstMemory counts, std::uint64_t at, std::byte* scratch) {
  const std::uint64_t chunks = swapmm::detail::pieces_of(zero_blocks(elements), swapmm::detail::zero_chunk);
  in_parts(chunks, [&](long long first, std::uint64_t groups) {
    launch(stream, kernels.scan_chunks, groups, counts.data(), number(counts.size() / 4), number(at), scratch,
           number(elements.count), first);
  });
}

}  // namespace

ZeroCodec::ZeroCodec()
    : kernels_(detail::zero_kernels() != nullptr
                   ? *detail::zero_kernels()
                   : throw UsageError("this library was built without nvcc: it has no kernels of the zero codec")) {}

void ZeroCodec::encode(cudaStream_t stream, const ZeroElements& elements, std::span<const std::byte> plain,
                       std::span<std::byte> encoded, std::span<std::byte> scratch,
                       std::span<const cudaEvent_t> waits) const {
  check_memories(elements, plain, encoded, zero_worst_case(elements), scratch);
  queue_waits(stream, waits);
  const long long n = number(elements.count);
  const auto& kernels = kernels_of(kernels_, elements);
  const std::uint64_t blocks = zero_blocks(elements);
  in_parts(blocks, [&](long long first, std::uint64_t groups) {
    launch(stream, kernels.count, groups, plain.data(), scratch.data(), n, first);
  });
  const std::uint64_t first_count = zero_scratch(elements).value / 4 - blocks;
  scan_chunks(stream, kernels_, elements, scratch, first_count, scratch.data());
  launch(stream, kernels_.begin_encode, 1, encoded.data(), scratch.data(), n, number(elements.element_bytes));
  in_parts(blocks, [&](long long first, std::uint64_t groups) {
    launch(stream, kernels.pack, groups, plain.data(), encoded.data(), scratch.data(), n, first);
  });
}

void ZeroCodec::decode(cudaStream_t stream, const ZeroElements& elements, std::span<const std::byte> encoded,
                       std::span<std::byte> plain, std::span<std::byte> scratch,
                       std::span<const cudaEvent_t> waits) const {
  check_memories(elements, plain, encoded, Bytes{sizeof(ZeroHeader)}, scratch);
  queue_waits(stream, waits);
  const long long n = number(elements.count);
  const auto& kernels = kernels_of(kernels_, elements);
  scan_chunks(stream, kernels_, elements, encoded, sizeof(ZeroHeader) / 4, scratch.data());
  launch(stream, kernels_.begin_decode, 1, encoded.data(), number(encoded.size()), scratch.data(), n,
         number(elements.element_bytes));
  in_parts(zero_blocks(elements), [&](long long first, std::uint64_t groups) {
    launch(stream, kernels.unpack, groups, encoded.data(), plain.data(), scratch.data(), n, first);
  });
}

void ZeroCodec::move(cudaStream_t stream, std::span<const std::byte> from, std::span<std::byte> to, unsigned groups,
                     std::span<const cudaEvent_t> waits) const {
  require(from, Bytes{sizeof(ZeroHeader)}, 8, "the encoded value");
  require(to, Bytes{sizeof(ZeroHeader)}, 8, "the moved value");
  require_apart(from, to);
  if (groups == 0 || groups > most_groups) {
    throw UsageError("an encoded value cannot be moved by " + std::to_string(groups) + " groups");
  }
  queue_waits(stream, waits);
  launch(stream, kernels_.move, groups, from.data(), to.data(), number(std::min(from.size(), to.size())),
         number(std::uint64_t{groups} * group_size));
}

}  // namespace swapmm::cuda
