// SPDX-License-Identifier: Apache-2.0
// What of the synchronisation of replicas is not hidden behind the devices' work, over the number of layers per chunk:
// on simulated devices in virtual time, and with examples/fashion_mnist on two real ones (or twice on one).
#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "devices.hpp"
#include "support/replica_times.hpp"

namespace bench {
namespace {

double microseconds(std::chrono::nanoseconds time) { return static_cast<double>(time.count()) / 1e3; }

/// The size that the search ends with.
std::size_t searched(swapmm::test::ReplicaTiming timing) {
  timing.setting.options.chunk_size.settle = swapmm::test::unsteady_steps;
  swapmm::test::TimedReplicas replicas(std::move(timing));
  while (!replicas.replicas().search()->done()) replicas.step();
  return replicas.replicas().layers_per_chunk();
}

void on_simulated_devices(std::size_t replicas) {
  constexpr std::array<std::chrono::microseconds, 4> hosts{std::chrono::microseconds{0}, std::chrono::microseconds{30},
                                                           std::chrono::microseconds{60},
                                                           std::chrono::microseconds{120}};
  std::printf("\n%zu simulated devices, 12 layers; exposed us by what a chunk takes beside its bytes\n\n", replicas);
  std::printf("| layers per chunk |");
  for (const auto host : hosts) std::printf(" %lld us |", static_cast<long long>(host.count()));
  std::printf("\n|---|---|---|---|---|\n");
  for (std::size_t size = 1; size <= 12; ++size) {
    std::printf("| %zu%s |", size, size == 12 ? " (at the end)" : "");
    for (const auto host : hosts) {
      const auto timing = swapmm::test::twelve_layers(replicas, host);
      std::printf(" %.1f |", microseconds(time_with(timing, size) - time_without_sums(timing)));
    }
    std::printf("\n");
  }
  std::printf("| the search ends with |");
  for (const auto host : hosts) std::printf(" %zu |", searched(swapmm::test::twelve_layers(replicas, host)));
  std::printf("\n");
  std::fflush(stdout);
}

}  // namespace
}  // namespace bench

int main(int count, char** words) {
  try {
    const std::string_view part = count > 1 ? words[1] : "";
    std::size_t batch = 128;
    const std::string_view images = count > 2 ? words[2] : "128";
    const auto [end, error] = std::from_chars(images.data(), images.data() + images.size(), batch);
    const bool number = error == std::errc{} && end == images.data() + images.size() && batch > 0;
    if (count > 3 || !number || (count > 2 && part != "devices") ||
        (!part.empty() && part != "simulated" && part != "devices")) {
      std::fputs("swapmm_bench_replicas [simulated|devices [BATCH]]\n", stderr);
      return 2;
    }
    if (part != "devices") {
      for (const std::size_t replicas : {2U, 4U}) bench::on_simulated_devices(replicas);
    }
    return part == "simulated" ? 0 : bench::on_real_devices(batch);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "swapmm_bench_replicas: %s\n", error.what());
    return 1;
  }
}
