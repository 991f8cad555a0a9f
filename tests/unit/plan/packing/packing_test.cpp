// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>
#include <numeric>
#include <random>
#include <sstream>
#include <string>

#include <swapmm/plan/packing.hpp>
#include <swapmm/plan/packing/shape/shape.hpp>
#include <swapmm/plan/packing/skyline.hpp>

#include "support/effort.hpp"
#include "test_data.hpp"

using namespace swapmm;
using namespace swapmm::planning;

namespace {

const int rounds = test::effort(4000, 20);

bool shares_slot(const PackingItem& a, const PackingItem& b, std::uint32_t slots) {
  // Slot by slot, for small circles; the packer compares distances instead.
  for (std::uint32_t i = 0; i < a.length; ++i) {
    for (std::uint32_t j = 0; j < b.length; ++j) {
      if ((a.start + i) % slots == (b.start + j) % slots) return true;
    }
  }
  return false;
}

bool shares_bytes(Bytes a, Bytes a_size, Bytes b, Bytes b_size) { return a < b + b_size && b < a + a_size; }

/// The first broken promise, or an empty text.
std::string fault_of(const PackingProblem& problem, const Packing& packing, Bytes capacity) {
  if (packing.offsets.size() != problem.items.size()) return "an offset per item";
  for (std::size_t i = 0; i < problem.items.size(); ++i) {
    const Bytes offset = packing.offsets[i];
    const Bytes size = problem.items[i].size;
    if (offset.value % problem.alignment.value != 0) return "alignment";
    if (offset + size > capacity) return "capacity";
    if (offset + size > packing.height) return "height";
    if (problem.max_allocation && size.value > 0 &&
        offset.value / problem.max_allocation->value !=
            (offset + size - Bytes{1}).value / problem.max_allocation->value) {
      return "crosses an arena";
    }
    for (std::size_t j = 0; j < i; ++j) {
      if (shares_bytes(offset, size, packing.offsets[j], problem.items[j].size) &&
          shares_slot(problem.items[i], problem.items[j], problem.slots)) {
        return "items " + std::to_string(j) + " and " + std::to_string(i) + " overlap";
      }
    }
  }
  return {};
}

PackingProblem random_problem(std::mt19937_64& random) {
  const auto pick = [&](std::uint64_t low, std::uint64_t high) {
    return std::uniform_int_distribution<std::uint64_t>(low, high)(random);
  };
  PackingProblem problem;
  problem.slots = static_cast<std::uint32_t>(pick(1, 12));
  problem.alignment = Bytes{pick(1, 5)};
  if (pick(0, 2) == 0) problem.max_allocation = Bytes{problem.alignment.value * pick(6, 20)};
  const std::uint64_t items = pick(0, pick(0, 1) == 0 ? 8 : 90);
  const std::uint64_t largest = problem.max_allocation ? problem.max_allocation->value : 40;
  for (std::uint64_t i = 0; i < items; ++i) {
    problem.items.push_back({Bytes{pick(0, largest)}, static_cast<std::uint32_t>(pick(0, problem.slots - 1)),
                             static_cast<std::uint32_t>(pick(1, problem.slots))});
  }
  return problem;
}

PackingProblem read_minimalloc(const std::string& name) {
  std::ifstream file(std::string(SWAPMM_TEST_DATA) + "/packing/" + name);
  REQUIRE_MESSAGE(file.good(), name);
  PackingProblem problem;
  problem.capacity = Bytes{1048576};
  std::string line;
  std::getline(file, line);
  while (std::getline(file, line)) {
    std::replace(line.begin(), line.end(), ',', ' ');
    std::istringstream fields(line);
    std::uint64_t id = 0, lower = 0, upper = 0, size = 0;
    fields >> id >> lower >> upper >> size;
    problem.items.push_back(
        {Bytes{size}, static_cast<std::uint32_t>(lower), static_cast<std::uint32_t>(upper - lower)});
    problem.slots = std::max(problem.slots, static_cast<std::uint32_t>(upper));
  }
  return problem;
}

/// fault_of for lines too long to walk: no lifetime wraps there.
bool overlaps_on_a_line(const PackingProblem& problem, const Packing& packing) {
  for (std::size_t i = 0; i < problem.items.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const PackingItem& a = problem.items[i];
      const PackingItem& b = problem.items[j];
      if (a.start < b.start + b.length && b.start < a.start + a.length &&
          shares_bytes(packing.offsets[i], a.size, packing.offsets[j], b.size)) {
        return true;
      }
    }
  }
  return false;
}

/// Whether items at and after `next` fit beside the others, by trying every offset.
bool fits_by_trying(const PackingProblem& problem, std::vector<Bytes>& offsets, std::size_t next) {
  if (next == problem.items.size()) return true;
  const Bytes size = round_up(problem.items[next].size, problem.alignment);
  for (Bytes offset; offset + size <= problem.capacity; offset += problem.alignment) {
    offsets[next] = offset;
    bool is_free = !problem.max_allocation || size.value == 0 ||
                   offset.value / problem.max_allocation->value ==
                       (offset + size - Bytes{1}).value / problem.max_allocation->value;
    for (std::size_t i = 0; i < next && is_free; ++i) {
      is_free = !shares_slot(problem.items[i], problem.items[next], problem.slots) ||
                !shares_bytes(offset, size, offsets[i], round_up(problem.items[i].size, problem.alignment));
    }
    if (is_free && fits_by_trying(problem, offsets, next + 1)) return true;
  }
  return false;
}
bool fits_by_trying(const PackingProblem& problem) {
  std::vector<Bytes> offsets(problem.items.size());
  return fits_by_trying(problem, offsets, 0);
}

/// Bins that take all `sizes`: the most that a set of items leaves free in its last bin, over all sets.
std::size_t fewest_bins(const std::vector<std::uint64_t>& sizes, std::uint64_t bin) {
  struct Filled {
    std::size_t bins;
    std::uint64_t in_last;
    bool operator<(const Filled& other) const {
      return std::pair(bins, in_last) < std::pair(other.bins, other.in_last);
    }
  };
  std::vector<Filled> best(std::size_t{1} << sizes.size(), {sizes.size() + 1, 0});
  best[0] = {1, 0};
  for (std::size_t set = 0; set < best.size(); ++set) {
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      if ((set >> i & 1U) != 0) continue;
      const Filled now = best[set];
      const Filled next =
          now.in_last + sizes[i] <= bin ? Filled{now.bins, now.in_last + sizes[i]} : Filled{now.bins + 1, sizes[i]};
      Filled& known = best[set | std::size_t{1} << i];
      if (next < known) known = next;
    }
  }
  return best.back().bins;
}

/// Like a training step: most items are short, some live from an operation to its counterpart backwards, a few always.
PackingProblem training_problem(std::uint32_t items, std::uint32_t slots, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto below = [&](std::uint64_t limit) { return static_cast<std::uint32_t>(random() % limit); };
  PackingProblem problem;
  problem.slots = slots;
  problem.alignment = Bytes{256};
  for (std::uint32_t i = 0; i < items; ++i) {
    const Bytes size{1000 + below(1U << (10 + below(12)))};
    const std::uint32_t kind = below(100);
    if (kind < 1) {
      problem.items.push_back({size, 0, slots});
    } else if (kind < 25) {
      const std::uint32_t start = below(slots / 2 - 4);
      problem.items.push_back({size, start, slots - 2 * start - below(4)});
    } else if (kind < 27) {
      problem.items.push_back({size, below(slots), 1 + below(slots / 4)});
    } else {
      problem.items.push_back({size, below(slots), 1 + below(4)});
    }
  }
  return problem;
}

/// Whether two items share a byte in a slot, with many items: slot by slot, who arrives meets only those beside it.
bool overlaps_on_a_circle(const PackingProblem& problem, const Packing& packing) {
  std::vector<std::vector<std::size_t>> arrivals(problem.slots);
  std::vector<std::vector<std::size_t>> departures(problem.slots);
  for (std::size_t i = 0; i < problem.items.size(); ++i) {
    const PackingItem& item = problem.items[i];
    if (item.size.value == 0) continue;
    arrivals[item.start].push_back(i);
    departures[(std::uint64_t{item.start} + item.length) % problem.slots].push_back(i);
  }
  std::map<std::uint64_t, std::uint64_t> taken;  // begin: end
  for (int round = 0; round < 2; ++round) {      // the second with those who are there from the round before
    for (std::uint32_t slot = 0; slot < problem.slots; ++slot) {
      for (const std::size_t i : departures[slot]) taken.erase(packing.offsets[i].value);
      for (const std::size_t i : arrivals[slot]) {
        const std::uint64_t begin = packing.offsets[i].value;
        const std::uint64_t end = begin + problem.items[i].size.value;
        const auto next = taken.lower_bound(begin);
        if (next != taken.end() && next->first < end) return true;
        if (next != taken.begin() && std::prev(next)->second > begin) return true;
        taken.emplace(begin, end);
      }
    }
  }
  return false;
}

}  // namespace

TEST_CASE("no item needs no room") {
  const auto packing = pack({});
  REQUIRE(packing);
  CHECK(packing->height == Bytes{0});
  CHECK(packing->offsets.empty());
}

TEST_CASE("items that follow one another share a place, also over the wrap") {
  PackingProblem problem;
  problem.slots = 4;
  problem.capacity = Bytes{10};
  problem.items = {{Bytes{10}, 3, 2}, {Bytes{10}, 1, 2}};  // slots 3 and 0, then 1 and 2
  const auto packing = pack(problem);
  REQUIRE(packing);
  CHECK(packing->offsets[0] == Bytes{0});
  CHECK(packing->offsets[1] == Bytes{0});
  CHECK(packing->height == Bytes{10});
}

TEST_CASE("where there are bytes for every item at once each has its own, within the arenas") {
  PackingProblem problem;
  problem.slots = 4;
  problem.alignment = Bytes{16};
  problem.capacity = Bytes{192};
  problem.items = {{Bytes{40}, 0, 1}, {Bytes{0}, 0, 4}, {Bytes{50}, 2, 1}, {Bytes{60}, 3, 4}};
  CHECK(pack(problem)->offsets == std::vector<Bytes>{Bytes{0}, Bytes{0}, Bytes{48}, Bytes{112}});
  problem.max_allocation = Bytes{96};
  CHECK(pack(problem)->offsets != std::vector<Bytes>{Bytes{0}, Bytes{0}, Bytes{48}, Bytes{112}});
  problem.capacity = Bytes{288};
  CHECK(pack(problem)->offsets == std::vector<Bytes>{Bytes{0}, Bytes{0}, Bytes{96}, Bytes{192}});
  CHECK(pack(problem)->height == Bytes{256});
}

TEST_CASE("the load counts a wrapping item in its first and last slots, rounded up") {
  PackingProblem problem;
  problem.slots = 5;
  problem.alignment = Bytes{4};
  problem.items = {{Bytes{5}, 3, 3}, {Bytes{1}, 0, 1}, {Bytes{9}, 1, 2}};
  CHECK(packing_load(problem) == Bytes{12});
  problem.items.push_back({Bytes{2}, 4, 2});
  CHECK(packing_load(problem) == Bytes{16});
}

TEST_CASE("what one slot needs above the capacity is refused with both numbers") {
  PackingProblem problem;
  problem.slots = 2;
  problem.capacity = Bytes{10};
  problem.items = {{Bytes{6}, 0, 2}, {Bytes{5}, 1, 1}};
  const auto packing = pack(problem);
  REQUIRE(!packing);
  CHECK(packing.problem().message.find("11") != std::string::npos);
  CHECK(packing.problem().message.find("10") != std::string::npos);
}

TEST_CASE("items stay within arenas") {
  PackingProblem problem;
  problem.slots = 1;
  problem.capacity = Bytes{20};
  problem.max_allocation = Bytes{10};
  problem.items = {{Bytes{6}, 0, 1}, {Bytes{6}, 0, 1}, {Bytes{4}, 0, 1}, {Bytes{4}, 0, 1}};
  const auto packing = pack(problem);
  REQUIRE(packing);
  CHECK(fault_of(problem, *packing, problem.capacity) == "");
  problem.items.push_back({Bytes{1}, 0, 1});
  CHECK(!pack(problem));
  problem.items = {{Bytes{11}, 0, 1}};
  REQUIRE(!pack(problem));
  CHECK(pack(problem).problem().message.find("item 0 has 11 bytes") != std::string::npos);
}

TEST_CASE("the ejection search solves what no greedy order does") {
  // Of many random problems at the load itself, some fit only after items were moved out of the way.
  std::mt19937_64 random(5);
  int fits = 0;
  int fits_greedily = 0;
  for (int round = 0; round < rounds / 4; ++round) {
    PackingProblem problem = random_problem(random);
    problem.max_allocation.reset();
    problem.capacity = packing_load(problem);
    const bool greedy = pack(problem, {.ejection_steps = 0}).has_value();
    const bool all = pack(problem).has_value();
    CHECK((!greedy || all));
    fits += all ? 1 : 0;
    fits_greedily += greedy ? 1 : 0;
  }
  CHECK(fits > fits_greedily);
}

TEST_CASE("every packing of random items is valid and the same each time") {
  std::mt19937_64 random(17);
  for (int round = 0; round < rounds; ++round) {
    PackingProblem problem = random_problem(random);
    problem.capacity = Bytes{packing_load(problem).value * (8 + random() % 8) / 8};
    constexpr PackingEffort effort{.ejection_steps = 1000};
    const auto packing = pack_towards(problem, effort);
    REQUIRE(packing);
    REQUIRE(fault_of(problem, *packing, packing->height) == "");
    REQUIRE(packing->height >= packing_load(problem));
    REQUIRE(pack(problem, effort).has_value() == (packing->height <= problem.capacity));
    if (round % 8 != 0) continue;
    REQUIRE(pack_towards(problem, effort)->offsets == packing->offsets);
    const auto lowest = pack_lowest(problem, effort);
    REQUIRE(lowest);
    REQUIRE(fault_of(problem, *lowest, lowest->height) == "");
    REQUIRE(lowest->height >= packing_load(problem));
    REQUIRE(lowest->height <= packing->height);
  }
}

TEST_CASE("whatever is urgent, the skyline gives every item bytes of its own") {
  std::mt19937_64 random(11);
  for (int round = 0; round < 500; ++round) {
    const PackingProblem problem = random_problem(random);
    std::vector<std::uint32_t> all(problem.items.size());
    std::iota(all.begin(), all.end(), 0U);
    const packing::Shape shape(problem, all);
    packing::Skyline skyline(shape);
    for (int order = 0; order < 3; ++order) {
      std::vector<double> urgency(all.size());
      for (double& value : urgency) value = static_cast<double>(random() % 7) - 3;
      const packing::Offsets offsets = skyline.pack(urgency);
      Packing packing;
      for (const std::uint64_t offset : offsets) packing.offsets.push_back(Bytes{offset});
      packing.height = Bytes{shape.height(offsets)};
      REQUIRE(fault_of(problem, packing, packing.height) == "");
    }
  }
}

TEST_CASE("with few items a packing is found if and only if there is one") {
  std::mt19937_64 random(29);
  int with_room = 0;
  int above_load = 0;
  const int cases = test::effort(3000, 15);
  for (int round = 0; round < cases; ++round) {
    const auto pick = [&](std::uint64_t low, std::uint64_t high) { return low + random() % (high - low + 1); };
    PackingProblem problem;
    problem.slots = static_cast<std::uint32_t>(pick(1, 7));
    problem.alignment = Bytes{pick(1, 2)};
    if (pick(0, 2) == 0) problem.max_allocation = Bytes{problem.alignment.value * pick(4, 6)};
    for (std::uint64_t left = pick(1, 7); left > 0; --left) {
      problem.items.push_back({Bytes{pick(0, 4)}, static_cast<std::uint32_t>(pick(0, problem.slots - 1)),
                               static_cast<std::uint32_t>(pick(1, problem.slots))});
    }
    problem.capacity = packing_load(problem);
    while (!fits_by_trying(problem)) {
      REQUIRE(!pack(problem));
      problem.capacity += problem.alignment;
      ++above_load;
    }
    const auto packing = pack(problem);
    REQUIRE(packing);
    REQUIRE(fault_of(problem, *packing, problem.capacity) == "");
    REQUIRE(pack_lowest(problem)->height == problem.capacity);
    ++with_room;
  }
  CHECK(with_room == cases);
  CHECK(above_load > cases / 30);  // else the load alone would have been the answer
}

TEST_CASE("a bundle of up to twelve items in arenas is refused only if it does not fit") {
  std::mt19937_64 random(31);
  int refused_above_sum = 0;
  for (int round = 0; round < 600; ++round) {
    PackingProblem problem;
    const std::uint64_t arena = 40 + random() % 60;
    problem.alignment = Bytes{1 + random() % 2 * 3};
    problem.max_allocation = Bytes{arena * problem.alignment.value};
    std::vector<std::uint64_t> sizes;
    std::uint64_t sum = 0;
    for (std::uint64_t left = 4 + random() % 9; left > 0; --left) {
      sizes.push_back(1 + arena / 8 + random() % (arena / 2));
      sum += sizes.back();
      problem.items.push_back({Bytes{sizes.back() * problem.alignment.value}, 0, 1});
    }
    const std::size_t bins = fewest_bins(sizes, arena);
    problem.capacity = Bytes{bins * problem.max_allocation->value};
    const auto packing = pack(problem, {.ejection_steps = 0});
    REQUIRE(packing);
    REQUIRE(fault_of(problem, *packing, problem.capacity) == "");
    problem.capacity = Bytes{(bins - 1) * problem.max_allocation->value};
    REQUIRE(!pack(problem));
    refused_above_sum += sum <= (bins - 1) * arena ? 1 : 0;
  }
  CHECK(refused_above_sum > 10);  // not by bytes alone
}

TEST_CASE("the last arena may be cut short by the capacity") {
  PackingProblem problem;
  problem.capacity = Bytes{25};
  problem.max_allocation = Bytes{10};
  problem.items = {{Bytes{5}, 0, 1}, {Bytes{6}, 0, 1}, {Bytes{4}, 0, 1}, {Bytes{7}, 0, 1}, {Bytes{3}, 0, 1}};
  const auto packing = pack(problem);
  REQUIRE(packing);
  CHECK(fault_of(problem, *packing, problem.capacity) == "");
  problem.capacity = Bytes{24};
  CHECK(!pack(problem));
}

TEST_CASE("items keep their preferred places where they can") {
  PackingProblem problem = training_problem(1500, 800, 3);
  problem.capacity = Bytes{packing_load(problem).value * 11 / 10};
  const auto before = pack(problem);
  REQUIRE(before);
  CHECK(pack_towards(problem, {}, before->offsets)->offsets == before->offsets);

  for (std::size_t i = 7; i < problem.items.size(); i += 100) {
    if (problem.items[i].length == problem.slots) continue;
    problem.items[i].start = (problem.items[i].start + 50) % problem.slots;
  }
  const auto after = pack_towards(problem, {}, before->offsets);
  REQUIRE(after);
  CHECK(after->height <= problem.capacity);
  CHECK(!overlaps_on_a_circle(problem, *after));
  std::size_t kept = 0;
  for (std::size_t i = 0; i < before->offsets.size(); ++i) kept += after->offsets[i] == before->offsets[i] ? 1U : 0U;
  CHECK(kept >= before->offsets.size() * 9 / 10);
  CHECK(kept < before->offsets.size());
}

TEST_CASE("preferred places of any kind do no harm") {
  std::mt19937_64 random(37);
  for (int round = 0; round < 2000; ++round) {
    PackingProblem problem = random_problem(random);
    problem.capacity = Bytes{packing_load(problem).value * (8 + random() % 8) / 8};
    std::vector<Bytes> preferred;
    for (std::size_t i = 0; i < problem.items.size(); ++i) {
      preferred.push_back(random() % 8 == 0 ? no_preferred_offset : Bytes{random() % (problem.capacity.value + 9)});
    }
    const auto packing = pack_towards(problem, {.ejection_steps = 500}, preferred);
    REQUIRE(packing);
    REQUIRE(fault_of(problem, *packing, packing->height) == "");
  }
}

TEST_CASE("a search goes on for as long as it is told to") {
  const PackingProblem problem = read_minimalloc("E.1048576.csv");
  int questions = 0;
  const std::function<bool()> thrice = [&] { return ++questions < 3; };
  const auto packing = pack_lowest(problem, {.go_on = &thrice});
  REQUIRE(packing);
  CHECK(questions == 3);
  CHECK(!overlaps_on_a_line(problem, *packing));
  questions = 0;
  const std::function<bool()> long_enough = [&] { return ++questions < 100; };
  CHECK(pack_lowest(problem, {.go_on = &long_enough})->height <= packing->height);
  CHECK(questions == 100);
  questions = 0;
  CHECK(pack_lowest(problem, {.ejection_steps = 0, .go_on = &long_enough})->height >= packing->height);
  CHECK(questions == 0);
}

TEST_CASE("many items pack close to what is needed") {
  for (const std::uint32_t items : {3000U, 9000U}) {  // fewer and more than stand in one order while they move
    PackingProblem problem = training_problem(items, items / 2, 11);
    const Bytes load = packing_load(problem);
    problem.capacity = load;
    const auto packing = pack_towards(problem, {.ejection_steps = 300});
    REQUIRE(packing);
    CHECK(!overlaps_on_a_circle(problem, *packing));
    CHECK(packing->height.value >= load.value);
    CHECK(packing->height.value < load.value * 21 / 20);
  }
}

TEST_CASE("what keeps the most places places something, however few steps there are for many items") {
  PackingProblem problem = training_problem(3000, 1500, 11);
  problem.capacity = packing_load(problem);
  for (const std::uint32_t steps : {0U, 1U, 100U}) {
    const auto packing = pack_towards(problem, {.ejection_steps = steps, .keep_most = true});
    REQUIRE(packing);
    CHECK(packing->unplaced.size() < 300);
    const auto again = pack_towards(problem, {.ejection_steps = steps, .keep_most = true}, packing->offsets);
    REQUIRE(again);
    CHECK(again->unplaced.size() < 300);
  }
}

TEST_CASE("the MiniMalloc instances are solved at their capacity") {
  std::vector<std::string> names{"C"};
  if (!test::is_slow) names.emplace_back("B");
  if (test::is_thorough()) names.insert(names.end(), {"A", "D", "E"});
  for (const std::string& name : names) {
    CAPTURE(name);
    const PackingProblem problem = read_minimalloc(name + ".1048576.csv");
    REQUIRE(problem.items.size() > 100);
    const auto packing = pack(problem, {.ejection_steps = 4'000'000});
    REQUIRE(packing);
    CHECK(packing->height <= problem.capacity);
    CHECK(!overlaps_on_a_line(problem, *packing));
    const auto quick = pack_lowest(problem);
    REQUIRE(quick);
    CHECK(!overlaps_on_a_line(problem, *quick));
    CHECK(quick->height.value < problem.capacity.value * 6 / 5);
  }
}
