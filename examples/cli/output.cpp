// SPDX-License-Identifier: Apache-2.0
#include "output.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <iostream>

#include <boost/json/serialize.hpp>

#include <swapmm/base/text/figures.hpp>

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

std::string ratio_text(std::optional<double> ratio) { return ratio ? decimals(*ratio, 3) : "n/a"; }
std::string percent(std::optional<double> share) { return share ? decimals(*share * 100, 1) + " %" : "n/a"; }

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
