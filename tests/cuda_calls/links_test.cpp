// SPDX-License-Identifier: Apache-2.0
// What is concluded from measured times: on the fake's clock, whose speeds are known.

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <optional>

#include <swapmm/cuda/numa.hpp>

#include "cuda_calls/support.hpp"

using namespace swapmm;
using namespace swapmm::test;

TEST_CASE("copy engines are counted by copying, not by asking") {
  for (const int says : {1, 2, 3}) {
    for (const int does : {1, 2}) {
      fake_cuda::restart({{.copy_engines = says, .real_copy_engines = does}});
      {
        const cuda::Backend believed(0, cuda::Settings{.measure = false});
        CHECK(believed.capabilities().copy_engines == (says == 1 ? 1 : 2));
        const cuda::Backend measured(0);
        CHECK(measured.capabilities().copy_engines == does);
        CHECK(fake_cuda::objects().device_memories == 0);  // nothing stays taken
        CHECK(fake_cuda::objects().host_memories == 0);
      }
      CHECK_MESSAGE(fake_cuda::violations().empty(), violations_text());
      CHECK(fake_cuda::objects() == fake_cuda::Objects{});
    }
  }
}

TEST_CASE("links are what the clock says") {
  fake_cuda::restart({{.h2d_gb_per_s = 20, .d2h_gb_per_s = 25}});
  {
    cuda::Backend backend(0);
    const cuda::Links links = backend.measure_links();
    CHECK(static_cast<double>(links.h2d) == doctest::Approx(20e9).epsilon(0.001));
    CHECK(static_cast<double>(links.d2h) == doctest::Approx(25e9).epsilon(0.001));
    CHECK(static_cast<double>(links.h2d_with_d2h) == doctest::Approx(20e9).epsilon(0.001));
    CHECK(static_cast<double>(links.d2h_with_h2d) == doctest::Approx(25e9).epsilon(0.001));
    CHECK(links.copy_engines == 2);
    CHECK(links.kernel_beside_both == doctest::Approx(1.0).epsilon(0.001));
  }
  fake_cuda::restart({{.real_copy_engines = 1, .h2d_gb_per_s = 20, .d2h_gb_per_s = 20}});
  {
    cuda::Backend backend(0);
    const cuda::Links links = backend.measure_links();
    CHECK(links.copy_engines == 1);
    // Copies take turns: each direction gets half, the one that ends first a little more.
    CHECK(static_cast<double>(links.d2h_with_h2d) == doctest::Approx(10e9).epsilon(0.001));
  }
  CHECK_MESSAGE(fake_cuda::violations().empty(), violations_text());
  CHECK(fake_cuda::objects() == fake_cuda::Objects{});
}

TEST_CASE("the device's NUMA node is read from the system's files") {
  const auto folder = std::filesystem::temp_directory_path() / "swapmm_numa_test";
  std::filesystem::create_directories(folder / "0000:3b:00.0");
  const auto node = [&](const char* text) {
    std::ofstream(folder / "0000:3b:00.0" / "numa_node") << text;
    return cuda::detail::numa_node_of("0000:3b:00.0", folder.string());
  };
  CHECK(node("1\n") == 1);
  CHECK(node("0\n") == 0);
  CHECK(node("-1\n") == std::nullopt);  // one node alone
  CHECK(node("x") == std::nullopt);
  CHECK(cuda::detail::numa_node_of("0000:00:00.0", folder.string()) == std::nullopt);
  std::filesystem::remove_all(folder);
  const cuda::detail::NearDevice nowhere(std::nullopt);
  const cuda::detail::NearDevice too_far(1 << 20);
  const cuda::detail::NearDevice here(0);  // changes the policy of this thread for a moment, if the system lets it
}
