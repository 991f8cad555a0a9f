// SPDX-License-Identifier: Apache-2.0
#include "fashion_mnist/results.hpp"

#include <algorithm>
#include <boost/json.hpp>
#include <cstdio>
#include <fstream>
#include <functional>
#include <iomanip>
#include <ostream>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <system_error>

#include <swapmm/formats/profile_events.hpp>
#include <swapmm/formats/profile_svg.hpp>
#include <swapmm/ir/liveness.hpp>

namespace fashion {
namespace {

double mib(swapmm::Bytes bytes) { return static_cast<double>(bytes.value) / (1U << 20U); }

double fraction(const DemoResult& result, swapmm::Bytes budget) {
  return static_cast<double>(budget.value) / static_cast<double>(result.memory.total.value);
}

/// "812.3 (1.05)": milliseconds, and how many times those without a limit.
std::string time_cell(double milliseconds, double unlimited) {
  std::ostringstream text;
  text << std::fixed << std::setprecision(1) << milliseconds << " (" << std::setprecision(2) << milliseconds / unlimited
       << ')';
  return text.str();
}
std::string cell(std::optional<double> value, int digits = 1) {
  if (!value) return "-";
  std::ostringstream text;
  text << std::fixed << std::setprecision(digits) << *value;
  return text.str();
}

void print_memory(std::ostream& out, const DemoResult& result) {
  const MemoryAtPeak& m = result.memory;
  out << std::fixed << std::setprecision(1) << "At the peak of an iteration " << mib(m.total)
      << " MiB live: " << mib(m.activations) << " activations, " << mib(m.gradients) << " their gradients, "
      << mib(m.parameters) << " weights and momenta, " << mib(m.inputs) << " images, " << mib(m.work_areas)
      << " work areas.\nThe largest bundle, " << m.largest_bundle_operation << ", needs " << mib(m.largest_bundle)
      << " MiB, " << 100 * fraction(result, m.largest_bundle) << " % of that.\n\n";
}

void print_pieces(std::ostream& out, const DemoResult& result) {
  if (result.pieces == 0) return;
  out << "That is the whole batch. It is divided into " << result.pieces << " pieces, one after the other.\n";
  for (const PiecesTried& tried : result.pieces_tried) {
    out << "  " << std::setw(4) << tried.pieces << " pieces: predicted " << cell(tried.predicted_ms)
        << " ms per iteration" << (tried.pieces == result.pieces ? ", taken\n" : "\n");
  }
  out << '\n';
}

boost::json::object json_of(const DemoResult& demo, const RunResult& run) {
  boost::json::object object;
  object["name"] = run.name;
  object["budget_fraction"] = fraction(demo, run.budget);
  object["budget_bytes"] = run.budget.value;
  object["k"] = 1 / fraction(demo, run.budget);
  object["on_demand_ms"] = run.on_demand_ms;
  object["on_demand_stall_ms"] = run.on_demand_stall_ms;
  object["scheduled_ms"] = run.scheduled_ms;
  object["predicted_ms"] = run.predicted_ms ? boost::json::value(*run.predicted_ms) : boost::json::value(nullptr);
  object["lower_bound_ms"] = run.lower_bound_ms ? boost::json::value(*run.lower_bound_ms) : boost::json::value(nullptr);
  object["h2d_bytes"] = run.h2d.value;
  object["d2h_bytes"] = run.d2h.value;
  object["stall_ms"] = run.stall_ms;
  object["steps"] = run.steps;
  object["training_loss"] = run.loss;
  object["test_accuracy"] = run.accuracy ? boost::json::value(*run.accuracy) : boost::json::value(nullptr);
  object["weights_identical"] = run.weights_identical;
  return object;
}

boost::json::object json_of(const DemoResult& result) {
  boost::json::object object;
  object["device"] = result.device;
  object["host_shares_memory"] = result.host_shares_memory;
  object["batch"] = result.batch;
  object["pieces"] = result.pieces;
  boost::json::array tried;
  for (const PiecesTried& one : result.pieces_tried) {
    tried.push_back(
        {{"pieces", one.pieces}, {"predicted_ms", one.predicted_ms ? boost::json::value(*one.predicted_ms) : nullptr}});
  }
  object["pieces_tried"] = std::move(tried);
  object["steps"] = result.steps;
  object["peak_live_bytes"] = result.memory.total.value;
  object["peak_live_bytes_by_kind"] = {{"activations", result.memory.activations.value},
                                       {"gradients", result.memory.gradients.value},
                                       {"weights_and_momenta", result.memory.parameters.value},
                                       {"inputs", result.memory.inputs.value},
                                       {"work_areas", result.memory.work_areas.value}};
  object["largest_bundle_bytes"] = result.memory.largest_bundle.value;
  object["unlimited_ms"] = result.unlimited_ms;
  object["unlimited_stall_ms"] = result.unlimited_stall_ms;
  object["training_loss"] = result.loss;
  object["training_loss_of_short_runs"] = result.loss_of_some;
  object["test_accuracy"] = result.test_accuracy;
  boost::json::array runs;
  for (const RunResult& run : result.runs) runs.push_back(json_of(result, run));
  object["runs"] = std::move(runs);
  return object;
}

std::filesystem::path unfinished(std::filesystem::path path) {
  path += ".unfinished";
  return path;
}
[[noreturn]] void cannot_write(const std::filesystem::path& path, const std::error_code& why) {
  std::error_code ignored;
  std::filesystem::remove(unfinished(path), ignored);
  throw std::runtime_error("cannot write " + path.string() + ": " + why.message());
}

// Under another name first: whoever looks at the file finds all of it.
void write_whole(const std::filesystem::path& path, const std::function<void(std::ostream&)>& write) {
  std::ofstream out(unfinished(path), std::ios::binary);
  try {
    write(out);
  } catch (...) {
    std::error_code ignored;
    std::filesystem::remove(unfinished(path), ignored);
    throw;
  }
  out.close();
  if (!out) cannot_write(path, std::make_error_code(std::errc::io_error));
  std::error_code failure;
  std::filesystem::rename(unfinished(path), path, failure);
  if (failure) cannot_write(path, failure);
}

}  // namespace

MemoryAtPeak memory_at_peak(const swapmm::Trace& trace, swapmm::Bytes alignment) {
  const swapmm::Liveness liveness = swapmm::analyze_liveness(trace, alignment);
  MemoryAtPeak memory;
  memory.total = liveness.peak;
  memory.largest_bundle = liveness.largest_bundle;
  memory.largest_bundle_operation = trace.operations[swapmm::index(liveness.largest_bundle_operation)].name;
  const auto peak = std::max_element(liveness.live.begin(), liveness.live.end()) - liveness.live.begin();
  for (const swapmm::TensorId id :
       swapmm::tensors_live_at(trace, liveness, swapmm::id_at<swapmm::OperationId>(static_cast<std::size_t>(peak)))) {
    const swapmm::TraceTensor& tensor = trace.tensors[swapmm::index(id)];
    const auto is = [&](std::string_view part) { return tensor.name.find(part) != std::string::npos; };
    swapmm::Bytes& kind = is(".scratch")                             ? memory.work_areas
                          : is(".gradient")                          ? memory.gradients
                          : is(".weights") || is(".bias")            ? memory.parameters
                          : tensor.kind == swapmm::TensorKind::input ? memory.inputs
                                                                     : memory.activations;
    kind += swapmm::round_up(tensor.bytes, alignment);
  }
  return memory;
}

bool DemoResult::all_identical() const {
  return std::all_of(runs.begin(), runs.end(), [](const RunResult& run) { return run.weights_identical; });
}

void print(std::ostream& out, const DemoResult& result) {
  std::ostringstream text;
  print_memory(text, result);
  print_pieces(text, result);
  text << std::fixed << std::setprecision(1) << "Without a limit: " << result.unlimited_ms << " ms per iteration of "
       << result.batch << " images, " << result.steps << " iterations, training loss " << std::setprecision(3)
       << result.loss << " (" << result.loss_of_some << " over the first of them), test accuracy "
       << std::setprecision(1) << 100 * result.test_accuracy << " %.\n\n"
       << "Times in ms per iteration, in brackets relative to no limit; stalls: the device runs no operation; MB "
          "copied\n"
          "per iteration, the batch's own included.\n\n"
       << " budget                  k       on demand  stalls      by the plan  stalls  predicted    in MB   out MB   "
          "loss"
          "  weights\n";
  for (const RunResult& run : result.runs) {
    const double part = fraction(result, run.budget);
    text << std::setprecision(1) << std::setw(6) << 100 * part << " % " << std::setw(7) << mib(run.budget) << " MiB"
         << std::setprecision(2) << std::setw(6) << 1 / part << std::setw(16)
         << time_cell(run.on_demand_ms, result.unlimited_ms) << std::setw(8) << cell(run.on_demand_stall_ms)
         << std::setw(17) << time_cell(run.scheduled_ms, result.unlimited_ms) << std::setw(8) << cell(run.stall_ms)
         << std::setw(11) << cell(run.predicted_ms) << std::setprecision(1) << std::setw(9)
         << static_cast<double>(run.h2d.value) / 1e6 << std::setw(9) << static_cast<double>(run.d2h.value) / 1e6
         << std::setprecision(3) << std::setw(7) << run.loss << "  "
         << (run.weights_identical ? "identical" : "DIFFERENT") << " after " << run.steps << '\n';
  }
  for (const RunResult& run : result.runs) {
    if (run.accuracy) {
      text << "\nTrained to the end in " << std::setprecision(1) << mib(run.budget) << " MiB: test accuracy "
           << 100 * *run.accuracy << " %.\n";
    }
    for (const std::string& note : run.notes) text << run.name << ": " << note << '\n';
  }
  if (result.host_shares_memory) {
    text << "\nThis device shares the host's memory: swapping is shown, and saves nothing. Where it is a CPU, copies "
            "take\n"
            "their time from the cores that compute.\n";
  }
  out << text.str();
}

void check_writable(const std::filesystem::path& report) {
  std::ofstream out(unfinished(report), std::ios::binary);
  if (!out || std::filesystem::is_directory(report)) cannot_write(report, std::make_error_code(std::errc::io_error));
  out.close();
  std::filesystem::remove(unfinished(report));
}

ReportFiles write_files(const std::filesystem::path& report, const DemoResult& result) {
  std::string stem = report.stem().string();
  if (stem.ends_with("-report")) stem.resize(stem.size() - std::string_view("-report").size());
  const ReportFiles files{report, report.parent_path() / (stem + "-trace.json"),
                          report.parent_path() / (stem + "-memory.svg")};
  std::vector<swapmm::Profile> profiles{result.profile};
  for (const RunResult& run : result.runs) {
    profiles.push_back(run.profile);
    profiles.push_back(run.on_demand_profile);
  }
  const auto trained = std::find_if(result.runs.begin(), result.runs.end(),
                                    [](const RunResult& run) { return run.accuracy.has_value(); });
  const swapmm::Profile& pictured = trained == result.runs.end() ? result.profile : trained->profile;
  write_whole(files.trace, [&](std::ostream& out) { swapmm::write_trace_events(out, profiles); });
  write_whole(files.picture, [&](std::ostream& out) { swapmm::write_svg(out, pictured); });
  write_whole(files.report, [&](std::ostream& out) { out << boost::json::serialize(json_of(result)) << '\n'; });
  return files;
}

}  // namespace fashion
