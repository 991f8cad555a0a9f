// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/v2/stores/store_search.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <swapmm/plan/problem/part_of_time.hpp>
#include <swapmm/plan/schedule/best_plan.hpp>
#include <swapmm/plan/schedule/schedule.hpp>
#include <swapmm/plan/search/best_search.hpp>
#include <swapmm/plan/v2/baselines/paths.hpp>
#include <swapmm/plan/v2/relaxation/merged_host.hpp>
#include <swapmm/plan/v2/relaxation/store_bound.hpp>
#include <swapmm/plan/v2/simulate.hpp>
#include <swapmm/plan/v2/stores/only_device.hpp>
#include <swapmm/plan/v2/stores/stored_plan.hpp>

namespace swapmm::v2::planning {
namespace {

namespace v1 = swapmm::planning;

/// What fits by bytes may find no place, so the search fills only a part of each store.
constexpr double part_of_stores = 0.97;
/// Steps of each packing of a store.
constexpr std::uint32_t packing_steps = 400;

/// Judges plans of version 1 by what they become with stores, and keeps the best one.
class StoreJudge {
 public:
  explicit StoreJudge(const DeviceCase& device) : device_(device) { packing_.ejection_steps = packing_steps; }

  /// From now on, values are where this ledger says.
  void follow(const v1::OverlapLedger& ledger) {
    ledger_ = &ledger;
    version_of_.assign(device_.trace.tensors.size(), {});
    clean_of_.assign(device_.trace.tensors.size(), v1::no_absence);
    for (std::uint32_t v = 0; v < ledger.versions.size(); ++v) {
      version_of_[index(ledger.versions[v].tensor)].emplace_back(ledger.versions[v].write, v);
    }
    for (std::uint32_t a = 0; a < ledger.absences.size(); ++a) {
      if (ledger.absences[a].version == v1::no_version) clean_of_[index(ledger.absences[a].tensor)] = a;
    }
  }

  swapmm::Simulation judge(const swapmm::Plan& plan) {
    const WantedStore wanted = [this](TensorId tensor, std::optional<std::uint32_t> write) {
      return wanted_store(tensor, write);
    };
    swapmm::Simulation result;
    result.iteration = longest_iteration;
    result.operations.resize(device_.trace.operations.size());
    Result<Plan> stored = stored_plan(device_, plan, wanted, packing_);
    if (!stored) {
      problem_ = stored.problem();
      return result;
    }
    const Simulation simulation = simulate(device_.trace, *stored);
    result.iteration = simulation.iteration;
    result.compute = simulation.compute;
    result.operations = simulation.operations;
    for (std::size_t i = 0; i < simulation.links.size(); ++i) {
      const Link& link = device_.machine.links[i];
      if (link.to == device_.device) result.h2d += simulation.links[i];
      if (link.from == device_.device) result.d2h += simulation.links[i];
    }
    const auto merit = std::pair(result.iteration, result.h2d + result.d2h);
    if (!best_ || merit < merit_) {
      best_ = *std::move(stored);
      merit_ = merit;
    }
    return result;
  }

  [[nodiscard]] const std::optional<Plan>& best() const { return best_; }
  [[nodiscard]] const std::optional<Problem>& problem() const { return problem_; }

 private:
  std::size_t wanted_store(TensorId tensor, std::optional<std::uint32_t> write) const {
    const std::size_t last = device_.stores().size() - 1;
    if (ledger_ == nullptr) return last;
    if (!write) {
      const std::uint32_t absence = clean_of_[index(tensor)];
      return absence == v1::no_absence ? last : ledger_->absences[absence].store;
    }
    for (const auto& [operation, version] : version_of_[index(tensor)]) {
      if (operation == *write) return ledger_->versions[version].store;
    }
    return last;
  }

  const DeviceCase& device_;
  PackingEffort packing_;
  const v1::OverlapLedger* ledger_ = nullptr;
  std::vector<std::vector<std::pair<std::uint32_t, std::uint32_t>>> version_of_;  // of each tensor: write, version
  std::vector<std::uint32_t> clean_of_;                                           // of each tensor: an absence
  std::optional<Plan> best_;
  std::pair<std::chrono::nanoseconds, Bytes> merit_;
  std::optional<Problem> problem_;
};

v1::LinkedStores linked_stores(const DeviceCase& device) {
  v1::LinkedStores stores;
  const Machine& machine = device.routes.direct;
  const std::vector<Store>& links = device.routes.links;
  for (const Store& store : links) {
    const auto link = [&](LinkId id) {
      const Link& of_machine = machine.links[index(id)];
      return swapmm::Link{rate_alone(machine, of_machine), of_machine.latency};
    };
    stores.list.push_back({link(store.in), link(store.out), machine.memories[index(store.memory)].bytes});
  }
  // A link that shares its capacity with slower ones has what they leave.
  for (std::size_t s = 0; s < links.size(); ++s) {
    for (const bool in : {true, false}) {
      const auto id_of = [&](std::size_t store) { return in ? links[store].in : links[store].out; };
      for (const CapacityId capacity : machine.links[index(id_of(s))].capacities) {
        std::uint64_t slower = 0;
        for (std::size_t other = s + 1; other < links.size(); ++other) {
          const Link& link = machine.links[index(id_of(other))];
          if (std::ranges::count(link.capacities, capacity) != 0) slower += rate_alone(machine, link);
        }
        const std::uint64_t all = machine.capacities[index(capacity)].bytes_per_second;
        swapmm::Link& link = in ? stores.list[s].in : stores.list[s].out;
        const std::uint64_t left = std::max({all - std::min(all, slower), all / 2, std::uint64_t{1}});
        link.bytes_per_second = std::min(link.bytes_per_second, left);
      }
    }
  }
  for (const bool in_host : device.in_host) {
    stores.fixed.push_back(in_host ? std::optional{static_cast<std::uint8_t>(device.host_store)} : std::nullopt);
  }
  // What must be in the host has a place there all the time.
  std::optional<Bytes>& host = stores.list[device.host_store].capacity;
  for (std::size_t t = 0; t < device.in_host.size() && host; ++t) {
    if (device.in_host[t]) *host = Bytes{host->value - std::min(host->value, device.trace.tensors[t].bytes.value)};
  }
  return stores;
}

/// What the search starts from: the relaxed problem with these stores, or with one host if that does not hold here.
void relax(const DeviceCase& device, const v1::PlanningCase& planning, const PlanningOptions& options,
           v1::StoreCase& store_case) {
  const v1::OverlapLedger ledger(planning);
  const Machine& machine = device.routes.direct;
  if (!has_only_stores(machine, device.device)) {
    store_case.relaxed = v1::relax_swaps(planning, ledger);
    return;
  }
  const StoreModel model = make_store_model(machine, device.device, planning, ledger);
  // Most of the bound in a part of its time, which is the search's.
  StoreBoundEffort effort;
  effort.groups = 32;
  effort.closely = true;
  effort.work = 1e7;
  effort.least_gap = 3e-3;
  effort.vain_rounds = 2;
  effort.near = 0.05;
  effort.roundings = 12;
  effort.known = static_cast<double>(v1::compute_time(planning.trace).count());
  // A first plan and a bound must follow.
  const auto go_on = [&] { return !options.go_on || options.go_on(PlanningProgress{.part = 0.5}); };
  const RelaxedStores found = relax_stores(model, ledger, effort, go_on);
  v1::RelaxedSwaps& relaxed = store_case.relaxed;
  relaxed.lower_bound = v1::compute_time(planning.trace);
  relaxed.time = found.time;
  relaxed.gain.assign(ledger.absences.size(), 0.0);
  std::vector<std::size_t> rank(model.stores.size());  // of the model's stores among the device's
  for (std::size_t s = 0; s < rank.size(); ++s) {
    const auto at = std::ranges::find(device.stores(), model.stores[s].memory, &RoutedStore::memory);
    rank[s] = static_cast<std::size_t>(at - device.stores().begin());
  }
  for (const std::vector<double>& away : found.away) {
    double sum = 0;
    std::vector<double>& wished = store_case.stores.wished.emplace_back(device.stores().size());
    for (std::size_t s = 0; s < rank.size(); ++s) {
      sum += away[s];
      if (rank[s] < wished.size()) wished[rank[s]] = away[s];
    }
    relaxed.away.push_back(std::min(sum, 1.0));
  }
  for (const auto& decisions : found.rounded) {
    auto& rounded = store_case.stores.rounded.emplace_back(decisions.size());
    for (std::size_t a = 0; a < decisions.size(); ++a) {
      if (decisions[a] && rank[*decisions[a]] < device.stores().size())
        rounded[a] = static_cast<std::uint8_t>(rank[*decisions[a]]);
    }
  }
}

}  // namespace

Result<Plan> search_stores(const Trace& trace, const Machine& machine, const PlanningOptions& options,
                           const LazyBound& lower_bound) {
  const Result<OnlyDevice> only = find_only_device(trace, machine);
  if (!only) return only.problem();
  const DeviceCase device = only->device(machine);
  const std::optional<swapmm::Machine> merged = with_one_host(machine, device.device);
  if (!merged) return Problem{"the device has no limit"};
  const Result<v1::PlanningCase> planning = v1::make_planning_case(device.trace, *merged);
  if (!planning) return planning.problem();
  v1::StoreCase store_case{linked_stores(device), {}, part_of_stores};
  relax(device, *planning, options, store_case);
  Result<swapmm::Plan> first = v1::build_per_operation_plan(*planning, v1::Pace::one_at_a_time, "best");
  if (!first) return first.problem();
  StoreJudge judge(device);
  v1::BestPlan best(*planning, *std::move(first), [&judge](const swapmm::Plan& plan) { return judge.judge(plan); });
  BestOptions settings{};
  // Stores make more neighbours, and worse ones lead out of more dead ends.
  settings.annealing.warmth *= 3;
  // A good plan comes first, then the bound, which may take as long, then what the search still finds.
  const std::vector<double>& times = store_case.relaxed.time;
  const double good = 1.1 * std::accumulate(times.begin(), times.end(), 0.0);
  bool knows_bound = false;
  PlanningOptions staged = options;
  if (options.go_on) {
    staged.go_on = [&](PlanningProgress progress) {
      const auto reached = static_cast<double>(progress.iteration.count());
      if (!knows_bound && reached > 0 && reached < good) progress.part = 0.6;
      return options.go_on(progress);
    };
  }
  v1::BestSearch search(*planning, settings, staged, best, {}, &store_case);
  judge.follow(search.ledger());
  search.run_rounds({}, 1);
  search.know_bound(lower_bound(best.simulation().iteration));
  knows_bound = true;
  // Where values may be in several stores, small traces end up in dead ends for many rounds.
  const int rounds = search.rounds_without_clock() * (trace.operations.size() <= few_operations ? 5 : 1);
  search.run({}, v1::is_by_clock(options) ? std::optional<int>{} : rounds - 1);
  if (!search.is_near_bound()) search.offer_belady();
  if (!judge.best()) return judge.problem().value_or(Problem{"no plan was found"});
  return for_whole_trace(*only, trace, *judge.best());
}

}  // namespace swapmm::v2::planning
