// SPDX-License-Identifier: Apache-2.0
// The benchmark's own programs on the simulated device: that they measure what they say.
#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>

#include "bench/gpu/chain.hpp"
#include "bench/gpu/swapped_copies.hpp"
#include "transformer/run.hpp"

namespace {

using namespace swapmm;
using bench::Chain;
using bench::Direction;
using Math = test::HostMath<float>;

simulated::Backend device() { return simulated::Backend(test::stack_device(simulated::Order::virtual_time)); }

}  // namespace

TEST_CASE("copies go in the directions that they are to go, and nothing else does") {
  constexpr std::size_t bytes = 4096;
  constexpr std::size_t tensors = 16;
  for (const Direction direction : {Direction::h2d, Direction::d2h, Direction::both}) {
    bench::SwappedCopies swapped(device(), bytes, tensors, direction, [](auto& op, const auto& tensor) {
      const auto view = op[tensor];
      op.queue().launch("fill", std::chrono::nanoseconds{1}, {simulated::Touch::write(view)}, [view] {
        for (std::byte& byte : view) byte = std::byte{1};
      });
    });
    const Report before = swapped.report();
    CHECK(swapped.run(3) > 0);  // throws where no plan is followed
    const Report after = swapped.report();
    const std::uint64_t in = (after.h2d - before.h2d).value / 3;
    const std::uint64_t out = (after.d2h - before.d2h).value / 3;
    // All but those that stay from one iteration to the next.
    const std::uint64_t least = (tensors - bench::SwappedCopies<simulated::Backend>::resident) * bytes;
    CAPTURE(static_cast<int>(direction));
    CHECK((direction == Direction::d2h ? in == 0 : in >= least));
    CHECK((direction == Direction::h2d ? out == 0 : out >= least));
    CHECK(in <= tensors * bytes);
    CHECK(out <= tensors * bytes);
  }
}

TEST_CASE("the chain is followed by a plan where everything fits and at half, with the same weights") {
  for (const bool products : {true, false}) {
    const Chain chain{6, 8, products};
    Math math;
    bench::ManagedChain<Math> all(device(), math, chain, 1);
    bench::ManagedChain<Math> half(device(), math, chain, 0.5);
    const std::uint64_t first = all.digest();
    for (auto* const managed : {&all, &half}) {
      for (int i = 0; i < 6; ++i) managed->iterate();
      managed->finish();
    }
    CHECK(all.report().iterations_followed == 4);
    CHECK(half.report().iterations_followed == 4);
    CHECK(all.report().h2d.value == all.report().start_h2d.value + sizeof(std::uint64_t));  // the digest's 0
    CHECK(half.report().swap_outs > 4 * 2);
    CHECK(all.report().operations == 1 + 6 + 6 + 6 * chain.operations());
    const std::uint64_t last = all.digest();
    CHECK(last != first);
    CHECK(half.digest() == last);
  }
}
