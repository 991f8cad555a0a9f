// SPDX-License-Identifier: Apache-2.0
// Repeated sequences, and the iteration that is made of one.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include <swapmm/ir/calls/iteration.hpp>
#include <swapmm/ir/calls/repetition.hpp>

#include "support/call_logs.hpp"

using namespace swapmm;
using namespace swapmm::test;
using calls::Repetition;

namespace {

/// One token for each letter; an upper-case one is marked.
std::optional<Repetition> found(const std::string& text) {
  std::vector<std::uint64_t> tokens;
  std::vector<bool> marked;
  for (const char c : text) {
    tokens.push_back(static_cast<std::uint64_t>(c));
    marked.push_back(c >= 'A' && c <= 'Z');
  }
  return calls::find_repetition(tokens, marked);
}

std::string times(const std::string& text, int count) {
  std::string all;
  for (int i = 0; i < count; ++i) all += text;
  return all;
}

TensorKind kind_of(const Trace& trace, const std::string& name) {
  const auto tensor = std::find_if(trace.tensors.begin(), trace.tensors.end(),
                                   [&](const TraceTensor& each) { return each.name == name; });
  REQUIRE(tensor != trace.tensors.end());
  return tensor->kind;
}

constexpr auto operand = LogMaker::operand;

/// A program that trains: weights, an input, an activation, a loss that the host reads.
LogMaker training(int steps, bool new_activation = false) {
  LogMaker maker;
  const auto weights = maker.buffer(1000);
  const auto input = maker.buffer(400);
  const auto loss = maker.buffer(4);
  auto activation = new_activation ? 0 : maker.buffer(300);
  maker.write(weights, 0, 1000);
  for (int i = 0; i < steps; ++i) {
    maker.write(input, 0, 400);
    if (new_activation) activation = maker.buffer(300);
    maker
        .launch("forward", {operand(weights, Access::read, 0, 1000), operand(input, Access::read, 0, 400),
                            operand(activation, new_activation ? Access::update : Access::write, 0, 300)})
        .duration = std::chrono::nanoseconds{100 + i};
    maker
        .launch("backward", {operand(weights, Access::update, 0, 1000), operand(activation, Access::read, 0, 300),
                             operand(loss, Access::write, 0, 4)})
        .duration = std::chrono::nanoseconds{200};
    maker.read(loss, 0, 4);
    if (new_activation) maker.release(activation);
  }
  return maker;
}

calls::RecordedIteration recorded(const LogMaker& maker) {
  const Result<calls::Run> run = calls::resolve(maker.log);
  REQUIRE(run.has_value());
  Result<calls::RecordedIteration> made = calls::recorded_iteration(maker.log, *run, "training");
  if (!made) FAIL(made.problem().message);
  return *std::move(made);
}

}  // namespace

TEST_CASE("nothing repeats") {
  CHECK_FALSE(found("").has_value());
  CHECK_FALSE(found("a").has_value());
  CHECK_FALSE(found("abcdefg").has_value());
  CHECK_FALSE(found("abcRdefg").has_value());
}

TEST_CASE("the plainest repetitions") {
  CHECK(found("aa") == Repetition{0, 1, 2, 2});
  CHECK(found("abab") == Repetition{0, 2, 2, 4});
  CHECK(found("xyabcabcabcz") == Repetition{2, 3, 3, 9});
}

TEST_CASE("a sequence without host reads does not count where the program has some") {
  // The inner loop covers more than half of it.
  const std::string step = "p" + times("ab", 20) + "qR";
  const auto repetition = found("init" + times(step, 9) + "end");
  REQUIRE(repetition.has_value());
  CHECK(repetition->period == step.size());
  CHECK(repetition->count == 9);
  CHECK(repetition->begin == 4);
  CHECK(repetition->covered == 9 * step.size());
}

TEST_CASE("an inner loop with host reads is seen through if the outer one covers more") {
  const std::string epoch = times("abcR", 10) + times("deS", 5) + "f";
  const auto repetition = found(times(epoch, 6));
  REQUIRE(repetition.has_value());
  CHECK(repetition->period == epoch.size());
}

TEST_CASE("two iterations are no longer one") {
  const auto repetition = found(times("abcdR", 40));
  REQUIRE(repetition.has_value());
  CHECK(repetition->period == 5);
  CHECK(repetition->count == 40);
  // A disturbance makes the distance of two iterations a candidate.
  const auto disturbed = found(times("abcR", 20) + "abcT" + times("abcR", 20));
  REQUIRE(disturbed.has_value());
  CHECK(disturbed->period == 4);
}

TEST_CASE("a repetition begins behind a host read") {
  const auto repetition = found("bR" + times("abR", 20));
  REQUIRE(repetition.has_value());
  CHECK(repetition->period == 3);
  CHECK(repetition->begin == 2);
  CHECK(repetition->count == 20);
}

TEST_CASE("evaluation between the steps costs its part, and no more") {
  std::string text;
  for (int i = 0; i < 5; ++i) text += times("abcdefghR", 30) + "xyzT" + std::string(static_cast<std::size_t>(i), 'v');
  const auto repetition = found(text);
  REQUIRE(repetition.has_value());
  CHECK(repetition->period == 9);
  CHECK(repetition->covered == 5 * 30 * 9);
}

TEST_CASE("long periods are found as well as short ones") {
  std::string step;
  for (int i = 0; i < 900; ++i) step += static_cast<char>('a' + (i * i / 7) % 20);
  const auto repetition = found("q" + times(step + "R", 7));
  REQUIRE(repetition.has_value());
  CHECK(repetition->period == 901);
  CHECK(repetition->count == 7);
}

TEST_CASE("a training loop as a trace") {
  const calls::RecordedIteration made = recorded(training(10));
  CHECK(made.repetitions == 10);
  CHECK(made.operations == 4);
  CHECK(check_trace(made.trace).has_value());
  REQUIRE(made.trace.operations.size() == 2);
  CHECK(made.trace.operations[0].name == "forward");
  CHECK(made.trace.operations[0].duration == std::chrono::nanoseconds{105});  // the one in the middle of ten
  CHECK(made.trace.operations[1].duration == std::chrono::nanoseconds{200});
  CHECK(made.trace.operations[0].reads.size() == 2);
  CHECK(made.trace.operations[0].writes.size() == 1);
  CHECK(made.trace.operations[1].updates.size() == 1);
  CHECK(kind_of(made.trace, "buffer 1") == TensorKind::persistent);
  CHECK(kind_of(made.trace, "buffer 2") == TensorKind::input);
  CHECK(kind_of(made.trace, "buffer 3") == TensorKind::transient);
  CHECK(kind_of(made.trace, "buffer 4") == TensorKind::transient);
  REQUIRE(made.trace.host_reads.size() == 1);
  CHECK(index(made.trace.host_reads[0].after_operation) == 1);
  CHECK(made.trace.tensors[index(made.trace.host_reads[0].tensor)].name == "buffer 3");
  REQUIRE(made.notes.size() == 1);  // the update of the weights, of which nobody knows better
  CHECK(made.notes[0].find("accesses: 1 times") == 0);
}

TEST_CASE("the first update of a new buffer is a write, and it is no tensor of the next iteration") {
  const calls::RecordedIteration made = recorded(training(10, true));
  CHECK(check_trace(made.trace).has_value());
  REQUIRE(made.trace.operations.size() == 2);
  CHECK(made.trace.operations[0].writes.size() == 1);
  CHECK(made.trace.operations[0].updates.empty());
  CHECK(made.trace.tensors.size() == 4);
  CHECK(std::count_if(made.trace.tensors.begin(), made.trace.tensors.end(),
                      [](const TraceTensor& tensor) { return tensor.kind == TensorKind::transient; }) == 2);
}

TEST_CASE("buffers that are swapped back and forth make two periods one iteration") {
  LogMaker maker;
  const calls::Object both[] = {maker.buffer(100), maker.buffer(100)};
  for (std::size_t i = 0; i < 12; ++i) {
    maker.launch("step", {operand(both[i % 2], Access::read, 0, 100), operand(both[1 - i % 2], Access::write, 0, 100)});
    maker.read(both[1 - i % 2], 0, 100);
  }
  const calls::RecordedIteration made = recorded(maker);
  CHECK(made.operations == 4);
  CHECK(made.repetitions == 6);
  CHECK(made.trace.operations.size() == 2);
  CHECK(made.trace.host_reads.size() == 2);
}

TEST_CASE("a value that the host gives is an operation if it is no input") {
  LogMaker maker;
  const auto state = maker.buffer(100);
  for (int i = 0; i < 6; ++i) {
    maker.launch("step", {operand(state, Access::read, 0, 100)});
    maker.write(state, 0, 10);  // a part: the rest of it lives on
    maker.read(state, 0, 100);
  }
  const calls::RecordedIteration made = recorded(maker);
  REQUIRE(made.trace.operations.size() == 2);
  CHECK(made.trace.operations[1].name == "write");
  CHECK(made.trace.operations[1].updates.size() == 1);
  CHECK(kind_of(made.trace, "buffer 1") == TensorKind::persistent);
  CHECK(std::any_of(made.notes.begin(), made.notes.end(),
                    [](const std::string& note) { return note.find("ranges: 1 commands") == 0; }));
  CHECK(std::any_of(made.notes.begin(), made.notes.end(), [](const std::string& note) {
    return note.find("durations: the device told none for 2 of 2") == 0;
  }));
}

TEST_CASE("programs without a trace say why") {
  LogMaker maker;
  maker.launch("once", {});
  const Result<calls::RecordedIteration> none = calls::recorded_iteration(maker.log, *calls::resolve(maker.log), "x");
  REQUIRE_FALSE(none.has_value());
  CHECK(none.problem().message == "no sequence of commands repeats among the 1 of the run");
  maker.launch("once", {});
  const Result<calls::RecordedIteration> empty = calls::recorded_iteration(maker.log, *calls::resolve(maker.log), "x");
  REQUIRE_FALSE(empty.has_value());
  CHECK(empty.problem().message == "the repeated sequence has no command that uses a buffer");
}

TEST_CASE("an iteration begins behind a marked token only if two whole ones are left then") {
  using Marks = std::vector<bool>;
  const std::vector<std::uint64_t> twice = {2, 9, 1, 2, 9, 1};
  CHECK(calls::find_repetition(twice, Marks{false, true, false, false, true, false}) == calls::Repetition{0, 3, 2, 6});
  const std::vector<std::uint64_t> longer = {2, 9, 1, 2, 9, 1, 2, 9};
  CHECK(calls::find_repetition(longer, Marks{false, true, false, false, true, false, false, true}) ==
        calls::Repetition{2, 3, 2, 8});
}
