// SPDX-License-Identifier: Apache-2.0
#include <swapmm/runtime/book/given_plan.hpp>

#include <cstddef>
#include <cstdint>
#include <utility>

#include <swapmm/base/error.hpp>
#include <swapmm/formats/json/reader.hpp>
#include <swapmm/formats/plan_json.hpp>
#include <swapmm/formats/v2/plan_json.hpp>
#include <swapmm/plan/v2/ways.hpp>
#include <swapmm/runtime/observe/replayed_program.hpp>

namespace swapmm::runtime {
namespace {

std::vector<Replay> replays_of(const Program& program) {
  std::vector<Replay> replays;
  const std::vector<std::uint32_t>& runs = program.replays.runs;
  std::size_t written = 0;  // the replays before it have no operation of the program behind them yet
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (program.replays.is_replay[i]) {
      replays.push_back({static_cast<OperationId>(runs[i]), {}});
      continue;
    }
    for (; written < replays.size(); ++written) replays[written].before = static_cast<OperationId>(runs[i]);
  }
  return replays;
}

template <class Source>
Result<LoadedPlan> read_from(Source&& source) {
  return json::read_by_version(source, [](auto&& text, std::optional<std::int64_t> version) -> Result<LoadedPlan> {
    if (version != 1) {
      Result<v2::Plan> plan = v2::read_plan(text);  // which knows the versions
      if (!plan) return plan.problem();
      return LoadedPlan(*std::move(plan));
    }
    Result<Plan> plan = read_plan(text);
    if (!plan) return plan.problem();
    return LoadedPlan(*std::move(plan));
  });
}

}  // namespace

Check may_be_followed(const GivenPlan& given, bool allows_replays) {
  if (given.replays.empty() || allows_replays) return Done{};
  return Problem{"it runs operations again, and this program may only lose what is proven dead"};
}

GivenPlan given_by(const CompiledPlan& known) { return {known.plan, replays_of(known.program), known.tiered}; }

const std::string& LoadedPlan::trace_digest() const {
  return std::visit([](const auto& plan) -> const std::string& { return plan.trace_digest; }, plan_);
}

bool LoadedPlan::is_for(const Program& program) const {
  // A trace of version 2 says which operations may run again, and that counts for its digest.
  return trace_digest() == digest(program.trace) || trace_digest() == digest(trace_with_replayable(program));
}

Result<GivenPlan> LoadedPlan::given_for(const Program& program) const {
  if (const Plan* const plan = std::get_if<Plan>(&plan_)) return GivenPlan{*plan};
  const Trace plain = program.trace;
  const Trace trace = trace_digest() == digest(plain) ? plain : trace_with_replayable(program);
  Result<PlanWithWays> made = v2::to_ways(trace, std::get<v2::Plan>(plan_));
  if (!made) return made.problem();
  if (!made->ways.codings.empty() || !made->ways.pieces.empty()) {
    return Problem{"it divides tensors, or encodes them in forms, which managers do not do"};
  }
  return GivenPlan{std::move(made->plan), std::move(made->ways.replays)};
}

Result<LoadedPlan> read_loaded_plan(std::istream& in) { return read_from(in); }
Result<LoadedPlan> read_loaded_plan(std::string_view text) { return read_from(text); }

void write_compiled_plan(std::ostream& out, const CompiledPlan& plan) {
  if (plan.without_replays == nullptr) return write_plan(out, plan.plan);
  const GivenPlan given = given_by(plan);
  const Result<v2::Plan> whole =
      v2::from_ways(trace_with_replayable(plan.observed()), {{given.replays, {}, {}}, given.plan});
  if (!whole) throw Error("a plan that runs operations again cannot be written: " + whole.problem().message);
  v2::write_plan(out, *whole);
}

}  // namespace swapmm::runtime
