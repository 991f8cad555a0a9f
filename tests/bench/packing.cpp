// SPDX-License-Identifier: Apache-2.0
// Prints how well and how fast items are packed: MiniMalloc's instances (run from the root of the repository, or give
// files as arguments; the capacity is the number in the name), and random ones like training steps.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <optional>
#include <random>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include <swapmm/plan/packing.hpp>

using namespace swapmm;

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

std::optional<PackingProblem> read_instance(const std::string& name) {
  std::ifstream file(name);
  std::string line;
  if (!std::getline(file, line)) return std::nullopt;
  PackingProblem problem;
  const std::size_t number = name.find('.', name.find_last_of('/') + 1);
  if (number == std::string::npos) return std::nullopt;
  problem.capacity = Bytes{std::strtoull(name.c_str() + number + 1, nullptr, 10)};
  while (std::getline(file, line)) {
    std::replace(line.begin(), line.end(), ',', ' ');
    std::istringstream fields(line);
    std::uint64_t id = 0, lower = 0, upper = 0, size = 0;
    fields >> id >> lower >> upper >> size;
    problem.items.push_back(
        {Bytes{size}, static_cast<std::uint32_t>(lower), static_cast<std::uint32_t>(upper - lower)});
    problem.slots = std::max(problem.slots, static_cast<std::uint32_t>(upper));
  }
  return problem;
}

void print_instance(const std::string& name, const PackingProblem& problem) {
  constexpr double longest = 60;
  const auto start = Clock::now();
  double limit = longest;
  const std::function<bool()> go_on = [&] { return seconds_since(start) < limit; };
  const bool is_solved = pack(problem, {.go_on = &go_on}).has_value();
  const double solving = seconds_since(start);
  limit = solving + 1;
  const Result<Packing> lowest = pack_lowest(problem, {.go_on = &go_on});
  std::printf("| %s | %zu | %s | %.2f | %.4f |\n", name.c_str(), problem.items.size(), is_solved ? "yes" : "no",
              solving, static_cast<double>(lowest->height.value) / static_cast<double>(problem.capacity.value));
}

/// Most items are short, some live from an operation to its counterpart backwards, a few for long or always.
PackingProblem training_problem(std::uint32_t items, std::uint32_t slots) {
  std::mt19937_64 random(1);
  const auto below = [&](std::uint64_t limit) { return static_cast<std::uint32_t>(random() % limit); };
  PackingProblem problem;
  problem.slots = slots;
  problem.alignment = Bytes{256};
  for (std::uint32_t i = 0; i < items; ++i) {
    const Bytes size{1000 + below(1U << (10 + below(16)))};
    const std::uint32_t kind = below(100);
    if (kind < 1) {
      problem.items.push_back({size, 0, slots});
    } else if (kind < 25) {
      const std::uint32_t start = below(slots / 2 - 4);
      problem.items.push_back({size, start, slots - 2 * start - below(4)});
    } else if (kind < 27) {
      problem.items.push_back({size, below(slots), 1 + below(slots / 4)});
    } else {
      problem.items.push_back({size, below(slots), 1 + below(4)});
    }
  }
  return problem;
}

void print_training(std::uint32_t items) {
  PackingProblem problem = training_problem(items, items / 2);
  const auto row = [&](const char* from, std::span<const Bytes> preferred) {
    const Bytes load = packing_load(problem);
    problem.capacity = load;
    const auto start = Clock::now();
    Result<Packing> packing = pack_towards(problem, {.ejection_steps = 1000}, preferred);
    std::printf("| %u | %s | %.1f | %.4f |\n", items, from, seconds_since(start) * 1e3,
                static_cast<double>(packing->height.value) / static_cast<double>(load.value));
    return std::move(packing->offsets);
  };
  const std::vector<Bytes> offsets = row("nothing", {});
  for (std::size_t i = 0; i < problem.items.size(); i += 100) {
    problem.items[i].length = (problem.items[i].length + 1) / 2;
  }
  row("a packing of which 1 % changed", offsets);
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> names(argv + 1, argv + argc);
  if (names.empty()) {
    for (const char letter : {'A', 'B', 'C', 'D', 'E'}) {
      names.push_back(std::string("tests/data/packing/") + letter + ".1048576.csv");
    }
  }
  std::printf(
      "| instance | items | solved within 60 s | seconds | height / capacity after 1 s |\n|---|---|---|---|---|\n");
  for (const std::string& name : names) {
    const std::optional<PackingProblem> problem = read_instance(name);
    if (!problem) {
      std::fprintf(stderr, "%s: not an instance, or not there\n", name.c_str());
      return 1;
    }
    print_instance(name, *problem);
  }
  std::printf("\n| items like a training step | from | ms | height / load, 1000 steps |\n|---|---|---|---|\n");
  for (const std::uint32_t items : {1'000U, 3'000U, 10'000U, 30'000U, 100'000U}) print_training(items);
  return 0;
}
