// SPDX-License-Identifier: Apache-2.0
// Sums over replicas in one and in several processes: always in the same order, whoever has which replica.
#include <doctest/doctest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <swapmm/error.hpp>
#include <swapmm/replicas/chain.hpp>
#include <swapmm/replicas/thread_exchange.hpp>

namespace swapmm::test::sums_test {

using Exchanges = std::vector<std::unique_ptr<Exchange>>;

/// Runs one thread for each process. What a thread throws is its text in the result; empty: it threw nothing.
std::vector<std::string> in_threads(std::size_t processes, const std::function<void(Exchange&)>& work) {
  Exchanges exchanges = exchanges_between_threads(processes);
  std::vector<std::string> thrown(processes);
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < processes; ++i) {
      threads.emplace_back([&, i] {
        try {
          work(*exchanges[i]);
        } catch (const std::exception& error) {
          thrown[i] = error.what();
          exchanges[i]->fail(error.what());
        }
        exchanges[i].reset();
      });
    }
  }
  return thrown;
}

/// Numbers whose sum depends on the order.
std::vector<float> numbers(std::size_t count, std::size_t replica) {
  std::vector<float> values(count);
  auto seed = static_cast<std::uint32_t>(replica * 7919 + 5);
  for (float& value : values) {
    seed = seed * 1664525U + 1013904223U;
    value = static_cast<float>(seed >> 8U) * (seed % 3 == 0 ? 1e-3F : 1e2F) - 1e6F;
  }
  return values;
}

std::vector<float> summed_alone(std::size_t count, std::size_t replicas, bool backwards = false) {
  std::vector<float> sum = numbers(count, backwards ? replicas - 1 : 0);
  for (std::size_t i = 1; i < replicas; ++i) {
    const std::vector<float> part = numbers(count, backwards ? replicas - 1 - i : i);
    for (std::size_t k = 0; k < count; ++k) sum[k] += part[k];
  }
  return sum;
}

bool same(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
}

std::vector<float> sum_here(Exchange* exchange, std::size_t count, std::size_t first, std::size_t replicas,
                            std::size_t threads = 1) {
  std::vector<std::vector<float>> values;
  std::vector<std::span<float>> parts;
  for (std::size_t i = 0; i < replicas; ++i) values.push_back(numbers(count, first + i));
  for (auto& one : values) parts.push_back(one);
  replicas::sum_of_all<float>(exchange, {.elements = count}, parts, threads);
  return values[0];
}

TEST_CASE("the order of a sum matters, and it is that of the replicas, with any number of threads") {
  const std::size_t count = 5 * replicas::elements_per_thread + 3;
  const std::vector<float> expected = summed_alone(count, 4);
  REQUIRE(!same(expected, summed_alone(count, 4, true)));
  for (const std::size_t threads : {1U, 2U, 3U, 50U}) CHECK(same(sum_here(nullptr, count, 0, 4, threads), expected));
  CHECK(sum_here(nullptr, 0, 0, 3).empty());
  CHECK(same(sum_here(nullptr, 7, 0, 1), numbers(7, 0)));
}

TEST_CASE(
    "processes sum to the bits of one process, however the replicas are spread, in segments and without elements") {
  const std::vector<std::vector<std::size_t>> spreads{{4}, {1, 3}, {3, 1}, {1, 1, 2}, {1, 1, 1, 1}};
  for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{1000}, replicas::segment_elements + 5}) {
    const std::vector<float> expected = summed_alone(count, 4);
    for (const auto& spread : spreads) {
      std::vector<std::vector<float>> sums(spread.size());
      const auto thrown = in_threads(spread.size(), [&](Exchange& exchange) {
        std::size_t first = 0;
        for (std::size_t i = 0; i < exchange.rank(); ++i) first += spread[i];
        sums[exchange.rank()] = sum_here(&exchange, count, first, spread[exchange.rank()]);
      });
      for (const std::string& text : thrown) CHECK(text.empty());
      for (const auto& sum : sums) CHECK(same(sum, expected));
    }
  }
}

TEST_CASE("the largest value of all processes reaches each of them") {
  for (std::size_t processes = 1; processes <= 4; ++processes) {
    for (std::size_t largest = 0; largest < processes; ++largest) {
      const auto thrown = in_threads(processes, [&](Exchange& exchange) {
        const std::int64_t own = exchange.rank() == largest ? 70 : -5;
        if (replicas::largest_of_all(&exchange, own) != 70) throw Error("wrong");
      });
      for (const std::string& text : thrown) CHECK(text.empty());
    }
  }
}

TEST_CASE("processes that sum different things end with an error that says what") {
  const auto thrown = in_threads(
      3, [&](Exchange& exchange) { (void)sum_here(&exchange, exchange.rank() == 1 ? 11 : 10, exchange.rank(), 1); });
  const std::string text =
      "replica process 1 sums 11 elements of 0 layers in chunk 0 of step 0, and process 0 10 elements";
  CHECK(thrown[1].find(text) == 0);
  CHECK(thrown[0].find("replica process 1 failed: " + text) == 0);
  CHECK(thrown[2].find("replica process 1 failed: " + text) == 0);
}

TEST_CASE("a process that fails or ends makes the others end, wherever they wait") {
  for (std::size_t failing = 0; failing < 3; ++failing) {
    for (const bool throws : {false, true}) {
      const auto thrown = in_threads(3, [&](Exchange& exchange) {
        (void)sum_here(&exchange, 100, exchange.rank(), 1);
        if (exchange.rank() == failing) {
          if (throws) throw Error("no power");
          return;
        }
        (void)sum_here(&exchange, 100, exchange.rank(), 1);
      });
      for (std::size_t i = 0; i < 3; ++i) {
        if (i == failing) continue;
        CHECK(!thrown[i].empty());
        if (throws) CHECK(thrown[i] == "replica process " + std::to_string(failing) + " failed: no power");
      }
    }
  }
}

TEST_CASE("what waits learns of a failure at once, and nothing is sent after one") {
  const Exchanges two = exchanges_between_threads(2);
  std::string thrown;
  {
    std::jthread waits([&] {
      std::byte byte{};
      try {
        two[1]->receive(0, {&byte, 1});
      } catch (const ReplicaFailed& error) {
        thrown = error.what();
      }
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // most likely it waits by then
    two[0]->fail("no power");
  }  // both processes are still there
  CHECK(thrown == "replica process 0 failed: no power");
  CHECK_THROWS_WITH_AS(two[1]->send(0, {}), "replica process 0 failed: no power", ReplicaFailed);
}

TEST_CASE("an exchange refuses what makes no sense") {
  CHECK_THROWS_AS((void)exchanges_between_threads(0), UsageError);
  const Exchanges two = exchanges_between_threads(2);
  std::byte byte{};
  const std::span<std::byte> bytes(&byte, 1);
  CHECK_THROWS_AS(two[0]->send(0, bytes), UsageError);
  CHECK_THROWS_AS(two[0]->receive(2, bytes), UsageError);
  two[1]->send(0, {});
  CHECK_THROWS_WITH_AS(two[0]->receive(1, bytes), "replica process 1 sent 0 bytes, and 1 were expected", ReplicaFailed);
}

}  // namespace swapmm::test::sums_test
