// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/v2/joint/joint_search.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <swapmm/plan/problem/part_of_time.hpp>
#include <swapmm/plan/problem/planning_case.hpp>
#include <swapmm/plan/v2/joint/device_plans.hpp>
#include <swapmm/plan/v2/schedule/prediction.hpp>
#include <swapmm/plan/v2/simulate.hpp>
#include <swapmm/plan/v2/spread/spread.hpp>
#include <swapmm/plan/v2/validate.hpp>

namespace swapmm::v2::planning {
namespace {

/// How often `best` may ask whether to go on when it plans a device alone. It asks every few milliseconds.
constexpr int asks_at_first = 250;
/// With a time limit, planning the first time ends after this part of it, and the devices' plans take no more than
/// this. A bound and what the search still finds must follow.
constexpr double first_part = 0.6;
constexpr double first_part_of_devices = 0.45;
/// Changes that are tried in a row: so many divided by the operations, within these limits.
constexpr std::size_t work_of_changes = 130'000;
constexpr std::size_t fewest_changes = 5;
constexpr std::size_t most_changes = 200;
/// Elements that are simulated for an estimate, if that is more than the fewest iterations.
constexpr std::size_t elements_of_estimate = 20'000;
/// The time of what is no plan.
constexpr double no_time_yet = 1e300;

/// What a joint plan is made from.
struct Choice {
  std::vector<std::size_t> plans;  ///< of each part: a position in DevicePlans
  Turns turns;

  friend bool operator==(const Choice&, const Choice&) = default;
};

constexpr std::size_t index_of(Turns::Who who) { return static_cast<std::size_t>(who); }

class JointSearch {
 public:
  JointSearch(const SpreadCase& all, const PlanningOptions& options, const LazyBound& ask_bound, Turns::Who most)
      : all_(all), options_(options), ask_bound_(ask_bound), most_(most), devices_(all) {
    for (std::size_t part = 0; part < all.parts.size(); ++part) {
      evenly_.push_back(static_cast<double>(part) / static_cast<double>(all.parts.size() - 1));
      lower_bound_ = std::max(lower_bound_, swapmm::planning::compute_time(all.parts[part].trace));
    }
  }

  Result<JointPlan> run(std::span<const swapmm::Plan* const> known) {
    const std::vector<double> speeds = speeds_to_try();
    begin_with(known);
    // First what each device has alone, and what it has if all copy.
    until_ = first_part;
    const std::size_t first_speeds = std::min<std::size_t>(speeds.size(), 2);
    for (std::size_t s = 0; s < first_speeds; ++s) {
      if (best_ && is_over()) break;
      search_devices(speeds[s], 1, first_part_of_devices, first_speeds - s);
    }
    try_turns();
    if (!best_) return problem_.value_or(Problem{"no plan was found"});
    until_ = 1;
    if (!is_optimal()) {
      lower_bound_ = std::max(lower_bound_, ask_bound_(std::chrono::nanoseconds{std::llround(merit_.first)}));
    }
    try_turns();
    change_at_random();
    if (!is_over()) deepen(2);
    for (std::size_t s = first_speeds; s < speeds.size() && !is_over(); ++s) {
      search_devices(speeds[s], 1, 1, speeds.size() - s + 1);
      try_turns();
    }
    change_at_random();
    if (!v1::is_by_clock(options_)) {
      predict(all_.trace, best_->plan);  // what was judged is an estimate
      if (best_->plan.predicted.iteration > lower_bound_ && !is_over()) plan_alone();
      return finished();
    }
    if (!is_over()) plan_alone();
    for (int rounds = 3; !is_over(); ++rounds) deepen(rounds);
    return finished();
  }

 private:
  /// The best choice, or plans for each device alone with all of the speed if these turn out to be faster.
  JointPlan finished() {
    predict(all_.trace, best_->plan);
    if (alone_ && !(*alone_ == best_choice_)) {
      std::optional<SpreadPlan> alone = plan_for(*alone_);
      if (alone) predict(all_.trace, alone->plan);
      if (alone && alone->plan.predicted.iteration < best_->plan.predicted.iteration &&
          validate(all_.trace, alone->plan).empty()) {
        return with_parts(*alone_, *std::move(alone));
      }
    }
    return with_parts(best_choice_, *std::move(best_));
  }

  [[nodiscard]] JointPlan with_parts(const Choice& choice, SpreadPlan plan) const {
    JointPlan result{std::move(plan.plan), {}, std::move(plan.origins)};
    for (std::size_t part = 0; part < parts(); ++part) result.parts.push_back(plan_of(choice, part).plan);
    return result;
  }

  [[nodiscard]] std::size_t parts() const { return all_.parts.size(); }
  [[nodiscard]] bool is_optimal() const { return best_ && merit_.first <= static_cast<double>(lower_bound_.count()); }
  [[nodiscard]] PlanningProgress progress() const {
    return {std::chrono::nanoseconds{best_ ? std::llround(merit_.first) : 0}, lower_bound_};
  }
  [[nodiscard]] bool is_over() const { return is_over(until_); }
  [[nodiscard]] bool is_over(double until) const {
    if (is_optimal()) return true;
    PlanningProgress progress = this->progress();
    progress.part = until;
    return options_.go_on && !options_.go_on(progress);
  }
  /// The part of the time that has passed, as far as `go_on` tells.
  [[nodiscard]] double passed() const {
    double least = 0;
    double most = 1;
    constexpr int halvings = 8;
    for (int i = 0; i < halvings; ++i) {
      const double middle = (least + most) / 2;
      (is_over(middle) ? least : most) = middle;
    }
    return least;
  }

  /// For a search for one device: it may ask so often, and must end when the whole search must.
  [[nodiscard]] PlanningOptions limited(int asks) const {
    PlanningOptions shorter;
    shorter.go_on = [this, asks, asked = 0](const PlanningProgress&) mutable {
      return ++asked < asks && (!options_.go_on || options_.go_on(progress()));
    };
    return shorter;
  }

  /// From all of the links' speed down to half of what each device has if all of them copy.
  [[nodiscard]] std::vector<double> speeds_to_try() const {
    double least = shared_part(all_.machine);
    for (const std::vector<Store>& stores : all_.stores) {
      double sum = 0;
      double slowest = 0;
      for (const Store& store : stores) {
        const auto rate = static_cast<double>(all_.machine.links[index(store.in)].bytes_per_second);
        sum += rate;
        slowest = slowest == 0 ? rate : std::min(slowest, rate);
      }
      if (sum > 0) least = std::min(least, slowest / sum);
    }
    if (least > 0.999) return {1};
    return {1, least, std::sqrt(least), least / 2};
  }

  [[nodiscard]] bool has_latest() const {
    return std::ranges::all_of(latest_, [](const auto& plan) { return plan.has_value(); });
  }

  /// Plans that are known already. If each device has one, all of them side by side are the first choice.
  void begin_with(std::span<const swapmm::Plan* const> known) {
    Choice choice{{}, {Turns::Who::nobody, 0, 1, evenly_}};
    for (std::size_t part = 0; part < known.size(); ++part) {
      const std::optional<std::size_t> plan =
          known[part] != nullptr ? devices_.know(part, *known[part]) : std::optional<std::size_t>{};
      if (plan) choice.plans.push_back(*plan);
    }
    if (choice.plans.size() == parts()) add_uniform(std::move(choice), 1);
  }

  /// Searches on for all kinds of devices, and judges what all of them become. Until this part of the time, it is the
  /// first of so many such searches, which get equal parts of what is left.
  void search_devices(double speed, int rounds, double until, std::size_t searches) {
    latest_.assign(devices_.kinds(), std::nullopt);
    for (std::size_t kind = 0; kind < devices_.kinds(); ++kind) {
      const double now = options_.go_on ? passed() : 0;
      const std::size_t to_come = searches * devices_.kinds() - kind;
      const double left = std::max(until - now, 0.0);
      const double end = now + std::min(left, devices_.patience(kind, speed) * left / static_cast<double>(to_come));
      keep_latest(kind, devices_.search(
                            kind, speed, rounds, [this](double part) { return !is_over(part); }, end));
    }
    judge_uniform(speed);
  }

  /// Plans for each device as if it were alone.
  void plan_alone() {
    latest_.assign(devices_.kinds(), std::nullopt);
    for (std::size_t kind = 0; kind < devices_.kinds(); ++kind) {
      keep_latest(kind, devices_.plan_alone(kind, v1::is_by_clock(options_) ? limited(asks_at_first) : options_));
    }
    judge_uniform(1);
    judge_latest(1);
    try_turns();
    change_at_random();
  }

  void keep_latest(std::size_t kind, const Result<std::size_t>& made) {
    if (made) {
      latest_[kind] = *made;
    } else {
      problem_ = made.problem();
    }
  }

  /// All parts with the plans that were made last.
  void judge_uniform(double speed) {
    if (!has_latest()) return;
    Choice choice{{}, {Turns::Who::nobody, 0, 1, evenly_}};
    for (std::size_t part = 0; part < parts(); ++part) choice.plans.push_back(*latest_[devices_.kind(part)]);
    add_uniform(std::move(choice), speed);
  }

  void add_uniform(Choice choice, double speed) {
    judge(choice);
    if (std::ranges::find(uniform_, choice, &UniformChoice::choice) == uniform_.end()) uniform_.push_back({choice, 0});
    if (speed == 1) alone_ = std::move(choice);
  }

  /// The best choice, with the plans that were made last for all parts, and for those with this speed.
  void judge_latest(double speed) {
    if (!has_latest()) return;
    for (const bool all : {true, false}) {
      if (is_over()) return;
      Choice choice = best_choice_;
      for (std::size_t part = 0; part < parts(); ++part) {
        if (all || plan_of(choice, part).speed == speed) choice.plans[part] = *latest_[devices_.kind(part)];
      }
      judge(choice);
    }
  }

  /// Estimates what the choice takes, and keeps it if it is the best.
  double judge(const Choice& choice) {
    std::optional<SpreadPlan> candidate = plan_for(choice);
    if (!candidate) return no_time_yet;
    const Plan& plan = candidate->plan;
    const auto merit = std::pair(estimate(plan), bytes_of(plan));
    if (best_ && merit >= merit_) return merit.first;
    if (const auto violations = validate(all_.trace, plan); !violations.empty()) {
      // Turns may contradict waits for places in stores that devices share.
      if (choice.turns.who == Turns::Who::nobody) {
        problem_ = Problem{"the plan is not valid, which is a mistake of swapmm: " + violations.front().message};
      }
      return no_time_yet;
    }
    best_ = std::move(candidate);
    best_choice_ = choice;
    merit_ = merit;
    return merit.first;
  }

  /// The plan of the choice, without a prediction.
  [[nodiscard]] std::optional<SpreadPlan> plan_for(const Choice& choice) {
    if (!spread_ || spread_of_ != choice.plans) {
      std::vector<const swapmm::Plan*> plans;
      for (std::size_t part = 0; part < parts(); ++part) plans.push_back(&plan_of(choice, part).plan);
      Result<SpreadPlan> spread = spread_plans(all_, plans);
      if (!spread) {
        problem_ = spread.problem();
        return std::nullopt;
      }
      spread_ = *std::move(spread);
      spread_of_ = choice.plans;
    }
    SpreadPlan candidate = *spread_;
    std::vector<const SoloTimes*> solo;
    for (std::size_t part = 0; part < parts(); ++part) solo.push_back(&plan_of(choice, part).solo);
    take_turns(candidate, solo, choice.turns);
    return candidate;
  }

  /// The time of an iteration, nanoseconds, after the first ones. The long run may have to be simulated for hundreds of
  /// iterations before it repeats itself.
  [[nodiscard]] double estimate(const Plan& plan) const {
    const std::size_t elements = all_.trace.operations.size() + plan.commands.size();
    const std::size_t measured = std::clamp<std::size_t>(elements_of_estimate / (elements + 1), 2, 8);
    constexpr std::size_t skipped = 2;
    const std::vector<std::chrono::nanoseconds> ends = iteration_ends(all_.trace, plan, skipped + measured);
    return static_cast<double>((ends.back() - ends[skipped - 1]).count()) / static_cast<double>(measured);
  }

  [[nodiscard]] const DevicePlan& plan_of(const Choice& choice, std::size_t part) const {
    return devices_.of_kind(devices_.kind(part))[choice.plans[part]];
  }
  [[nodiscard]] Bytes bytes_of(const Plan& plan) const {
    Bytes sum;
    for (const Command& command : plan.commands) {
      if (command.kind == CommandKind::copy) sum += all_.trace.tensors[index(command.tensor)].bytes;
    }
    return sum;
  }

  /// Turns in several windows, for the choices with one speed for all. Those for which there is no time now stay for
  /// the next call.
  void try_turns() {
    if (parts() < 2 || all_.machine.capacities.empty() || most_ == Turns::Who::nobody) return;
    constexpr std::array overlaps{1.0, 0.0, 0.5, 0.25, 0.75};
    for (std::size_t o = 0; o < overlaps.size(); ++o) {
      for (UniformChoice& uniform : uniform_) {
        // In the order of the windows, so that each kind is tried for all choices first.
        for (; uniform.tried < 2 * (o + 1); ++uniform.tried) {
          const Turns::Who who = uniform.tried % 2 == 0 ? Turns::Who::all : Turns::Who::later;
          if (who > most_) continue;
          if (is_over()) return;
          Choice with_turns = uniform.choice;
          with_turns.turns = {who, merit_.first, overlaps[o], evenly_};
          judge(with_turns);
        }
      }
    }
  }

  /// Changes one thing of the best choice at a time.
  void change_at_random() {
    if (parts() < 2) return;
    const std::size_t most =
        std::clamp(work_of_changes / (all_.trace.operations.size() + 1), fewest_changes, most_changes);
    for (std::size_t i = 0; i < most && !is_over(); ++i) judge(changed(best_choice_));
  }

  [[nodiscard]] Choice changed(Choice choice) {
    const auto below = [this](std::size_t count) { return static_cast<std::size_t>(random_() % count); };
    const std::size_t part = below(parts());
    std::vector<double>& positions = choice.turns.positions;
    switch (below(6)) {
      case 0: choice.plans[part] = below(devices_.of_kind(devices_.kind(part)).size()); break;
      case 1: {
        const std::size_t kind = devices_.kind(part);
        const std::size_t plan = below(devices_.of_kind(kind).size());
        for (std::size_t other = 0; other < parts(); ++other) {
          if (devices_.kind(other) == kind) choice.plans[other] = plan;
        }
        break;
      }
      case 2: {
        constexpr std::array all{Turns::Who::nobody, Turns::Who::later, Turns::Who::all};
        choice.turns.who = all[below(index_of(most_) + 1)];
        break;
      }
      case 3: choice.turns.overlap = static_cast<double>(below(17)) / 16; break;
      case 4: std::swap(positions[part], positions[below(parts())]); break;
      case 5: positions[part] = static_cast<double>(below(4 * parts())) / static_cast<double>(4 * parts() - 1); break;
      default: break;
    }
    if (most_ != Turns::Who::all) std::ranges::sort(positions);  // devices that come later have later windows
    choice.turns.period = merit_.first * (1 - static_cast<double>(below(4)) / 32);
    return choice;
  }

  /// Searches on for devices alone: at the speeds of the best choice, and at full speed.
  void deepen(int rounds) {
    std::vector<double> wanted{1};
    for (std::size_t part = 0; part < parts(); ++part) wanted.push_back(plan_of(best_choice_, part).speed);
    std::ranges::sort(wanted, std::greater{});
    wanted.erase(std::unique(wanted.begin(), wanted.end()), wanted.end());
    for (std::size_t w = 0; w < wanted.size(); ++w) {
      if (is_over()) return;
      search_devices(wanted[w], rounds, 1, wanted.size() - w + 1);  // turns come after them
      judge_latest(wanted[w]);
    }
    try_turns();
    change_at_random();
  }

  const SpreadCase& all_;
  const PlanningOptions& options_;
  const LazyBound& ask_bound_;
  std::chrono::nanoseconds lower_bound_{0};
  double until_ = 1;  // the part of the time after which what is done now ends
  const Turns::Who most_;
  DevicePlans devices_;
  std::vector<double> evenly_;                      // positions of windows
  std::vector<std::optional<std::size_t>> latest_;  // of each kind: the plan that was made last
  /// A choice with one speed for all, and how many kinds of turns it was tried with.
  struct UniformChoice {
    Choice choice;
    std::size_t tried = 0;
  };
  std::vector<UniformChoice> uniform_;
  std::optional<SpreadPlan> spread_;  // of spread_of_, without turns
  std::vector<std::size_t> spread_of_;
  std::optional<SpreadPlan> best_;
  Choice best_choice_;
  std::optional<Choice> alone_;  // with the plans for each device alone that were searched for longest
  std::pair<double, Bytes> merit_;
  std::optional<Problem> problem_;
  std::mt19937_64 random_{1};
};

}  // namespace

Result<Plan> search_jointly(const Trace& trace, const Machine& machine, const PlanningOptions& options,
                            const LazyBound& lower_bound) {
  const Result<SpreadCase> all = make_spread_case(trace, machine);
  if (!all) return all.problem();
  if (all->parts.size() < 2) return Problem{"only one engine computes"};
  Result<JointPlan> found = search_parts(*all, options, lower_bound, Turns::Who::all);
  if (!found) return found.problem();
  return std::move(found->plan);
}

Result<JointPlan> search_parts(const SpreadCase& all, const PlanningOptions& options, const LazyBound& lower_bound,
                               Turns::Who most, std::span<const swapmm::Plan* const> known) {
  return JointSearch(all, options, lower_bound, most).run(known);
}

}  // namespace swapmm::v2::planning
