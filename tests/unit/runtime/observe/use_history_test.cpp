// SPDX-License-Identifier: Apache-2.0
// What the sequence of operations tells about the next ones.
#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include <swapmm/runtime/observe/use_history.hpp>

using namespace swapmm;
using swapmm::runtime::Use;
using swapmm::runtime::UseHistory;

namespace {

// Each letter is an operation that uses one tensor, in the record of its number in the alphabet.
void add(UseHistory& history, std::string_view letters, std::uint64_t serial = 1) {
  for (const char letter : letters) {
    const auto record = static_cast<std::uint32_t>(letter - 'a');
    const std::vector<Use> uses{{record, serial, Access::read}};
    history.add(static_cast<std::uint64_t>(letter), uses);
  }
}

char upcoming(const UseHistory& history, std::size_t ahead) {
  const auto uses = history.upcoming(ahead);
  return uses.empty() ? '-' : static_cast<char>('a' + uses.front().record);
}

}  // namespace

TEST_CASE("four operations that came before tell what comes next, and how far away the next use is") {
  UseHistory history;
  add(history, "abcdeabc");
  CHECK(history.distance(0) == UseHistory::unknown);
  CHECK(history.foretold() == 0);
  add(history, "d");
  CHECK(history.distance(0) == 5);
  CHECK(upcoming(history, 1) == '-');  // never foretold before
  add(history, "eabcd");
  CHECK(history.foretold() == 5);
  CHECK(history.came() == 5);
  CHECK(history.distance(0) == 5);
  CHECK(upcoming(history, 0) == '-');
  CHECK(upcoming(history, 1) == 'e');
  CHECK(upcoming(history, 5) == '-');  // not later than the last one
}

TEST_CASE("repeated parts are found however they follow one another") {
  UseHistory history;
  add(history, "abcdefg");
  add(history, "uvwxyz");
  add(history, "abcdefg");
  add(history, "abcd");
  CHECK(history.distance(0) == 7);  // as after the second time, which came last
  add(history, "efg");
  add(history, "uvwx");
  CHECK(history.distance(0) == 20);  // from x to x
  CHECK(history.came() == 9);        // efg twice, and vwx, because g was followed by u before
  CHECK(history.foretold() == 11);   // what followed g twice was something else
}

TEST_CASE("what was wrong the last time is not brought again") {
  UseHistory history;
  add(history, "abcdeabcdeabcd");
  CHECK(upcoming(history, 1) == 'e');
  add(history, "x");  // instead of e
  CHECK(history.foretold() == 6);
  CHECK(history.came() == 5);
  CHECK(upcoming(history, 1) == '-');
  add(history, "abcd");
  CHECK(upcoming(history, 1) == '-');  // x came last, and was not foretold
}

TEST_CASE("after an interruption four operations are needed again") {
  UseHistory history;
  add(history, "abcdeabcdeab");
  CHECK(history.distance(0) == 5);
  history.interrupt();
  CHECK(history.distance(0) == UseHistory::unknown);
  add(history, "cde");
  CHECK(history.distance(0) == UseHistory::unknown);
  add(history, "a");
  CHECK(history.distance(0) == 5);
}

TEST_CASE("another tensor in the same record is no later use of the first one") {
  UseHistory history;
  add(history, "abcde", 1);
  add(history, "abcd", 2);
  CHECK(history.distance(0) == UseHistory::unknown);
}

TEST_CASE("the oldest operations are forgotten") {
  for (const std::size_t between : {UseHistory::capacity - 8, UseHistory::capacity}) {
    UseHistory history;
    add(history, "abcdabcd");
    for (std::size_t i = 0; i < between; ++i) history.add(1000 + i, {});
    add(history, "abcd");
    CHECK((history.distance(0) == UseHistory::unknown) == (between == UseHistory::capacity));
  }
}

TEST_CASE("of a large bundle the first tensors are remembered") {
  UseHistory history;
  std::vector<Use> uses;
  for (std::uint32_t i = 0; i < 40; ++i) uses.push_back({i, 7, Access::read});
  for (std::uint64_t i = 0; i < 12; ++i) history.add(1 + i % 2, uses);
  CHECK(history.distance(UseHistory::most_uses - 1) == 1);
  CHECK(history.distance(UseHistory::most_uses) == UseHistory::unknown);
  CHECK(history.upcoming(1).size() == UseHistory::most_uses);
}
