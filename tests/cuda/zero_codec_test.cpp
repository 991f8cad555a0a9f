// SPDX-License-Identifier: Apache-2.0
// The codec for tensors with many zeros on CUDA. The same program runs on a GPU, and on the host with the same launches
// (cuda_codec/host_runtime.cpp).
#include <swapmm/cuda/codec/zero_codec.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>

#include <cuda_runtime_api.h>

#include <swapmm/cuda/status.hpp>

#include "support/zero_codec_cases.hpp"

namespace zero_codec_on_cuda {
namespace {

using namespace swapmm;
using cuda::check;
using cuda::ZeroCodec;
using test::ByteVector;

struct FreeDevice {
  void operator()(std::byte* memory) const { (void)cudaFree(memory); }
};
struct FreeHost {
  void operator()(std::byte* memory) const { (void)cudaFreeHost(memory); }
};

// Memory of the device with these contents.
std::unique_ptr<std::byte, FreeDevice> on_device(const ByteVector& bytes) {
  void* memory = nullptr;
  check(cudaMalloc(&memory, bytes.size() + 1), "cudaMalloc");
  std::unique_ptr<std::byte, FreeDevice> owned(static_cast<std::byte*>(memory));
  check(cudaMemcpyAsync(memory, bytes.data(), bytes.size(), cudaMemcpyHostToDevice, nullptr), "cudaMemcpyAsync");
  check(cudaStreamSynchronize(nullptr), "cudaStreamSynchronize");
  return owned;
}
void read(const std::byte* memory, ByteVector& bytes) {
  check(cudaMemcpyAsync(bytes.data(), memory, bytes.size(), cudaMemcpyDeviceToHost, nullptr), "cudaMemcpyAsync");
  check(cudaStreamSynchronize(nullptr), "cudaStreamSynchronize");
}
std::span<std::byte> span_of(std::byte* memory, const ByteVector& bytes) { return {memory, bytes.size()}; }

// See support/zero_codec_cases.hpp.
struct Desk {
  bool encoded_on_host = false;

  ByteVector encode(const ByteVector& plain, const ZeroElements& elements, const ByteVector& encoded,
                    ByteVector& scratch) const {
    const auto from = on_device(plain);
    const auto work = on_device(scratch);
    ByteVector result = encoded;
    if (encoded_on_host) {
      void* memory = nullptr;
      check(cudaHostAlloc(&memory, encoded.size(), cudaHostAllocDefault), "cudaHostAlloc");
      const std::unique_ptr<std::byte, FreeHost> to(static_cast<std::byte*>(memory));
      std::memcpy(to.get(), encoded.data(), encoded.size());
      ZeroCodec().encode(nullptr, elements, {from.get(), plain.size()}, span_of(to.get(), encoded),
                         span_of(work.get(), scratch));
      check(cudaStreamSynchronize(nullptr), "cudaStreamSynchronize");
      std::memcpy(result.data(), to.get(), result.size());
    } else {
      const auto to = on_device(encoded);
      ZeroCodec().encode(nullptr, elements, {from.get(), plain.size()}, span_of(to.get(), encoded),
                         span_of(work.get(), scratch));
      read(to.get(), result);
    }
    read(work.get(), scratch);
    return result;
  }

  static ByteVector move(const ByteVector& encoded, const ByteVector& target, unsigned groups) {
    const auto from = on_device(encoded);
    void* memory = nullptr;
    check(cudaHostAlloc(&memory, target.size(), cudaHostAllocDefault), "cudaHostAlloc");
    const std::unique_ptr<std::byte, FreeHost> to(static_cast<std::byte*>(memory));
    std::memcpy(to.get(), target.data(), target.size());
    ZeroCodec().move(nullptr, {from.get(), encoded.size()}, span_of(to.get(), target), groups);
    check(cudaStreamSynchronize(nullptr), "cudaStreamSynchronize");
    return {to.get(), to.get() + target.size()};
  }

  static ByteVector decode(const ByteVector& encoded, const ZeroElements& elements, const ByteVector& plain,
                           ByteVector& scratch) {
    const auto from = on_device(encoded);
    const auto to = on_device(plain);
    const auto work = on_device(scratch);
    ZeroCodec().decode(nullptr, elements, {from.get(), encoded.size()}, span_of(to.get(), plain),
                       span_of(work.get(), scratch));
    ByteVector result = plain;
    read(to.get(), result);
    read(work.get(), scratch);
    return result;
  }

  // On the host, every switch of a work item takes time.
  static bool slow() {
    cudaDeviceProp properties;
    check(cudaGetDeviceProperties(&properties, 0), "cudaGetDeviceProperties");
    return std::string(properties.name) == "the host";
  }
};
Desk desk;
test::ZeroCodecCases<Desk> cases(desk);

}  // namespace

TEST_CASE("elements of every size and number come back bit for bit") { cases.numbers(); }
TEST_CASE("elements of every density come back bit for bit, and the size is exact") { cases.densities(); }
TEST_CASE("a million elements, more than a chunk of blocks, and all or none of them zero") { cases.large(); }
TEST_CASE("numbers whose value is zero, or no number, keep their bits") { cases.values(); }
TEST_CASE("the form is raw from exactly where nothing is gained") { cases.threshold(); }
TEST_CASE("of a damaged value nothing is written outside of the elements, and the status says so") { cases.damaged(); }
TEST_CASE("as many bytes of an encoded value are moved as its header says") { cases.moves(); }
TEST_CASE("noise, and the encoded forms of other tensors, are not decoded") { cases.foreign(); }

TEST_CASE("an encoded value may lie in page-locked memory of the host") {
  const ByteVector plain = test::sparse_elements(10'000, 4, 0.25, 3);
  Desk host_desk{true};
  CHECK(test::ZeroCodecCases<Desk>(host_desk).encoded(plain, 4) == test::encoded_by_reference(plain, 4));
}

TEST_CASE("wrong arguments are refused before anything is queued") {
  const auto memory = on_device(ByteVector(20'000));
  std::byte* const plain = memory.get();
  std::byte* const encoded = plain + 8'000;
  std::byte* const scratch = plain + 16'000;
  const auto refused = [&](const ZeroElements& of, std::span<std::byte> from, std::span<std::byte> to,
                           std::span<std::byte> work) {
    std::string text;
    try {
      ZeroCodec().encode(nullptr, of, from, to, work);
    } catch (const UsageError& error) {
      text = error.what();
    }
    return text;
  };
  const ZeroElements elements{1000, 4};
  CHECK(refused({1000, 3}, {plain, 4000}, {encoded, 4064}, {scratch, 28}) ==
        "the zero codec takes elements of 1, 2, 4 or 8 bytes, and these have 3");
  CHECK(refused(elements, {plain, 3999}, {encoded, 4064}, {scratch, 28}) ==
        "the memory for the elements has 3999 bytes, and 4000 are needed");
  CHECK(refused(elements, {plain, 4000}, {encoded, 4063}, {scratch, 28}) ==
        "the memory for the encoded value has 4063 bytes, and 4064 are needed");
  CHECK(refused(elements, {plain, 4000}, {encoded, 4064}, {scratch, 27}) ==
        "the memory for scratch has 27 bytes, and 28 are needed");
  CHECK(refused(elements, {plain, 4000}, {encoded + 4, 4064}, {scratch, 28}) ==
        "the memory for the encoded value does not begin at a multiple of 8 bytes");
  CHECK(refused(elements, {plain + 2, 4000}, {encoded, 4064}, {scratch, 28}) ==
        "the memory for the elements does not begin at a multiple of 4 bytes");
  CHECK(refused(elements, {}, {encoded, 4064}, {scratch, 28}) ==
        "the memory for the elements has 0 bytes, and 4000 are needed");
  CHECK(refused(elements, {plain, 8008}, {encoded, 4064}, {scratch, 28}) ==
        "the zero codec was given memories that overlap");
  CHECK(refused(elements, {plain, 4000}, {encoded, 4064}, {scratch, 28}).empty());
  check(cudaStreamSynchronize(nullptr), "cudaStreamSynchronize");
}

}  // namespace zero_codec_on_cuda
