// SPDX-License-Identifier: Apache-2.0
// The chain of the peers on swapmm: 2 x layers + 1 operations on 2 x layers + 2 tensors, forward and back, with weights
// that are updated. Prints what the peers print.
// usage: chain LAYERS MB INNER ITERATIONS LIMIT_MB [PLANNER [--report]]
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include <swapmm/opencl/backend.hpp>
#include <swapmm/opencl/program.hpp>
#include <swapmm/swapmm.hpp>

#include "peers/chain_kernels.h"

namespace {

using Clock = std::chrono::steady_clock;
using Backend = swapmm::opencl::Backend;
using Floats = swapmm::Tensor<float, Backend>;

int number(int count, char** arguments, int position, int otherwise) {
  return position < count ? std::atoi(arguments[position]) : otherwise;
}

}  // namespace

int main(int count, char** arguments) {
  const int layers = number(count, arguments, 1, 16);
  const int megabytes = number(count, arguments, 2, 16);
  const int inner = number(count, arguments, 3, 8);
  const int iterations = number(count, arguments, 4, 5);
  const int limit = number(count, arguments, 5, 0);
  const std::size_t n = static_cast<std::size_t>(megabytes) * (1U << 20U) / sizeof(float);
  const auto total = static_cast<std::uint64_t>(2 * layers + 2) * n * sizeof(float);

  const Backend device = Backend::pick(std::cerr);
  swapmm::SchedulerOptions scheduling;
  if (count > 6) scheduling.planner = arguments[6];
  swapmm::MemoryManager manager{
      device,
      {.device_budget = limit == 0 ? swapmm::Bytes{total} : swapmm::Bytes{static_cast<std::uint64_t>(limit) << 20U}},
      swapmm::Scheduler(scheduling)};

  swapmm::opencl::Program program(device, chain_src);
  swapmm::opencl::Kernel forward = program.kernel("fwd");
  swapmm::opencl::Kernel loss = program.kernel("loss");
  swapmm::opencl::Kernel backward = program.kernel("bwd");

  std::vector<Floats> weights;
  std::vector<Floats> activations;
  std::vector<float> values(n);
  for (int i = 0; i < layers; ++i) {
    const auto l = static_cast<std::size_t>(i);
    weights.push_back(manager.tensor<float>({n}, "w" + std::to_string(i)));
    for (std::size_t j = 0; j < n; ++j) values[j] = static_cast<float>((j * 31 + l * 17) % 101) / 101.F;
    weights.back().upload(values);
  }
  for (int i = 0; i <= layers; ++i) {
    activations.push_back(manager.tensor<float>({n}, "a" + std::to_string(i)));
  }
  for (std::size_t j = 0; j < n; ++j) values[j] = static_cast<float>(j % 97) / 97.F;
  activations[0].upload(values);
  Floats gradient = manager.tensor<float>({n}, "g");

  std::printf("working set %llu MB, budget %d MB\n", static_cast<unsigned long long>(total >> 20U), limit);
  swapmm::Report before = manager.report();
  for (int step = 0; step < iterations; ++step) {
    const auto start = Clock::now();
    {
      auto iteration = manager.iteration("train");
      for (int i = 0; i < layers; ++i) {
        const auto l = static_cast<std::size_t>(i);
        const Floats& a = activations[l];
        const Floats& w = weights[l];
        const Floats& o = activations[l + 1];
        manager.run("fwd", swapmm::reads(a, w), swapmm::writes(o), [&](auto& op, swapmm::opencl::WaitList waits) {
          forward.set(op[a], op[w], op[o], inner);
          return forward.enqueue(op.queue(), {n}, {1024}, waits);
        });
      }
      const Floats& last = activations.back();
      manager.run("loss", swapmm::reads(last), swapmm::writes(gradient), [&](auto& op, swapmm::opencl::WaitList waits) {
        loss.set(op[last], op[gradient]);
        return loss.enqueue(op.queue(), {n}, {1024}, waits);
      });
      for (int i = layers - 1; i >= 0; --i) {
        const auto l = static_cast<std::size_t>(i);
        const Floats& a = activations[l];
        const Floats& w = weights[l];
        manager.run("bwd", swapmm::updates(gradient, w), swapmm::reads(a),
                    [&](auto& op, swapmm::opencl::WaitList waits) {
                      backward.set(op[gradient], op[w], op[a], inner);
                      return backward.enqueue(op.queue(), {n}, {1024}, waits);
                    });
      }
    }
    manager.synchronize();
    const double milliseconds = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
    const swapmm::Report after = manager.report();
    std::printf("iter %d %.1f ms up %llu MB down %llu MB %s\n", step, milliseconds,
                static_cast<unsigned long long>((after.h2d - before.h2d).value >> 20U),
                static_cast<unsigned long long>((after.d2h - before.d2h).value >> 20U),
                after.iterations_followed > before.iterations_followed ? "followed" : "on demand");
    before = after;
  }
  double sum = 0;
  for (Floats& w : weights) {
    w.download(values);
    for (const float value : values) sum += static_cast<double>(value);
  }
  std::printf("checksum %.6f\n", sum);
  if (count > 7) std::cout << manager.report();
}
