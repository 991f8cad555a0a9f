// SPDX-License-Identifier: Apache-2.0
// What swapmm costs per operation beyond the driver's calls, while a plan is followed: the time of the iteration's
// calls on the host, less the time inside the calls that a program without swapmm would make as well (kernels, copies,
// flushes, releases of their events, and the wait for a device that is behind). This program stands between swapmm and
// the API to measure them; its own clock readings count against swapmm. Prints calls and times per operation. usage:
// per_operation [BUDGET_TENSORS [LAYERS]]
#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <vector>

#include "chain.hpp"

namespace {

using Clock = std::chrono::steady_clock;

enum Call : std::size_t {
  kernel,
  write_buffer,
  read_buffer,
  marker,
  barrier,
  flush,
  host_wait,
  set_argument,
  release,
  calls
};
constexpr std::array<const char*, calls> names{"kernels",           "swap-ins",         "swap-outs",
                                               "markers",           "barriers",         "flushes",
                                               "waits of the host", "kernel arguments", "event releases"};
struct Tally {
  std::uint64_t count = 0;
  Clock::duration time{};
};
std::array<Tally, calls> tallies;
thread_local bool counted = false;  // the driver's own threads release events, too

template <class Function>
Function next(const char* name) {
  void* const found = dlsym(RTLD_NEXT, name);
  Function function{};
  std::memcpy(&function, &found, sizeof function);
  return function;
}

template <class Real>
auto measured(Call call, Real&& real) {
  if (!counted) return real();
  const auto start = Clock::now();
  const auto result = real();
  tallies[call].time += Clock::now() - start;
  ++tallies[call].count;
  return result;
}

}  // namespace

// NOLINTBEGIN(readability-identifier-naming): the API's names
extern "C" {
#define SWAPMM_NEXT(function) static const auto real = next<decltype(&function)>(#function)
cl_int clEnqueueNDRangeKernel(cl_command_queue q, cl_kernel k, cl_uint d, const size_t* o, const size_t* g,
                              const size_t* l, cl_uint n, const cl_event* w, cl_event* e) {
  SWAPMM_NEXT(clEnqueueNDRangeKernel);
  return measured(kernel, [&] { return real(q, k, d, o, g, l, n, w, e); });
}
cl_int clEnqueueWriteBuffer(cl_command_queue q, cl_mem m, cl_bool b, size_t o, size_t s, const void* p, cl_uint n,
                            const cl_event* w, cl_event* e) {
  SWAPMM_NEXT(clEnqueueWriteBuffer);
  return measured(write_buffer, [&] { return real(q, m, b, o, s, p, n, w, e); });
}
cl_int clEnqueueReadBuffer(cl_command_queue q, cl_mem m, cl_bool b, size_t o, size_t s, void* p, cl_uint n,
                           const cl_event* w, cl_event* e) {
  SWAPMM_NEXT(clEnqueueReadBuffer);
  return measured(read_buffer, [&] { return real(q, m, b, o, s, p, n, w, e); });
}
cl_int clEnqueueMarkerWithWaitList(cl_command_queue q, cl_uint n, const cl_event* w, cl_event* e) {
  SWAPMM_NEXT(clEnqueueMarkerWithWaitList);
  return measured(marker, [&] { return real(q, n, w, e); });
}
cl_int clEnqueueBarrierWithWaitList(cl_command_queue q, cl_uint n, const cl_event* w, cl_event* e) {
  SWAPMM_NEXT(clEnqueueBarrierWithWaitList);
  return measured(barrier, [&] { return real(q, n, w, e); });
}
cl_int clFlush(cl_command_queue q) {
  SWAPMM_NEXT(clFlush);
  return measured(flush, [&] { return real(q); });
}
cl_int clWaitForEvents(cl_uint n, const cl_event* w) {
  SWAPMM_NEXT(clWaitForEvents);
  return measured(host_wait, [&] { return real(n, w); });
}
cl_int clSetKernelArg(cl_kernel k, cl_uint i, size_t s, const void* v) {
  SWAPMM_NEXT(clSetKernelArg);
  return measured(set_argument, [&] { return real(k, i, s, v); });
}
cl_int clReleaseEvent(cl_event e) {
  SWAPMM_NEXT(clReleaseEvent);
  return measured(release, [&] { return real(e); });
}
}  // extern "C"
// NOLINTEND(readability-identifier-naming)

int main(int count, char** arguments) {
  const auto number = [&](int position, std::size_t otherwise) {
    return position < count ? static_cast<std::size_t>(std::atoi(arguments[position])) : otherwise;
  };
  const std::size_t budget_tensors = number(1, 17);
  const bench::Chain chain(number(2, 16));
  constexpr std::size_t n = 1024;  // small: the host is to be the slow one

  const bench::Device device = bench::Device::pick(std::cerr);
  bench::Kernels kernels(device);
  swapmm::MemoryManager manager{device,
                                {.device_budget = swapmm::Bytes{budget_tensors * n * sizeof(float)}},
                                swapmm::Scheduler({.trial_iterations = 0})};
  bench::Managed managed(manager, chain, kernels, n, 1);
  for (int warm_up = 0; warm_up < 8; ++warm_up) managed.iterate();
  manager.synchronize();

  constexpr std::size_t iterations = 400;
  std::vector<double> library_us;
  std::array<double, calls> call_us{};
  std::array<std::uint64_t, calls> call_counts{};
  const auto operations = static_cast<double>(chain.steps.size());
  counted = true;
  for (std::size_t i = 0; i < iterations; ++i) {
    tallies = {};
    const auto start = Clock::now();
    managed.iterate();
    const Clock::duration all = Clock::now() - start;
    Clock::duration driver{};
    for (std::size_t c = 0; c < calls; ++c) {
      // What the plan would not need is the library's own cost.
      if (c != marker && c != barrier) driver += tallies[c].time;
      call_us[c] += std::chrono::duration<double, std::micro>(tallies[c].time).count();
      call_counts[c] += tallies[c].count;
    }
    library_us.push_back(std::chrono::duration<double, std::micro>(all - driver).count() / operations);
    if (i % 8 == 7) manager.synchronize();  // not only ever waiting for the device
  }
  counted = false;
  manager.synchronize();
  const swapmm::Report report = manager.report();
  if (report.iterations_followed < iterations) {
    std::puts("the plan was not followed");
    return 1;
  }
  std::sort(library_us.begin(), library_us.end());
  std::printf(
      "%zu operations an iteration, %zu tensors, budget of %zu: library %.2f us per operation (median; 10 %% to 90 %%: "
      "%.2f to %.2f)\n",
      chain.steps.size(), chain.tensors, budget_tensors, library_us[iterations / 2], library_us[iterations / 10],
      library_us[iterations * 9 / 10]);
  std::printf("  %-18s %12s %12s\n", "call", "per iteration", "us each");
  for (std::size_t c = 0; c < calls; ++c) {
    std::printf("  %-18s %12.2f %12.2f\n", names[c], static_cast<double>(call_counts[c]) / iterations,
                call_counts[c] == 0 ? 0.0 : call_us[c] / static_cast<double>(call_counts[c]));
  }
}
