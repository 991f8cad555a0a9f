// SPDX-License-Identifier: Apache-2.0
// What swapmm costs a program that fits: a chain of operations on a manager whose budget holds everything, and on plain
// memory and a plain stream, by turns in one process; and the processor time per operation, there and at half of the
// memory. Two chains: matrix products, and kernels so small that the host is the slow one.
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <iomanip>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/json.hpp>

#include "bench/gpu/chain.hpp"
#include "bench/gpu/program.hpp"
#include "bench/gpu/raw.hpp"
#include "bench/gpu/records.hpp"
#include "bench/gpu/statistics.hpp"
#include "transformer/cuda_math.hpp"

namespace {

using namespace swapmm;
using Half = transformer::Bfloat16;
using Math = transformer::CudaMath;
using bench::Chain;

constexpr std::string_view usage =
    "overhead [--out FILE] [--pairs N] [--width N] [--layers N] [--device NAME]\n"
    "  --pairs   default 60\n"
    "  --width   of the square matrices of the chain of products, default 4096\n"
    "  --layers  of both chains, default 32\n";

/// The chain on plain memory and a plain stream.
class RawChain {
 public:
  RawChain(Math& math, const Chain& chain) : math_(math), chain_(chain), area_memory_(chain_work(math, chain) + 1) {
    area_.data = area_memory_.as();
    area_.bytes = chain_work(math, chain);
    for (std::size_t i = 0; i < chain.tensors(); ++i) {
      memories_.push_back(std::make_unique<bench::RawMemory>(chain.numbers() * sizeof(Half)));
    }
    for (std::size_t i = 0; i <= chain.layers; ++i) {
      math.random(stream_, chain.numbers(), i, chain.range(), 0, at(i));
    }
  }

  void iterate() {
    const float rate = Chain::rate(iterations_++);
    for (std::size_t i = 0; i < chain_.layers; ++i) {
      bench::queue_forward(math_, stream_, chain_, at(chain_.activation(i)), at(i), at(chain_.output(i)), area_);
    }
    for (std::size_t i = chain_.layers; i-- > 0;) {
      bench::queue_backward(math_, stream_, chain_, rate, at(chain_.gradient(i + 1)), at(i), at(chain_.activation(i)),
                            at(chain_.gradient(i)), area_);
    }
  }
  void finish() { cuda::check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize"); }
  [[nodiscard]] std::uint64_t digest() {
    const bench::RawMemory sum(sizeof(std::uint64_t));
    cuda::check(cudaMemsetAsync(sum.as(), 0, sizeof(std::uint64_t), stream_), "cudaMemsetAsync");
    for (std::size_t i = 0; i < chain_.layers; ++i) {
      math_.digest(stream_, chain_.numbers(), i, at(i), sum.as<std::uint64_t>());
    }
    std::uint64_t result = 0;
    cuda::check(cudaMemcpyAsync(&result, sum.as(), sizeof result, cudaMemcpyDeviceToHost, stream_), "cudaMemcpyAsync");
    finish();
    return result;
  }

 private:
  [[nodiscard]] Half* at(std::size_t tensor) const { return memories_[tensor]->as<Half>(); }

  Math& math_;
  Chain chain_;
  bench::RawMemory area_memory_;
  Math::Area area_;
  cuda::StreamHandle stream_handle_ = bench::raw_stream();
  cudaStream_t stream_ = stream_handle_.get();
  std::vector<std::unique_ptr<bench::RawMemory>> memories_;
  std::size_t iterations_ = 0;
};

double processor_us() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_nsec) / 1e3;
}

// Of the calls of one iteration, into an idle device, so that nothing waits; per operation.
template <class Program>
double processor_us_per_operation(Program& program, const Chain& chain) {
  std::vector<double> times;
  for (int i = 0; i < 100; ++i) {
    program.finish();
    const double start = processor_us();
    program.iterate();
    times.push_back((processor_us() - start) / static_cast<double>(chain.operations()));
  }
  program.finish();
  return bench::median(times);
}

template <class Program>
double iteration_ms(Program& program, std::size_t iterations) {
  const auto start = std::chrono::steady_clock::now();
  for (std::size_t i = 0; i < iterations; ++i) program.iterate();
  program.finish();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count() /
         static_cast<double>(iterations);
}

boost::json::object measure(const cuda::Backend& backend, const Chain& chain, std::size_t pairs) {
  Math math(backend);
  bench::ManagedChain<Math> managed(backend, math, chain, 1);
  RawChain raw(math, chain);
  const std::size_t warm_up = 6;
  const std::size_t together = chain.products ? 3 : 20;  // iterations, with one wait for the device
  (void)iteration_ms(managed, warm_up);
  (void)iteration_ms(raw, warm_up);
  const std::uint64_t followed = managed.report().iterations_followed;
  std::vector<double> with;
  std::vector<double> without;
  for (std::size_t pair = 0; pair < pairs; ++pair) {
    // Who goes first changes from pair to pair.
    if (pair % 2 == 0) with.push_back(iteration_ms(managed, together));
    without.push_back(iteration_ms(raw, together));
    if (pair % 2 != 0) with.push_back(iteration_ms(managed, together));
  }
  const Report report = managed.report();
  if (report.iterations_followed < followed + pairs * together) throw std::runtime_error("the plan was not followed");
  const bool identical = managed.digest() == raw.digest();
  const bench::Comparison comparison = bench::compare(with, without);

  boost::json::object result = bench::to_json(comparison);
  result["chain"] = chain.products ? "products" : "tiny kernels";
  result["operations"] = chain.operations();
  result["pairs"] = pairs;
  result["swapmm_ms"] = comparison.first;
  result["raw_ms"] = comparison.second;
  result["identical"] = identical;
  (void)iteration_ms(managed, 3);  // the plan again
  result["cpu_us_per_operation"] = processor_us_per_operation(managed, chain);
  result["raw_cpu_us_per_operation"] = processor_us_per_operation(raw, chain);
  {
    bench::ManagedChain<Math> half(backend, math, chain, 0.5);
    (void)iteration_ms(half, warm_up);
    const Report before = half.report();
    result["cpu_us_per_operation_k2"] = processor_us_per_operation(half, chain);
    const Report after = half.report();
    result["followed_k2"] = after.iterations_followed == before.iterations_followed + 100;
    result["swaps_per_operation_k2"] =
        static_cast<double>(after.swap_ins + after.swap_outs - before.swap_ins - before.swap_outs) /
        static_cast<double>(100 * chain.operations());
  }
  return result;
}

int run(const cuda::Backend& backend, const neural::Arguments& arguments) {
  cuda::check(cudaSetDevice(backend.device()), "cudaSetDevice");
  const std::size_t pairs = arguments.whole("--pairs", 60, 30);
  const std::size_t layers = arguments.whole("--layers", 32, 2);
  const std::size_t width = arguments.whole("--width", 4096, 64);
  boost::json::object all{{"machine", bench::describe_machine(backend)}};
  boost::json::array chains;
  bool identical = true;
  for (const Chain& chain : {Chain{layers, width, true}, Chain{layers, 64, false}}) {
    const boost::json::object result = measure(backend, chain, pairs);
    std::cout << result << std::endl;
    identical = identical && result.at("identical").as_bool();
    chains.push_back(result);
    all["chains"] = chains;
    if (const std::string out = arguments.text("--out"); !out.empty()) bench::write_json(out, all);
  }
  if (!identical) std::cerr << "the values differ from those of the raw program\n";
  return identical ? 0 : 1;
}

}  // namespace

int main(int count, char** words) {
  return neural::run_example(count, words, usage, {"--out", "--pairs", "--width", "--layers", "--device"},
                             [](const neural::Arguments& arguments) {
                               return bench::run_on_cuda(
                                   arguments, [&](const cuda::Backend& backend) { return run(backend, arguments); });
                             });
}
