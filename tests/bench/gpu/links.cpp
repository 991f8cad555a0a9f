// SPDX-License-Identifier: Apache-2.0
// What the device gives: copies by plain calls and by swapmm's plans, launches, products. All other figures are read
// beside these.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iomanip>
#include <iostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/json.hpp>

#include "bench/gpu/kernels.hpp"
#include "bench/gpu/program.hpp"
#include "bench/gpu/raw.hpp"
#include "bench/gpu/raw_copies.hpp"
#include "bench/gpu/records.hpp"
#include "bench/gpu/statistics.hpp"
#include "bench/gpu/swapped_copies.hpp"
#include "neural/cuda_math.hpp"
#include "transformer/cuda_math.hpp"

namespace {

using namespace swapmm;
using bench::Direction;

constexpr std::string_view usage =
    "links [--out FILE] [--rounds N] [--device NAME]\n"
    "  --rounds  of each measurement, default 9\n";

constexpr std::size_t mib = std::size_t{1} << 20U;

boost::json::object measured(const cuda::Links& links) {
  return {{"h2d", links.h2d},
          {"d2h", links.d2h},
          {"h2d_with_d2h", links.h2d_with_d2h},
          {"d2h_with_h2d", links.d2h_with_h2d},
          {"copy_engines", links.copy_engines},
          {"kernel_beside_h2d", links.kernel_beside_h2d},
          {"kernel_beside_d2h", links.kernel_beside_d2h},
          {"kernel_beside_both", links.kernel_beside_both}};
}

// By turns, as pairs.
boost::json::array copies(const cuda::Backend& backend, std::size_t rounds) {
  boost::json::array results;
  constexpr std::size_t tensors = 16;
  for (const std::size_t bytes : {64 * mib, 128 * mib, 256 * mib}) {
    bench::RawCopies raw(bytes, tensors);
    for (const auto& [direction, name] :
         {std::pair{Direction::h2d, "h2d"}, {Direction::d2h, "d2h"}, {Direction::both, "both"}}) {
      bench::SwappedCopies swapped(backend, bytes, tensors, direction, [](auto& op, const auto& tensor) {
        cuda::check(cudaMemsetAsync(op[tensor].data(), 1, tensor.size(), op.stream()), "cudaMemsetAsync");
      });
      (void)raw.run(direction);
      std::vector<double> plain;
      std::vector<double> by_plan;
      for (std::size_t round = 0; round < rounds; ++round) {
        plain.push_back(raw.run(direction));
        by_plan.push_back(swapped.run(2));
      }
      const bench::Comparison comparison = bench::compare(by_plan, plain);
      std::cout << "copies of " << bytes / mib << " MiB, " << std::left << std::setw(5) << name << std::right
                << std::setprecision(2) << std::fixed << std::setw(8) << comparison.second / 1e9 << " GB/s by hand, "
                << std::setw(8) << comparison.first / 1e9 << " GB/s by a plan, ratio " << std::setprecision(4)
                << comparison.ratio << " (" << comparison.interval.low << " to " << comparison.interval.high << ")"
                << std::endl;
      boost::json::object result = bench::to_json(comparison);
      result["bytes"] = bytes;
      result["direction"] = name;
      result["raw_bytes_per_second"] = comparison.second;
      result["swapmm_bytes_per_second"] = comparison.first;
      results.push_back(result);
    }
  }
  return results;
}

// Microseconds of the host per call, and of the device per kernel.
boost::json::object launches(std::size_t rounds) {
  const cuda::StreamHandle stream = bench::raw_stream();
  const cuda::StreamHandle other = bench::raw_stream();
  const cuda::EventHandle event = bench::raw_event(cudaEventDisableTiming);
  constexpr std::size_t calls = 500;  // few enough for the stream's queue: no call waits for room in it
  const auto host_us = [&](auto&& call) {
    std::vector<double> times;
    for (std::size_t round = 0; round < rounds; ++round) {
      const auto start = std::chrono::steady_clock::now();
      for (std::size_t i = 0; i < calls; ++i) call();
      times.push_back(std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count() /
                      calls);
      cuda::check(cudaStreamSynchronize(stream.get()), "cudaStreamSynchronize");
    }
    return bench::median(times);
  };
  const auto launch = [&] { cuda::check(bench::launch_empty(stream.get()), "a launch"); };
  boost::json::object result;
  result["launch_us"] = host_us(launch);
  result["event_record_us"] =
      host_us([&] { cuda::check(cudaEventRecord(event.get(), stream.get()), "cudaEventRecord"); });
  result["stream_wait_us"] =
      host_us([&] { cuda::check(cudaStreamWaitEvent(other.get(), event.get(), 0), "cudaStreamWaitEvent"); });
  result["round_trip_us"] = host_us([&] {
    launch();
    cuda::check(cudaStreamSynchronize(stream.get()), "cudaStreamSynchronize");
  });
  std::vector<double> device;
  for (std::size_t round = 0; round < rounds; ++round) {
    device.push_back(bench::device_ms(stream.get(),
                                      [&](cudaStream_t) {
                                        for (std::size_t i = 0; i < calls; ++i) launch();
                                      }) *
                     1e3 / calls);
  }
  result["kernel_to_kernel_us"] = bench::median(device);
  return result;
}

// On random numbers: products of zeros are faster.
boost::json::object products(const cuda::Backend& backend, std::size_t rounds) {
  transformer::CudaMath math16(backend);
  neural::CudaMath math32(backend);
  const cuda::StreamHandle stream = bench::raw_stream();
  constexpr std::size_t n16 = 8192;
  constexpr std::size_t n32 = 4096;
  const bench::RawMemory a(n16 * n16 * 2);
  const bench::RawMemory b(n16 * n16 * 2);
  const bench::RawMemory c(n16 * n16 * 2);
  const transformer::Product p16 = transformer::whole(false, false, n16, n16, n16);
  const neural::Gemm p32{.m = n32, .n = n32, .k = n32};
  const bench::RawMemory area(std::max(math16.product_work(p16), math32.gemm_work(p32)));
  transformer::CudaMath::Area area16;
  area16.data = area.as();
  area16.bytes = math16.product_work(p16);

  const auto rate = [&](double n, auto&& queue) {
    queue(stream.get());
    queue(stream.get());
    std::vector<double> rates;
    for (std::size_t round = 0; round < rounds; ++round)
      rates.push_back(2 * n * n * n / bench::device_ms(stream.get(), queue) * 1e3);
    return bench::median(rates);
  };
  using Half = transformer::Bfloat16;
  math16.random(stream.get(), n16 * n16, 1, 1, 0, a.as<Half>());
  math16.random(stream.get(), n16 * n16, 2, 1, 0, b.as<Half>());
  boost::json::object result;
  result["bf16_8192_flops"] =
      rate(n16, [&](cudaStream_t s) { math16.product(s, p16, a.as<Half>(), b.as<Half>(), c.as<Half>(), area16); });
  // Two 16-bit numbers read as one of 32 bits are as random.
  using Place = neural::CudaMath::Place;
  result["fp32_4096_flops"] = rate(n32, [&](cudaStream_t s) {
    math32.gemm(s, p32, Place(a.as()), Place(b.as()), 0, Place(c.as()), Place(area.as()));
  });
  return result;
}

int run(cuda::Backend backend, const neural::Arguments& arguments) {
  const std::size_t rounds = arguments.whole("--rounds", 9, 3, 1000);
  cuda::check(cudaSetDevice(backend.device()), "cudaSetDevice");
  boost::json::object all{{"machine", bench::describe_machine(backend)}};
  const auto save = [&](const char* name, boost::json::value value) {
    std::cout << name << ": " << value << std::endl;
    all[name] = std::move(value);
    if (const std::string out = arguments.text("--out"); !out.empty()) bench::write_json(out, all);
  };
  save("links", measured(backend.measure_links()));
  save("launches", launches(rounds));
  save("products", products(backend, rounds));
  save("copies", copies(backend, rounds));
  return 0;
}

}  // namespace

int main(int count, char** words) {
  return neural::run_example(
      count, words, usage, {"--out", "--rounds", "--device"}, [](const neural::Arguments& arguments) {
        return bench::run_on_cuda(arguments, [&](const cuda::Backend& backend) { return run(backend, arguments); });
      });
}
