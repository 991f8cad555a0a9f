// SPDX-License-Identifier: Apache-2.0
// Questions about traces and plans, answered as the command `swapmm` answers them.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/json/serialize.hpp>

#include <swapmm/answers/as_json.hpp>
#include <swapmm/answers/comparison.hpp>
#include <swapmm/answers/explanation.hpp>
#include <swapmm/answers/fit.hpp>
#include <swapmm/answers/simulation.hpp>
#include <swapmm/answers/stall_search.hpp>
#include <swapmm/answers/ways/as_version_1.hpp>
#include <swapmm/base/error.hpp>
#include <swapmm/c_interface/failure.hpp>
#include <swapmm/formats/json/reader.hpp>
#include <swapmm/formats/plan_json.hpp>
#include <swapmm/formats/profile_svg.hpp>
#include <swapmm/formats/trace_json.hpp>
#include <swapmm/formats/v2/plan_json.hpp>
#include <swapmm/ir/limits.hpp>
#include <swapmm/ir/liveness.hpp>
#include <swapmm/plan/bound.hpp>
#include <swapmm/plan/planners.hpp>
#include <swapmm/plan/predicted_profile.hpp>
#include <swapmm/plan/problem/planning_case.hpp>
#include <swapmm/plan/stalls.hpp>
#include <swapmm/plan/v2/bound.hpp>
#include <swapmm/plan/v2/validate.hpp>
#include <swapmm/plan/validate.hpp>

#include "options.hpp"
#include "python.h"

namespace swapmm::python {
namespace {

using answers::Planned;
using answers::to_json;

/// Tells the caller, and ends the work if it says so.
class Caller final : public answers::Watcher {
 public:
  explicit Caller(swapmm_python_progress progress) : progress_(progress) {}

  void begin(const std::string& what) override {
    what_ = answers::json_name(what).c_str();
    tell({});
    require_going_on();
  }

  bool reached(const PlanningProgress& progress) override {
    constexpr std::chrono::milliseconds pause{50};
    if (!ended_ && Clock::now() - last_ >= pause) tell(progress);
    return !ended_;
  }

  /// Throws UsageError if the caller has ended the work.
  void require_going_on() const {
    if (ended_) throw UsageError("the caller has ended the work");
  }

 private:
  using Clock = std::chrono::steady_clock;

  void tell(const PlanningProgress& progress) {
    if (progress_ == nullptr) return;
    ended_ = progress_(what_.c_str(), progress.iteration.count(), progress.lower_bound.count()) != 0;
    last_ = Clock::now();
  }

  swapmm_python_progress progress_;
  std::string what_;
  Clock::time_point last_;
  bool ended_ = false;
};

/// A program with a plan, in the terms of version 1: with ways written out.
struct Program {
  Trace trace;
  Plan plan;
  std::optional<answers::WaysUsed> ways;  ///< what the plan does besides copies; none: it is of version 1
};

/// What came of a planner.
struct PlannedProgram {
  Planned planned;
  Trace trace;  ///< with ways written out
  std::string text;
  std::optional<answers::WaysUsed> ways;
};

/// A question with all that came with it.
struct Asked {
  Options options;
  const char* trace_text;
  const char* plan_text;
  Caller& caller;

  [[nodiscard]] Trace trace() const {
    Trace trace = required(read_trace(&c_interface::required(trace_text, "the trace")), "trace");
    if (!trace.engines.empty())
      throw UsageError("trace: its operations name engines, which only the command `swapmm` knows");
    return trace;
  }

  [[nodiscard]] std::string_view text_of_plan() const { return &c_interface::required(plan_text, "the plan"); }
  [[nodiscard]] bool is_version_2(const Trace& trace) const {
    return needs_version_2(trace) || swapmm::json::find_version(text_of_plan()) == 2;
  }

  /// One that can be read.
  [[nodiscard]] Plan plan() const {
    Result<Plan> plan = read_plan(text_of_plan());
    if (!plan) throw PlanRefused(plan.problem().message);
    return *std::move(plan);
  }
  [[nodiscard]] v2::Plan plan_of_version_2() const {
    Result<v2::Plan> plan = v2::read_plan(text_of_plan());
    if (!plan) throw PlanRefused(plan.problem().message);
    return *std::move(plan);
  }

  [[nodiscard]] std::vector<Violation> violations() const {
    const Trace program = trace();
    return is_version_2(program) ? v2::validate(program, plan_of_version_2()) : validate(program, plan());
  }

  /// The trace with its plan, which is valid.
  [[nodiscard]] Program program() const {
    Trace original = trace();
    if (const std::vector<Violation> found = violations(); !found.empty()) {
      throw PlanRefused("it is not valid for this trace: " + found.front().message);
    }
    if (!is_version_2(original)) return {std::move(original), plan(), std::nullopt};
    Result<answers::AsVersion1> as_one = answers::as_version_1(original, plan_of_version_2());
    if (!as_one) throw PlanRefused(as_one.problem().message + ": such plans are for the command `swapmm` alone");
    return {std::move(as_one->trace), std::move(as_one->plan), as_one->used};
  }

  [[nodiscard]] std::string planner_name() const { return options.text("planner").value_or("best"); }

  /// Plans by a planner that the caller may end at any time.
  [[nodiscard]] PlannedProgram plan_by(const std::string& name, const Trace& trace, const Machine& machine) const {
    PlanningOptions limits = answers::options_watched(options.limit(), caller);
    limits.ways = options.ways();
    PlannedProgram made = needs_version_2(trace) ? with_ways_by(name, trace, machine, limits)
                                                 : by_copies_alone(name, trace, machine, limits);
    caller.require_going_on();
    return made;
  }

 private:
  [[nodiscard]] static PlannedProgram with_ways_by(const std::string& name, const Trace& trace, const Machine& machine,
                                                   const PlanningOptions& limits) {
    answers::PlannedWays made = answers::plan_ways(name, trace, machine, limits);
    std::ostringstream text;
    if (made.planned.plan) v2::write_plan(text, made.plan);
    return {std::move(made.planned), std::move(made.trace), text.str(), made.used};
  }
  [[nodiscard]] static PlannedProgram by_copies_alone(const std::string& name, const Trace& trace,
                                                      const Machine& machine, const PlanningOptions& limits) {
    const Result<NamedPlanner> planner = answers::planner_called(name);
    if (!planner) throw UsageError(planner.problem().message);
    PlannedProgram made{answers::run_planner(*planner, trace, machine, limits), trace, {}, std::nullopt};
    std::ostringstream text;
    if (made.planned.plan) write_plan(text, *made.planned.plan);
    made.text = text.str();
    return made;
  }
};

json::object answer_plan(const Asked& asked) {
  const Trace trace = asked.trace();
  const Machine machine = asked.options.machine(trace);
  const std::string planner = asked.planner_name();
  asked.caller.begin("planning with " + planner);
  const PlannedProgram made = asked.plan_by(planner, trace, machine);
  const Planned& planned = made.planned;
  if (!planned.plan) {
    const std::string text = "no plan: " + planned.plan.problem().message;
    const answers::Need need = answers::find_need(trace, machine);
    if (answers::shortfall_of(need, machine).value == 0 && need.above_allocation.empty()) throw UsageError(text);
    throw BundleTooLarge(text, {}, {need.liveness.largest_bundle, machine.device_budget, {}, {}});
  }
  json::object answer = answers::plan_as_json(made.trace, planned, planner);
  answer["plan"] = made.text;
  if (made.ways) answer["ways"] = to_json(*made.ways);
  return answer;
}

json::object answer_fit(const Asked& asked) {
  const Trace trace = asked.trace();
  const Machine machine = asked.options.machine(trace);
  const std::uint64_t top = asked.options.count("top", 5);
  const answers::Need need = answers::find_need(trace, machine);
  const std::string planner = asked.planner_name();
  asked.caller.begin("planning with " + planner);
  const PlannedProgram made = asked.plan_by(planner, trace, machine);
  const Planned& planned = made.planned;
  if (!planned.plan) return answers::misfit_as_json(trace, machine, need, planned.plan.problem().message, top);
  std::optional<answers::StallEnd> end;
  if (!asked.options.is_on("this_budget_only")) {
    const auto plan_on = [&](const Machine& other) { return asked.plan_by(planner, trace, other).planned; };
    end = answers::find_stall_end(trace, *planned.plan, need.liveness, plan_on, asked.caller);
  }
  const std::vector<Stall> stalls = find_stalls(made.trace, *planned.plan);
  // What the program needs is told of the program as it is, and all else of what the plan makes of it.
  json::object answer = answers::fit_as_json(trace, *planned.plan, need, planner, end, {}, top);
  answer["host_bytes"] = host_bytes(made.trace, *planned.plan).value;
  answer["stalls"] = to_json(stalls, top, made.trace, *planned.plan);
  answer["stalls_found"] = stalls.size();
  if (made.ways) answer["ways"] = to_json(*made.ways);
  return answer;
}

json::object answer_simulate(const Asked& asked) {
  const auto [trace, plan, ways] = asked.program();
  const answers::Disturbance disturbance = asked.options.disturbance();
  Simulation calm = simulate(trace, plan);
  std::vector<answers::Draw> draws = answers::disturbed(disturbance, trace, plan, calm, asked.caller);
  if (ways) {  // what the plan adds is no computation of the program
    const std::chrono::nanoseconds all = calm.compute;
    calm.compute = swapmm::planning::compute_time(asked.trace());
    const double own =
        all.count() == 0 ? 1 : static_cast<double>(calm.compute.count()) / static_cast<double>(all.count());
    for (answers::Draw& draw : draws)
      draw.compute = std::chrono::nanoseconds(std::llround(own * static_cast<double>(draw.compute.count())));
  }
  return answers::simulation_as_json(trace, plan, calm, disturbance, draws);
}

std::vector<Machine> machines_to_compare(const Options& options) {
  std::vector<Machine> machines;
  answers::MachineFigures figures = options.figures();
  const std::vector<std::uint64_t> bandwidths = options.quantities("bandwidths", answers::parse_bandwidth);
  if (bandwidths.empty()) machines.push_back(required(answers::links_with(figures), "machine"));
  for (const std::uint64_t bandwidth : bandwidths) {
    figures.bandwidth = bandwidth;
    machines.push_back(required(answers::links_with(figures), "machine"));
  }
  return machines;
}

json::object answer_compare(const Asked& asked) {
  const Trace trace = asked.trace();
  std::vector<std::string> names = asked.options.texts("planners");
  if (names.empty()) {
    for (const NamedPlanner& planner : planners()) names.push_back(planner.name);
  }
  std::vector<answers::Comparison> rows;
  const answers::PredictBy predict_by = [&](const std::string& name, const Trace& scaled, const Machine& machine) {
    return answers::predicted(asked.plan_by(name, scaled, machine).planned);
  };
  for (const double scale : asked.options.quantities("compute_scales", answers::parse_factor)) {
    const Trace scaled = required(answers::with_scaled_compute(trace, scale), "compute_scales");
    for (const Machine& links : machines_to_compare(asked.options)) {
      const Bytes peak = analyze_liveness(scaled, links.alignment).peak;
      for (const answers::Budget& budget : asked.options.quantities("budgets", answers::parse_budget)) {
        Machine machine = links;
        machine.device_budget = budget.of(peak);
        if (const Check check = check_machine(machine); !check) throw UsageError("budgets: " + check.problem().message);
        answers::compare_planners(names, predict_by, scaled, answers::setting_for(scaled, scale, machine, peak),
                                  asked.caller, rows);
      }
    }
  }
  return answers::comparison_as_json(rows);
}

json::object answer_check(const Asked& asked) { return answers::violations_as_json(asked.violations()); }

json::object answer_explain(const Asked& asked) {
  const auto [trace, plan, ways] = asked.program();
  json::object answer =
      answers::explanation_as_json(trace, plan, answers::prediction_of(trace, plan), find_stalls(trace, plan),
                                   find_absences(trace, plan), asked.options.count("top", 10));
  if (ways) answer["ways"] = to_json(*ways);
  return answer;
}

json::object answer_bound(const Asked& asked) {
  const Trace trace = asked.trace();
  const Machine machine = asked.options.machine(trace);
  const Result<std::chrono::nanoseconds> bound =
      needs_version_2(trace) ? v2::lower_bound(trace, v2::from_version_1(machine)) : lower_bound(trace, machine);
  if (!bound) {
    const answers::Need need = answers::find_need(trace, machine);
    throw BundleTooLarge("no bound: " + bound.problem().message, {},
                         {need.liveness.largest_bundle, machine.device_budget, {}, {}});
  }
  return {{"machine", to_json(machine)}, {"lower_bound_ns", bound->count()}};
}

json::object answer_picture(const Asked& asked) {
  const auto [trace, plan, ways] = asked.program();
  std::ostringstream text;
  write_svg(text, predicted_profile(trace, plan),
            {static_cast<int>(std::min<std::uint64_t>(asked.options.count("width", 1200), 100'000)), ""});
  return {{"svg", text.str()}};
}

json::object answer_need(const Asked& asked) {
  const Trace trace = asked.trace();
  const Bytes alignment = asked.options.quantity("alignment", quantity::parse_size).value_or(Bytes{256});
  if (alignment.value == 0 || alignment.value > limits::alignment_bytes) {
    throw UsageError("alignment: it is " + std::to_string(alignment.value) + ", and must be from 1 to 2^40");
  }
  const Liveness liveness = analyze_liveness(trace, alignment);
  return {{"digest", digest(trace)},
          {"peak_bytes", liveness.peak.value},
          {"largest_bundle_bytes", liveness.largest_bundle.value}};
}

json::object answer_planners(const Asked& /*asked*/) {
  json::array list;
  for (const NamedPlanner& planner : planners()) {
    list.push_back(json::object{{"name", planner.name}, {"summary", planner.summary}});
  }
  return {{"planners", std::move(list)}};
}

struct Question {
  std::string_view name;
  json::object (*answer)(const Asked&);
};
constexpr Question questions[] = {
    {"plan", answer_plan},   {"fit", answer_fit},          {"simulate", answer_simulate}, {"compare", answer_compare},
    {"check", answer_check}, {"explain", answer_explain},  {"bound", answer_bound},       {"picture", answer_picture},
    {"need", answer_need},   {"planners", answer_planners}};

std::string answer_to(std::string_view name, const Asked& asked) {
  for (const Question& question : questions) {
    if (question.name == name) return json::serialize(question.answer(asked));
  }
  throw UsageError("no question is called \"" + std::string(name) + '"');
}

}  // namespace
}  // namespace swapmm::python

swapmm_status swapmm_python_size(const char* text, uint64_t* bytes) {
  using namespace swapmm;  // NOLINT(*-build-using-namespace)
  return c_interface::guarded([&] {
    const Result<Bytes> size = quantity::parse_size(&c_interface::required(text, "the text"));
    if (!size) throw UsageError(size.problem().message);
    c_interface::required(bytes, "the pointer to the size") = size->value;
  });
}

swapmm_status swapmm_python_ask(const char* question, const char* options, const char* trace, const char* plan,
                                swapmm_python_progress progress, char** answer) {
  using namespace swapmm;  // NOLINT(*-build-using-namespace)
  return c_interface::guarded([&] {
    char*& made = c_interface::required(answer, "the pointer to the answer");
    made = nullptr;
    python::Caller caller(progress);
    const std::string text =
        python::answer_to(&c_interface::required(question, "the question"),
                          {python::Options(&c_interface::required(options, "the options")), trace, plan, caller});
    auto copy = std::make_unique<char[]>(text.size() + 1);  // as swapmm_text_destroy() takes it
    std::memcpy(copy.get(), text.c_str(), text.size() + 1);
    made = copy.release();
  });
}
