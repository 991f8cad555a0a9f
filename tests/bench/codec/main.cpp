// SPDX-License-Identifier: Apache-2.0
// usage: codec [speed | host | demo [STEPS]]; without a part: all of them.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string_view>

#include "measuring.hpp"

int main(int count, char** words) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // a long run says what it knows
  try {
    const std::string_view part = count > 1 ? words[1] : "all";
    const std::size_t steps = count > 2 ? std::strtoull(words[2], nullptr, 10) : 100;
    if ((part != "all" && part != "speed" && part != "host" && part != "demo") || steps < 2) {
      std::fputs("usage: codec [speed | host | demo [STEPS]], with two steps or more\n", stderr);
      return 2;
    }
    bench::Device device{swapmm::opencl::Backend::pick()};
    if (part == "all" || part == "speed") bench::measure_speed(device);
    if (part == "all" || part == "host") bench::measure_host_ways(device);
    if (part == "all" || part == "demo") bench::measure_activations(device, steps);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "codec: %s\n", error.what());
    return 1;
  }
  return 0;
}
