// SPDX-License-Identifier: Apache-2.0
// A step of two layers, small enough to be divided by hand.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include <swapmm/plan/split/quantity.hpp>
#include <swapmm/plan/split/split.hpp>

namespace swapmm::test::split_step_test {
using std::chrono::nanoseconds;

constexpr TensorId id(std::uint32_t i) { return static_cast<TensorId>(i); }

enum Tensors : std::uint32_t { x, w1, h, w2, y, g2, gh, g1, loss };
using Ids = std::vector<std::uint32_t>;

TraceOperation operation(std::string name, std::uint64_t time, const Ids& reads, const Ids& writes,
                         const Ids& updates = {}) {
  TraceOperation made;
  made.name = std::move(name);
  made.duration = nanoseconds{static_cast<std::int64_t>(time)};
  for (const std::uint32_t i : reads) made.reads.push_back(id(i));
  for (const std::uint32_t i : writes) made.writes.push_back(id(i));
  for (const std::uint32_t i : updates) made.updates.push_back(id(i));
  return made;
}

/// As one piece; weights learn as soon as their gradient is there.
Trace whole(std::uint64_t b) {
  Trace trace;
  trace.name = "train";
  trace.tensors = {{"x", Bytes{10 * b}, TensorKind::input, 0},
                   {"w1", Bytes{40}, TensorKind::persistent, 0},
                   {"h", Bytes{8 + 6 * b}},
                   {"w2", Bytes{20}, TensorKind::persistent, 0},
                   {"y", Bytes{4 * b}},
                   {"g2", Bytes{20}},
                   {"gh", Bytes{8 + 6 * b}},
                   {"g1", Bytes{40}},
                   {"loss", Bytes{8}, TensorKind::persistent, 0}};
  trace.operations = {operation("forward1", 10 + 2 * b, {x, w1}, {h}),
                      operation("forward2", 5 + b, {h, w2}, {y}),
                      operation("loss", b, {}, {}, {y, loss}),
                      operation("back2", 3 * b, {y, h}, {g2}),
                      operation("in2", 10, {y, w2}, {gh}),
                      operation("learn2", 7, {g2}, {}, {w2}),
                      operation("back1", 2 * b, {x, gh}, {g1}),
                      operation("learn1", 9, {g1}, {}, {w1})};
  trace.host_reads = {{id(loss), OperationId{2}}};
  return trace;
}

SplitStep step() {
  const Result<SplitStep> made = split_step(whole(4), 4, whole(8), 8);
  REQUIRE_MESSAGE(made, (made ? std::string() : made.problem().message));
  return *made;
}

std::vector<std::string> names(const Trace& trace) {
  std::vector<std::string> names;
  for (const TraceOperation& o : trace.operations) names.push_back(o.name);
  return names;
}

/// Names and sizes of an operation's tensors.
std::vector<std::string> texts(const Trace& trace, const std::vector<TensorId>& ids) {
  std::vector<std::string> texts;
  for (const TensorId i : ids) {
    texts.push_back(trace.tensors[index(i)].name + ' ' + std::to_string(trace.tensors[index(i)].bytes.value));
  }
  return texts;
}

std::string problem_of(const Trace& one, const Trace& other) {
  const Result<SplitStep> made = split_step(one, 4, other, 8);
  return made ? "none" : made.problem().message;
}

bool says(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST_CASE("pieces differ by at most one sample, and the larger ones come first") {
  CHECK(piece_sizes(256, 4) == std::vector<std::uint64_t>{64, 64, 64, 64});
  CHECK(piece_sizes(10, 3) == std::vector<std::uint64_t>{4, 3, 3});
  CHECK(piece_sizes(5, 5) == std::vector<std::uint64_t>(5, 1));
}

TEST_CASE("sizes and durations lie on the line through both observations") {
  SplitStep lines;
  lines.small = 4;
  lines.large = 8;
  CHECK(planning::bytes_at(lines, {32, 56}, 1) == Bytes{14});
  CHECK(planning::bytes_at(lines, {32, 56}, 100) == Bytes{608});
  CHECK(planning::bytes_at(lines, {10, 13}, 5) == Bytes{11});  // 10.75
  CHECK(planning::bytes_at(lines, {10, 13}, 3) == Bytes{10});  // 9.25
  CHECK(planning::bytes_at(lines, {10, 100}, 1) == Bytes{0});  // below 0
  CHECK(planning::bytes_at(lines, {20, 10}, 6) == Bytes{20});
  CHECK(planning::bytes_at(lines, {0, std::int64_t{1} << 61}, std::uint64_t{1} << 40U) ==
        Bytes{std::uint64_t{1} << 62U});
  CHECK(planning::duration_at(lines, {18, 26}, 1) == nanoseconds{12});
  CHECK(planning::duration_at(lines, {20, 10}, 1) == nanoseconds{15});
  CHECK(planning::duration_at(lines, {4, 20}, 1) == nanoseconds{2});  // in proportion: 24 for 12
}

TEST_CASE("from two traces: what grows with the batch runs in pieces, and weights learn after the last one") {
  const SplitStep made = step();
  CHECK(made.before.empty());
  CHECK(made.piece.size() == 6);
  REQUIRE(made.after.size() == 2);
  CHECK(made.after[0].first.name == "learn2");
  CHECK(made.statistics.empty());
  std::vector<std::string> local;
  for (const SplitTensor& tensor : made.tensors) {
    if (tensor.local) local.push_back(tensor.name);
  }
  CHECK(local == std::vector<std::string>{"x", "h", "y", "gh"});
}

TEST_CASE("three pieces of a batch of 10, by hand") {
  const Result<Trace> written = written_out(step(), piece_sizes(10, 3));
  REQUIRE(written);
  const std::vector<std::string> piece{"forward1", "forward2", "loss", "back2", "in2", "back1"};
  std::vector<std::string> expected;
  for (int i = 0; i < 3; ++i) expected.insert(expected.end(), piece.begin(), piece.end());
  expected.insert(expected.end(), {"learn2", "learn1"});
  CHECK(names(*written) == expected);
  // 4 samples, then 3.
  const auto& operations = written->operations;
  CHECK(operations[0].duration == nanoseconds{18});
  CHECK(operations[6].duration == nanoseconds{16});
  CHECK(operations[9].duration == nanoseconds{9});
  CHECK(operations[18].duration == nanoseconds{7});
  CHECK(texts(*written, operations[0].reads) == std::vector<std::string>{"x 40", "w1 40"});
  CHECK(texts(*written, operations[0].writes) == std::vector<std::string>{"h 32"});
  CHECK(texts(*written, operations[12].writes) == std::vector<std::string>{"h 26"});
  CHECK(operations[12].writes != operations[6].writes);
  // The first piece begins the gradient, the others add to it.
  CHECK(texts(*written, operations[3].writes) == std::vector<std::string>{"g2 20"});
  CHECK(operations[9].writes.empty());
  CHECK(operations[9].updates == operations[3].writes);
  CHECK(operations[15].updates == operations[3].writes);
  CHECK(operations[18].reads == operations[3].writes);
  REQUIRE(written->host_reads.size() == 1);
  CHECK(written->host_reads[0].after_operation == OperationId{14});
  CHECK(written->tensors.size() == 5 + 3 * 4);
}

TEST_CASE("one piece is the whole step, with the weights' steps at its end") {
  const Result<Trace> written = written_out(step(), piece_sizes(16, 1));
  REQUIRE(written);
  const Trace traced = whole(16);
  CHECK(written->operations.size() == traced.operations.size());
  std::uint64_t sum = 0;
  std::uint64_t expected = 0;
  for (const TraceTensor& tensor : written->tensors) sum += tensor.bytes.value;
  for (const TraceTensor& tensor : traced.tensors) expected += tensor.bytes.value;
  CHECK(sum == expected);
}

TEST_CASE("what the pieces need and no sample changes runs once, before them") {
  // g2 begins with zeros, and w2 is read through a transposed copy.
  const auto traced = [](std::uint64_t b) {
    Trace trace = whole(b);
    trace.tensors.push_back({"w2 transposed", Bytes{20}});
    trace.operations[3] = operation("back2", 3 * b, {y, h}, {}, {g2});
    trace.operations[4] = operation("in2", 10, {y, 9}, {gh});
    trace.operations.insert(trace.operations.begin() + 3, operation("zero", 1, {}, {g2}));
    trace.operations.insert(trace.operations.begin() + 3, operation("transpose", 2, {w2}, {9}));
    return trace;
  };
  const Result<SplitStep> made = split_step(traced(4), 4, traced(8), 8);
  REQUIRE(made);
  REQUIRE(made->before.size() == 2);
  CHECK(made->before[0].first.name == "transpose");
  CHECK(made->before[1].first.name == "zero");
  CHECK(made->piece.size() == 6);
  const Result<Trace> written = written_out(*made, piece_sizes(6, 2));
  REQUIRE(written);
  CHECK(written->operations[5].updates == written->operations[1].writes);
}

TEST_CASE("a value of fixed size that is computed from samples and read by the piece may be a statistic") {
  // The mean of h is made by an operation on samples; another one, without samples, makes a scale of it.
  const auto traced = [](std::uint64_t b) {
    Trace trace = whole(b);
    trace.tensors.push_back({"mean", Bytes{4}});
    trace.tensors.push_back({"scale", Bytes{4}});
    trace.operations[1] = operation("forward2", 5 + b, {h, w2, 10}, {y});
    trace.operations.insert(trace.operations.begin() + 1, operation("scale", 2, {9}, {10}));
    trace.operations.insert(trace.operations.begin() + 1, operation("mean", 2, {h}, {9}));
    return trace;
  };
  const Result<SplitStep> made = split_step(traced(4), 4, traced(8), 8);
  REQUIRE(made);
  CHECK(made->statistics == std::vector<TensorId>{id(9), id(10)});
  CHECK(made->piece.size() == 8);
  CHECK(made->tensors[10].local);
}

TEST_CASE("traces that are not of one program, or that cannot be split, are refused") {
  const Trace small = whole(4);
  Trace other = whole(8);
  CHECK(problem_of(whole(4), whole(4)) == "no tensor's size depends on the batch");
  CHECK(says(problem_of(whole(8), whole(4)), "tensor 0 (x) has 80 bytes for 4 samples, and 40 for 8"));
  other.operations.pop_back();
  CHECK(says(problem_of(small, other), "one has 8 operations, the other 7"));
  other = whole(8);
  std::swap(other.operations[1].reads[0], other.operations[1].reads[1]);
  CHECK(says(problem_of(small, other), "operation 1 (forward2) has other tensors"));
  other = whole(8);
  other.tensors[w1].kind = TensorKind::transient;
  CHECK(says(problem_of(small, other), "tensor 1 (w1) lives otherwise"));
  other = whole(8);
  other.host_reads.clear();
  CHECK(says(problem_of(small, other), "the host reads other values"));
  other = whole(8);
  other.engines = {"gpu"};
  CHECK(says(problem_of(small, other), "version 2"));
  const Result<SplitStep> same = split_step(small, 8, small, 8);
  REQUIRE(!same);
  CHECK(same.problem().message == "both traces have the same batch");
  REQUIRE(!split_step(small, 0, whole(8), 8));
  // One tensor for both gradients: the second overwrites what learn2 needs after the last piece.
  const auto shared_gradient = [](std::uint64_t b) {
    Trace trace = whole(b);
    trace.operations[6].writes = {id(g2)};
    trace.operations[7].reads = {id(g2)};
    return trace;
  };
  CHECK(says(problem_of(shared_gradient(4), shared_gradient(8)),
             "operation 5 (learn2) needs tensor 5 (g2) after the last piece, and operation 6 (back1) changes it"));
}

/// The same step as a program would run it in pieces: gradients begin with zeros, pieces add to them.
Trace observed(const std::vector<std::uint64_t>& sizes, std::vector<ObservedPiece>& pieces) {
  Trace trace;
  trace.name = "train";
  trace.tensors = {{"w1", Bytes{40}, TensorKind::persistent, 0},
                   {"w2", Bytes{20}, TensorKind::persistent, 0},
                   {"g", Bytes{20}},
                   {"loss", Bytes{8}, TensorKind::persistent, 0}};
  trace.operations = {operation("zero", 1, {}, {2})};
  for (const std::uint64_t b : sizes) {
    const auto first = static_cast<std::uint32_t>(trace.tensors.size());
    const auto at = static_cast<std::uint32_t>(trace.operations.size());
    trace.tensors.push_back({"x", Bytes{10 * b}, TensorKind::input, at});
    trace.tensors.push_back({"y", Bytes{3 + 4 * b}});
    trace.tensors.push_back({"work", Bytes{16}});
    trace.operations.push_back(operation("forward", 4 + 2 * b, {first, 0, 1}, {first + 1, first + 2}));
    trace.operations.push_back(operation("back", 3 * b, {first, first + 1}, {}, {2, 3}));
    pieces.push_back({at, 2, b});
  }
  trace.operations.push_back(operation("learn", 9, {2}, {}, {0, 1}));
  trace.host_reads = {{id(3), static_cast<OperationId>(trace.operations.size() - 2)}};
  REQUIRE(check_trace(trace));
  return trace;
}

TEST_CASE("from pieces of two sizes: any number of pieces is as if it had been observed") {
  std::vector<ObservedPiece> pieces;
  const Trace trace = observed({2, 4, 2, 4, 1}, pieces);
  const Result<SplitStep> made = split_step(trace, pieces);
  REQUIRE_MESSAGE(made, (made ? std::string() : made.problem().message));
  CHECK(made->small == 2);
  CHECK(made->large == 4);
  CHECK(made->before.size() == 1);
  CHECK(made->after.size() == 1);
  for (const std::uint64_t n : {1U, 2U, 3U, 7U}) {
    CAPTURE(n);
    const std::vector<std::uint64_t> sizes = piece_sizes(13, n);
    std::vector<ObservedPiece> ignored;
    const Trace expected = observed(sizes, ignored);
    const Result<Trace> written = written_out(*made, sizes);
    REQUIRE_MESSAGE(written, (written ? std::string() : written.problem().message));
    REQUIRE(written->operations.size() == expected.operations.size());
    CHECK(written->tensors.size() == expected.tensors.size());
    for (std::size_t i = 0; i < expected.operations.size(); ++i) {
      CAPTURE(i);
      CHECK(written->operations[i].duration == expected.operations[i].duration);
      CHECK(texts(*written, written->operations[i].reads) == texts(expected, expected.operations[i].reads));
      CHECK(texts(*written, written->operations[i].writes) == texts(expected, expected.operations[i].writes));
      CHECK(texts(*written, written->operations[i].updates) == texts(expected, expected.operations[i].updates));
      for (const TensorId t : written->operations[i].reads) {
        const TraceTensor& tensor = written->tensors[index(t)];
        if (tensor.kind == TensorKind::input && i % 2 == 1) CHECK(tensor.available_from == i);
      }
    }
    REQUIRE(written->host_reads.size() == 1);
    CHECK(written->host_reads[0].after_operation == expected.host_reads[0].after_operation);
  }
}

TEST_CASE("pieces that are not alike are refused") {
  std::vector<ObservedPiece> pieces;
  const Trace good = observed({2, 4, 2}, pieces);
  const auto problem = [](const Trace& trace, const std::vector<ObservedPiece>& given) {
    const Result<SplitStep> made = split_step(trace, given);
    return made ? std::string("none") : made.problem().message;
  };
  CHECK(problem(good, pieces) == "none");
  std::vector<ObservedPiece> other = pieces;
  other[1].samples = 2;
  CHECK(says(problem(good, other), "all have the same"));
  other = pieces;
  other[2].operations = 1;
  CHECK(says(problem(good, other), "piece 2 has 1 operations, and the first piece has 2"));
  other = pieces;
  other[1].first = 4;
  CHECK(says(problem(good, other), "piece 1 does not begin where the one before ends"));
  CHECK(says(problem(good, {pieces[0]}), "fewer than two pieces"));
  other.assign({{4, 2, 2}, {6, 2, 4}, {8, 2, 2}});
  CHECK(says(problem(good, other), "more operations than the trace"));
  Trace trace = good;
  std::swap(trace.operations[5].reads, trace.operations[5].writes);
  CHECK(says(problem(trace, pieces), "operation 5 (forward) is not like operation 3 (forward)"));
  trace = good;
  trace.operations[6].updates = {id(2)};
  CHECK(says(problem(trace, pieces), "operation 6 (back) is not like operation 4 (back)"));
  trace = good;
  trace.lingering = {{id(2), OperationId{7}, 8}};
  CHECK(says(problem(trace, pieces), "values linger"));
}

Machine machine(std::uint64_t budget) {
  Machine made;
  made.device_budget = Bytes{budget};
  made.h2d = made.d2h = {1'000'000'000, nanoseconds{0}};
  return made;
}

TEST_CASE("the least number of pieces is the one whose bundles fit, and the fastest number is chosen") {
  // The largest bundle is that of forward1: 10 b + 40 + 8 + 6 b bytes.
  const SplitStep made = step();
  std::vector<std::uint64_t> tried;
  const auto takes = [&](std::vector<std::int64_t> times) {
    return [&tried, times, i = std::size_t{0}](const Trace& trace, const Machine&) mutable -> Result<Plan> {
      tried.push_back((trace.operations.size() - 2) / 6);
      if (i == times.size()) return Problem{"no more"};
      Plan plan;
      plan.predicted.iteration = nanoseconds{times[i++]};
      return plan;
    };
  };
  // 16 b + 48 <= 128: 5 samples at most, so 4 pieces of 16.
  Result<SplitChoice> choice = choose_pieces(made, 16, machine(128), takes({900, 700, 800, 750}));
  REQUIRE(choice);
  CHECK(tried == std::vector<std::uint64_t>{4, 5, 6, 7, 8, 10, 12, 15});
  CHECK(choice->pieces == 5);
  CHECK(choice->chosen().largest == 4);
  CHECK(choice->chosen().predicted->iteration == nanoseconds{700});
  CHECK(choice->tries.size() == 8);
  CHECK(choice->tries[4].problem == "no more");
  CHECK(choice->unsplit == nanoseconds{25 + 9 * 16 + 16});  // with both steps of the weights

  // The operations of a piece take 25 ns whatever its size: n pieces 160 + 25 n ns without stalls, and three 235.
  tried.clear();
  choice = choose_pieces(made, 16, machine(1000), takes({300, 230, 220}));
  REQUIRE(choice);
  CHECK(tried == std::vector<std::uint64_t>{1, 2});
  CHECK(choice->pieces == 2);

  tried.clear();
  choice = choose_pieces(made, 16, machine(128), takes({900}), {.most_tries = 1, .most_pieces = 4});
  REQUIRE(choice);
  CHECK(choice->pieces == 4);
  choice = choose_pieces(made, 16, machine(63), takes({900}));
  REQUIRE(!choice);
  CHECK(says(choice.problem().message, "not even 16 pieces fit: "));
  choice = choose_pieces(made, 16, machine(128), takes({}), {.most_tries = 2});
  REQUIRE(!choice);
  CHECK(choice.problem().message == "4 pieces: no more");
  REQUIRE(!choose_pieces(made, 0, machine(128), takes({1})));
  REQUIRE(!choose_pieces(made, ~std::uint64_t{0}, machine(128), takes({1})));
  // More pieces than a trace has room for are not even begun.
  choice = choose_pieces(made, std::uint64_t{1} << 40U, machine(128), takes({1}));
  REQUIRE(!choice);
  CHECK(says(choice.problem().message, "not even 2796202 pieces fit: "));
}

}  // namespace swapmm::test::split_step_test
