// SPDX-License-Identifier: Apache-2.0
// What is measured of the links to neighbours and to the host, alone and together.
#include <doctest/doctest.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include <swapmm/backend/testing/simulated.hpp>
#include <swapmm/interface/options.hpp>
#include <swapmm/runtime/links/neighbour_links.hpp>
#include <swapmm/runtime/values/store.hpp>

namespace swapmm::test::neighbour_links_test {
namespace {

using namespace std::chrono_literals;
using runtime::Home;
using runtime::NeighbourLinks;
using Device = simulated::Backend;

struct Setup {
  std::vector<simulated::CopySpeed> neighbours;
  bool one_port = false;
  bool half_duplex = false;
  bool knows_host = false;
  Bytes budget{64U << 20U};
};

NeighbourLinks measured(const Setup& setup) {
  simulated::Options speeds;
  speeds.device_bytes = setup.budget;
  speeds.h2d = {.bytes_per_second = 8'000'000'000U, .latency = 7us};
  speeds.d2h = {.bytes_per_second = 6'000'000'000U, .latency = 7us};
  speeds.one_port = setup.one_port;
  speeds.half_duplex = setup.half_duplex;
  Options options{.device_budget = setup.budget};
  for (const simulated::CopySpeed& speed : setup.neighbours) {
    simulated::NeighbourOptions neighbour;
    neighbour.bytes = Bytes{64U << 20U};
    neighbour.in = neighbour.out = speed;
    options.neighbours.push_back(std::make_shared<simulated::Neighbour>(neighbour));
  }
  runtime::Store<Device> store(Device(speeds), options);
  NeighbourLinks links = runtime::NeighbourLinksProbe<Device>(store, setup.knows_host).measure();
  CHECK(store.away.bytes_read(Home::neighbour) == Bytes{});
  CHECK(store.away.bytes_written(Home::neighbour) == Bytes{});
  CHECK(store.pool.neighbours()->in_use() == Bytes{});
  CHECK(store.used() == Bytes{});
  return links;
}

constexpr simulated::CopySpeed slow{.bytes_per_second = 20'000'000'000U, .latency = 9us};
constexpr simulated::CopySpeed fast{.bytes_per_second = 300'000'000'000U, .latency = 9us};

bool is_near(std::uint64_t found, double expected) {
  return static_cast<double>(found) > 0.98 * expected && static_cast<double>(found) < 1.02 * expected;
}

}  // namespace

TEST_CASE("links to neighbours and to the host are known, with what a copy takes to begin") {
  const NeighbourLinks links = measured({.neighbours = {slow, fast}});
  REQUIRE(links.alone.size() == 3);
  CHECK(links.alone[0].home == Home::neighbour);
  CHECK(links.alone[1].home == Home::neighbour_2);
  CHECK(links.alone[2].home == Home::host);
  CHECK(is_near(links.of(Home::neighbour)->in.bytes_per_second, 20e9));
  CHECK(is_near(links.of(Home::neighbour_2)->out.bytes_per_second, 300e9));
  CHECK(links.of(Home::neighbour_2)->in.latency / 1us == 9);
  CHECK(is_near(links.of(Home::host)->out.bytes_per_second, 6e9));
  CHECK(links.of(Home::neighbour_3) == nullptr);
  CHECK(links.order() == runtime::NeighbourOrder{2, 1, 0});  // there is none on the third path, and it is never asked
}

TEST_CASE("links that share nothing are not taken to share, though copies take long to begin") {
  for (const Bytes budget : {Bytes{64U << 20U}, Bytes{1U << 20U}, Bytes{64U << 10U}}) {
    for (const std::vector<simulated::CopySpeed>& neighbours :
         {std::vector{slow}, std::vector{fast, fast}, std::vector{slow, fast, slow}}) {
      const NeighbourLinks links = measured({.neighbours = neighbours, .budget = budget});
      CHECK(links.alone.size() == neighbours.size() + 1);
      CHECK(links.between.empty());
      CHECK(links.with_host.empty());
      CHECK_FALSE(links.slowed_in(Home::neighbour));
    }
  }
}

TEST_CASE("links that share a port carry what one of them carries") {
  const NeighbourLinks links = measured({.neighbours = {slow, slow, slow}, .one_port = true});
  CHECK(is_near(links.between.in, 20e9));
  CHECK(is_near(links.between.out, 20e9));
  CHECK(links.with_host.empty());  // the host has a link of its own beside it
  CHECK(links.slowed_in(Home::neighbour));
  CHECK(links.slowed_out(Home::neighbour_3));
  CHECK_FALSE(links.slowed_in(Home::host));
}

TEST_CASE("with one engine for all copies, nothing is asked of what they carry together") {
  const NeighbourLinks links = measured({.neighbours = {slow, slow}, .half_duplex = true});
  CHECK(links.alone.size() == 3);
  CHECK(links.between.empty());
  CHECK(links.with_host.empty());
}

TEST_CASE("a host's link that is given is not measured") {
  const NeighbourLinks links = measured({.neighbours = {slow, slow}, .one_port = true, .knows_host = true});
  CHECK(links.alone.size() == 2);
  CHECK_FALSE(links.between.empty());
}

}  // namespace swapmm::test::neighbour_links_test
