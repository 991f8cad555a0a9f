// SPDX-License-Identifier: Apache-2.0
// A program that looks at a tenth of each result. With downloads, all of it is copied to the host; with a lazy host
// view, what the program looks at. The program also writes a few elements, which are copied in before the next kernel.
#include <cstddef>
#include <cstdint>
#include <exception>
#include <iomanip>
#include <iostream>
#include <string>
#include <vector>

#include <swapmm/opencl/backend.hpp>
#include <swapmm/opencl/program.hpp>
#include <swapmm/swapmm.hpp>

using namespace swapmm::literals;
using swapmm::opencl::argument;

namespace {

constexpr const char* source = R"(
#include <swapmm/kernel.h>

// A step of a linear congruential generator in each element: whole numbers, so every device has the same result.
SWAPMM_KERNEL void advance(SWAPMM_VIEW(uint, values)) {
  const swapmm_index i = SWAPMM_ID(0);
  if (i < SWAPMM_EXTENT(values, 0)) SWAPMM_AT1(values, i) = SWAPMM_AT1(values, i) * 1664525u + 1013904223u;
})";

constexpr std::size_t count = std::size_t{4} << 20U;  // 16 MiB
constexpr std::size_t looked_at = count / 10;
constexpr std::size_t steps = 8;

struct Outcome {
  std::uint64_t sum = 0;  // of what the program looked at
  swapmm::Bytes to_host;
  swapmm::Bytes to_device;
  std::string note;
};

using Values = swapmm::Tensor<std::uint32_t, swapmm::opencl::Backend>;

/// The part that the program looks at in a step.
std::size_t first_of(std::size_t step) { return step * (count - looked_at) / steps; }

std::uint64_t sum_of(const std::uint32_t* begin) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < looked_at; ++i) sum += begin[i];
  return sum;
}

template <class Look>
Outcome run(const swapmm::opencl::Backend& backend, swapmm::opencl::Kernel& kernel, Look&& look) {
  swapmm::MemoryManager manager{backend, {.device_budget = 24_MiB}};
  Values values = manager.tensor<std::uint32_t>({count}, "values");
  std::vector<std::uint32_t> first(count);
  for (std::size_t i = 0; i < count; ++i) first[i] = static_cast<std::uint32_t>(i);
  values.upload(first);
  const auto advance = [&] {
    manager.run("advance", swapmm::updates(values),
                [&](auto& op) { kernel.set(argument(op[values], values)).enqueue(op.queue(), {count}); });
  };
  Outcome outcome;
  look(values, advance, outcome);
  const swapmm::Report report = manager.report();
  outcome.to_host = report.d2h;
  outcome.to_device = report.h2d - values.bytes();  // without the first upload
  return outcome;
}

void with_downloads(Values& values, const auto& advance, Outcome& outcome) {
  std::vector<std::uint32_t> host(count);
  for (std::size_t step = 0; step < steps; ++step) {
    advance();
    values.download(host);
    outcome.sum += sum_of(host.data() + first_of(step));
    host[first_of(step)] = 1;
    values.upload(host);
  }
}

void with_a_view(Values& values, const auto& advance, Outcome& outcome) {
  const auto host = values.host_view();
  for (std::size_t step = 0; step < steps; ++step) {
    advance();
    outcome.sum += sum_of(host.data() + first_of(step));
    host[first_of(step)] = 1;
  }
  outcome.note = host.lazy() ? std::to_string(host.traffic().faults) + " touches waited" : "eager: " + host.why_eager();
}

void print(const char* name, const Outcome& outcome) {
  const auto mib = [](swapmm::Bytes bytes) { return static_cast<double>(bytes.value) / (1U << 20U); };
  std::cout << std::left << std::setw(16) << name << std::right << std::fixed << std::setprecision(1) << std::setw(8)
            << mib(outcome.to_host) << " MiB to the host " << std::setw(8) << mib(outcome.to_device)
            << " MiB to the device  " << outcome.note << '\n';
}

}  // namespace

int main() try {
  const auto backend = swapmm::opencl::Backend::pick();
  const swapmm::opencl::Program program(backend, source);
  auto kernel = program.kernel("advance");
  const Outcome whole = run(backend, kernel, [](auto&... all) { with_downloads(all...); });
  const Outcome lazy = run(backend, kernel, [](auto&... all) { with_a_view(all...); });
  std::cout << steps << " results of 16 MiB, of which the program looks at a tenth and writes one element\n";
  print("with downloads", whole);
  print("with a view", lazy);
  const bool right = whole.sum == lazy.sum;
  std::cout << "the sums are " << (right ? "equal" : "NOT EQUAL") << '\n';
  return right ? 0 : 1;
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
