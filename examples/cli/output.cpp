// SPDX-License-Identifier: Apache-2.0
#include "output.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <iostream>

#include <boost/json/serialize.hpp>

#include <swapmm/base/text/figures.hpp>
#include <swapmm/base/text/utf8.hpp>
#include <swapmm/ir/limits.hpp>

#include "printable.hpp"
#include "quantities.hpp"

namespace swapmm::cli {
namespace {

std::string decimals(double value, int digits) {
  std::array<char, 64> text{};
  const int length = std::snprintf(text.data(), text.size(), "%.*f", digits, value);
  return {text.data(), static_cast<std::size_t>(std::clamp(length, 0, static_cast<int>(text.size()) - 1))};
}

/// Characters, not bytes: names may hold anything.
std::size_t width_of(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

}  // namespace

void print_json(const json::object& answer) { std::cout << json::serialize(answer) << '\n'; }

void print_line(std::string_view name, std::string_view text) {
  constexpr std::size_t column = 20;
  const std::size_t width = width_of(name);
  std::cout << "  " << name << std::string(width < column ? column - width : 1, ' ') << printable(text) << '\n';
}

void print_table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width_of(row[i]));
  }
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string space(widths[i] - width_of(row[i]), ' ');
      line += i == 0 ? row[i] + space : "  " + space + row[i];
    }
    line.erase(line.find_last_not_of(' ') + 1);
    std::cout << line << '\n';
  }
}

std::optional<double> ratio(std::chrono::nanoseconds part, std::chrono::nanoseconds whole) {
  if (whole.count() == 0) return std::nullopt;
  return static_cast<double>(part.count()) / static_cast<double>(whole.count());
}

std::optional<double> fraction_of_ideal(std::chrono::nanoseconds compute, std::chrono::nanoseconds iteration) {
  return compute.count() == 0 ? std::nullopt : ratio(compute, iteration);
}

std::string ratio_text(std::optional<double> ratio) { return ratio ? decimals(*ratio, 3) : "n/a"; }
std::string percent(std::optional<double> share) { return share ? decimals(*share * 100, 1) + " %" : "n/a"; }
json::value json_number(std::optional<double> ratio) { return ratio ? json::value(*ratio) : json::value(nullptr); }

json::array json_names(const std::vector<std::string>& names) {
  json::array list;
  for (const std::string& name : names) list.emplace_back(json_name(name));
  return list;
}

json::string json_name(std::string_view name) {
  const std::string text = text::to_valid_utf8(name, limits::name_bytes);
  return json::string(text.data(), text.size());
}

json::object to_json(const Machine& machine) {
  json::object result;
  result["name"] = json_name(machine.name);
  result["device_budget_bytes"] = machine.device_budget.value;
  result["alignment_bytes"] = machine.alignment.value;
  result["max_allocation_bytes"] = machine.max_allocation ? json::value(machine.max_allocation->value) : nullptr;
  result["h2d_bytes_per_second"] = machine.h2d.bytes_per_second;
  result["d2h_bytes_per_second"] = machine.d2h.bytes_per_second;
  result["h2d_latency_ns"] = machine.h2d.latency.count();
  result["d2h_latency_ns"] = machine.d2h.latency.count();
  result["duplex"] = machine.duplex == Duplex::full ? "full" : "half";
  return result;
}

json::object to_json(const Prediction& predicted) {
  json::object result;
  result["iteration_ns"] = predicted.iteration.count();
  result["compute_ns"] = predicted.compute.count();
  result["lower_bound_ns"] = predicted.lower_bound.count();
  result["h2d_bytes"] = predicted.h2d.value;
  result["d2h_bytes"] = predicted.d2h.value;
  result["peak_bytes"] = predicted.peak.value;
  return result;
}

json::array to_json(const std::vector<Stall>& stalls, std::size_t most, const Trace& trace, const Plan& plan) {
  json::array list;
  for (const Stall& stall : stalls) {
    if (list.size() == most) break;
    json::object entry;
    entry["operation"] = index(stall.operation);
    entry["operation_name"] = json_name(trace.operations[index(stall.operation)].name);
    entry["time_ns"] = stall.time.count();
    if (stall.copy) {
      const Command& copy = plan.commands[index(*stall.copy)];
      entry["waits_for"] = copy.kind == CommandKind::swap_in ? "swap_in" : "room";
      entry["command"] = index(*stall.copy);
      entry["tensor"] = index(copy.tensor);
      entry["tensor_name"] = json_name(trace.tensors[index(copy.tensor)].name);
      entry["tensor_bytes"] = trace.tensors[index(copy.tensor)].bytes.value;
    }
    list.push_back(std::move(entry));
  }
  return list;
}

void print_stalls(const std::vector<Stall>& stalls, std::size_t most, const Trace& trace, const Plan& plan) {
  std::chrono::nanoseconds total{0};
  for (const Stall& stall : stalls) total += stall.time;
  std::cout << '\n'
            << stalls.size() << (stalls.size() == 1 ? " operation waits, " : " operations wait, ")
            << text::time_text(total) << " in all";
  std::cout << (stalls.empty() ? "\n" : "; the longest:\n");
  for (std::size_t i = 0; i < std::min(most, stalls.size()); ++i) {
    const Stall& stall = stalls[i];
    std::string text = "operation " + numbered(index(stall.operation), trace.operations[index(stall.operation)].name);
    if (stall.copy) {
      const Command& copy = plan.commands[index(*stall.copy)];
      const TraceTensor& tensor = trace.tensors[index(copy.tensor)];
      text += copy.kind == CommandKind::swap_in ? " waits for tensor " : " waits for the room of tensor ";
      text += numbered(index(copy.tensor), tensor.name) + " (" + decimal_size(tensor.bytes) + ")";
      text += copy.kind == CommandKind::swap_in ? " to come in" : " that goes out";
    } else {
      text += " waits";
    }
    std::string time = text::time_text(stall.time);
    time.insert(0, time.size() < 12 ? 12 - time.size() : 0, ' ');
    std::cout << time << "  " << text << '\n';
  }
}

void print_times(std::chrono::nanoseconds compute, std::chrono::nanoseconds bound, std::chrono::nanoseconds iteration) {
  print_line("computation", text::time_text(compute));
  print_line("no schedule beats", text::time_text(bound));
  std::string plan = text::time_text(iteration) + ", " + ratio_text(ratio(iteration, compute)) +
                     " x the computation, " + ratio_text(ratio(iteration, bound)) + " x the bound";
  if (compute.count() == 0) plan += " (n/a: " + std::string(no_computation) + ")";
  print_line("this plan", plan);
}

void print_prediction(const Prediction& predicted) {
  print_times(predicted.compute, predicted.lower_bound, predicted.iteration);
  print_line("copies", decimal_size(predicted.h2d) + " in, " + decimal_size(predicted.d2h) + " out an iteration");
  print_line("device memory used", decimal_size(predicted.peak));
}

std::string numbered(std::size_t number, std::string_view name) {
  return std::to_string(number) + " \"" + printable(name) + '"';
}

}  // namespace swapmm::cli
