// SPDX-License-Identifier: Apache-2.0
// What touches of host views cost, and what they save. On the simulated device, whose copies are copies of memory.
//
//   faults   the time of a touch that waits, by size of the blocks, for reads and for writes
//   stencil  a grid of rows that the device computes on; the host exchanges the first and the last row with neighbours
//            in each step, through a view, and by whole downloads and uploads
//   random   10^6 random reads and writes of four threads, compared with an eager program
// Usage: host_view [faults|stencil|random]
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <swapmm/backend/testing/simulated.hpp>
#include <swapmm/swapmm.hpp>

namespace {

using namespace swapmm;
using namespace swapmm::literals;
using simulated::Touch;
using Device = simulated::Backend;
using Clock = std::chrono::steady_clock;
using Microseconds = std::chrono::duration<double, std::micro>;

Device device() {
  simulated::Options options;
  options.device_bytes = 96_MiB;
  return Device(options);
}

template <class Change>
void on_device(MemoryManager<Device>& manager, const Tensor<float, Device>& tensor, Change change) {
  manager.run("step", updates(tensor), [&](auto& op) {
    const auto view = op[tensor];
    op.queue().launch("step", std::chrono::microseconds(1), {Touch::read(view), Touch::write(view)},
                      [view, change] { change(view); });
  });
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

void faults() {
  constexpr std::size_t floats = std::size_t{16} << 20U;  // 64 MiB
  std::puts("a touch that waits, in microseconds (median, and the copy of as many bytes alone)");
  for (const Bytes block : {64_KiB, 256_KiB, 1_MiB, 2_MiB}) {
    MemoryManager<Device> manager(device(), {.device_budget = 80_MiB});
    auto tensor = manager.tensor<float>({floats}, "tensor");
    tensor.host_view()[0] = 1;
    const auto view = tensor.host_view({.block = block});
    on_device(manager, tensor, [](auto) {});
    manager.synchronize();
    const std::size_t step = static_cast<std::size_t>(block.value) / sizeof(float);
    std::vector<double> reads;
    std::vector<double> writes;
    std::vector<double> copies;
    std::vector<float> target(step);
    volatile float seen = 0;
    for (std::size_t i = 0; i < floats; i += step) {
      const auto begin = Clock::now();
      seen = view[i];
      const auto read = Clock::now();
      view[i] = seen + 1;
      const auto written = Clock::now();
      std::copy_n(view.begin() + static_cast<std::ptrdiff_t>(i), step, target.begin());
      const auto copied = Clock::now();
      reads.push_back(Microseconds(read - begin).count());
      writes.push_back(Microseconds(written - read).count());
      copies.push_back(Microseconds(copied - written).count());
    }
    std::printf("  blocks of %4llu KiB: read %7.1f   write to a clean block %6.1f   copy %7.1f\n",
                static_cast<unsigned long long>(block.value >> 10U), median(reads), median(writes), median(copies));
  }
}

// What the host does with the borders of the grid in each step.
void exchange_rows(std::span<float> grid, std::size_t columns) {
  for (std::size_t x = 0; x < columns; ++x) {
    const float first = grid[x];
    grid[x] = grid[grid.size() - columns + x] * 0.5F;
    grid[grid.size() - columns + x] = first * 0.5F;
  }
}

struct Stencil {
  double milliseconds = 0;
  Bytes copied;
  float corner = 0;
};

template <class Exchange>
Stencil run_stencil(std::size_t rows, std::size_t columns, Exchange&& exchange_borders) {
  constexpr int steps = 50;
  MemoryManager<Device> manager(device(), {.device_budget = 80_MiB});
  auto grid = manager.tensor<float>({rows, columns}, "grid");
  grid.upload(std::vector<float>(rows * columns, 1));
  Stencil result;
  const auto step = [&] {
    on_device(manager, grid, [columns](auto view) {  // the borders alone, so that the time is that of the copies
      for (std::size_t x = 0; x < columns; ++x) {
        view[columns + x] += view[x];
        view[view.size() - 2 * columns + x] += view[view.size() - columns + x];
      }
    });
  };
  const auto begin = Clock::now();
  exchange_borders(grid, [&](auto&& each) {
    for (int i = 0; i < steps; ++i) {
      step();
      each();
    }
  });
  result.milliseconds = Microseconds(Clock::now() - begin).count() / 1000 / steps;
  const Report report = manager.report();
  result.copied = Bytes{(report.h2d + report.d2h - grid.bytes()).value / steps};
  result.corner = grid.download()[columns];
  return result;
}

void stencil() {
  constexpr std::size_t rows = 4096;
  constexpr std::size_t columns = 4096;  // 16 KiB a row, 64 MiB
  const auto print = [](const char* name, const Stencil& result) {
    std::printf("  %-22s %8.2f ms a step, %8.2f MiB copied a step, first element %g\n", name, result.milliseconds,
                static_cast<double>(result.copied.value) / (1U << 20U), static_cast<double>(result.corner));
  };
  std::puts("a grid of 64 MiB, of which the host exchanges two rows a step");
  for (const Bytes block : {64_KiB, 256_KiB, 2_MiB}) {
    const Stencil lazy = run_stencil(rows, columns, [&](auto& grid, auto&& loop) {
      const auto view = grid.host_view({.block = block});
      loop([&] { exchange_rows(view.span(), columns); });
    });
    print(("view, blocks of " + std::to_string(block.value >> 10U) + " KiB").c_str(), lazy);
  }
  const Stencil eager = run_stencil(rows, columns, [&](auto& grid, auto&& loop) {
    std::vector<float> host(rows * columns);
    loop([&] {
      grid.download(std::span<float>(host));
      exchange_rows(host, columns);
      grid.upload(host);
    });
  });
  print("downloads and uploads", eager);
}

void random_accesses() {
  constexpr std::size_t threads = 4;
  constexpr std::size_t rounds = 100;
  constexpr std::size_t accesses = 1'000'000 / threads / rounds;
  constexpr std::size_t floats = std::size_t{1} << 20U;
  MemoryManager<Device> manager(device(), {.device_budget = 6_MiB});
  auto tensor = manager.tensor<float>({floats}, "tensor");
  auto other = manager.tensor<float>({floats}, "other");
  std::vector<float> oracle(floats, 0);
  tensor.upload(oracle);
  other.upload(oracle);
  const auto view = tensor.host_view({.block = 64_KiB});
  std::atomic<std::size_t> wrong{0};
  const auto begin = Clock::now();
  for (std::size_t round = 0; round < rounds; ++round) {
    std::vector<std::thread> crowd;
    for (std::size_t self = 0; self < threads; ++self) {
      crowd.emplace_back([&, self, round] {
        std::mt19937_64 random(round * threads + self);
        for (std::size_t i = 0; i < accesses; ++i) {
          const std::size_t at = random() % (floats / threads) * threads + self;
          if (view[at] != oracle[at]) ++wrong;
          if (random() % 2 == 0) view[at] = oracle[at] = static_cast<float>(random() % 1000);
        }
      });
    }
    for (std::thread& each : crowd) each.join();
    if (round % 3 == 2) on_device(manager, other, [](auto) {});  // evicts
    on_device(manager, tensor, [](auto values) {
      for (float& x : values) x = x < 1e6F ? x + 1 : 0;
    });
    for (float& x : oracle) x = x < 1e6F ? x + 1 : 0;
  }
  if (tensor.download() != oracle) ++wrong;
  const HostViewTraffic traffic = view.traffic();
  std::printf("10^6 random accesses of 4 threads, 100 operations: %zu wrong, %llu faults, %.0f ms\n", wrong.load(),
              static_cast<unsigned long long>(traffic.faults), Microseconds(Clock::now() - begin).count() / 1000);
}

}  // namespace

int main(int count, char** words) {
  const std::string_view part = count > 1 ? words[1] : "";
  if (part.empty() || part == "faults") faults();
  if (part.empty() || part == "stencil") stencil();
  if (part.empty() || part == "random") random_accesses();
}
