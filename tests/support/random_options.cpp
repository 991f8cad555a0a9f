// SPDX-License-Identifier: Apache-2.0
#include "support/random_options.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <string>

#include <swapmm/plan/planners.hpp>
#include <swapmm/runtime/blocks/place_map.hpp>

namespace swapmm::test {
namespace {

bool percent_chance(simulated::detail::Random& random, std::uint32_t percent) { return random.below(100) < percent; }

/// The sizes of the bundles of a program, and what lives in it at one time.
class Sizes {
 public:
  explicit Sizes(const TestProgram& program) : alignment_(program.device.alignment) {
    for (const Action& action : program.actions) add(action);
  }

  [[nodiscard]] Bytes largest_bundle() const { return largest_bundle_; }
  [[nodiscard]] Bytes largest_tensor() const { return largest_tensor_; }
  [[nodiscard]] Bytes most_live() const { return most_live_; }

  [[nodiscard]] bool all_pack(Bytes budget, Bytes arena) const {
    const runtime::PlaceMap places(budget, arena, alignment_);
    return std::all_of(bundles_.begin(), bundles_.end(),
                       [&](std::vector<Bytes> bundle) { return places.would_pack(bundle); });
  }

 private:
  void add(const Action& action) {
    if (action.kind == ActionKind::make) slot_[action.slot] = action.bytes;
    if (action.kind == ActionKind::destroy) slot_[action.slot] = 0;
    if (action.kind == ActionKind::exchange) std::swap(slot_[action.slot], slot_[action.other]);
    if (action.kind == ActionKind::make) {
      Bytes live;
      for (const std::uint32_t bytes : slot_) live += round_up(Bytes{bytes}, alignment_);
      most_live_ = std::max(most_live_, live);
      largest_tensor_ = std::max(largest_tensor_, round_up(Bytes{action.bytes}, alignment_));
    }
    if (action.kind != ActionKind::operation) return;
    std::vector<Bytes> bundle;
    for (std::size_t i = 0; i < action.part_count; ++i) bundle.push_back(Bytes{slot_[action.parts[i].slot]});
    if (action.bytes != 0) bundle.push_back(Bytes{action.bytes});
    Bytes sum;
    for (const Bytes bytes : bundle) sum += round_up(bytes, alignment_);
    largest_bundle_ = std::max(largest_bundle_, sum);
    largest_tensor_ = std::max(largest_tensor_, round_up(Bytes{action.bytes}, alignment_));
    bundles_.push_back(std::move(bundle));
  }

  Bytes alignment_;
  std::array<std::uint32_t, slot_count> slot_{};
  std::vector<std::vector<Bytes>> bundles_;
  Bytes largest_bundle_{1};
  Bytes largest_tensor_{1};
  Bytes most_live_{1};
};

Bytes random_budget(simulated::detail::Random& random, const Sizes& sizes) {
  const Bytes least = sizes.largest_bundle();
  const Bytes most = std::max(least, sizes.most_live() + Bytes{600});
  const auto spread = static_cast<std::uint32_t>(most.value - least.value) + 1;
  switch (random.below(8)) {
    case 0:
    case 1: return least;
    case 2: return most;
    case 3: return least + Bytes{random.below(65)};
    default: return least + Bytes{std::min(random.below(spread), random.below(spread))};
  }
}

/// Slabs from the smallest to such that hold all; where memory is short, blocks of one size become those of another.
void draw_slabs(simulated::detail::Random& random, simulated::Options& device, Options& manager) {
  if (!percent_chance(random, 40)) return;
  device.host_slab = Bytes{std::uint64_t{256} << random.below(9)};
  if (percent_chance(random, 70)) manager.pinned_budget = Bytes{256 + random.below(4096)};
  if (percent_chance(random, 10)) manager.host_budget = Bytes{4096 + random.below(8192)};
}

}  // namespace

void draw_device(simulated::detail::Random& random, simulated::Options& device) {
  using simulated::Order;
  constexpr std::array<Order, 10> orders{Order::virtual_time, Order::uniform,    Order::uniform, Order::pct,
                                         Order::pct,          Order::starved,    Order::starved, Order::starved,
                                         Order::copies_first, Order::copies_last};
  constexpr std::array<std::uint64_t, 7> alignments{1, 2, 4, 8, 16, 32, 64};
  device.order = orders[random.below(static_cast<std::uint32_t>(orders.size()))];
  device.pct_depth = 2 + static_cast<int>(random.below(2));
  device.starved_queue = static_cast<QueueKind>(random.below(3));
  device.seed = random.next();
  device.pieces = 1 + static_cast<int>(random.below(8));
  device.alignment = Bytes{alignments[random.below(static_cast<std::uint32_t>(alignments.size()))]};
  device.half_duplex = percent_chance(random, 25);
  device.needs_flush = percent_chance(random, 30);
  device.steps_in_calls = !percent_chance(random, 20);
  device.h2d.bytes_per_second = 100'000'000U << random.below(6);
  device.d2h.bytes_per_second = 100'000'000U << random.below(6);
}

void draw_scheduler(simulated::detail::Random& random, SchedulerOptions& scheduler) {
  // `best` tries all the others on small programs: seldom, for its time.
  const auto known = percent_chance(random, 10) ? planners() : planners().first(planners().size() - 1);
  scheduler.observe = percent_chance(random, 4) ? 0 : 1 + random.below(3);
  scheduler.planner = std::string(known[random.below(static_cast<std::uint32_t>(known.size()))].name);
  scheduler.planning = percent_chance(random, 25) ? Planning::deferred : Planning::immediate;
  scheduler.max_period = 1 + random.below(4);
  if (percent_chance(random, 10)) scheduler.max_sequences = 1 + random.below(3);
}

void draw_measures(simulated::detail::Random& random, SchedulerOptions& scheduler) {
  constexpr std::array<std::size_t, 5> everies{1, 2, 3, 5, 64};
  constexpr std::array<std::size_t, 5> trials{0, 1, 3, 4, 4};
  constexpr std::array<double, 4> aboves{0, 1e-9, 0.05, 0.1};
  scheduler.sample_every = everies[random.below(5)];
  scheduler.trial_iterations = trials[random.below(5)];
  scheduler.replan_above = aboves[random.below(4)];
  // The same program, the same plans.
  scheduler.planning_time = std::chrono::milliseconds{0};
  scheduler.planning_limit = std::chrono::milliseconds{0};
}

void draw_budget_changes(simulated::detail::Random& random, TestProgram& program) {
  if (!percent_chance(random, 30) || (program.steady && program.device.max_allocation)) return;
  const Sizes sizes(program);
  std::vector<std::size_t> between;
  bool inside = false;
  for (std::size_t i = 0; i < program.actions.size(); ++i) {
    if (program.actions[i].kind == ActionKind::end_iteration) inside = false;
    if (!inside || percent_chance(random, 2)) between.push_back(i + (inside ? 0 : 1));
    if (program.actions[i].kind == ActionKind::begin_iteration) {
      inside = true;
      if (!between.empty() && between.back() == i + 1) between.pop_back();
    }
  }
  const bool refused = percent_chance(random, 30);  // where it is more than there was first
  for (std::uint32_t changes = 1 + random.below(4); changes > 0 && !between.empty(); --changes) {
    Action action;
    action.kind = ActionKind::set_budget;
    Bytes budget = random_budget(random, sizes);
    if (!program.steady && percent_chance(random, 15)) budget = Bytes{1 + budget.value / 2};
    action.bytes = static_cast<std::uint32_t>(budget.value);
    const Bytes whole = round_up(budget, program.device.alignment);
    if (!refused) program.device.device_bytes = std::max(program.device.device_bytes, whole);
    const std::size_t at = between[random.below(static_cast<std::uint32_t>(between.size()))];
    program.actions.insert(program.actions.begin() + static_cast<std::ptrdiff_t>(at), action);
    std::erase_if(between, [&](std::size_t position) { return position >= at; });  // of the list as it was
  }
}

void draw_slow_link(simulated::detail::Random& random, simulated::Options& device) {
  if (!percent_chance(random, 15)) return;
  simulated::CopySpeed& slow = random.below(3) == 0 ? device.h2d : device.d2h;
  slow.bytes_per_second = 1'000'000U << random.below(4);
  slow.latency = std::chrono::microseconds{1 + random.below(50)};
}

void draw_budgets(simulated::detail::Random& random, TestProgram& program) {
  const Sizes sizes(program);
  simulated::Options& device = program.device;
  Options& manager = program.manager;
  manager.device_budget = std::max(random_budget(random, sizes), device.alignment);
  device.device_bytes = round_up(manager.device_budget, device.alignment);
  if (percent_chance(random, 12)) {
    const Bytes arena = round_up(sizes.largest_tensor() + Bytes{random.below(256)}, device.alignment);
    if (sizes.all_pack(manager.device_budget, arena) || percent_chance(random, 20)) device.max_allocation = arena;
  }
  manager.queue_depth = std::size_t{8} << random.below(3);
  manager.run_ahead = 1 + random.below(3);
  if (percent_chance(random, 25)) manager.demand_mode = DemandMode::per_operation;
  manager.check_access = percent_chance(random, 2);
  const Bytes host = sizes.most_live() + Bytes{random.below(2048)};
  if (percent_chance(random, 20)) manager.pinned_budget = Bytes{random.below(4096)};
  if (percent_chance(random, 7)) manager.host_budget = host;
  if (percent_chance(random, 10)) device.pinned_bytes = Bytes{random.below(4096)};
  if (percent_chance(random, 3)) device.host_bytes = host;
  draw_slabs(random, device, manager);
}

void draw_neighbours(simulated::detail::Random& random, TestProgram& program) {
  if (!percent_chance(random, 20) || program.manager.check_access) return;
  constexpr std::array<std::uint64_t, 4> alignments{1, 16, 64, 256};
  const auto most = static_cast<std::uint32_t>(Sizes(program).most_live().value);
  std::uint32_t count = 1;
  for (std::uint32_t i = 0; i < count; ++i) {
    const Bytes alignment{alignments[random.below(4)]};
    const Bytes capacity = alignment + Bytes{random.below(most / count + 1)};
    const Bytes largest = percent_chance(random, 20) ? alignment + Bytes{random.below(2048)} : capacity;
    const std::uint64_t in = std::uint64_t{100'000'000} << random.below(8);
    const std::uint64_t out = std::uint64_t{100'000'000} << random.below(8);
    program.neighbours.push_back({capacity, alignment, largest, in, out});
    if (i == 0 && percent_chance(random, 60)) count = 2 + random.below(3);
  }
}

void draw_codec(simulated::detail::Random& random, TestProgram& program) {
  if (!percent_chance(random, 50) || program.file || !program.neighbours.empty() || program.device.max_allocation)
    return;
  // An encoded form may take 64 bytes more than the value, and programs that limit the host have no room for them.
  if (program.manager.host_budget != Options().host_budget || program.device.host_bytes) return;
  program.codec_staging = Bytes{2 * encoder_bytes(Bytes{128 + random.below(2048)}).value};
}

void draw_file(simulated::detail::Random& random, TestProgram& program) {
  if (!percent_chance(random, 20) || program.device.host_bytes || program.manager.check_access) return;
  constexpr std::array<std::uint64_t, 5> alignments{1, 16, 64, 256, 512};
  const Sizes sizes(program);
  const Bytes alignment{alignments[random.below(5)]};
  const bool holds_all = !percent_chance(random, 15);
  // Places of values that come and go leave gaps.
  const Bytes capacity = round_up(Bytes{8 * sizes.most_live().value}, alignment) + Bytes{64 * alignment.value};
  program.file = {.capacity = holds_all ? capacity : round_up(Bytes{1 + random.below(2048)}, alignment),
                  .alignment = alignment,
                  .holds_all = holds_all};
  program.manager.file_staging = Bytes{(10 + random.below(64)) * alignment.value};
  program.manager.host_budget = round_up(program.manager.file_staging, Bytes{256}) + Bytes{random.below(2048)};
  program.device.file_read.bytes_per_second = 100'000'000U << random.below(6);
  program.device.file_write.bytes_per_second = 100'000'000U << random.below(6);
}

}  // namespace swapmm::test
