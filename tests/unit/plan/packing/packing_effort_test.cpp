// SPDX-License-Identifier: Apache-2.0
// Each technique of packing can be switched off: packings stay right, and they are others.
#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <random>
#include <string_view>
#include <utility>
#include <vector>

#include <swapmm/plan/packing.hpp>

#include "support/random_trace.hpp"

namespace {

using namespace swapmm;

PackingProblem tight_problem(std::uint64_t seed, std::size_t items) {
  std::mt19937_64 random(seed);
  PackingProblem problem;
  problem.slots = 24;
  for (std::size_t i = 0; i < items; ++i) {
    problem.items.push_back({Bytes{1 + test::below_or_equal(random, 30)},
                             static_cast<std::uint32_t>(test::one_of(random, 24)),
                             1 + static_cast<std::uint32_t>(test::one_of(random, 10))});
  }
  problem.capacity = packing_load(problem);
  return problem;
}

bool overlap(const PackingProblem& problem, const Packing& packing, std::size_t a, std::size_t b) {
  const PackingItem& first = problem.items[a];
  const PackingItem& second = problem.items[b];
  const auto from = [&](std::uint32_t start, std::uint32_t slot) {
    return (slot + problem.slots - start) % problem.slots;
  };
  const bool share_slots =
      from(first.start, second.start) < first.length || from(second.start, first.start) < second.length;
  return share_slots && packing.offsets[a] < packing.offsets[b] + second.size &&
         packing.offsets[b] < packing.offsets[a] + first.size;
}

/// All items without a place left out.
bool is_right(const PackingProblem& problem, const Packing& packing) {
  std::vector<bool> has_place(problem.items.size(), true);
  for (const std::uint32_t item : packing.unplaced) has_place[item] = false;
  for (std::size_t a = 0; a < problem.items.size(); ++a) {
    if (has_place[a] && packing.offsets[a] + problem.items[a].size > packing.height) return false;
    for (std::size_t b = 0; b < a; ++b) {
      if (has_place[a] && has_place[b] && overlap(problem, packing, a, b)) return false;
    }
  }
  return true;
}

void check_that_all_matter(const PackingEffort& usual,
                           const std::vector<std::pair<std::string_view, PackingEffort>>& variants, std::size_t items) {
  for (const auto& [what, effort] : variants) {
    const std::string_view variant = what;  // clang 14 captures no structured bindings
    CAPTURE(variant);
    bool differs = false;
    for (std::uint64_t seed = 0; seed < 200 && !differs; ++seed) {
      const PackingProblem problem = tight_problem(seed, items);
      const Result<Packing> packing = pack_towards(problem, effort);
      const Result<Packing> other = pack_towards(problem, usual);
      REQUIRE(packing);
      REQUIRE(other);
      CHECK(is_right(problem, *packing));
      differs = packing->offsets != other->offsets;
    }
    CHECK(differs);
  }
}

template <class Change>
PackingEffort changed(PackingEffort effort, Change&& change) {
  change(effort);
  return effort;
}

}  // namespace

TEST_CASE("each technique of packing can be switched off, and matters") {
  const PackingEffort usual{.ejection_steps = 2000};
  const auto without = [&](auto&& change) { return changed(usual, change); };
  check_that_all_matter(usual,
                        {{"greedy orders", without([](auto& e) { e.greedy_orders = false; })},
                         {"backtracking", without([](auto& e) { e.backtracking = false; })},
                         {"both", without([](auto& e) { e.ejection = e.backtracking = false; })},
                         {"items of backtracking", without([](auto& e) { e.most_items = 3; })},
                         {"many items", without([](auto& e) { e.many_items = 3; })}},
                        40);
  PackingEffort ejection_alone = usual;
  ejection_alone.backtracking = false;
  check_that_all_matter(ejection_alone, {{"ejection", changed(ejection_alone, [](auto& e) { e.ejection = false; })}},
                        60);
}

TEST_CASE("each technique of backtracking matters") {
  const PackingEffort usual{.ejection_steps = 3000, .greedy_orders = false, .ejection = false};
  const auto without = [&](auto&& change) { return changed(usual, change); };
  check_that_all_matter(usual,
                        {{"dominance", without([](auto& e) { e.dominance = false; })},
                         {"section floors", without([](auto& e) { e.section_floors = false; })},
                         {"decomposition", without([](auto& e) { e.decomposition = false; })},
                         {"orders", without([](auto& e) { e.orders = 1; })},
                         {"no orders", without([](auto& e) { e.orders = 0; })}},
                        60);
}

TEST_CASE("if most items are to be kept, the squeaky wheel and ejection matter") {
  const PackingEffort usual{.ejection_steps = 200, .keep_most = true};
  const auto without = [&](auto&& change) { return changed(usual, change); };
  check_that_all_matter(usual,
                        {{"squeaky wheel", without([](auto& e) { e.squeaky_wheel = false; })},
                         {"ejection", without([](auto& e) { e.ejection = false; })},
                         {"both", without([](auto& e) { e.squeaky_wheel = e.ejection = false; })}},
                        60);
}

TEST_CASE("without a technique, a tight problem is still packed") {
  PackingProblem problem;
  problem.slots = 2;
  problem.items = {{Bytes{2}, 0, 1}, {Bytes{2}, 1, 1}, {Bytes{1}, 0, 2}, {Bytes{2}, 0, 1}};
  problem.capacity = packing_load(problem);
  for (const bool dominance : {false, true}) {
    for (const bool floors : {false, true}) {
      for (const bool decomposition : {false, true}) {
        const PackingEffort effort{.greedy_orders = false,
                                   .ejection = false,
                                   .dominance = dominance,
                                   .section_floors = floors,
                                   .decomposition = decomposition};
        const Result<Packing> packing = pack(problem, effort);
        REQUIRE(packing);
        CHECK(packing->height == problem.capacity);
        CHECK(is_right(problem, *packing));
      }
    }
  }
}
