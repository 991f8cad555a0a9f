// SPDX-License-Identifier: Apache-2.0
// Any bytes as the plan that a running program is given: refused, or followed with every value right.
//
// The first byte says which program, and whether the rest is the text of the plan, or edits of one that suits.
#include <cstddef>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <swapmm/formats/plan_json.hpp>

#include "fuzz/decoder.hpp"
#include "fuzz/plan_edits.hpp"
#include "fuzz/target.hpp"
#include "support/program/runner.hpp"
#include "support/random_program.hpp"

using namespace swapmm;

namespace {

struct Advised {
  test::TestProgram program;
  test::RunResult alone;  ///< as it runs with plans of its own making, which it saves
  Plan plan;              ///< the first of those
};

/// Steady programs, which follow their own plans when they are given them.
std::vector<Advised> advised_programs(std::size_t count) {
  std::vector<Advised> found;
  for (std::uint64_t seed = 1; found.size() < count; ++seed) {
    constexpr std::size_t operations = 12;
    Advised one{.program = test::random_program(seed, operations), .alone = {}, .plan = {}};
    if (!one.program.steady) continue;
    one.alone = test::run_program(one.program, {.save_plans = true});
    if (!one.alone.failure.empty() || one.alone.plans.empty()) continue;
    const auto again = test::run_program(one.program, {.loaded = one.alone.plans});
    if (again.loads_refused != 0 || again.iterations_followed < 2) continue;
    auto plan = read_plan(std::string_view(one.alone.plans.front().text));
    if (!plan || plan->commands.empty()) continue;
    one.plan = *std::move(plan);
    found.push_back(std::move(one));
  }
  return found;
}

std::string written(const Plan& plan) {
  std::ostringstream out;
  write_plan(out, plan);
  return out.str();
}

std::string advice(const Advised& advised, const std::uint8_t* data, std::size_t size, bool edits) {
  if (edits) {
    fuzz::Decoder in({data, size});
    Plan plan = advised.plan;
    fuzz::edit(plan, in);
    return written(plan);
  }
  const std::string_view text = fuzz::text_of(data, size);
  auto plan = read_plan(text);
  if (!plan) return std::string(text);
  plan->trace_digest = advised.plan.trace_digest;  // on which no mutation hits
  return written(*plan);
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t program_count = 16;
  static const std::vector<Advised> programs = advised_programs(program_count);
  if (size == 0) return 0;
  const Advised& advised = programs[data[0] % program_count];
  const bool edits = data[0] >= 128;
  test::RunSettings settings{.loaded = advised.alone.plans};
  settings.loaded.front().text = advice(advised, data + 1, size - 1, edits);
  const test::RunResult run = test::run_program(advised.program, settings);
  fuzz::expect(run.failure.empty(), "a program holds whatever plan it is given", run.failure);
  // A refused read gives the host other bytes to read.
  if (run.refused != run.loads_refused || advised.alone.refused != 0) return 0;
  fuzz::expect(run.downloads == advised.alone.downloads, "the host reads the same under any plan");
  return 0;
}
