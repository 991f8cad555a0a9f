// SPDX-License-Identifier: Apache-2.0
#include "options.hpp"

#include <utility>

#include <boost/json/parse.hpp>

#include <swapmm/answers/quantities.hpp>
#include <swapmm/formats/json/reader.hpp>
#include <swapmm/formats/machine_json.hpp>

namespace swapmm::python {

using quantity::parse_size;

Options::Options(std::string_view text) {
  boost::system::error_code error;
  json::value value = json::parse(text, error);
  if (error || !value.is_object()) throw UsageError("the options are no JSON object");
  fields_ = std::move(value.as_object());
}

const json::value* Options::find(std::string_view name) const {
  const auto found = fields_.find(name);
  return found == fields_.end() || found->value().is_null() ? nullptr : &found->value();
}

std::optional<std::string> Options::text(std::string_view name) const {
  const json::value* const value = find(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_string()) throw UsageError(std::string(name) + " is no text");
  return std::string(value->as_string());
}

std::vector<std::string> Options::texts(std::string_view name) const {
  const json::value* const value = find(name);
  std::vector<std::string> texts;
  if (value == nullptr) return texts;
  if (!value->is_array()) throw UsageError(std::string(name) + " is no list");
  for (const json::value& text : value->as_array()) {
    if (!text.is_string()) throw UsageError(std::string(name) + " has something that is no text");
    texts.emplace_back(text.as_string());
  }
  return texts;
}

bool Options::is_on(std::string_view name) const {
  const json::value* const value = find(name);
  return value != nullptr && value->is_bool() && value->as_bool();
}

std::uint64_t Options::count(std::string_view name, std::uint64_t otherwise) const {
  const json::value* const value = find(name);
  if (value == nullptr) return otherwise;
  boost::system::error_code error;
  const auto number = value->to_number<std::uint64_t>(error);
  if (error) throw UsageError(std::string(name) + " is no whole number from 0 on");
  return number;
}

answers::MachineFigures Options::figures() const {
  answers::MachineFigures figures;
  figures.budget = quantity("budget", answers::parse_budget);
  figures.bandwidth = quantity("bandwidth", answers::parse_bandwidth);
  figures.bandwidth_in = quantity("bandwidth_in", answers::parse_bandwidth);
  figures.bandwidth_out = quantity("bandwidth_out", answers::parse_bandwidth);
  figures.latency = quantity("latency", answers::parse_time);
  figures.alignment = quantity("alignment", parse_size);
  figures.max_allocation = quantity("max_allocation", parse_size);
  figures.half_duplex = is_on("half_duplex");
  return figures;
}

Machine Options::machine(const Trace& trace) const {
  std::optional<Machine> given;
  if (const std::optional<std::string> text = this->text("machine")) {
    if (swapmm::json::find_version(*text) == 2) {
      throw UsageError("machine: one of version 2 is for the command `swapmm` alone");
    }
    given = required(read_machine(*text), "machine");
  }
  Result<Machine> made = answers::machine_with(figures(), std::move(given), trace);
  if (!made) throw UsageError(made.problem().message);
  return *std::move(made);
}

answers::TimeLimit Options::limit() const { return quantity("time_limit", answers::parse_time); }

Ways Options::ways() const {
  const std::optional<std::string> given = text("ways");
  return given ? required(answers::parse_ways(*given), "ways") : Ways{};
}

answers::Disturbance Options::disturbance() const {
  answers::Disturbance disturbance;
  disturbance.noise = quantity("noise", answers::parse_noise).value_or(0);
  disturbance.slow_link = quantity("slow_link", answers::parse_slow_link);
  disturbance.seed = count("seed", disturbance.seed);
  disturbance.draws = count("draws", disturbance.draws);
  if (disturbance.draws == 0 || disturbance.draws > 100'000) throw UsageError("draws: from 1 to 100000");
  return disturbance;
}

}  // namespace swapmm::python
