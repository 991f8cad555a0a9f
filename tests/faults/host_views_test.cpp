// SPDX-License-Identifier: Apache-2.0
// Each call of the backend that a host view makes fails in turn. Bits are right, or an exception says that they are
// not; afterwards views and values work as before.

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <new>
#include <string>
#include <vector>

#include <swapmm/backend/testing/simulated.hpp>
#include <swapmm/swapmm.hpp>

#include "lifetime/host_view_desk.hpp"
#include "support/faulty_simulated.hpp"
#include "support/small_program.hpp"

using namespace swapmm;
using namespace swapmm::test;

namespace {

using FaultyManager = MemoryManager<FaultySimulated>;
using FaultyTensor = Tensor<int, FaultySimulated>;

/// Touches by prepare_read() and prepare_write(), which throw what a touch would say.
bool story_is_right(FaultyManager& manager, FaultyTensor& t, int value) {
  set(manager, t, value);
  const auto view = t.host_view(small_blocks);
  view.prepare_read(0, 1);
  bool right = view[0] == value;
  view.prepare_write(3 * block_length, 1);
  view[3 * block_length] = value + 10;
  increase(manager, t, 1);
  view.prepare_read(2 * block_length, 2 * block_length);
  right = right && view[2 * block_length] == value + 1 && view[3 * block_length] == value + 11;
  view.prepare_write();
  for (int& x : view) ++x;
  increase(manager, t, 1);
  view.prepare_write(0, 2 * block_length + 1);
  for (std::size_t i = 0; i < 3; ++i) ++view[i * block_length];
  view.write_back();
  const std::vector<int> all = t.download();
  for (std::size_t i = 0; i < all.size(); ++i) {
    int expected = value + 3;
    if (i == 3 * block_length) expected += 10;
    if (i < 3 * block_length && i % block_length == 0) ++expected;
    right = right && all[i] == expected;
  }
  return right;
}

/// Runs `call` until no error of before is pending any more. Returns how many there were.
template <class Call>
int settle(Call&& call) {
  for (int errors = 0;; ++errors) {
    REQUIRE(errors < 10);
    try {
      call();
      return errors;
    } catch (const Error&) {           // NOLINT(bugprone-empty-catch): of the fault before
    } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): the same
    }
  }
}

}  // namespace

TEST_CASE("where a call fails that a host view makes, bits are right or an exception says so") {
  using enum FaultClass;
  FaultySimulated device(host_view_device(Bytes{4U << 20U}));
  FaultyManager manager(device, {.device_budget = Bytes{2U << 20U}});
  auto t = manager.tensor<int>({view_length}, "t");
  REQUIRE(story_is_right(manager, t, 1));
  int thrown = 0;
  for (const FaultClass fault_class :
       {copy_to_device, copy_to_host, record, barrier_wait, host_wait, status_query, flush}) {
    for (const FaultMode mode : {FaultMode::once, FaultMode::late, FaultMode::blind}) {
      if (!applicable(fault_class, mode)) continue;
      for (std::uint64_t n = 1; n <= 8; ++n) {
        INFO(to_string(fault_class), " ", to_string(mode), " ", n);
        device.restart({fault_class, mode, n});
        try {
          const bool right = story_is_right(manager, t, 5);
          CHECK(right);
          manager.synchronize();
        } catch (const Error&) {
          ++thrown;
        } catch (const std::bad_alloc&) {
          ++thrown;
        }
        device.restart({});
        settle([&] { manager.synchronize(); });
        settle([&] {
          const bool right = story_is_right(manager, t, 7);
          CHECK(right);
        });
      }
    }
  }
  CHECK(thrown > 20);
}
