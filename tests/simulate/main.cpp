// SPDX-License-Identifier: Apache-2.0
// Many random programs on the simulated device, and all tiny ones: what ./dev simulate runs.

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>

#include <swapmm/formats/trace_json.hpp>

#include "progress.hpp"
#include "support/program/report.hpp"
#include "support/program/seeds.hpp"
#include "support/program/tiny_programs.hpp"
#include "workers.hpp"

namespace {

using namespace swapmm;
using namespace swapmm::test;

constexpr std::string_view usage = R"(swapmm_simulate [--seeds N] [--seed S] [--long] [--jobs J] [--out FOLDER]
  --seeds N     random programs, of seeds S to S + N - 1 (10000)
  --seed S      the first of them (1)
  --long        1000000 seeds, and tiny programs of one more step
  --jobs J      processes (one for each core)
  --out FOLDER  where a program that fails is written, as C++ and as a trace (build/simulate)
)";

struct Wishes {
  SeedRange seeds{1, 10'000};
  bool is_long = false;
  bool tiny = true;  ///< programs: not where one seed is replayed
  unsigned jobs = std::max(1U, std::thread::hardware_concurrency());
  std::filesystem::path out = "build/simulate";
};

std::optional<std::uint64_t> number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// Nothing where the words are not understood.
std::optional<Wishes> wishes_of(std::span<char*> words) {
  Wishes wishes;
  std::optional<std::uint64_t> seeds;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string_view word = words[i];
    if (word == "--long") {
      wishes.is_long = true;
      continue;
    }
    if (++i == words.size()) return std::nullopt;
    if (word == "--out") {
      wishes.out = words[i];
      continue;
    }
    const auto value = number(words[i]);
    if (!value) return std::nullopt;
    if (word == "--seeds" && *value > 0) {
      seeds = value;
    } else if (word == "--seed") {
      wishes.seeds.first = *value;
    } else if (word == "--jobs" && *value > 0 && *value <= 256) {
      wishes.jobs = static_cast<unsigned>(*value);
    } else {
      return std::nullopt;
    }
  }
  wishes.seeds.count = seeds.value_or(wishes.is_long ? 1'000'000 : 10'000);
  wishes.tiny = wishes.seeds.count > 1;
  return wishes;
}

/// Where it was written, if it was.
bool write(const std::filesystem::path& path, const auto& print) {
  std::ofstream file(path);
  print(file);
  file.close();
  if (!file) std::cout << path.string() << " could not be written\n";
  return static_cast<bool>(file);
}

void print_failure(const FailedSeed& failed, const std::filesystem::path& folder) {
  std::cout << "\nseed " << failed.seed << ": " << failed.failure << "\nthe same with: ./dev simulate --seed "
            << failed.seed << " --seeds 1\n";
  const ProgramJudge in_process = [&](const TestProgram& program) { return judge(program, scrutiny_of(failed.seed)); };
  const ProgramJudge apart = [&](const TestProgram& program) {
    return judge_apart(program, in_process, std::chrono::seconds{20});
  };
  const ProgramFailure failure = report_failure(program_of(failed.seed), failed.failure,
                                                failed.ended_process ? apart : in_process, !failed.ended_process);
  std::cout << failure.text;
  if (!failure.cpp.empty()) {
    std::cout << "trace hash " << failure.verdict.failed().trace_hash << "\n\nas C++:\n\n" << failure.cpp << "\n";
  }
  std::filesystem::create_directories(folder);
  const std::string stem = "seed-" + std::to_string(failed.seed);
  const auto say = [&](const std::filesystem::path& path, std::string_view what) {
    std::cout << what << ": " << path.string() << "\n";
  };
  if (const auto path = folder / (stem + ".cpp"); !failure.cpp.empty()) {
    if (write(path, [&](std::ostream& out) { out << failure.cpp; })) say(path, "the program");
  }
  if (const auto path = folder / (stem + ".json"); failure.trace) {
    if (write(path, [&](std::ostream& out) { write_trace(out, *failure.trace); })) say(path, "its first iteration");
  } else {
    std::cout << "it has no iteration that ended, and no trace\n";
  }
}

bool run_seeds(const Wishes& wishes) {
  const SeedRange& seeds = wishes.seeds;
  std::cout << "seeds " << seeds.first << " to " << seeds.first + seeds.count - 1 << ", " << wishes.jobs
            << " processes\n";
  Progress progress(seeds.count);
  const WorkersResult result = run_workers(seeds, wishes.jobs, [&](std::uint64_t done) { progress.show(done); });
  const double seconds = progress.end();
  std::cout << result.tally;
  if (seeds.count == 1) std::cout << "trace hash " << result.trace_hash << "\n";
  std::printf("%llu seeds in %.1f s, %.0f a second\n", static_cast<unsigned long long>(result.done), seconds,
              static_cast<double>(result.done) / seconds);
  std::fflush(stdout);
  if (result.failed) print_failure(*result.failed, wishes.out);
  return !result.failed;
}

bool run_tiny(TinyCourse course, std::size_t length) {
  Progress progress(1);
  const TinyEnumeration result = run_tiny_programs(length, course);
  std::printf("all programs of %zu steps on two tensors, %s: %llu, in %llu interleavings (up to %llu of one)", length,
              course == TinyCourse::followed ? "as iterations" : "on demand",
              static_cast<unsigned long long>(result.programs), static_cast<unsigned long long>(result.runs),
              static_cast<unsigned long long>(result.most_runs));
  if (course == TinyCourse::followed) {
    std::printf(", %llu iterations followed", static_cast<unsigned long long>(result.followed));
  }
  std::printf(": %.1f s\n", progress.end());
  std::fflush(stdout);
  if (!result.failure.empty()) std::cout << result.failure << "\n";
  return result.failure.empty();
}

}  // namespace

int main(int count, char** words) {
  const auto wishes = wishes_of(std::span(words, static_cast<std::size_t>(count)).subspan(1));
  if (!wishes) {
    std::cerr << usage;
    return 2;
  }
  try {
    bool held = true;
    const std::size_t more = wishes->is_long ? 1 : 0;
    if (wishes->tiny) {
      held = run_tiny(TinyCourse::on_demand, tiny_steps_on_demand + more);
      held = run_tiny(TinyCourse::followed, tiny_steps_followed + more) && held;
    }
    held = run_seeds(*wishes) && held;
    std::cout << (held ? "all held\n" : "NOT ALL HELD\n");
    return held ? 0 : 1;
  } catch (const std::exception& error) {
    std::cerr << "swapmm_simulate: " << error.what() << "\n";
    return 2;
  }
}
