// SPDX-License-Identifier: Apache-2.0
#include "planner_options.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "quantities.hpp"

namespace swapmm::cli {
namespace {

/// An option of `ilp`: how it is written, and what it means.
struct IlpOption {
  std::string_view name;
  std::string_view value;
  std::string_view summary;
};

constexpr std::array ilp_options = {
    IlpOption{"gap", "SHARE", "end when the plan is so close to the bound: 1% or 0.01 [0]"},
    IlpOption{"program", "NAME", "orders (exact, for small traces), slots (for any trace) or both [both]"},
    IlpOption{"exact", "N", "the program of orders takes up to N operations and N absences [16]"},
    IlpOption{"windows", "N", "a larger plan is decided anew in parts of up to N absences; 0: it is not [10]"},
    IlpOption{"slots", "N", "the program of slots has N of them [one per operation up to 48, else 40]"},
    IlpOption{"nodes", "N", "at most N nodes in the search tree of each program"},
    IlpOption{"best", "on|off", "begin with the plan and the bound of the planner best [on]"},
};

constexpr std::uint64_t most_exact = 1000;
constexpr std::uint64_t most_slots = 100'000;
constexpr std::uint64_t most_nodes = 1'000'000'000;

std::string quoted(std::string_view text) { return '"' + std::string(text) + '"'; }

Problem unknown_option(std::string_view name) {
  std::string names;
  for (const IlpOption& option : ilp_options) names += (names.empty() ? "" : ", ") + std::string(option.name);
  return {"ilp has no option " + quoted(name) + "; there are " + names + " (and --time-limit for the time)"};
}

/// The options as they were written, by name.
class Words {
 public:
  /// Adds "gap=1%". Returns what is wrong with it.
  std::optional<Problem> add(std::string_view word) {
    const std::size_t equals = word.find('=');
    const std::string_view name = word.substr(0, equals);
    if (std::ranges::find(ilp_options, name, &IlpOption::name) == ilp_options.end()) return unknown_option(name);
    if (equals == std::string_view::npos || equals + 1 == word.size()) {
      return Problem{"the option " + quoted(name) + " of ilp has no value; it is written ilp:" + std::string(name) +
                     "=VALUE"};
    }
    if (find(name)) return Problem{"the option " + quoted(name) + " of ilp is there twice"};
    words_.emplace_back(name, word.substr(equals + 1));
    return std::nullopt;
  }

  [[nodiscard]] std::optional<std::string_view> find(std::string_view name) const {
    for (const auto& [known, value] : words_) {
      if (known == name) return value;
    }
    return std::nullopt;
  }

 private:
  std::vector<std::pair<std::string_view, std::string_view>> words_;
};

Problem wrong_value(std::string_view name, const Problem& problem) {
  return {"ilp:" + std::string(name) + ": " + problem.message};
}

/// Reads the values into IlpOptions, and finds contradictions.
class Reader {
 public:
  explicit Reader(const Words& words) : words_(words) {}

  Result<IlpOptions> read() {
    if (const auto text = words_.find("gap")) {
      const Result<double> gap = parse_noise(*text);
      if (!gap) return wrong_value("gap", gap.problem());
      options_.gap = *gap;
    }
    if (auto problem = read_program()) return *std::move(problem);
    std::optional<std::uint64_t> exact, windows, slots, nodes;
    for (auto problem : {whole("exact", 1, most_exact, exact), whole("windows", 0, most_exact, windows),
                         whole("slots", 1, most_slots, slots), whole("nodes", 1, most_nodes, nodes), read_best()}) {
      if (problem) return *std::move(problem);
    }
    if (exact) options_.tiny = static_cast<std::size_t>(*exact);
    if (windows) options_.windows.absences = static_cast<std::size_t>(*windows);
    if (windows == 0U) options_.windows.most = 0;
    if (slots) options_.slots = static_cast<std::uint32_t>(*slots);
    if (nodes) {
      options_.order_nodes = static_cast<std::uint32_t>(*nodes);
      options_.most_nodes = options_.order_nodes;
      options_.windows.nodes = options_.order_nodes;
      options_.least_nodes = std::min(options_.least_nodes, options_.most_nodes);
    }
    return options_;
  }

 private:
  std::optional<Problem> read_program() {
    const auto text = words_.find("program");
    if (!text || *text == "both") return std::nullopt;
    if (*text != "orders" && *text != "slots") {
      return Problem{"ilp:program: " + quoted(*text) + " is none of orders, slots and both"};
    }
    const bool is_orders = *text == "orders";
    for (const std::string_view other : {"slots", "exact", "windows"}) {
      if (!words_.find(other) || is_orders != (other == "slots")) continue;
      return Problem{"ilp:program=" + std::string(*text) + " and ilp:" + std::string(other) +
                     " contradict each other: that program is not solved"};
    }
    options_.slot_program = !is_orders;
    options_.order_program = is_orders;
    return std::nullopt;
  }

  std::optional<Problem> read_best() {
    const auto text = words_.find("best");
    if (!text) return std::nullopt;
    if (*text != "on" && *text != "off") return Problem{"ilp:best: " + quoted(*text) + " is neither on nor off"};
    options_.best_first = *text == "on";
    return std::nullopt;
  }

  std::optional<Problem> whole(std::string_view name, std::uint64_t least, std::uint64_t most,
                               std::optional<std::uint64_t>& value) const {
    const auto text = words_.find(name);
    if (!text) return std::nullopt;
    const Result<std::uint64_t> parsed = parse_whole(*text, least, most);
    if (!parsed) return wrong_value(name, parsed.problem());
    value = *parsed;
    return std::nullopt;
  }

  const Words& words_;
  IlpOptions options_;
};

#ifdef SWAPMM_CLI_HAS_ILP
Result<NamedPlanner> planner_with(const IlpOptions& options) { return ilp_planner(options); }
#else
Result<NamedPlanner> planner_with(const IlpOptions&) {
  return Problem{"this command was built without COIN-OR Cbc, which the planner \"ilp\" needs"};
}
#endif

}  // namespace

std::string_view name_of_planner(std::string_view text) { return text.substr(0, text.find(':')); }

Result<IlpOptions> ilp_options_of(std::string_view text) {
  Words words;
  for (std::size_t colon = text.find(':'); colon != std::string_view::npos;) {
    const std::size_t end = text.find(':', colon + 1);
    if (auto problem = words.add(text.substr(colon + 1, end == std::string_view::npos ? end : end - colon - 1))) {
      return *std::move(problem);
    }
    colon = end;
  }
  return Reader(words).read();
}

Result<NamedPlanner> ilp_planner_of(std::string_view text) {
  const Result<IlpOptions> options = ilp_options_of(text);
  if (!options) return options.problem();
  return planner_with(*options);
}

std::string ilp_option_lines() {
  std::string lines;
  for (const IlpOption& option : ilp_options) {
    std::string left = "  " + std::string(option.name) + '=' + std::string(option.value);
    left.resize(std::max<std::size_t>(left.size() + 1, 18), ' ');
    lines += left + std::string(option.summary) + '\n';
  }
  return lines;
}

}  // namespace swapmm::cli
