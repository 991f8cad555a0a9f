// SPDX-License-Identifier: Apache-2.0
// A tensor with more blocks than a grid has is done in several launches.
#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <swapmm/cuda/codec/zero_codec.hpp>
#include <swapmm/cuda/codec/zero_kernels.hpp>

#include "cuda_codec/host_runtime.hpp"

namespace {

using namespace swapmm;

// Memory that nobody touches: of the launches, only the numbers are looked at.
std::span<std::byte> nowhere(std::uint64_t begin, Bytes size) {
  return {reinterpret_cast<std::byte*>(begin), static_cast<std::size_t>(size.value)};
}

// Groups of the launches of a kernel. Each part begins where the one before it ends.
std::uint64_t groups_of(const std::vector<test::Launch>& launches, const void* kernel) {
  std::uint64_t groups = 0;
  for (const test::Launch& launch : launches) {
    if (launch.kernel != kernel) continue;
    CHECK(launch.first == static_cast<long long>(groups));
    groups += launch.groups;
  }
  return groups;
}

}  // namespace

TEST_CASE("a tensor with more blocks than a grid has is done in several launches") {
  const ZeroElements elements{(std::uint64_t{1} << 44U) + 1, 1};
  const std::uint64_t blocks = (std::uint64_t{1} << 32U) + 1;
  const std::uint64_t chunks = (std::uint64_t{1} << 22U) + 1;
  REQUIRE(zero_blocks(elements) == blocks);
  const auto plain = nowhere(std::uint64_t{1} << 48U, Bytes{elements.count});
  const auto encoded = nowhere(std::uint64_t{2} << 48U, zero_worst_case(elements));
  const auto scratch = nowhere(std::uint64_t{3} << 48U, zero_scratch(elements));
  const cuda::detail::ZeroKernels& kernels = *cuda::detail::zero_kernels();

  std::vector<test::Launch> launches;
  test::recorded_launches = &launches;
  cuda::ZeroCodec().encode(nullptr, elements, plain, encoded, scratch);
  CHECK(launches.size() == 3 + 1 + 1 + 3);
  CHECK(groups_of(launches, kernels.elements[0].count) == blocks);
  CHECK(groups_of(launches, kernels.scan_chunks) == chunks);
  CHECK(groups_of(launches, kernels.begin_encode) == 1);
  CHECK(groups_of(launches, kernels.elements[0].pack) == blocks);

  launches.clear();
  cuda::ZeroCodec().decode(nullptr, elements, encoded, plain, scratch);
  test::recorded_launches = nullptr;
  CHECK(launches.size() == 1 + 1 + 3);
  CHECK(groups_of(launches, kernels.scan_chunks) == chunks);
  CHECK(groups_of(launches, kernels.begin_decode) == 1);
  CHECK(groups_of(launches, kernels.elements[0].unpack) == blocks);
}
