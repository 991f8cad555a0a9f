// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include <swapmm/plan/search/places/place_board.hpp>

#include "support/random_trace.hpp"

using namespace swapmm;
using namespace swapmm::planning;
using test::one_of;
using Place = PlaceBoard::Place;

namespace {

constexpr std::uint32_t operations = 12;
constexpr std::uint64_t budget = 64;

bool is_there(const Place& place, std::uint32_t operation) {
  return (operation + operations - place.start) % operations < place.slots;
}

bool meet(const Place& place, std::uint32_t start, std::uint32_t slots) {
  for (std::uint32_t slot = 0; slot < slots; ++slot) {
    if (is_there(place, (start + slot) % operations)) return true;
  }
  return false;
}

Place some_place(std::mt19937_64& random, PlaceBoard::GuestId guest) {
  const std::uint64_t begin = one_of(random, budget - 16);
  return {begin, begin + 1 + one_of(random, 16), static_cast<std::uint32_t>(one_of(random, operations)),
          1 + static_cast<std::uint32_t>(one_of(random, operations)), guest};
}

std::vector<PlaceBoard::GuestId> guests_of(const std::vector<Place>& places) {
  std::vector<PlaceBoard::GuestId> guests;
  for (const Place& place : places) guests.push_back(place.guest);
  std::sort(guests.begin(), guests.end());
  return guests;
}

std::uint64_t bytes_at(const std::vector<Place>& places, std::uint32_t operation) {
  std::uint64_t bytes = 0;
  for (const Place& place : places) bytes += is_there(place, operation) ? place.end - place.begin : 0;
  return bytes;
}

}  // namespace

TEST_CASE("a board knows who is in the way, and how many bytes are left, as a list of all places does") {
  std::mt19937_64 random(1);
  for (int round = 0; round < 200; ++round) {
    PlaceBoard board(operations, budget);
    std::vector<Place> places;
    for (PlaceBoard::GuestId guest = 0; guest < 8; ++guest) places.push_back(some_place(random, guest));
    board.add_all(places);
    for (PlaceBoard::GuestId guest = 8; guest < 16; ++guest) {
      places.push_back(some_place(random, guest));
      board.add(places.back());
      const auto gone = places.begin() + static_cast<std::ptrdiff_t>(one_of(random, places.size()));
      board.remove(gone->begin, gone->guest);
      places.erase(gone);
    }
    const auto start = static_cast<std::uint32_t>(one_of(random, operations));
    const std::uint32_t slots = 1 + static_cast<std::uint32_t>(one_of(random, operations));
    std::vector<Place> met;
    std::uint64_t most = 0;
    for (const Place& place : places) {
      if (meet(place, start, slots)) met.push_back(place);
    }
    for (std::uint32_t slot = 0; slot < slots; ++slot) {
      most = std::max(most, bytes_at(places, (start + slot) % operations));
    }
    board.look_around(start, slots);
    CHECK(guests_of(board.in_the_way()) == guests_of(met));
    CHECK(std::is_sorted(board.in_the_way().begin(), board.in_the_way().end(),
                         [](const Place& a, const Place& b) { return a.begin < b.begin; }));
    for (std::uint64_t size = 1; size <= budget; ++size) {
      CHECK(board.has_bytes(start, slots, size) == (most <= budget && size <= budget - most));
    }
  }
}

TEST_CASE("the free place is the smallest gap that takes the bytes") {
  PlaceBoard board(operations, budget);
  board.add_all({{0, 10, 0, 3, 0}, {20, 30, 2, 2, 1}, {34, 60, 11, 4, 2}});
  board.look_around(0, 4);
  CHECK(board.free_place(1) == 30);  // 30 to 34, and 60 to 64: the first of equal ones
  CHECK(board.free_place(5) == 10);  // 10 to 20
  CHECK(board.free_place(11) == PlaceBoard::no_place);
  CHECK(board.is_free(10, 10));
  CHECK_FALSE(board.is_free(9, 10));
  board.look_around(5, 3);  // nobody is there
  CHECK(board.in_the_way().empty());
  CHECK(board.free_place(64) == 0);
  CHECK(board.free_place(65) == PlaceBoard::no_place);
}

TEST_CASE("the cheapest place is where those weigh least who would have to go, of all places there are") {
  std::mt19937_64 random(2);
  for (int round = 0; round < 200; ++round) {
    PlaceBoard board(operations, budget);
    std::vector<Place> places;
    std::vector<double> weights;
    for (PlaceBoard::GuestId guest = 0; guest < 6; ++guest) {
      places.push_back(some_place(random, guest));
      weights.push_back(static_cast<double>(1 + one_of(random, 100)));
    }
    board.add_all(places);
    board.look_around(3, 5);
    const auto weight_at = [&](std::uint64_t begin, std::uint64_t size) {
      double weight = 0;
      for (const Place& place : board.in_the_way()) {
        if (place.begin < begin + size && begin < place.end) weight += weights[place.guest];
      }
      return weight;
    };
    const std::uint64_t size = 1 + one_of(random, budget);
    const std::uint64_t found = board.cheapest_place(size, weights);
    REQUIRE(found <= budget - size);
    double least = weight_at(0, size);
    for (std::uint64_t begin = 1; begin + size <= budget; ++begin) least = std::min(least, weight_at(begin, size));
    CHECK(weight_at(found, size) == least);
    CHECK(board.cheapest_place(budget + 1, weights) == PlaceBoard::no_place);
  }
}
