// SPDX-License-Identifier: Apache-2.0
// What a manager says of a recorded profile. That the times are the device's: tests/property/profile_property_test.cpp.
#include <doctest/doctest.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include <swapmm/backend/testing/simulated.hpp>
#include <swapmm/swapmm.hpp>

#include "support/faulty_simulated.hpp"
#include "support/null_backend.hpp"
#include "support/small_program.hpp"

using namespace swapmm;
using namespace swapmm::test;
using namespace swapmm::literals;

namespace {

std::vector<std::string> names(const Profile& profile, Lane lane) {
  std::vector<std::string> names;
  for (const ProfileSpan& span : profile.spans) {
    if (span.lane == lane) names.push_back(span.name);
  }
  return names;
}

using Names = std::vector<std::string>;

struct Timeless : NullBackend {
  [[nodiscard]] std::optional<std::chrono::nanoseconds> elapsed(const Event&, const Event&) { return std::nullopt; }
};

}  // namespace

TEST_CASE("a profile has the operations and the copies by name, and the bytes that are taken") {
  Simulated device;
  MemoryManager<Simulated> manager(device, {.device_budget = 128_bytes}, Scheduler({.observe = 0}));
  auto tensors = uploaded_tensors(manager, 3);
  manager.start_profile();
  {
    const auto iteration = manager.iteration("train");
    for (auto& tensor : tensors) increase(manager, tensor, 1);
  }
  const Profile profile = manager.stop_profile();
  CHECK(profile.device == "simulated");
  CHECK(profile.device_budget == 128_bytes);
  CHECK(names(profile, Lane::compute) == Names{"increase", "increase", "increase"});
  CHECK(names(profile, Lane::h2d) == Names{tensors[0].name(), tensors[1].name(), tensors[2].name()});
  CHECK(names(profile, Lane::d2h) == Names{tensors[0].name()});
  CHECK(profile.iteration_ends.size() == 1);
  CHECK(profile.iteration_ends[0] >= 3 * operation_time);
  CHECK(peak_used(profile) == 128_bytes);
  CHECK(profile.levels.front() == ProfileLevel{{}, tensor_bytes});  // the first copy begins at once
  for (const ProfileSpan& span : profile.spans)
    CHECK(span.bytes == (span.lane == Lane::compute ? 0_bytes : tensor_bytes));
  for (std::size_t i = 0; i < tensors.size(); ++i) CHECK(tensors[i].download()[0] == static_cast<int>(i) + 2);
}

TEST_CASE("one profile at a time") {
  Simulated device;
  MemoryManager<Simulated> manager(device, {.device_budget = 128_bytes});
  CHECK_THROWS_AS((void)manager.stop_profile(), UsageError);
  CHECK(!manager.profiling());
  manager.start_profile();
  CHECK(manager.profiling());
  CHECK_THROWS_AS(manager.start_profile(), UsageError);
  CHECK(manager.stop_profile().spans.empty());
  CHECK_THROWS_AS((void)manager.stop_profile(), UsageError);
}

TEST_CASE("what is on the device already is there at the profile's beginning") {
  Simulated device;
  MemoryManager<Simulated> manager(device, {.device_budget = 256_bytes});
  auto tensors = uploaded_tensors(manager, 2);
  for (auto& tensor : tensors) increase(manager, tensor, 1);
  manager.start_profile();
  tensors.pop_back();
  const Profile profile = manager.stop_profile();
  REQUIRE(!profile.levels.empty());
  CHECK(profile.levels.back().used == 64_bytes);
  CHECK(profile.iteration_ends.empty());
}

TEST_CASE("a device that knows no times gives a profile without spans") {
  Timeless device;
  MemoryManager<Timeless> manager(device, {.device_budget = 128_bytes});
  auto tensor = manager.tensor<int>({16}, "t");
  manager.start_profile();
  manager.run("nothing", writes(tensor), [](auto&) {});
  CHECK(manager.stop_profile().spans.empty());
}

TEST_CASE("a profile that could not be recorded fails where it is asked for, and the work is done all the same") {
  using Device = FaultySimulated;
  std::size_t refused = 0;
  for (std::uint64_t n = 1; n <= 12; ++n) {
    Device device{Simulated()};
    MemoryManager<Device> manager(device, {.device_budget = 128_bytes}, Scheduler({.observe = 0}));
    auto tensors = uploaded_tensors(manager, 3);
    manager.start_profile();
    device.restart({FaultClass::record, FaultMode::once, n});
    for (auto& tensor : tensors) {
      try {
        increase(manager, tensor, 1);
      } catch (const BackendError&) {
        increase(manager, tensor, 1);  // a call that throws has queued nothing
      }
    }
    try {
      (void)manager.stop_profile();
    } catch (const BackendError&) {
      ++refused;
    }
    CHECK_THROWS_AS((void)manager.stop_profile(), UsageError);  // it has ended either way
    for (std::size_t i = 0; i < tensors.size(); ++i) CHECK(tensors[i].download()[0] == static_cast<int>(i) + 2);
  }
  CHECK(refused > 3);
}
