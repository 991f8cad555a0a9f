// SPDX-License-Identifier: Apache-2.0
// One program of `./dev bench beyond_memory`, once: all its tensors in a part of the memory that they need, and the
// rest in a file; or all of them in memory, for the kernel to page. Prints what it took as JSON.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <iostream>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <swapmm/file/file.hpp>
#include <swapmm/ir/liveness.hpp>
#include <swapmm/opencl/backend.hpp>
#include <swapmm/plan/planners.hpp>
#include <swapmm/swapmm.hpp>

#include "fashion_mnist/network.hpp"
#include "larger_than_memory/wave.hpp"
#include "larger_than_memory/with_swapmm.hpp"
#include "neural/opencl_math.hpp"

namespace {

using namespace swapmm::literals;
using swapmm::Bytes;

constexpr std::string_view usage =
    "swapmm_bench_beyond_memory PROGRAM WAY BYTES FOLDER [HOST]\n"
    "  PROGRAM   wave (seismic imaging) or network (a convolutional network's training)\n"
    "  WAY       plan or on-demand, with a file in FOLDER; one: by a plan for which host and file are one memory;\n"
    "            all, without file; need: only tells how much its tensors need\n"
    "  BYTES     of memory for the tensors and for what is on its way to and from the file\n"
    "  HOST      of them: for tensors that are not on the device; 0\n";

enum class Way { plan, one, on_demand, all, need };

constexpr bool by_plan(Way way) { return way == Way::plan || way == Way::one; }

/// What a run took: the median of its steady iterations.
struct Outcome {
  double milliseconds = 0;
  std::size_t iterations = 0;
  swapmm::Report report;
  std::uint64_t resident = 0;  ///< memory of the process behind the last iteration
};

std::uint64_t resident();

double median(std::vector<double> values) {
  if (values.empty()) throw std::runtime_error("no iteration ran as it should");
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

/// All memory that a run may take, as options: a part is for what is on its way to and from the disk.
swapmm::Options memory_for(Way way, Bytes ram, Bytes host, const std::string& folder) {
  if (way == Way::all) return {.device_budget = ram};
  swapmm::Options options;
  options.file_staging = std::min(32_MiB, Bytes{ram.value / 8});
  options.host_budget = options.file_staging + host;
  options.device_budget = ram - options.host_budget;
  options.file = swapmm::file::open({.folder = folder, .capacity = Bytes{16 * ram.value} + 64_MiB});
  return options;
}

swapmm::SchedulerOptions plans_for(Way way) {
  swapmm::SchedulerOptions plans;
  plans.trial_iterations = 0;  // what a plan takes is the question, not whether it should be followed
  if (way == Way::on_demand) plans.observe = 0;
  // A planner of the program knows no file.
  if (way == Way::one)
    plans.planner = {"best", [](const auto& trace, const auto& machine, const auto& options) {
                       return swapmm::make_plan("best", trace, machine, options);
                     }};
  return plans;
}

class Wave {
 public:
  [[nodiscard]] static Bytes need() { return wave::working_set(problem()); }
  [[nodiscard]] static Outcome run(Way way, const swapmm::Options& memory) {
    const auto backend = swapmm::opencl::Backend::pick(std::cerr);
    std::vector<double> times;
    const auto tell = [&](const wave::ShotReport& shot) {
      const bool steady = by_plan(way) ? shot.followed : shot.shot >= 3;
      if (steady) times.push_back(std::chrono::duration<double, std::milli>(shot.time).count());
    };
    const auto done = wave::run_with_swapmm(backend, problem(), memory, tell, plans_for(way));
    if (by_plan(way) && times.size() > 1) times.erase(times.begin());  // the first one moves to the plan
    return {median(times), times.size(), done.report, resident()};
  }

 private:
  static wave::Problem problem() { return {.size = 96, .steps = 48, .every = 1, .shots = 12}; }
};

class Network {
 public:
  [[nodiscard]] static Bytes need() {
    // One iteration tells what is alive at its peak.
    const auto backend = swapmm::opencl::Backend::pick(std::cerr);
    neural::OpenclMath math(backend);
    swapmm::MemoryManager manager(backend, {.device_budget = 3_GiB});
    fashion::Network<neural::OpenclMath> network(math, manager, settings());
    for (std::uint32_t step = 0; step < 2; ++step) train(network, step);
    manager.synchronize();
    const auto trace = manager.scheduler().trace("train");
    if (!trace) throw std::runtime_error("nothing was observed");
    return swapmm::analyze_liveness(*trace, backend.capabilities().alignment).peak;
  }
  [[nodiscard]] static Outcome run(Way way, const swapmm::Options& memory) {
    const auto backend = swapmm::opencl::Backend::pick(std::cerr);
    neural::OpenclMath math(backend);
    swapmm::MemoryManager manager(backend, memory, swapmm::Scheduler(plans_for(way)));
    fashion::Network<neural::OpenclMath> network(math, manager, settings());
    std::vector<double> times;
    std::uint32_t step = 0;
    while (times.size() < 6) {
      const std::uint64_t followed = manager.report().iterations_followed;
      const auto start = std::chrono::steady_clock::now();
      for (int i = 0; i < 2; ++i) train(network, step++);
      manager.synchronize();
      const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - start;
      const bool steady =
          by_plan(way) ? manager.report().iterations_followed >= followed + 2 && followed > 0 : step > 4;
      if (steady) times.push_back(time.count() / 2);
      if (step > 40) break;
    }
    return {median(times), times.size(), manager.report(), resident()};
  }

 private:
  static fashion::Settings settings() { return {.batch = 512, .parts = 4, .channels = 32}; }
  static void train(fashion::Network<neural::OpenclMath>& network, std::uint32_t step) {
    std::vector<float> images(settings().batch * 28 * 28);
    std::vector<std::uint8_t> labels(settings().batch);
    std::uint32_t random = step + 1;
    for (float& pixel : images) {
      random = random * 1664525U + 1013904223U;
      pixel = static_cast<float>(random >> 24U) / 255;
    }
    for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<std::uint8_t>((step + i) % 10);
    network.train(images, labels, 0.01F);
  }
};

/// What the process has in memory now, without files: the system's libraries count for whoever loaded them first.
std::uint64_t resident() {
  std::ifstream sizes("/proc/self/statm");
  std::uint64_t all = 0;
  std::uint64_t pages = 0;
  std::uint64_t of_files = 0;
  sizes >> all >> pages >> of_files;
  return (pages - of_files) * 4096;
}

void print(const Outcome& done, Bytes ram) {
  const auto milliseconds = [](auto time) { return std::chrono::duration<double, std::milli>(time).count(); };
  std::cout << "{\"ms\": " << done.milliseconds << ", \"iterations\": " << done.iterations << ", \"ram\": " << ram.value
            << ", \"resident\": " << done.resident << ", \"device_peak\": " << done.report.device_peak.value
            << ", \"host_peak\": " << done.report.host_peak.value << ", \"file_peak\": " << done.report.file_peak.value;
  if (!done.report.plans.empty()) {
    const swapmm::PlanSummary& plan = done.report.plans.front();
    const auto cycle = static_cast<double>(plan.iterations_per_cycle);
    std::cout << ", \"bound_ms\": " << milliseconds(plan.predicted.lower_bound) / cycle
              << ", \"predicted_ms\": " << milliseconds(plan.predicted.iteration) / cycle
              << ", \"compute_ms\": " << milliseconds(plan.predicted.compute) / cycle
              << ", \"tells_file\": " << (plan.tells_file ? "true" : "false")
              << ", \"file_in\": " << static_cast<double>(plan.file_in.value) / cycle
              << ", \"in\": " << static_cast<double>(plan.predicted.h2d.value) / cycle
              << ", \"out\": " << static_cast<double>(plan.predicted.d2h.value) / cycle;
  }
  std::cout << "}" << std::endl;
}

template <class Program>
void run(Way way, Bytes ram, Bytes host, const std::string& folder) {
  if (way == Way::need) {
    std::cout << "{\"need\": " << Program::need().value << "}" << std::endl;
  } else {
    print(Program::run(way, memory_for(way, ram, host, folder)), ram);
  }
}

Way way_of(std::string_view name) {
  if (name == "plan") return Way::plan;
  if (name == "one") return Way::one;
  if (name == "on-demand") return Way::on_demand;
  if (name == "all") return Way::all;
  if (name == "need") return Way::need;
  throw std::invalid_argument("there is no way " + std::string(name) + "\n" + std::string(usage));
}

}  // namespace

int main(int count, char** words) {
  try {
    const std::span all(words, static_cast<std::size_t>(count));
    if (count != 5 && count != 6) {
      std::cerr << usage;
      return 2;
    }
    const std::string_view program = all[1];
    const Way way = way_of(all[2]);
    const Bytes ram{std::strtoull(all[3], nullptr, 10)};
    const Bytes host{count == 6 ? std::strtoull(all[5], nullptr, 10) : 0};
    if (program == "wave") {
      run<Wave>(way, ram, host, all[4]);
    } else if (program == "network") {
      run<Network>(way, ram, host, all[4]);
    } else {
      std::cerr << usage;
      return 2;
    }
    return 0;
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
