// SPDX-License-Identifier: Apache-2.0
#include <swapmm/answers/split/split.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

#include <swapmm/base/text/figures.hpp>

namespace swapmm::answers {
namespace {

std::string times_text(std::optional<double> ratio) {
  constexpr double most = 1e12;
  if (!ratio) return "n/a";
  return text::fixed_point(std::llround(std::min(*ratio, most) * 1000), 1000, 3) + " x";
}

json::object to_json(const SplitChoice& choice, const SplitTry& tried) {
  json::object answer;
  answer["pieces"] = tried.pieces;
  answer["largest_piece"] = tried.largest;
  answer["fits"] = tried.predicted.has_value();
  if (tried.predicted) {
    answer["slowdown"] = json_number(slowdown_of(choice, tried));
    answer["predicted"] = answers::to_json(*tried.predicted);
  } else {
    answer["problem"] = json_name(tried.problem);
  }
  return answer;
}

void add_choice(json::object& answer, const SplitChoice& choice) {
  answer["whole_fits"] = choice.tries.front().pieces == 1;
  answer["least_pieces"] = choice.tries.front().pieces;
  answer["pieces"] = choice.pieces;
  answer["unsplit_ns"] = choice.unsplit.count();
  answer["slowdown"] = json_number(slowdown_of(choice, choice.chosen()));
  json::array tries;
  for (const SplitTry& tried : choice.tries) tries.push_back(to_json(choice, tried));
  answer["tries"] = std::move(tries);
}

}  // namespace

std::string pieces_text(std::uint64_t batch, std::uint64_t pieces) {
  const std::string each = std::to_string(batch / pieces);
  if (batch % pieces == 0) return std::to_string(pieces) + " x " + each;
  return std::to_string(pieces) + " pieces of " + std::to_string(batch / pieces + 1) + " or " + each;
}

std::string split_text(std::uint64_t batch, const SplitChoice& choice) {
  const std::string name = "batch " + std::to_string(batch);
  const std::string chosen = pieces_text(batch, choice.pieces);
  const std::string at = times_text(slowdown_of(choice, choice.chosen()));
  const SplitTry& whole = choice.tries.front();
  if (whole.pieces > 1) {
    return name + " does not fit; " + chosen + (batch % choice.pieces == 0 ? " does, at " : " do, at ") + at;
  }
  const std::string fits_whole = name + " fits whole, at " + times_text(slowdown_of(choice, whole));
  if (choice.pieces == 1) return fits_whole + "; no split that was tried is faster";
  return fits_whole + "; " + chosen + " take " + at;
}

std::optional<double> slowdown_of(const SplitChoice& choice, const SplitTry& tried) {
  if (!tried.predicted) return std::nullopt;
  return ratio(tried.predicted->iteration, choice.unsplit);
}

json::object split_as_json(const SplitQuestion& question, const Result<SplitChoice>& choice) {
  json::object answer;
  answer["fits"] = choice.has_value();
  answer["trace"] = json_name(question.trace);
  answer["machine"] = answers::to_json(question.machine);
  answer["planner"] = json_name(question.planner);
  answer["batch"] = question.batch;
  answer["observed_batches"] = json::array{question.step.small, question.step.large};
  if (choice) {
    add_choice(answer, *choice);
  } else {
    answer["problem"] = json_name(choice.problem().message);
  }
  answer["operations"] = json::object{{"before", question.step.before.size()},
                                      {"in_each_piece", question.step.piece.size()},
                                      {"after", question.step.after.size()}};
  json::array statistics;
  for (const TensorId id : question.step.statistics) {
    statistics.push_back(
        json::object{{"tensor", index(id)}, {"name", json_name(question.step.tensors[index(id)].name)}});
  }
  answer["statistics"] = std::move(statistics);
  return answer;
}

}  // namespace swapmm::answers
