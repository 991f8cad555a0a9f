// SPDX-License-Identifier: Apache-2.0
// What the library itself costs per operation in the steady state, as time of the host: on a backend on which every
// call returns at once. Operation i reads tensors i, i + 1 and i + 2, updates tensor i + 3 (modulo their number), and
// asks for the four addresses. "fits": the budget holds all tensors; "half": half of them, so that operations bring in
// and write back. With --all also 100,000 tensors of which half fit, by a plan: that one takes minutes to make.
// Usage: core [--json] [--all]
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include <swapmm/swapmm.hpp>

#include "../support/null_backend.hpp"

namespace {

using namespace swapmm;
using test::NullBackend;
using Clock = std::chrono::steady_clock;

constexpr std::size_t bundle = 4;
constexpr std::size_t floats = 16;  // 64 bytes each
constexpr std::size_t rounds = 9;
constexpr std::size_t operations_per_round = 200'000;

struct Case {
  std::size_t tensors;
  bool fits;
  bool by_plan;
};

struct Measured {
  double nanoseconds_per_operation = 0;  // median of the rounds
  double copies_per_operation = 0;
  double start_seconds = 0;  // until the steady state: observing, planning, checking
  bool followed = false;
};

class Program {
 public:
  explicit Program(const Case& c)
      : manager_(
            device_,
            {.device_budget = Bytes{floats * sizeof(float) * std::max(c.fits ? c.tensors : c.tensors / 2, bundle)}},
            Scheduler(
                {.observe = c.by_plan ? std::size_t{2} : std::size_t{0}, .planner = "belady", .trial_iterations = 0})) {
    for (std::size_t i = 0; i < c.tensors; ++i) tensors_.push_back(manager_.tensor<float>({floats}, "tensor"));
    for (auto& tensor : tensors_) manager_.run("init", writes(tensor), [](auto&) {});
  }

  void iterate() {
    auto iteration = manager_.iteration("steady");
    const std::size_t n = tensors_.size();
    for (std::size_t i = 0; i < n; ++i) {
      auto& a = tensors_[i];
      auto& b = tensors_[i + 1 < n ? i + 1 : i + 1 - n];
      auto& c = tensors_[i + 2 < n ? i + 2 : i + 2 - n];
      auto& d = tensors_[i + 3 < n ? i + 3 : i + 3 - n];
      manager_.run("operation", reads(a, b, c), updates(d), [&](auto& op) {
        const std::byte* const places[] = {place(op[a]), place(op[b]), place(op[c]), place(op[d])};
        for (const std::byte* const at : places) sum_ += reinterpret_cast<std::uintptr_t>(at);
      });
    }
  }

  [[nodiscard]] std::uint64_t copies() const { return device_.counters().copies; }
  [[nodiscard]] std::uint64_t followed() const { return manager_.report().iterations_followed; }
  [[nodiscard]] std::string remarks() const {
    std::string text;
    for (const std::string& note : manager_.report().notes) text += note + '\n';
    return text;
  }
  [[nodiscard]] std::uintptr_t sum() const { return sum_; }

 private:
  static const std::byte* place(const NullBackend::View<float>& view) {
    return reinterpret_cast<const std::byte*>(view.data());
  }

  NullBackend device_;
  MemoryManager<NullBackend> manager_;
  std::vector<Tensor<float, NullBackend>> tensors_;
  std::uintptr_t sum_ = 0;
};

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

Measured measure(const Case& c) {
  const auto begin = Clock::now();
  Program program(c);
  for (int i = 0; i < 4; ++i) program.iterate();
  Measured measured;
  measured.start_seconds = seconds_since(begin);
  measured.followed = program.followed() > 0;
  if (measured.followed != c.by_plan) std::fprintf(stderr, "%s", program.remarks().c_str());
  const std::size_t iterations = std::max<std::size_t>(1, operations_per_round / c.tensors);
  const std::uint64_t copies = program.copies();
  std::vector<double> times;
  for (std::size_t round = 0; round < rounds; ++round) {
    const auto start = Clock::now();
    for (std::size_t i = 0; i < iterations; ++i) program.iterate();
    times.push_back(1e9 * seconds_since(start) / static_cast<double>(iterations * c.tensors));
  }
  std::nth_element(times.begin(), times.begin() + rounds / 2, times.end());
  measured.nanoseconds_per_operation = times[rounds / 2];
  measured.copies_per_operation =
      static_cast<double>(program.copies() - copies) / static_cast<double>(rounds * iterations * c.tensors);
  if (program.sum() == 1) std::puts("");  // the addresses are used
  return measured;
}

}  // namespace

int main(int argc, char** argv) {
  const auto given = [&](std::string_view option) { return std::count(argv + 1, argv + argc, option) != 0; };
  const bool json = given("--json");
  if (json) {
    std::printf("{\"benchmark\": \"core\", \"bundle\": %zu, \"rounds\": %zu, \"results\": [", bundle, rounds);
  } else {
    std::printf("host time of the library per operation, bundles of %zu, no-op backend, median of %zu rounds\n\n",
                bundle, rounds);
    std::printf("| tensors | budget | moved by | ns per operation | copies per operation | s to the steady state |\n");
    std::printf("|---|---|---|---|---|---|\n");
  }
  bool first = true;
  for (const std::size_t tensors : {10U, 1'000U, 100'000U}) {
    for (const bool fits : {true, false}) {
      for (const bool by_plan : {true, false}) {
        if (tensors == 100'000 && !fits && by_plan && !given("--all")) continue;
        const Measured m = measure({tensors, fits, by_plan});
        const char* const budget = fits ? "fits" : "half";
        const char* const mode = m.followed ? "plan" : "demand";
        if (json) {
          std::printf(
              "%s\n  {\"tensors\": %zu, \"budget\": \"%s\", \"moved_by\": \"%s\", \"ns_per_operation\": %.1f, "
              "\"copies_per_operation\": %.3f, \"start_s\": %.3f}",
              first ? "" : ",", tensors, budget, mode, m.nanoseconds_per_operation, m.copies_per_operation,
              m.start_seconds);
        } else {
          std::printf("| %zu | %s | %s | %.0f | %.2f | %.2f |\n", tensors, budget, mode, m.nanoseconds_per_operation,
                      m.copies_per_operation, m.start_seconds);
        }
        std::fflush(stdout);
        first = false;
      }
    }
  }
  if (json) std::printf("\n]}\n");
  return 0;
}
