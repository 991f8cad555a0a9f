// SPDX-License-Identifier: Apache-2.0
// The parameters of the planners: each one is honoured, and whatever they are, plans are valid.
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <swapmm/ir/liveness.hpp>
#include <swapmm/plan/planners.hpp>
#include <swapmm/plan/problem/planning_case.hpp>
#include <swapmm/plan/search/best.hpp>
#include <swapmm/plan/validate.hpp>

#include "support/effort.hpp"
#include "support/random_trace.hpp"

namespace {

using namespace swapmm;

struct Case {
  Trace trace;
  Machine machine;
};

/// Layers of a network forth and back, with tensors of all sizes, at about half of what they need.
Case case_of(std::uint64_t seed, std::size_t least_layers = 16) {
  std::mt19937_64 random(seed);
  const std::size_t layers = least_layers + (least_layers / 2) * (seed % 3);
  Case made;
  Trace& trace = made.trace;
  const auto tensor = [&](TensorKind kind, std::uint64_t bytes) {
    trace.tensors.push_back({"t", Bytes{bytes}, kind});
    return id_at<TensorId>(trace.tensors.size() - 1);
  };
  const auto size = [&] { return 1 + 64 * test::below_or_equal(random, 40) * test::below_or_equal(random, 40); };
  const auto duration = [&] { return std::chrono::nanoseconds{5'000 + 100 * test::below_or_equal(random, 900)}; };
  std::vector<TensorId> weights;
  std::vector<TensorId> activations{tensor(TensorKind::input, 4'000)};
  for (std::size_t i = 0; i < layers; ++i) {
    weights.push_back(tensor(TensorKind::persistent, size()));
    activations.push_back(tensor(TensorKind::transient, size()));
    TraceOperation forward{i % 3 == 0 ? "conv" : "dense", duration(), {}, {}, {}};
    forward.reads = {weights[i], activations[i]};
    forward.writes = {activations[i + 1]};
    trace.operations.push_back(forward);
  }
  TensorId gradient = tensor(TensorKind::transient, size());
  trace.operations.push_back({"loss", duration(), {activations.back()}, {gradient}, {}});
  for (std::size_t i = layers; i-- > 0;) {
    const TensorId next = tensor(TensorKind::transient, size());
    TraceOperation backward{i % 3 == 0 ? "conv'" : "dense'", duration(), {}, {}, {}};
    backward.reads = {gradient};
    if (i % 3 != 0) backward.reads.push_back(activations[i]);
    backward.writes = {next};
    backward.updates = {weights[i]};
    trace.operations.push_back(backward);
    gradient = next;
  }
  REQUIRE(check_trace(trace));
  Machine& machine = made.machine;
  machine.alignment = Bytes{64};
  machine.h2d.bytes_per_second = machine.d2h.bytes_per_second = 1'000'000'000;
  const Liveness liveness = analyze_liveness(trace, machine.alignment);
  machine.device_budget = std::max(liveness.largest_bundle, Bytes{liveness.peak.value / 100 * (45 + 10 * (seed % 3))});
  return made;
}

Case usual_case(std::uint64_t seed) { return case_of(seed); }

/// Longer, and with links so slow that operations wait.
Case stalling_case(std::uint64_t seed, std::size_t least_layers) {
  Case made = case_of(seed, least_layers);
  made.machine.h2d.bytes_per_second = 400'000'000 + 100'000'000 * (seed % 4);
  made.machine.d2h.bytes_per_second = made.machine.h2d.bytes_per_second * (1 + seed % 3);
  for (TraceTensor& tensor : made.trace.tensors) {
    if (tensor.kind == TensorKind::input) tensor.bytes = Bytes{60'000};
  }
  return made;
}

Case stalling_case(std::uint64_t seed) { return stalling_case(seed, 30); }
Case short_stalling_case(std::uint64_t seed) { return stalling_case(seed, 14); }

Plan plan_of(const NamedPlanner& planner, const Case& one) {
  Result<Plan> plan = planner.make(one.trace, one.machine, {});
  REQUIRE_MESSAGE(plan, plan.problem().message);
  const std::vector<Violation> violations = validate(one.trace, *plan);
  CHECK_MESSAGE(violations.empty(), violations.front().message);
  CHECK(plan->predicted.lower_bound <= plan->predicted.iteration);
  return *std::move(plan);
}

struct Variant {
  std::string_view what;
  NamedPlanner planner;
};

/// Under sanitizers these comparisons take minutes, and find nothing that the other builds do not.
bool is_too_slow() {
  if (!swapmm::test::is_slow) return false;
  MESSAGE("not compared under sanitizers");
  return true;
}

/// Each variant makes another plan than `usual` for one of some cases, at least.
void check_that_all_matter(const NamedPlanner& usual, const std::vector<Variant>& variants,
                           Case (*make_case)(std::uint64_t) = usual_case) {
  constexpr std::uint64_t cases = 40;
  if (is_too_slow()) return;
  std::vector<std::optional<Plan>> usual_plans(cases);
  for (const Variant& variant : variants) {
    CAPTURE(variant.what);
    bool differs = false;
    for (std::uint64_t seed = 0; seed < cases && !differs; ++seed) {
      const Case one = make_case(seed);
      if (!usual_plans[seed]) usual_plans[seed] = plan_of(usual, one);
      const Plan plan = plan_of(variant.planner, one);
      differs = !(plan == *usual_plans[seed]);
    }
    CHECK(differs);
  }
}

template <class Options, class Make>
auto variants_by(Make make, Options usual = {}) {
  return [make, usual](std::string_view what, auto&& change) {
    Options options = usual;
    change(options);
    return Variant{what, make(options)};
  };
}

}  // namespace

TEST_CASE("a planner with its default parameters makes the plans that its name does") {
  const std::vector<NamedPlanner> made{per_operation_planner(),
                                       on_demand_planner(),
                                       belady_planner(),
                                       vdnn_planner(),
                                       vdnn_planner({.offload = VdnnOffload::convolutions}),
                                       slack_planner(),
                                       excess_planner(),
                                       excess_overlap_planner(),
                                       best_planner()};
  REQUIRE(made.size() == planners().size());
  const Case one = case_of(1);
  for (std::size_t i = 0; i < made.size(); ++i) {
    CHECK(made[i].name == planners()[i].name);
    CHECK(made[i].summary == planners()[i].summary);
    const Plan plan = plan_of(made[i], one);
    CHECK(plan.planner == made[i].name);
    if (swapmm::test::is_slow) continue;  // planned above
    CHECK(plan == *make_plan(made[i].name, one.trace, one.machine));
  }
}

TEST_CASE("each parameter of on-demand, belady, vDNN and slack matters") {
  const auto demand = variants_by<OnDemandOptions>(on_demand_planner);
  check_that_all_matter(
      on_demand_planner(),
      {
          demand("settling runs", [](auto& o) { o.settling_runs = 0; }),
          demand("attempts", [](auto& o) { o.fitting.attempts = 0; }),
          demand("least step", [](auto& o) { o.fitting.least_step = 1.5; }),
          demand("boldness", [](auto& o) { o.fitting.boldness = 8; }),
          demand("packing", [](auto& o) { o.fitting.packing.ejection_steps = 0; }),
          demand("no bound", [](auto& o) { o.bound.usual.rounds = 0; }),
          demand("the bound of long traces", [](auto& o) { o.bound.long_trace = 0, o.bound.long_traces.rounds = 0; }),
      });
  const auto vdnn = variants_by<VdnnOptions>(vdnn_planner);
  check_that_all_matter(vdnn_planner(),
                        {
                            vdnn("offload", [](auto& o) { o.offload = VdnnOffload::convolutions; }),
                            vdnn("convolution", [](auto& o) { o.convolution = "DENSE"; }),
                            vdnn("prefetch", [](auto& o) { o.prefetch = false; }),
                            vdnn("prefetch past convolutions", [](auto& o) { o.prefetch_past_convolutions = true; }),
                            vdnn("attempts", [](auto& o) { o.fitting.attempts = 0; }),
                        });
  const auto slack = variants_by<SlackOptions>(slack_planner);
  check_that_all_matter(slack_planner(), {
                                             slack("least part", [](auto& o) { o.least_part = 8; }),
                                             slack("any size", [](auto& o) { o.least_part = 0; }),
                                             slack("least bytes", [](auto& o) { o.least_bytes = Bytes{1U << 20U}; }),
                                             slack("least slack", [](auto& o) { o.least_slack = 0; }),
                                             slack("more slack", [](auto& o) { o.least_slack = 3; }),
                                             slack("rounds", [](auto& o) { o.rounds = 1; }),
                                             slack("needs lack of room", [](auto& o) { o.needs_lack_of_room = false; }),
                                             slack("attempts", [](auto& o) { o.fitting.attempts = 0; }),
                                         });
}

TEST_CASE("each parameter of excess matters") {
  const auto excess = variants_by<ExcessOptions>(excess_planner);
  check_that_all_matter(excess_planner(), {
                                              excess("no rounds", [](auto& o) { o.rounds = 0; }),
                                              excess("one round", [](auto& o) { o.rounds = 1; }),
                                              excess("attempts", [](auto& o) { o.fitting.attempts = 0; }),
                                          });
}

TEST_CASE("each technique of excess-overlap matters") {
  ExcessOverlapOptions usual;
  usual.trades.most_tries = 40;  // enough to see, and soon done
  const auto variant = variants_by<ExcessOverlapOptions>(excess_overlap_planner, usual);
  check_that_all_matter(excess_overlap_planner(usual),
                        {
                            variant("stay shares", [](auto& o) { o.stay_shares = {0.0}; }),
                            variant("rounds", [](auto& o) { o.rounds = 0; }),
                            variant("hiding rounds", [](auto& o) { o.hiding.rounds = 0; }),
                            variant("write-backs", [](auto& o) { o.hiding.write_backs = false; }),
                            variant("swap-ins", [](auto& o) { o.hiding.swap_ins = false; }),
                            variant("early starts", [](auto& o) { o.hiding.early_starts = false; }),
                            variant("attempts", [](auto& o) { o.fitting.attempts = 0; }),
                            variant("trades", [](auto& o) { o.trades.most_tries = 0; }),
                            variant("tries of trades", [](auto& o) { o.trades.work = 0; }),
                            variant("patience of trades", [](auto& o) { o.trades.patience = 0; }),
                        });
  // Where nothing is tried, Belady's plan takes the place of the one per operation.
  const auto without = [](bool belady) {
    return excess_overlap_planner({.stay_shares = {}, .belady_if_nothing_packs = belady, .trades = {.most_tries = 0}});
  };
  const Case one = case_of(0);
  CHECK(plan_of(without(true), one).predicted.iteration < plan_of(without(false), one).predicted.iteration);
}

TEST_CASE("each technique of best matters") {
  BestOptions usual;
  usual.others.on = false;  // their plans hide what becomes of its own
  usual.annealing.most_tries = 60;
  usual.bound.usual = {.groups = 20, .rounds = 2};
  usual.places.looks = 1'000'000;
  usual.early_returns.most_tries = 4;
  usual.spared_links.parts = {};
  usual.parts.steps = 200;
  usual.parts.remembers_places = true;  // with it, few cases show what each of the others does
  const auto variant = variants_by<BestOptions>(best_planner, usual);
  check_that_all_matter(
      best_planner(usual),
      {
          variant("other planners", [](auto& o) { o.others.on = true; }),
          variant("bound", [](auto& o) { o.bound.usual.rounds = 1, o.bound.usual.groups = 4; }),
          variant("rounding thresholds", [](auto& o) { o.rounding.thresholds = {0.1}; }),
          variant("rounding passes", [](auto& o) { o.rounding.passes = 1, o.annealing.most_tries = 0; }),
          variant("longer first", [](auto& o) { o.rounding.longer_first = 10; }),
          variant("annealing", [](auto& o) { o.annealing.most_tries = 0; }),
          variant("tries for the work", [](auto& o) { o.annealing.work = 0; }),
          variant("tries per absence", [](auto& o) { o.annealing.tries_per_absence = 0; }),
          variant("warmth", [](auto& o) { o.annealing.warmth = 0; }),
          variant("relaxed weight", [](auto& o) { o.annealing.relaxed_weight = 0; }),
          variant("filling room", [](auto& o) { o.annealing.fills_one_in = 0; }),
          variant("packings", [](auto& o) { o.parts.packings = 1; }),
          variant("steps of the part", [](auto& o) { o.parts.step = 0; }),
          variant("precision", [](auto& o) { o.parts.precision = 2; }),
          variant("packing steps", [](auto& o) { o.parts.steps = 1; }),
          variant("tries of parts", [](auto& o) { o.parts.tries_divisor = 1000; }),
          variant("time in hand", [](auto& o) { o.parts.time_in_hand = 2; }),
          variant("remembered places", [](auto& o) { o.parts.remembers_places = false; }),
          variant("squeaky wheel", [](auto& o) { o.parts.packing.squeaky_wheel = o.parts.packing.ejection = false; }),
          variant("filling", [](auto& o) { o.places.looks = 0; }),
          variant("moves", [](auto& o) { o.places.moves = 0; }),
          variant("rounds of filling", [](auto& o) { o.places.rounds = 0; }),
          variant("time in hand of places", [](auto& o) { o.places.time_in_hand = 3; }),
          variant("least part to move for", [](auto& o) { o.places.least_part = 5; }),
          variant("move cost factor", [](auto& o) { o.places.move_cost_factor = 10; }),
          variant("near the best plan", [](auto& o) { o.near_best.on = false; }),
          variant("least gain near the best", [](auto& o) { o.near_best.least_gain = 1; }),
          variant("failures near the best", [](auto& o) { o.near_best.failures = 1; }),
          variant("early returns", [](auto& o) { o.early_returns.most_tries = 0; }),
          variant("times in hand of early returns", [](auto& o) { o.early_returns.times_in_hand = {}; }),
          variant("fewer bytes", [](auto& o) { o.spared_bytes.tries = 0; }),
          variant("tries for fewer bytes", [](auto& o) { o.spared_bytes.tries = 1; }),
          variant("packings for fewer bytes", [](auto& o) { o.spared_bytes.packings = 0; }),
          variant("rounds", [](auto& o) { o.rounds = 1; }),
          variant("no rounds", [](auto& o) { o.rounds = 0; }),
          variant("doublings", [](auto& o) { o.doublings = 0; }),
          variant("few rounds", [](auto& o) { o.few_rounds_above = 0; }),
          variant("large traces", [](auto& o) { o.others.small = 0, o.others.large = 0; }),
      },
      short_stalling_case);
}

TEST_CASE("best saves the links where it reaches the bound, and takes Belady's plan where nothing is tried") {
  Case roomy = case_of(0);
  roomy.machine.h2d.bytes_per_second = roomy.machine.d2h.bytes_per_second = 4'000'000'000;
  bool differs = false;
  for (std::uint64_t seed = 0; seed < 6 && !differs; ++seed) {
    Case one = case_of(seed);
    one.machine.h2d = one.machine.d2h = roomy.machine.h2d;
    const Plan plan = plan_of(best_planner({.spared_links = {.parts = {}}, .others = {.on = false}}), one);
    differs = !(plan == plan_of(best_planner({.others = {.on = false}}), one));
  }
  CHECK(differs);

  const auto without = [](bool belady) {
    return best_planner({.rounding = {.thresholds = {}}, .others = {.on = false}, .belady_if_nothing_packs = belady});
  };
  const Case one = case_of(1);
  CHECK(plan_of(without(true), one).predicted.iteration < plan_of(without(false), one).predicted.iteration);
}

TEST_CASE("a plan for slower links adds copies for as much as it gains there") {
  int dear = 0;
  int taken = 0;
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    Case one = case_of(seed);
    one.machine.h2d.bytes_per_second = one.machine.d2h.bytes_per_second = 4'000'000'000;
    const auto plan_at = [&](std::vector<double> parts, double most_copies) {
      return plan_of(best_planner({.spared_links = {.parts = std::move(parts), .most_copies = most_copies},
                                   .others = {.on = false}}),
                     one);
    };
    const Plan usual = plan_at({}, 0);
    // Bytes that are added at 2 bytes a ns, and what is gained for them.
    const auto added_and_gained = [&](Plan plan) {
      Plan before = usual;
      plan.machine.h2d.bytes_per_second = plan.machine.d2h.bytes_per_second = 2'000'000'000;
      before.machine = plan.machine;
      const Simulation now = simulate(one.trace, plan);
      const Simulation was = simulate(one.trace, before);
      const auto bytes = [](const Simulation& of) { return static_cast<double>(of.h2d.value + of.d2h.value); };
      return std::pair{(bytes(now) - bytes(was)) / 2, static_cast<double>((was.iteration - now.iteration).count())};
    };
    for (const double most : {0.0, 0.2, 1e9}) {
      const Plan plan = plan_at({0.5}, most);
      if (plan == usual) continue;
      const auto [added, gained] = added_and_gained(plan);
      CHECK(gained > 0);
      CHECK(added <= most * gained);
      if (most == 0.2) ++taken;
      if (added > 0.2 * gained) ++dear;
    }
  }
  CHECK(taken > 0);
  CHECK(dear > 0);
}

TEST_CASE("each technique of the bound matters, and any effort gives a bound") {
  const auto bound_of = [](const Case& one, const BoundEffort& effort) {
    const auto bound = lower_bound(one.trace, one.machine, effort);
    REQUIRE(bound);
    return *bound;
  };
  const auto effort = [](auto&& change) {
    BoundEffort made;
    change(made);
    return made;
  };
  const std::vector<std::pair<std::string_view, BoundEffort>> variants{
      {"rounds", effort([](auto& e) { e.rounds = 1; })},
      {"no rounds", effort([](auto& e) { e.rounds = 0; })},
      {"groups", effort([](auto& e) { e.groups = 8; })},
      {"first groups", effort([](auto& e) { e.first_groups = 4; })},
      {"options", effort([](auto& e) { e.options = 100; })},
      {"overrun links", effort([](auto& e) { e.overrun_links = 0; })},
      {"full groups", effort([](auto& e) { e.full_groups = 0; })},
      {"changing prices", effort([](auto& e) { e.cuts_changing_prices = false; })},
      {"stalls before inputs", effort([](auto& e) { e.input_stalls = 0; })},
      {"classes", effort([](auto& e) { e.classes = 1; })},
      {"classes of long traces", effort([](auto& e) { e.long_trace = 10, e.classes_of_long_traces = 1; })},
      {"least gain", effort([](auto& e) { e.least_gain = 1; })},
  };
  constexpr std::uint64_t cases = 6;
  if (is_too_slow()) return;
  std::vector<std::chrono::nanoseconds> usual;
  std::vector<std::chrono::nanoseconds> reached;
  for (std::uint64_t seed = 0; seed < cases; ++seed) {
    const Case one = stalling_case(seed);
    usual.push_back(bound_of(one, {}));
    reached.push_back(make_plan("slack", one.trace, one.machine)->predicted.iteration);
  }
  for (const auto& [what, other] : variants) {
    const std::string_view variant = what;  // clang 14 captures no structured bindings
    CAPTURE(variant);
    bool differs = false;
    for (std::uint64_t seed = 0; seed < cases && !differs; ++seed) {
      const auto bound = bound_of(stalling_case(seed), other);
      differs = differs || bound != usual[seed];
      CHECK(bound <= reached[seed]);
    }
    CHECK(differs);
  }
  // Giving the time of stalls to the busier link seldom decides; it only ever raises the bound.
  for (std::uint64_t seed = 0; seed < cases; ++seed) {
    CHECK(bound_of(stalling_case(seed), effort([](auto& e) { e.stall_rounds = 0, e.rounds = 1; })) <=
          bound_of(stalling_case(seed), effort([](auto& e) { e.rounds = 1; })));
  }
  // The other cuts lie around an operation that holds too much, too.
  const auto without_cuts = [&](bool room) {
    return effort([room](auto& e) {
      e.cuts_overrun_room = room;
      e.cuts_changing_prices = false;
      e.overrun_links = e.full_groups = 0;
    });
  };
  bool room_matters = false;
  for (std::uint64_t seed = 0; seed < cases && !room_matters; ++seed) {
    const Case one = stalling_case(seed);
    room_matters = room_matters || bound_of(one, without_cuts(true)) != bound_of(one, without_cuts(false));
  }
  CHECK(room_matters);
  bool differs = false;
  for (std::uint64_t seed = 0; seed < cases; seed += 3) {
    const Case tiny = case_of(seed, 8);
    const auto grouped = bound_of(tiny, effort([](auto& e) { e.exact_operations = 0; }));
    const auto exact = bound_of(tiny, {});
    CHECK(grouped <= exact + exact / 1000);
    differs = differs || grouped != exact;
  }
  CHECK(differs);
}

TEST_CASE(
    "in traces of medium size, other planners run once, at the end of the rounds or when these gain nothing more") {
  const Case one = case_of(1);
  const Result<planning::PlanningCase> planning = planning::make_planning_case(one.trace, one.machine);
  REQUIRE(planning);
  std::size_t asked = 0;
  const auto count = [&](const Trace&, const Machine&, const PlanningOptions&) {
    ++asked;
    return Result<Plan>(Problem{"no plan"});
  };
  const std::vector<NamedPlanner> others{{"counts", count, "makes no plan"}};
  const auto asked_with = [&](const BestOptions& options, const PlanningOptions& limits) {
    asked = 0;
    REQUIRE(planning::build_best_plan(*planning, options, limits, others));
    return asked;
  };
  const auto options = [](std::size_t small, std::size_t large, int round, double least_gain) {
    BestOptions made;
    made.others = {.small = small, .large = large, .round = round, .least_gain = least_gain};
    made.near_bound = 0;  // only the exact bound ends it
    return made;
  };
  CHECK(asked_with(options(10'000, 10'000, 2, 1), {}) == 1);  // a small trace
  CHECK(asked_with(options(0, 0, 0, 1), {}) == 0);            // a large one
  CHECK(asked_with(options(0, 10'000, 2, -1), {}) == 1);      // after the two rounds without a clock
  CHECK(asked_with(options(0, 10'000, 3, 1), {}) == 0);
  for (const double least_gain : {1.0, -1.0}) {  // each round gains less, or none does
    int questions = 0;
    PlanningOptions limits;
    limits.go_on = [&](const PlanningProgress&) { return ++questions < 2'000; };
    CHECK(asked_with(options(0, 10'000, 1, least_gain), limits) == (least_gain > 0 ? 1 : 0));
    CHECK(questions >= 2'000);
  }
}

TEST_CASE("parameters out of all proportion make valid plans, or none") {
  const Case one = case_of(3, 8);
  BestOptions nothing;
  nothing.rounds = -1;
  nothing.annealing = {.work = 0, .least_tries = 0, .most_tries = 0, .tries_per_absence = 0};
  nothing.parts = {.packings = 0, .later_packings = 0, .steps = 0, .quick_steps = 0, .tries_divisor = 0};
  nothing.near_best.tries_divisor = 0;
  nothing.near_best.packing_divisor = 0;
  nothing.near_bound = 0;
  nothing.rounding.passes = 0;
  nothing.bound.usual = {.groups = 0, .options = 0, .classes = 0};
  (void)plan_of(best_planner(nothing), one);
  BestOptions much;
  much.doublings = 1000;
  much.parts.packings = swapmm::test::effort(20, 10);
  much.rounds = swapmm::test::effort(3, 3);
  much.others.on = false;
  (void)plan_of(best_planner(much), one);
  for (const double odd : {-1.0, 0.0, 1.0, 1e300, std::numeric_limits<double>::quiet_NaN()}) {
    BestOptions options;
    options.others = {.small = 0, .round = -1, .least_gain = odd};  // as in larger traces
    options.parts.step = odd;
    options.parts.quick_part = std::clamp(odd, 0.01, 2.0);
    options.near_best.least_gain = odd;
    options.near_best.failures = odd > 0 ? 2 : -1;
    (void)plan_of(best_planner(options), one);
  }
  (void)plan_of(slack_planner({.least_part = std::numeric_limits<std::uint64_t>::max()}), one);
  (void)plan_of(vdnn_planner({.convolution = ""}), one);
  (void)plan_of(on_demand_planner({.settling_runs = -3, .fitting = {.attempts = -1}}), one);
  (void)plan_of(excess_overlap_planner({.stay_shares = {-1.0, 5.0}, .rounds = 100, .hiding = {.rounds = -1}}), one);
}
