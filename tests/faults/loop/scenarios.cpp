// SPDX-License-Identifier: Apache-2.0
#include "faults/loop/scenarios.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "faults/loop/memory_scenarios.hpp"
#include "faults/loop/network.hpp"

namespace swapmm::test {
namespace {

void build_and_tear_down(World& world) {
  world.make_manager(small());
  const std::size_t used = world.tensor("used");
  const std::size_t unused = world.tensor("unused", 16);
  const std::size_t copied = world.tensor("copied");
  world.upload(used, 3);
  world.run({.name = "write", .reads = {used}, .writes = {copied}, .updates = {}});
  world.begin("only");
  world.end();
  world.move_manager();
  world.download_later(copied);
  world.look();
  world.drop(unused);
  world.download(copied);
  world.collect();
  world.synchronize();
  world.close_manager();
}

void more_than_memory(World& world) {
  world.make_manager(small());
  std::vector<std::size_t> t;
  for (int i = 0; i < 8; ++i) t.push_back(world.tensor("t" + std::to_string(i), i % 3 == 2 ? 96 : 64));
  for (std::size_t i = 0; i < 4; ++i) world.upload(t[i], static_cast<Element>(i));
  for (std::size_t i = 0; i < 4; ++i) {
    world.run({.name = "spread", .reads = {t[i]}, .writes = {t[i + 4]}, .updates = {}, .scratch_bytes = 128});
  }
  world.upload_part(t[1], 8, 16, 5);
  for (std::size_t i = 0; i < 8; ++i) {
    world.run({.name = "mix", .reads = {t[(i + 3) % 8]}, .writes = {}, .updates = {t[i]}});
    if (i % 3 == 0) world.download_later(t[i]);
  }
  world.download(t[7]);
  world.upload(t[7], 9);
  world.run({.name = "join", .reads = {t[7], t[0]}, .writes = {t[3]}, .updates = {}});
  world.download(t[3]);
  world.collect();
  world.synchronize();
}

void steady_loop(World& world) {
  world.make_manager(small());
  const Network network = make_network(world, 3);
  for (Element i = 0; i < 6; ++i) train(world, network, i);
  world.download(network.weights[0]);
  world.synchronize();
}

void steady_loop_with_wait_lists(World& world) {
  world.make_manager(small());
  const Network network = make_network(world, 2);
  for (Element i = 0; i < 5; ++i) train(world, network, i, 256, true);
  world.download_later(network.weights[1]);
  world.synchronize();
}

// With the planner that programs get: it makes many small objects.
void planned_by_best(World& world) {
  world.make_manager(small(), steady({.planner = "best"}));
  const Network network = make_network(world, 2);
  for (Element i = 0; i < 5; ++i) train(world, network, i);
  world.download(network.weights[1]);
  world.synchronize();
}

void divergence(World& world) {
  world.make_manager(small());
  const Network network = make_network(world, 2);
  const std::size_t extra = world.tensor("extra");
  for (Element i = 0; i < 4; ++i) train(world, network, i);
  world.begin("train");  // another operation in the middle
  forward(world, network, 40);
  world.run({.name = "surprise", .reads = {network.weights[0]}, .writes = {extra}, .updates = {}});
  backward(world, network);
  world.end();
  train(world, network, 41);
  world.upload(network.weights[1], 42);  // between iterations
  train(world, network, 43);
  world.begin("train");  // ends early
  forward(world, network, 44);
  world.end();
  world.run({.name = "between", .reads = {extra}, .writes = {}, .updates = {network.weights[0]}});
  for (Element i = 0; i < 3; ++i) train(world, network, 50 + i);
  world.begin("evaluate");
  forward(world, network, 60);
  world.download(network.activations.back());
  world.end();
  train(world, network, 61);
  world.download(extra);
  world.synchronize();
}

bool left_and_followed_again(World& world) {
  const auto report = world.report();
  return followed(world) && report->divergences >= 2 && report->plan_starts >= 3;
}

void plan_files(World& world) {
  world.make_manager(small());
  const Network network = make_network(world, 2);
  for (Element i = 0; i < 4; ++i) train(world, network, i);
  world.save_plan("train");
  world.write_texts("train");
  world.synchronize();
  world.close_manager();
  world.make_manager(small());
  world.load_plan("train");
  const Network again = make_network(world, 2);
  for (Element i = 0; i < 5; ++i) train(world, again, i);
  world.synchronize();
}

bool loaded_plan_followed(World& world) {
  const auto report = world.report();
  return report && report->iterations_followed >= 2 && report->notes.empty();
}

void tensors_inside_iterations(World& world) {
  world.make_manager(small());
  const std::size_t weight = world.tensor("w");
  const std::size_t other = world.tensor("v");
  world.upload(weight, 1);
  world.upload(other, 2);
  for (Element i = 0; i < 5; ++i) {
    world.begin("train");
    std::vector<std::size_t> h;
    for (int k = 0; k < 4; ++k) h.push_back(world.tensor("h" + std::to_string(k), World::usual_size, persistent, true));
    world.upload(h[0], i);
    for (std::size_t k = 0; k < 3; ++k) {
      world.run({.name = "forward", .reads = {h[k], weight}, .writes = {h[k + 1]}, .updates = {}});
    }
    world.download_later(h[3]);
    for (std::size_t k = 3; k-- > 0;) {
      world.run({.name = "backward", .reads = {h[k]}, .writes = {}, .updates = {k % 2 == 0 ? weight : other}});
      world.drop(h[k + 1]);
    }
    world.drop(h[0]);
    world.end();
    if (i % 2 == 1) world.collect();
  }
  world.collect();
  world.synchronize();
}

void bundle_of_the_whole_budget(World& world) {
  world.make_manager(small());
  const std::size_t a = world.tensor("a", 128);
  const std::size_t b = world.tensor("b", 64);
  const std::size_t c = world.tensor("c", 64, transient, true);
  const std::size_t d = world.tensor("d", 32);
  world.upload(a, 1);
  world.upload(b, 2);
  world.upload(d, 3);
  for (Element i = 0; i < 6; ++i) {
    world.begin("whole");
    world.run({.name = "three", .reads = {b}, .writes = {c}, .updates = {a}});
    world.run({.name = "with scratch", .reads = {c}, .writes = {}, .updates = {d}, .scratch_bytes = 640});
    if (i == 1) {
      world.run_too_large({.name = "large", .reads = {b}, .writes = {c}, .updates = {a}, .scratch_bytes = 16});
    }
    world.end();
  }
  world.download(a);
  world.synchronize();
}

void two_managers(World& world) {
  std::array<Network, 2> networks;
  for (std::size_t m = 0; m < 2; ++m) {
    world.make_manager(small());
    networks[m] = make_network(world, 1 + m);
  }
  for (Element i = 0; i < 4; ++i) {
    for (std::size_t m = 0; m < 2; ++m) {
      world.use_manager(m);
      train(world, networks[m], i);
    }
  }
  world.use_manager(0);
  world.close_manager();
  world.use_manager(1);
  train(world, networks[1], 9);
  world.synchronize();
}

void work_in_flight_at_the_end(World& world) {
  world.make_manager(small());
  const Network network = make_network(world, 2);
  for (Element i = 0; i < 5; ++i) train(world, network, i);
  world.download_later(network.weights[0]);
  world.begin("train");
  forward(world, network, 9);
  world.download_later(network.activations[2]);
  world.download_later(network.weights[1]);
  world.drop(network.activations[2]);
  world.drop(network.weights[0]);
  world.close_manager();
}

void slow_but_simple(World& world) {  // per operation, pageable memory, several arenas
  Options options = small();
  options.demand_mode = DemandMode::per_operation;
  options.pinned_budget = Bytes{0};
  options.host_budget = Bytes{4096};
  world.make_manager(options);
  const Network network = make_network(world, 2);
  for (Element i = 0; i < 3; ++i) train(world, network, i, 128);
  world.synchronize();
}

void fragments(World& world) {  // pieces of many sizes: what fits only after everything has moved
  world.make_manager(small());
  std::vector<std::size_t> t;
  const std::array<std::size_t, 7> sizes{20, 36, 52, 28, 100, 140, 200};
  for (const std::size_t size : sizes) t.push_back(world.tensor("s" + std::to_string(size), size));
  for (std::size_t i = 0; i < t.size(); ++i) world.upload(t[i], static_cast<Element>(i));
  const std::array<std::array<std::size_t, 2>, 8> pairs{
      {{0, 1}, {2, 3}, {1, 4}, {0, 2}, {5, 3}, {6, 0}, {4, 5}, {0, 6}}};
  for (const auto& [from, to] : pairs) {
    world.run({.name = "move", .reads = {t[from]}, .writes = {}, .updates = {t[to]}, .scratch_bytes = 48});
  }
  for (const std::size_t tensor : t) world.download(tensor);
  world.synchronize();
}

// Rounds that read more than fits, without a plan. The host fills the last two before it waits, which frees their room.
void foreseen_rounds(World& world) {
  constexpr std::size_t half = World::usual_size / 2;  // so that eight fit
  world.make_manager(small());
  const std::size_t sum = world.tensor("sum", half);
  std::vector<std::size_t> read;
  for (std::size_t i = 0; i < 11; ++i) read.push_back(world.tensor("r" + std::to_string(i), half));
  for (std::size_t i = 0; i < read.size(); ++i) world.upload(read[i], static_cast<Element>(i));
  for (Element round = 0; round < 5; ++round) {
    for (const std::size_t tensor : read) {
      world.run({.name = "read", .reads = {tensor}, .writes = {sum}, .updates = {}});
    }
    for (std::size_t i = read.size() - 2; i < read.size(); ++i) world.upload(read[i], round);
    world.download(sum);
  }
  world.synchronize();
}

bool brought_ahead(World& world) {
  const auto report = world.report();
  return report && report->brought_ahead >= 4;
}

void checked_accesses(World& world) {
  Options options = small();
  options.check_access = true;
  world.make_manager(options);
  const Network network = make_network(world, 2);
  for (Element i = 0; i < 2; ++i) train(world, network, i, 64);
  world.run({.name = "rewrite", .reads = {network.weights[0]}, .writes = {network.weights[1]}, .updates = {}});
  world.run({.name = "rewrite", .reads = {network.weights[1]}, .writes = {network.weights[0]}, .updates = {}});
  world.synchronize();
}

void deferred_planning(World& world) {
  world.make_manager(small(), steady({.planner = "belady", .planning = Planning::deferred}));
  const Network network = make_network(world, 2);
  for (Element i = 0; i < 6; ++i) {
    train(world, network, i);
    world.plan_now();
  }
  world.synchronize();
}

void profiles(World& world) {
  world.make_manager(small());
  const Network network = make_network(world, 2);
  for (Element i = 0; i < 6; ++i) {
    if (i % 3 == 0) world.start_profile();  // one on demand, and one that follows a plan
    train(world, network, i, 128, i == 4);
    if (i % 3 == 1) world.stop_profile();
  }
  world.download(network.weights[0]);
  world.synchronize();
}

void host_slabs(World& world) {  // slabs fill, change the sizes of what lies in them, go back and come again
  Options options = small();
  options.pinned_budget = Bytes{2048};
  options.host_budget = Bytes{4096};
  world.make_manager(options);
  const Network network = make_network(world, 2);  // small values: two to a slab
  for (Element i = 0; i < 4; ++i) train(world, network, i);
  world.download_later(network.weights[0]);
  world.download(network.weights[1]);
  for (const std::size_t tensor : network.weights) world.drop(tensor);
  for (const std::size_t tensor : network.activations) world.drop(tensor);
  world.drop(network.input);
  world.begin("large");            // leaves the plan, which has held what its tensors lay in
  std::vector<std::size_t> large;  // each as large as two slabs, and more of them than may be pinned
  for (int i = 0; i < 3; ++i) {
    large.push_back(world.tensor("large" + std::to_string(i), four_tensors.value / sizeof(Element)));
    world.upload(large.back(), 20 + static_cast<Element>(i));
  }
  for (int pass = 0; pass < 2; ++pass) {
    for (const std::size_t tensor : large) world.run({.name = "large", .reads = {}, .writes = {}, .updates = {tensor}});
  }
  world.collect();
  world.upload_part(large[1], 100, 50, 30);
  for (const std::size_t tensor : large) world.download(tensor);
  world.end();
  world.drop(large[0]);
  world.drop(large[1]);
  const Network again = make_network(world, 2);  // in what the large ones leave
  for (Element i = 0; i < 4; ++i) train(world, again, i);
  world.download(large[2]);
  for (const std::size_t tensor : again.activations) world.drop(tensor);
  world.drop(large[2]);
  world.synchronize();
}

bool used_slabs(World& world) {
  const auto report = world.report();
  return swapped_both_ways(world) && report->pinned_slabs > 0 && report->pinned_used <= Bytes{2048};
}

// Rounds are timed, sampled and judged, plans made anew and gone back from.
void measured_plans(World& world) {
  SchedulerOptions scheduler;
  scheduler.planner = quick_planner();
  scheduler.sample_every = 2;
  scheduler.replan_above = 1e-9;
  scheduler.trial_iterations = 2;
  world.make_manager(small(), std::move(scheduler));
  const Network network = make_network(world, 2);
  for (Element i = 0; i < 12; ++i) train(world, network, i, 0, i % 4 == 0);
  world.download(network.weights[0]);
  world.synchronize();
}

bool sampled(World& world) {
  const auto report = world.report();
  return followed_at_all(world) && (report->sampled_rounds > 0 || report->plans[0].state == PlanState::left);
}

void changing_budgets(World& world) {
  world.make_manager(small());
  const Network network = make_network(world, 2);
  for (Element i = 0; i < 4; ++i) train(world, network, i);
  for (const std::uint64_t budget : {800U, 1024U, 768U}) {
    world.download_later(network.weights[0]);
    world.set_budget(Bytes{budget});
    for (Element i = 0; i < 2; ++i) train(world, network, 10 + i);
    world.collect();
  }
  world.set_budget(four_tensors);
  world.download(network.weights[1]);
  world.synchronize();
}

bool changed_budgets(World& world) {
  const auto report = world.report();
  return followed(world) && report->budget_changes == 4 && report->plan_starts >= 4;
}

constexpr std::array<Scenario, 19> all{{
    {.name = "build and tear down", .run = build_and_tear_down},
    {.name = "more than memory", .run = more_than_memory, .achieved = swapped_both_ways},
    {.name = "a steady loop", .run = steady_loop, .achieved = followed},
    {.name = "a steady loop with wait lists", .run = steady_loop_with_wait_lists, .achieved = followed},
    {.name = "planned by best", .run = planned_by_best, .achieved = followed, .only_allocations = true, .stride = 48},
    {.name = "divergence in mid-iteration", .run = divergence, .achieved = left_and_followed_again},
    {.name = "plans saved and loaded", .run = plan_files, .achieved = loaded_plan_followed, .streams = true},
    {.name = "tensors made inside iterations", .run = tensors_inside_iterations, .achieved = followed_at_all},
    {.name = "a bundle of exactly the budget", .run = bundle_of_the_whole_budget, .achieved = followed_at_all},
    {.name = "two managers on one device", .run = two_managers, .achieved = followed},
    {.name = "teardown with work in flight", .run = work_in_flight_at_the_end},
    {.name = "per operation, pageable, in arenas",
     .run = slow_but_simple,
     .device = [](simulated::Options& options) { options.max_allocation = Bytes{512}; },
     .achieved = [](World& world) { return world.report()->swap_outs > 8; }},
    {.name = "host memory in slabs",
     .run = host_slabs,
     .device = [](simulated::Options& options) { options.host_slab = Bytes{512}; },
     .achieved = used_slabs},
    {.name = "fragments", .run = fragments, .achieved = swapped_both_ways},
    {.name = "foreseen rounds", .run = foreseen_rounds, .achieved = brought_ahead, .stride = 3},
    {.name = "checked accesses", .run = checked_accesses},
    {.name = "profiles", .run = profiles, .achieved = followed_at_all},
    {.name = "measured plans", .run = measured_plans, .achieved = sampled},
    {.name = "changing budgets", .run = changing_budgets, .achieved = changed_budgets},
}};

constexpr Scenario deferred{.name = "deferred planning", .run = deferred_planning, .achieved = followed};

}  // namespace

std::span<const Scenario> scenarios() {
  static const std::vector<Scenario> list = [] {
    std::vector<Scenario> made(all.begin(), all.end());
    const std::span<const Scenario> of_memories = memory_scenarios();
    made.insert(made.end(), of_memories.begin(), of_memories.end());
    made.push_back(deferred);
    if (const char* const only = std::getenv("SWAPMM_FAULT_SCENARIO"); only != nullptr) {
      std::erase_if(made, [&](const Scenario& scenario) { return scenario.name.find(only) == std::string::npos; });
    }
    return made;
  }();
  return list;
}

}  // namespace swapmm::test
