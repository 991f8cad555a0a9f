// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

#include <swapmm/answers/split/split.hpp>

namespace swapmm::test::split_answer_test {
using std::chrono::nanoseconds;

SplitTry tried(std::uint64_t pieces, std::int64_t iteration) {
  Prediction predicted;
  predicted.iteration = nanoseconds{iteration};
  return {pieces, (256 + pieces - 1) / pieces, predicted, {}};
}

TEST_CASE("in how many pieces a batch fits, as a sentence") {
  const auto text = [](std::uint64_t pieces, std::vector<SplitTry> tries) {
    return answers::split_text(256, {pieces, std::move(tries), nanoseconds{1000}});
  };
  CHECK(text(4, {tried(3, 1200), tried(4, 1070)}) == "batch 256 does not fit; 4 x 64 does, at 1.070 x");
  CHECK(text(3, {tried(3, 1200)}) == "batch 256 does not fit; 3 pieces of 86 or 85 do, at 1.200 x");
  CHECK(text(1, {tried(1, 1001)}) == "batch 256 fits whole, at 1.001 x; no split that was tried is faster");
  CHECK(text(2, {tried(1, 1300), tried(2, 1070)}) == "batch 256 fits whole, at 1.300 x; 2 x 128 take 1.070 x");
}

TEST_CASE("an answer about pieces has all tries, and a number without a plan has its problem") {
  answers::SplitQuestion question;
  question.trace = "step";
  question.batch = 256;
  question.step.tensors = {{"x", TensorKind::input, {10, 20}, true, {}},
                           {"mean", TensorKind::transient, {4, 4}, true, {}}};
  question.step.statistics = {TensorId{1}};
  SplitChoice choice{4, {{3, 86, {}, "no room"}, tried(4, 2000)}, nanoseconds{0}};
  boost::json::object answer = answers::split_as_json(question, choice);
  CHECK(answer.at("fits") == true);
  CHECK(answer.at("whole_fits") == false);
  CHECK(answer.at("slowdown").is_null());  // relative to no time at all
  CHECK(answer.at("tries").as_array().at(0).at("problem") == "no room");
  CHECK(answer.at("tries").as_array().at(1).at("predicted").at("iteration_ns") == 2000);
  CHECK(answer.at("statistics").as_array().at(0).at("name") == "mean");
  answer = answers::split_as_json(question, Problem{"too large"});
  CHECK(answer.at("fits") == false);
  CHECK(answer.at("problem") == "too large");
}

}  // namespace swapmm::test::split_answer_test
