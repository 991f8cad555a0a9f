// SPDX-License-Identifier: Apache-2.0
// The benchmark of the planners: docs/planning.md. Run from the root of the repository, by `./dev bench planning`.
#include <algorithm>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "parts.hpp"

using namespace swapmm::bench;

namespace {

struct Part {
  const char* name;
  const char* summary;
  Report (*run)(const Settings&);
  const char* program = nullptr;  ///< one beside this one, which is run instead
  const char* argument = "";
};

constexpr Part parts[] = {
    {"published", "the five workloads that G10 published, at 40 GB (10 s each)", run_published},
    {"curve", "slowdown over memory of each planner and the bound (5 s for those that search)", run_curve},
    {"scale", "synthetic traces of 1,000 to 100,000 operations", run_scale},
    {"robust", "durations and links other than those planned for (1 s)", run_robust},
    {"techniques", "`best` with each of its techniques switched off in turn (1 s)", run_techniques},
    {"steps", "small training steps, for which the integer program proves the best plan (10 s)", run_steps},
    {"harvest", "spare memory of neighbours before the host (3 s)", run_harvest},
    {"devices", "36 instances with two to eight devices behind one link (10 s)", run_devices},
    {"managers", "the same on managers of simulated devices on one clock (3 s)", run_managers},
    {"memories", "48 instances with a device, a small near memory and a disk (30 s)", run_memories},
    {"behind", "the same with the disk behind the near memory (30 s)", run_behind},
    {"engines", "24 instances whose engines share memories or tensors (5 s)", run_engines},
    {"ways", "copies, operations that run again, both, and all ways back (10 s)", run_ways},
    {"pieces", "whole tensors, and tensors that may be divided (30 s)", run_pieces},
    {"packing", "MiniMalloc's instances: the program swapmm_bench_packing", nullptr, "swapmm_bench_packing"},
    {"exact", "planner / optimum on tiny instances: the program swapmm_bench_exact_histogram", nullptr,
     "swapmm_bench_exact_histogram", " 1000"},
    {"grid", "traces x budgets x bandwidths x speeds of computation (1 s)", run_grid},
};

std::vector<std::string> stored_traces() {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("tests/data/traces/g10", error)) {
    if (entry.path().extension() == ".json") names.push_back(entry.path().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

bool run_program(const Part& part, const std::filesystem::path& folder) {
  const std::string command = '"' + (folder / part.program).string() + '"' + part.argument;
  std::cout.flush();
  return std::system(command.c_str()) == 0;  // NOLINT(concurrency-mt-unsafe): no other thread runs
}

/// False where something was wrong.
bool run_part(const Part& part, const Settings& settings, const std::string& csv, bool as_json) {
  const Report report = part.run(settings);
  const std::string file = csv.empty() ? settings.out + '/' + part.name + ".csv" : csv;
  std::ofstream out(file);
  write_csv(out, report.rows);
  if (as_json) {
    print_json(std::cout, part.name, report);
  } else {
    print(std::cout, report);
    std::cout << "rows: " << file << "\n\n";
  }
  if (!out.flush()) std::cerr << file << ": cannot be written\n";
  if (!report.is_sound) {
    std::cerr << part.name << ": a plan is missing, breaks a rule, or is faster than the bound: see the rows\n";
  }
  return report.is_sound && out.good();
}

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  std::string csv;
  bool as_json = false;
  CLI::App app{
      "Measures the planners. Without a part: all of them, the grid last. Times are simulated, planning is not."};
  app.fallthrough();
  app.require_subcommand(0, 1);
  app.add_option("--planner", settings.planner, "which one, but for curve and exact, which take all")
      ->capture_default_str();
  app.add_option("--limit", settings.limit,
                 "seconds that a plan may be searched; 0: until the planner ends by itself (default: per part)")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--sample", settings.sample,
                 "grid, memories, behind, engines, devices and ways: every so-manieth instance, always the same ones")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--only", settings.only,
                 "memories, behind, engines, devices and ways: instances whose name contains this");
  app.add_option("--traces", settings.traces, "grid: files (default: tests/data/traces/g10)")->check(CLI::ExistingFile);
  app.add_option("--largest", settings.largest, "scale: operations of the largest trace")->capture_default_str();
  app.add_option("--jobs", settings.jobs, "threads that compute bounds; plans are made one by one")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  app.add_option("--csv", csv, "file for the rows of one part (default: its name in --out)");
  app.add_option("--out", settings.out, "folder for rows, and for bounds, which are computed once")
      ->capture_default_str();
  app.add_flag("--json", as_json, "JSON instead of tables; not for packing and exact");
  app.add_flag("--quiet", settings.quiet, "no progress on stderr");
  for (const Part& part : parts) app.add_subcommand(part.name, part.summary);
  CLI11_PARSE(app, argc, argv);

  const auto chosen = app.get_subcommands();
  if (chosen.empty() && !csv.empty()) return app.exit(CLI::ValidationError("--csv", "is for one part; --out for all"));
  if (settings.traces.empty()) settings.traces = stored_traces();
  std::error_code error;
  std::filesystem::create_directories(settings.out, error);
  bool is_sound = true;
  for (const Part& part : parts) {
    if (!chosen.empty() && chosen.front()->get_name() != part.name) continue;
    if (!as_json) std::cout << "## " << part.name << "\n\n";
    try {
      const bool went_well = part.program != nullptr
                                 ? run_program(part, std::filesystem::path(argv[0]).parent_path().parent_path())
                                 : run_part(part, settings, csv, as_json);
      is_sound = went_well && is_sound;
    } catch (const std::exception& error_of_part) {
      std::cerr << part.name << ": " << error_of_part.what() << '\n';
      is_sound = false;
    }
  }
  return is_sound ? 0 : 1;
}
