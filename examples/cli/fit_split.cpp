// SPDX-License-Identifier: Apache-2.0
#include "fit_split.hpp"

#include <algorithm>
#include <iostream>
#include <utility>
#include <vector>

#include <swapmm/answers/split/split.hpp>
#include <swapmm/base/text/figures.hpp>

#include "files.hpp"
#include "output.hpp"
#include "printable.hpp"
#include "quantities.hpp"

namespace swapmm::cli {
namespace {

SplitStep learn_step(const FitSplit& asked, const Trace& trace) {
  if (asked.batches.size() != 2) {
    throw Failure(ExitCode::usage,
                  "--split needs --batches with the numbers of samples of both traces: --batches 256,64");
  }
  const Trace other = load_trace(asked.other);
  Result<SplitStep> step = split_step(trace, asked.batches[0], other, asked.batches[1]);
  if (!step) throw Failure(ExitCode::usage, asked.other + ": " + step.problem().message);
  return *std::move(step);
}

Result<SplitChoice> choose(const FitSplit& asked, const SplitQuestion& question) {
  Progress progress(asked.quiet);
  std::vector<std::string> notes;
  const auto plan = [&](const Trace& whole, const Machine& machine) {
    progress.begin("planning " + printable(whole.name) + " with " + std::to_string(whole.operations.size()) +
                   " operations");
    Planned planned = run_planner(asked.planner, whole, machine, asked.limit, progress);
    notes.insert(notes.end(), planned.notes.begin(), planned.notes.end());
    return std::move(planned.plan);
  };
  Result<SplitChoice> choice = choose_pieces(question.step, question.batch, question.machine, plan);
  progress.end();
  tell_notes(notes);
  return choice;
}

std::vector<std::string> row_of(const SplitQuestion& question, const SplitChoice& choice, const SplitTry& tried) {
  std::vector<std::string> row{pieces_text(question.batch, tried.pieces)};
  if (!tried.predicted) {
    row.insert(row.end(), {"no plan", "", "", ""});
    return row;
  }
  row.push_back(text::time_text(tried.predicted->iteration));
  row.push_back(ratio_text(slowdown_of(choice, tried)));
  row.push_back(decimal_size(tried.predicted->h2d));
  row.push_back(decimal_size(tried.predicted->d2h));
  return row;
}

/// At most `top` of them.
void tell_statistics(const SplitStep& step, std::size_t top) {
  if (step.statistics.empty()) return;
  std::cout
      << "\nIn pieces the program may compute other values than with the whole batch. Operations on samples read\n"
         "what was computed from all samples, and does not grow with them (batch normalisation does so):\n";
  const std::size_t shown = std::min(top, step.statistics.size());
  for (std::size_t i = 0; i < shown; ++i) {
    const TensorId id = step.statistics[i];
    std::cout << "  tensor " << numbered(index(id), step.tensors[index(id)].name) << '\n';
  }
  if (shown < step.statistics.size()) std::cout << "  and " << step.statistics.size() - shown << " more\n";
}

void tell(const SplitQuestion& question, const Result<SplitChoice>& choice, std::size_t top) {
  const SplitStep& step = question.step;
  std::cout << printable(question.trace) << " on " << describe(question.machine) << "\n\n";
  if (!choice) {
    print_line("fits", "no: " + choice.problem().message);
    return;
  }
  print_line("fits", split_text(question.batch, *choice));
  print_line("operations", std::to_string(step.piece.size()) + " for each piece, " +
                               std::to_string(step.before.size()) + " before and " + std::to_string(step.after.size()) +
                               " after them");
  print_line("unsplit, no stall", text::time_text(choice->unsplit));
  std::cout << '\n';
  std::vector<std::vector<std::string>> rows{{"pieces", "a step", "x unsplit", "copied in", "out"}};
  for (const SplitTry& tried : choice->tries) rows.push_back(row_of(question, *choice, tried));
  print_table(rows);
  tell_statistics(step, top);
}

}  // namespace

ExitCode fit_split(const FitSplit& asked, std::string_view machine_text) {
  const Trace trace = load_trace(asked.trace);
  SplitQuestion question{trace.name, asked.planner, make_machine(asked.machine, trace, machine_text), 1,
                         learn_step(asked, trace)};
  question.batch = asked.batch.value_or(asked.batches[0]);
  const Result<SplitChoice> choice = choose(asked, question);
  if (asked.json) {
    print_json(split_as_json(question, choice));
  } else {
    tell(question, choice, asked.top);
  }
  return choice ? ExitCode::ok : ExitCode::no;
}

}  // namespace swapmm::cli
