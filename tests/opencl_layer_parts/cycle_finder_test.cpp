// SPDX-License-Identifier: Apache-2.0
// Iterations found in a sequence of commands, without marks.
#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "iterations/cycle_finder.hpp"

namespace {

using swapmm::opencl::layer::CycleFinder;
using swapmm::opencl::layer::HostPart;

/// Commands as a text: each character is one; a capital letter is a read of the host, and in '{' and '|' it gives
/// values.
class Run {
 public:
  /// Marks where iterations begin '(', end ')' and are left '!'.
  std::string operator()(const std::string& commands) {
    std::string told;
    for (const char c : commands) {
      const HostPart host = c >= 'A' && c <= 'Z'   ? HostPart::reads
                            : c == '{' || c == '|' ? HostPart::gives
                                                   : HostPart::none;
      const CycleFinder::Step step = finder.next(static_cast<std::uint64_t>(c), host, moved);
      if (moving.find(c) != std::string::npos) moved += 100;
      if (step.leaves) told += '!';
      if (step.begins) told += '(';
      told += c;
      if (step.ends) told += ')';
      if (step.ends && follows) finder.followed();
    }
    return told;
  }
  std::string times(std::size_t count, const std::string& commands) {
    std::string told;
    for (std::size_t i = 0; i < count; ++i) told += (*this)(commands);
    return told;
  }
  CycleFinder finder;
  bool follows = false;  ///< iterations follow plans
  std::string moving;    ///< commands that move 100 bytes
  std::uint64_t moved = 0;
};

std::string repeated(std::size_t count, const std::string& text) {
  std::string all;
  for (std::size_t i = 0; i < count; ++i) all += text;
  return all;
}

}  // namespace

TEST_CASE("a sequence with a read of the host is an iteration once it has run twice") {
  Run run;
  CHECK(run("abcdefR") == "abcdefR");
  CHECK(run("abcdefR") == "abcdefR");
  CHECK(run("abcdefR") == "(abcdefR)");
  CHECK(run("abcdefR") == "(abcdefR)");
  CHECK(run.finder.found() == 1);
}

TEST_CASE("an iteration begins behind the read, wherever the program's own loop begins") {
  Run run;
  CHECK(run("xyz") == "xyz");  // a prologue
  CHECK(run.times(2, "cdefRab") == "cdefRabcdefRab");
  const std::string told = run.times(3, "cdefRab");
  CHECK(told == "cdefR(abcdefR)(abcdefR)(ab");
}

TEST_CASE("short sequences within a step are seen through") {
  const std::string step = "i" + repeated(12, "abcd") + "xy" + repeated(12, "dcba") + "uR";
  Run run;
  CHECK(run.times(2, step) == step + step);
  CHECK(run.times(2, step) == "(" + step + ")(" + step + ")");
}

TEST_CASE("without reads of the host, eight times and 2,048 commands make a cycle") {
  std::string step;
  for (char c = 33; c < 65; ++c) step += c;  // 32 commands, none a letter
  Run run;
  std::size_t repeats = 0;
  while (run.finder.found() == 0 && repeats < 100) {
    (void)run(step);
    ++repeats;
  }
  CHECK(repeats == 64);
  CHECK(run(step).find('(') != std::string::npos);
  CHECK(run(step).find(')') != std::string::npos);

  Run few;
  (void)few.times(7, std::string(400, '-').replace(0, 1, "+"));
  CHECK(few.finder.found() == 0);
}

TEST_CASE("without reads, four times and 128 commands make a cycle in which the host gives something") {
  const std::string step = "{|" + repeated(19, "ab") + "yz";  // 42 commands
  Run run;
  CHECK(run("xyzxy") == "xyzxy");
  CHECK(run.times(4, step) == repeated(4, step));
  CHECK(run.finder.found() == 1);
  CHECK(run.times(2, step) == "(" + step + ")(" + step + ")");
  CHECK(run("xyz") == "xyz");
  CHECK(run(step) == "(" + step + ")");

  Run inside;  // the program's own loop begins elsewhere
  CHECK(inside.times(3, step.substr(20) + step.substr(0, 20)).find('(') == std::string::npos);
  const std::string told = inside.times(3, step.substr(20) + step.substr(0, 20));
  CHECK(told.ends_with("(" + step + ")(" + step.substr(0, 20)));

  Run few;
  (void)few.times(12, "{abcdefghi");  // 120 commands
  CHECK(few.finder.found() == 0);
  CHECK(few("{abcdefghi").find('(') == std::string::npos);
  CHECK(few("{abcdefghi") == "({abcdefghi)");

  Run uploads;
  (void)uploads.times(1000, "{");
  CHECK(uploads.finder.found() == 0);
}

TEST_CASE("steps that follow a plan stay iterations, with an evaluation now and then") {
  for (const std::string& step : {std::string("abcdefgR"), "{|" + repeated(24, "ab")}) {
    CAPTURE(step);
    const std::string all = repeated(10, step) + "pqS";
    Run run;
    run.follows = true;
    (void)run(all);
    CHECK(run.finder.found() == 1);
    for (int i = 0; i < 4; ++i) CHECK(run(all) == repeated(10, "(" + step + ")") + "pqS");
    CHECK(run.finder.found() == 1);

    Run without;  // no plan is found for them
    (void)without.times(4, all);
    CHECK(without.finder.found() == 2);
    CHECK(without(all) == "(" + all + ")");
  }
}

TEST_CASE("a sequence is one of its own where what comes beside steps with plans moves most") {
  const std::string all = repeated(10, "abcdefgR") + "pqS";
  for (const std::string moving : {"ab", "aq", "pq", "p", "q", ""}) {
    CAPTURE(moving);
    Run run;
    run.follows = true;
    run.moving = moving;
    (void)run.times(5, all);
    const bool beside = !moving.empty() && moving.find('a') == std::string::npos;
    CHECK(run.finder.found() == (beside ? 2 : 1));
  }
}

TEST_CASE("a sequence of steps that follow no plan any more is one of its own") {
  const std::string all = repeated(10, "abcdefgR") + "pqS";
  for (const std::size_t last : {7, 8, 9}) {
    CAPTURE(last);
    Run run;
    run.follows = true;
    (void)run.times(2, all);
    // It can be known when the steps of the third round have ended.
    (void)run.times(10 - last, "abcdefgR");
    run.follows = false;
    (void)run(repeated(last, "abcdefgR") + "pqS");
    CHECK(run.finder.found() == (last > 8 ? 2 : 1));
  }
}

TEST_CASE("a sequence of which steps with plans are the smaller part is one of its own") {
  Run run;
  run.follows = true;
  (void)run.times(3, "abcR");
  const std::string all = "abcRabcR" + repeated(4, "xyz") + "S";
  CHECK(run.times(2, all) == repeated(2, "(abcR)(abcR)" + repeated(4, "xyz") + "S"));
  CHECK(run.times(2, all) == "(abcR)(abcR)(" + repeated(4, "xyz") + "SabcRabcR)(" + repeated(4, "xyz") + "S");
  CHECK(run.finder.found() == 2);
}

TEST_CASE("an evaluation in between leaves nothing, and the next step is an iteration at once") {
  Run run;
  (void)run.times(3, "abcdefR");
  CHECK(run("pqpqS") == "pqpqS");
  CHECK(run("abcdefR") == "(abcdefR)");
}

TEST_CASE("another command within an iteration ends it there") {
  Run run;
  (void)run.times(3, "abcdefR");
  CHECK(run("abcxyzR") == "(abc!xyzR");
  CHECK(run("abcdefR") == "(abcdefR)");
}

TEST_CASE("a sequence that begins like another one goes on as that one") {
  Run run;
  (void)run.times(3, "abcdefR");
  (void)run.times(3, "abcxyzS");
  CHECK(run.finder.found() == 2);
  CHECK(run("abcdefR") == "(abcdefR)");
  CHECK(run("abcxyzS") == "(abcxyzS)");
  CHECK(run("abcdefR") == "(abcdefR)");
}

TEST_CASE("of sequences that come back, eight are kept") {
  Run run;
  const auto step = [](std::size_t i) { return std::string(1, static_cast<char>('a' + i)) + "wxyzR"; };
  for (std::size_t i = 0; i < 9; ++i) (void)run.times(3, step(i));
  CHECK(run.finder.found() == 9);
  CHECK(run(step(8)) == "(" + step(8) + ")");
  CHECK(run(step(1)) == "(" + step(1) + ")");
  CHECK(run(step(0)) == step(0));  // the one that was not used for longest is forgotten
}

TEST_CASE("what is expected is told as long as the program is in a cycle") {
  Run run;
  CHECK(!run.finder.expected(0));
  (void)run.times(3, "abcR");
  (void)run("a");
  CHECK(run.finder.expected(0) == std::uint64_t{'b'});
  CHECK(run.finder.expected(2) == std::uint64_t{'R'});
  CHECK(run.finder.expected(3) == std::uint64_t{'a'});  // of the next iteration
  run.finder.leave();
  CHECK(!run.finder.expected(0));
  CHECK(run("bcR") == "bcR");
  CHECK(run("abcR") == "(abcR)");
}

TEST_CASE("commands that never repeat make no cycle") {
  CycleFinder finder;
  std::mt19937_64 random(1);
  for (int i = 0; i < 300'000; ++i) {
    const CycleFinder::Step step = finder.next(random(), random() % 16 == 0 ? HostPart::reads : HostPart::none);
    REQUIRE(!(step.begins || step.ends || step.leaves));
  }
  CHECK(finder.found() == 0);
}

TEST_CASE("a step of 30,000 commands is found; a longer one than the finder keeps is not, and does no harm") {
  for (const std::size_t length : {std::size_t{30'000}, std::size_t{40'000}}) {
    CycleFinder finder;
    std::uint64_t begins = 0;
    for (std::size_t round = 0; round < 5; ++round) {
      for (std::size_t i = 0; i < length; ++i) {
        const HostPart host = i + 1 == length ? HostPart::reads : HostPart::none;
        begins += finder.next(i * 0x9e3779b97f4a7c15U, host).begins;
      }
    }
    CHECK(finder.found() == (length == 30'000 ? 1 : 0));
    CHECK(begins == (length == 30'000 ? 3 : 0));
  }
}

TEST_CASE("random loops: iterations begin and end in turn, each ended one is as long as a loop's body") {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    std::mt19937_64 random(seed);
    Run run;
    std::vector<std::string> bodies;
    for (std::size_t i = 0; i < 1 + random() % 3; ++i) {
      std::string body;
      for (std::size_t c = 0; c < 2 + random() % 40; ++c) body += static_cast<char>('a' + random() % 6);
      bodies.push_back(body + static_cast<char>('A' + i));
    }
    std::string told;
    for (int block = 0; block < 12; ++block) {
      const std::string& body = bodies[random() % bodies.size()];
      told += run.times(1 + random() % 5, body);
      if (random() % 4 == 0) told += run(body.substr(0, random() % body.size()));  // cut off
    }
    bool inside = false;
    std::size_t length = 0;
    for (const char c : told) {
      CAPTURE(seed);
      if (c == '(') {
        REQUIRE(!inside);
        inside = true;
        length = 0;
      } else if (c == ')' || c == '!') {
        REQUIRE(inside);
        inside = false;
      } else {
        ++length;
      }
    }
    CHECK(run.finder.longest() < 2'000);
  }
}
