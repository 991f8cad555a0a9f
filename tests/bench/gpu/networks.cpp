// SPDX-License-Identifier: Apache-2.0
// The demo's network, enlarged, and a stack of transformer blocks: all resident, on demand and by plans, at budgets of
// 1 / k of the peak of live bytes. Writes records as README.md beside this describes them.
#include <algorithm>
#include <array>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <swapmm/formats/machine_json.hpp>
#include <swapmm/formats/trace_json.hpp>

#include "bench/gpu/program.hpp"
#include "bench/gpu/records.hpp"
#include "bench/gpu/subjects.hpp"
#include "bench/gpu/sweep.hpp"

namespace {

using namespace swapmm;
using neural::Arguments;

constexpr std::string_view usage =
    "networks [--network cnn|transformer] [--out FILE] [--k K[,K...]] [--ways WAY[,WAY...]] [--time-limit SECONDS]\n"
    "         [--device NAME] [--layers N] [--width N] [--heads N] [--sequence N] [--batch N] [--channels N]\n"
    "         [--parts N]\n"
    "  --network     default transformer\n"
    "  --out         records as JSON, written anew after each measurement\n"
    "  --k           peak of live bytes / budget, default 1,1.25,1.5,2,3,4\n"
    "  --ways        copies, recompute, compress: a plan of copies alone (the default), one whose operations of the\n"
    "                forward pass may run again, one that encodes values on their way through a tenth of the budget\n"
    "  --time-limit  no further budget is begun after so many seconds, default 240\n"
    "  --batch       sequences (default 8) or images (default 2048)\n"
    "  --channels    of the cnn, default 256\n"
    "  --parts       of the cnn's batch, default 4\n"
    "  --layers, --width, --heads, --sequence  of the transformer, default 6, 4096, 32, 1024\n";

std::vector<std::string> parts_of(const std::string& text) {
  std::vector<std::string> result;
  std::size_t first = 0;
  while (first <= text.size()) {
    const std::size_t end = std::min(text.find(',', first), text.size());
    result.push_back(text.substr(first, end - first));
    first = end + 1;
  }
  return result;
}
std::vector<double> numbers(const std::string& text) {
  std::vector<double> result;
  for (const std::string& part : parts_of(text)) {
    std::size_t used = 0;
    const double value = part.empty() ? 0 : std::stod(part, &used);
    if (used != part.size() || !(value > 0))
      throw std::invalid_argument("--k takes numbers above 0, not \"" + part + "\"");
    result.push_back(value);
  }
  return result;
}
std::vector<bench::Way> ways(const std::string& text) {
  constexpr std::array<std::pair<std::string_view, bench::Way>, 3> all{
      {{"copies", bench::Way::copies}, {"recompute", bench::Way::recompute}, {"compress", bench::Way::compress}}};
  std::vector<bench::Way> result;
  for (const std::string& part : parts_of(text)) {
    const auto known = std::find_if(all.begin(), all.end(), [&](const auto& one) { return one.first == part; });
    if (known == all.end() || std::find(result.begin(), result.end(), known->second) != result.end()) {
      throw std::invalid_argument("--ways takes copies, recompute and compress, each once, not \"" + text + "\"");
    }
    result.push_back(known->second);
  }
  return result;
}

void print(const bench::Record& r) {
  std::cout << std::left << std::setw(24) << r.contender << std::right << std::fixed << std::setprecision(2)
            << std::setw(6) << r.k << std::setw(8) << static_cast<double>(r.memory.value) / 1e9 << " GB ";
  if (!r.iterations_ms.empty()) std::cout << std::setw(10) << bench::median(r.iterations_ms) << " ms";
  if (!r.resident_ms.empty()) {
    std::cout << "  x" << bench::median(r.iterations_ms) / bench::median(r.resident_ms);
  }
  if (r.predicted) std::cout << "  predicted " << static_cast<double>(r.predicted->iteration.count()) / 1e6 << " ms";
  if (r.replays > 0) std::cout << ", " << r.replays << " replays of " << r.replay_ms << " ms";
  if (r.encoded > 0) std::cout << ", " << r.encoded << " tensors encoded";
  if (r.identical && !*r.identical) std::cout << "  DIFFERENT RESULTS";
  std::cout << (r.note.empty() ? "" : "  ") << r.note << std::endl;
}

// Beside the records, for the command's `compare`: NAME.kK.trace and NAME.kK.machine.
void keep_for_planners(const std::string& out, const bench::Record& record) {
  if (!record.trace || !record.machine) return;
  std::ostringstream k;
  k << record.k;
  const std::filesystem::path stem = std::filesystem::path(out).replace_extension("k" + k.str());
  std::ofstream trace(stem.string() + ".trace");
  write_trace(trace, *record.trace);
  std::ofstream machine(stem.string() + ".machine");
  write_machine(machine, *record.machine);
  if (!trace.flush() || !machine.flush()) throw std::runtime_error(stem.string() + " cannot be written");
}

template <class Subject>
int sweep(Subject& subject, const Arguments& arguments) {
  const std::vector<double> ks = numbers(bench::text_or(arguments, "--k", "1,1.25,1.5,2,3,4"));
  const double limit = arguments.number("--time-limit", 240, 1e6);
  const std::string out = arguments.text("--out");
  const bench::Clock clock;

  boost::json::array records;
  bool same = true;
  const auto keep = [&](const bench::Record& record) {
    print(record);
    boost::json::object json = bench::to_json(std::string(Subject::name), subject.config(), record);
    json["machine"] = bench::describe_machine(subject.backend());
    records.push_back(json);
    same = same && record.identical.value_or(true);
    if (!out.empty()) bench::write_json(out, records);
    if (!out.empty()) keep_for_planners(out, record);
  };
  bench::Sweep<Subject> sweep(subject, bench::Steps{}, ways(bench::text_or(arguments, "--ways", "copies")), keep);
  std::size_t left = ks.size();
  double longest = 0;
  for (const double k : ks) {
    const double start = clock.seconds();
    if (start + longest > limit) break;
    sweep.run(k);
    longest = std::max(longest, clock.seconds() - start);
    --left;
  }
  std::cout << clock.seconds() << " s\n";
  if (left > 0) std::cerr << "the time was up: " << left << " of " << ks.size() << " budgets were not measured\n";
  if (!same) std::cerr << "results differ from those of the run with room for everything\n";
  return same && left == 0 ? 0 : 1;
}

int run(const cuda::Backend& backend, const Arguments& arguments) {
  const std::string network = bench::text_or(arguments, "--network", "transformer");
  if (network == "cnn") {
    fashion::Settings settings;
    settings.batch = arguments.whole("--batch", 2048);
    settings.channels = arguments.whole("--channels", 256);
    settings.parts = arguments.whole("--parts", settings.parts);
    bench::CnnSubject subject(backend, settings);
    return sweep(subject, arguments);
  }
  if (network != "transformer") throw std::invalid_argument("--network takes cnn or transformer");
  transformer::Settings settings;
  settings.layers = arguments.whole("--layers", 6);
  settings.width = arguments.whole("--width", 4096);
  settings.heads = arguments.whole("--heads", 32);
  settings.sequence = arguments.whole("--sequence", 1024);
  settings.batch = arguments.whole("--batch", 8);
  bench::TransformerSubject subject(backend, settings);
  return sweep(subject, arguments);
}

}  // namespace

int main(int count, char** words) {
  return neural::run_example(count, words, usage,
                             {"--network", "--out", "--k", "--ways", "--time-limit", "--device", "--layers", "--width",
                              "--heads", "--sequence", "--batch", "--channels", "--parts"},
                             [](const Arguments& arguments) {
                               return bench::run_on_cuda(
                                   arguments, [&](const cuda::Backend& backend) { return run(backend, arguments); });
                             });
}
