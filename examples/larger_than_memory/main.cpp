// SPDX-License-Identifier: Apache-2.0
// Seismic imaging whose memory is four times the budget: see wave.hpp for the problem, with_swapmm.cpp for the program,
// and raw_opencl.cpp for the same program without swapmm, whose results must be equal bit for bit.
#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <exception>
#include <iomanip>
#include <iostream>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

#include <swapmm/error.hpp>
#ifdef WITH_FILES
#include <swapmm/file/file.hpp>
#endif
#include <swapmm/opencl/backend.hpp>
#include <swapmm/opencl/devices.hpp>

#include "larger_than_memory/raw_opencl.hpp"
#include "larger_than_memory/wave.hpp"
#include "larger_than_memory/with_swapmm.hpp"

namespace {

constexpr std::string_view usage =
    "larger_than_memory [--size CELLS] [--steps STEPS] [--every STEPS] [--shots SHOTS] [--budget MIB]\n"
    "                   [--planes PLANES] [--file FOLDER] [--host MIB] [--on-demand]\n"
    "  --size    cells along each side of the block, default 64\n"
    "  --steps   in time, of each shot, default 97\n"
    "  --every   steps from one checkpoint to the next, default 3\n"
    "  --shots   default 8: the first ones are observed, then a plan is followed\n"
    "  --budget  MiB on the device, default a quarter of what the program needs\n"
    "  --planes  of a field in each of its pieces: with a small budget, fields may be larger than that; default: "
    "whole\n"
    "            fields if there is room for eight, else as swapmm chooses\n"
    "  --file    what fits neither there nor on the host is in a file in this folder\n"
    "  --host    MiB of host memory; default: no limit, with --file 32\n"
    "  --on-demand  follow no plan\n"
    "The environment variable SWAPMM_DEVICE names the device, by index or by a part of its name.\n";

struct Arguments {
  wave::Problem problem;
  swapmm::Bytes budget;  // 0: a quarter
  std::string file;      // empty: none
  swapmm::Bytes host;    // 0: the default
  bool on_demand = false;
  bool help = false;
};

std::size_t number(std::string_view name, std::string_view text) {
  std::size_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value == 0 || value > 1'000'000) {
    throw std::invalid_argument(std::string(name) + " takes a whole number from 1 on, not \"" + std::string(text) +
                                "\"");
  }
  return value;
}

Arguments parse(std::span<char*> words) {
  Arguments result;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string_view name = words[i];
    if (name == "--help" || name == "-h") {
      result.help = true;
      return result;
    }
    const auto word = [&] { return std::string(++i < words.size() ? words[i] : ""); };
    const auto value = [&] { return number(name, word()); };
    if (name == "--size") {
      result.problem.size = value();
    } else if (name == "--steps") {
      result.problem.steps = value();
    } else if (name == "--every") {
      result.problem.every = value();
    } else if (name == "--shots") {
      result.problem.shots = value();
    } else if (name == "--budget") {
      result.budget = swapmm::Bytes{value() << 20U};
    } else if (name == "--planes") {
      result.problem.planes = value();
    } else if (name == "--file") {
      result.file = word();
      if (result.file.empty()) throw std::invalid_argument("--file takes the name of a folder");
    } else if (name == "--host") {
      result.host = swapmm::Bytes{value() << 20U};
    } else if (name == "--on-demand") {
      result.on_demand = true;
    } else {
      throw std::invalid_argument("there is no option " + std::string(name));
    }
  }
  wave::check(result.problem);
  if (result.budget.value == 0) result.budget = swapmm::Bytes{wave::working_set(result.problem).value / 4};
  return result;
}

swapmm::Options memory(const Arguments& arguments) {
  swapmm::Options options{.device_budget = arguments.budget};
  if (arguments.host.value != 0) options.host_budget = arguments.host;
  if (arguments.file.empty()) return options;
#ifdef WITH_FILES
  if (arguments.host.value == 0) options.host_budget = options.file_staging;
  options.file = swapmm::file::open(
      {.folder = arguments.file, .capacity = swapmm::Bytes{2 * wave::working_set(arguments.problem).value}});
  return options;
#else
  throw std::invalid_argument("--file: this program was built without the component `file` (Debian: liburing-dev)");
#endif
}

double mib(swapmm::Bytes bytes) { return static_cast<double>(bytes.value) / (1 << 20U); }
double seconds(std::chrono::nanoseconds time) { return static_cast<double>(time.count()) / 1e9; }

void tell(const wave::ShotReport& shot) {
  std::cout << "  shot " << std::setw(2) << shot.shot + 1 << "  " << std::setprecision(3) << seconds(shot.time)
            << " s  " << std::setprecision(1) << std::setw(7) << mib(shot.in) << " MiB in  " << std::setw(7)
            << mib(shot.out) << " MiB out  " << (shot.followed ? "by the plan" : "on demand") << std::endl;
}

bool equal(std::string_view name, const std::vector<float>& swapped, const std::vector<float>& raw) {
  const bool same =
      swapped.size() == raw.size() && std::memcmp(swapped.data(), raw.data(), raw.size() * sizeof(float)) == 0;
  std::cout << "  " << std::setw(9) << std::left << name << std::right << (same ? "equal bit for bit" : "DIFFERENT")
            << '\n';
  return same;
}

// False where the results differ.
bool compare(const swapmm::opencl::Backend& backend, const wave::Problem& problem, const wave::Result& swapped) {
  // As the driver says. It is no promise: an allocation may fail all the same.
  const auto all = swapmm::opencl::devices();
  const auto device = std::find_if(all.begin(), all.end(), [&](const auto& d) { return d.id == backend.device(); });
  const swapmm::Bytes need = wave::working_set(problem);
  std::cout << "\nThe same without swapmm, all of it in the device's memory:\n";
  if (device != all.end() && need > device->memory) {
    std::cout << "  not compared: it needs " << mib(need) << " MiB, and the device has " << mib(device->memory) << '\n';
    return true;
  }
  try {
    const auto start = std::chrono::steady_clock::now();
    const wave::Result raw = wave::run_raw_opencl(backend.context(), backend.device(), problem);
    const auto time = std::chrono::steady_clock::now() - start;
    std::cout << "  all shots " << std::setprecision(3) << seconds(time) << " s, kernels compiled and memory taken\n";
    bool same = equal("image", swapped.image, raw.image);
    same = equal("record", swapped.record, raw.record) && same;
    same = equal("forward", swapped.forward, raw.forward) && same;
    return equal("backward", swapped.backward, raw.backward) && same;
  } catch (const swapmm::BackendError& error) {
    if (error.kind != swapmm::BackendError::Kind::out_of_device_memory) throw;
    std::cout << "  not compared, for the device has no room for it: " << error.what() << '\n';
    return true;
  }
}

int run(const Arguments& arguments) {
  const wave::Problem& problem = arguments.problem;
  const auto backend = swapmm::opencl::Backend::pick();
  const swapmm::Bytes need = wave::working_set(problem);
  std::cout << std::fixed << std::setprecision(1) << "A block of " << problem.size << "^3 cells, " << problem.shots
            << " shots of " << problem.steps << " steps there and back, " << wave::checkpoints(problem)
            << " checkpoints\n"
            << "needs " << mib(need) << " MiB; the budget on the device is " << mib(arguments.budget) << " MiB\n\n";

  swapmm::SchedulerOptions plans;
  if (arguments.on_demand) plans.observe = 0;
  const auto [swapped, report] = wave::run_with_swapmm(backend, problem, memory(arguments), tell, plans);
  std::cout << '\n' << report;
  return compare(backend, problem, swapped) ? 0 : 1;
}

}  // namespace

int main(int count, char** words) {
  try {
    const Arguments arguments = parse(std::span(words, static_cast<std::size_t>(count)).subspan(1));
    if (arguments.help) {
      std::cout << usage;
      return 0;
    }
    return run(arguments);
  } catch (const std::invalid_argument& error) {
    std::cerr << error.what() << "\n\n" << usage;
    return 2;
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
